//! What can be installed and what it offers; listing grants nothing.

use serde::Serialize;

use crate::contract::extension::{
    BUILT_IN_CAPABILITIES, BUNDLED, ExtensionState, Manifest, Permission, Unavailable,
};
use crate::flow::extension::ExtensionError;
use crate::flow::extension_gate::is_same_program;
use crate::kernel::extension;
use crate::store::document::extension_state::ExtensionStateFile;

/// One installed or installable extension.
#[derive(Debug, Serialize)]
struct ListedExtension {
    extension_id: String,
    installed: bool,
    enabled: bool,
    verified: bool,
    active_revision: Option<String>,
    rollback_revision: Option<String>,
    permissions: Vec<String>,
    provides: Vec<String>,
    recovery_command: Option<String>,
}

/// The catalogue of extensions.
#[derive(Debug, Serialize)]
pub struct ListPacket {
    ok: bool,
    schema_version: &'static str,
    extensions: Vec<ListedExtension>,
    permission_granted: bool,
    external_writes_performed: bool,
}

/// Lists bundled and installed extensions; nothing is granted by it.
pub fn list(file: &ExtensionStateFile) -> Result<ListPacket, ExtensionError> {
    let state = file.read()?;
    Ok(ListPacket {
        ok: true,
        schema_version: "loopx_extension_list_v0",
        extensions: catalogue(&state)
            .map(|(id, manifest)| listed(&state, id, manifest))
            .collect(),
        permission_granted: false,
        external_writes_performed: false,
    })
}

fn listed(state: &ExtensionState, id: String, manifest: Manifest) -> ListedExtension {
    let entry = state.get(&id);
    let status = status_of(state, &id);
    ListedExtension {
        installed: entry.is_some(),
        enabled: entry.is_some_and(|entry| entry.enabled),
        verified: status.is_ok(),
        active_revision: entry.map(|entry| entry.active_revision.clone()),
        rollback_revision: entry.and_then(|entry| entry.rollback_revision.clone()),
        permissions: manifest.permissions,
        provides: manifest.provides,
        recovery_command: status.err().map(|refusal| refusal.recovery_command),
        extension_id: id,
    }
}

/// The bundled extensions and every other installed one, each with the manifest in force.
fn catalogue(state: &ExtensionState) -> impl Iterator<Item = (String, Manifest)> + '_ {
    let bundled = BUNDLED.iter().map(|id| (*id).to_owned());
    let others = state
        .entries
        .iter()
        .map(|entry| entry.id.clone())
        .filter(|id| !BUNDLED.contains(&id.as_str()));
    bundled.chain(others).filter_map(|id| {
        let manifest = match state.get(&id) {
            Some(entry) => entry.manifest(),
            None => Manifest::bundled(&id),
        };
        manifest.map(|manifest| (id, manifest))
    })
}

fn status_of(state: &ExtensionState, id: &str) -> Result<(), Unavailable> {
    let needed = match id == Permission::OperationSimulate.extension() {
        true => Permission::OperationSimulate,
        false => Permission::InboxRead,
    };
    // Another extension has no command of ours and needs no permission for one.
    let permissions = match needed.extension() == id {
        true => &[needed][..],
        false => &[],
    };
    extension::resolve_named(state, (id, permissions), is_same_program).map(drop)
}

/// One capability and who provides it.
#[derive(Debug, Serialize)]
struct ListedCapability {
    capability_id: String,
    provider: String,
    provider_kind: &'static str,
    installed: bool,
    enabled: bool,
    verified: bool,
    available: bool,
    recovery_command: Option<String>,
}

/// The catalogue of capabilities.
#[derive(Debug, Serialize)]
pub struct CapabilityPacket {
    ok: bool,
    schema_version: &'static str,
    capabilities: Vec<ListedCapability>,
    permission_granted: bool,
    external_reads_performed: bool,
    external_writes_performed: bool,
}

/// Lists capabilities; the same catalogue with and without a provider.
pub fn capabilities(file: &ExtensionStateFile) -> Result<CapabilityPacket, ExtensionError> {
    let state = file.read()?;
    let built_in = BUILT_IN_CAPABILITIES.iter().map(|id| ListedCapability {
        capability_id: (*id).to_owned(),
        provider: "loopx".to_owned(),
        provider_kind: "built_in",
        installed: true,
        enabled: true,
        verified: true,
        available: true,
        recovery_command: None,
    });
    let extended = catalogue(&state).flat_map(|(id, manifest)| provided(&state, &id, manifest));
    Ok(CapabilityPacket {
        ok: true,
        schema_version: "loopx_capability_list_v0",
        capabilities: built_in.chain(extended).collect(),
        permission_granted: false,
        external_reads_performed: false,
        external_writes_performed: false,
    })
}

fn provided(state: &ExtensionState, id: &str, manifest: Manifest) -> Vec<ListedCapability> {
    let entry = state.get(id);
    let status = status_of(state, id);
    let enabled = entry.is_some_and(|entry| entry.enabled);
    let capability = |capability_id| ListedCapability {
        capability_id,
        provider: id.to_owned(),
        provider_kind: "extension",
        installed: entry.is_some(),
        enabled,
        verified: status.is_ok(),
        available: enabled && status.is_ok(),
        recovery_command: status
            .as_ref()
            .err()
            .map(|refusal| refusal.recovery_command.clone()),
    };
    manifest.provides.into_iter().map(capability).collect()
}
