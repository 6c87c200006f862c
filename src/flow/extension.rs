//! Installing, verifying and switching extensions. The probe looks at the program alone: it calls no provider.
//!
//! 1. read the record  2. decide the change  3. preview returns here  4. probe  5. under the lock: the record must still be the one that
//!    was read, then it is replaced  6. packet

use std::path::PathBuf;

use serde::Serialize;

use crate::contract::channel::outcome::ExternalWriteOutcome;
use crate::contract::extension::{
    Entrypoint, ExtensionEntry, ExtensionState, Manifest, RecordedVerification,
};
use crate::contract::extension_scopes::{ScopeAdvice, ScopeGroup};
use crate::flow::Mode;
use crate::flow::extension_gate::is_same_program;
use crate::flow::place::Place;
use crate::flow::store_code::store_code;
use crate::kernel::extension::{self, Refused, Switch};
use crate::store::StoreError;
use crate::store::document::extension_state::ExtensionStateFile;
use crate::store::lock::{Claim, Policy};
use crate::workspace::entrypoint;

/// Why an extension command does not do what it was asked to.
#[derive(Debug, thiserror::Error)]
pub enum ExtensionError {
    #[error(transparent)]
    Refused(#[from] Refused),
    #[error("the program could not be verified; nothing was changed")]
    ProbeFailed,
    #[error("the record of extensions changed during the command; retry")]
    Changed,
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ExtensionError {
    /// Returns the machine code.
    pub const fn code(&self) -> &'static str {
        match self {
            Self::Refused(refused) => refused.code(),
            Self::ProbeFailed => "extension_probe_failed",
            Self::Changed => "extension_record_changed",
            Self::Store(error) => store_code(error),
        }
    }
}

/// The record of a place, or the one in a named file.
pub fn record(place: &Place, file: Option<PathBuf>) -> ExtensionStateFile {
    match file {
        Some(path) => ExtensionStateFile::at(path),
        None => ExtensionStateFile::of_runtime(&place.runtime_root),
    }
}

/// A change of the record.
#[derive(Debug)]
pub enum Operation {
    Install(Manifest),
    Upgrade(Manifest),
    Enable(String),
    Disable(String),
    Rollback(String),
}

impl Operation {
    const fn name(&self) -> &'static str {
        match self {
            Self::Install(_) => "install",
            Self::Upgrade(_) => "upgrade",
            Self::Enable(_) => "enable",
            Self::Disable(_) => "disable",
            Self::Rollback(_) => "rollback",
        }
    }

    const fn done(&self) -> &'static str {
        match self {
            Self::Install(_) => "installed",
            Self::Upgrade(_) => "upgraded",
            Self::Enable(_) => "enabled",
            Self::Disable(_) => "disabled",
            Self::Rollback(_) => "rolled_back",
        }
    }

    fn id(&self) -> &str {
        match self {
            Self::Install(manifest) | Self::Upgrade(manifest) => &manifest.id,
            Self::Enable(id) | Self::Disable(id) | Self::Rollback(id) => id,
        }
    }

    fn apply(&self, state: &ExtensionState, probe: &Entrypoint) -> Result<ExtensionState, Refused> {
        match self {
            Self::Install(manifest) => extension::install(state, manifest, probe),
            Self::Upgrade(manifest) => extension::upgrade(state, manifest, probe),
            Self::Enable(id) => extension::switch(state, id, Switch::On),
            Self::Disable(id) => extension::switch(state, id, Switch::Off),
            Self::Rollback(id) => extension::rollback(state, id, probe),
        }
    }

    const fn needs_probe(&self) -> bool {
        !matches!(self, Self::Enable(_) | Self::Disable(_))
    }
}

/// What one change did or would do.
#[derive(Debug, Serialize)]
pub struct OperationPacket {
    ok: bool,
    schema_version: &'static str,
    operation: &'static str,
    status: &'static str,
    execute: bool,
    extension_id: String,
    enabled: bool,
    active_revision: String,
    rollback_revision: Option<String>,
    doctor_verified: bool,
    permissions: Vec<String>,
    provides: Vec<String>,
    write_performed: bool,
    external_write_outcome: ExternalWriteOutcome,
    external_writes_performed: bool,
}

/// Previews or performs one change.
pub fn run(
    file: &ExtensionStateFile,
    operation: &Operation,
    mode: Mode,
    now: &str,
) -> Result<OperationPacket, ExtensionError> {
    let before = file.read()?;
    let placeholder = Entrypoint {
        identity: String::new(),
        facts: String::new(),
    };
    // The probe is part of the change: a rollback whose probe fails is refused as a preview too.
    let probe = match operation.needs_probe() {
        true => entrypoint::probe().map_err(|_| ExtensionError::ProbeFailed)?,
        false => placeholder,
    };
    let after = operation.apply(&before, &probe)?;
    if mode == Mode::Execute {
        let held = file.lock(&claim(operation.name(), now))?;
        if file.read()? != before {
            return Err(ExtensionError::Changed);
        }
        file.write(&held, &after)?;
    }
    let entry = after.get(operation.id()).ok_or(Refused::NotInstalled)?;
    Ok(packet(operation, entry, mode))
}

fn packet(operation: &Operation, entry: &ExtensionEntry, mode: Mode) -> OperationPacket {
    let manifest = entry.manifest();
    let execute = mode == Mode::Execute;
    OperationPacket {
        ok: true,
        schema_version: "loopx_extension_operation_v0",
        operation: operation.name(),
        status: if execute {
            operation.done()
        } else {
            "preview_ready"
        },
        execute,
        extension_id: entry.id.clone(),
        enabled: entry.enabled,
        active_revision: entry.active_revision.clone(),
        rollback_revision: entry.rollback_revision.clone(),
        doctor_verified: execute
            && entry.doctor_verified_revision.as_ref() == Some(&entry.active_revision),
        permissions: manifest
            .as_ref()
            .map(|manifest| manifest.permissions.clone())
            .unwrap_or_default(),
        provides: manifest
            .map(|manifest| manifest.provides)
            .unwrap_or_default(),
        write_performed: execute,
        external_write_outcome: ExternalWriteOutcome::None,
        external_writes_performed: false,
    }
}

fn claim<'a>(operation: &'a str, now: &'a str) -> Claim<'a> {
    Claim {
        lock_id: "extensions",
        agent_id: None,
        operation,
        policy: Policy::Mutation,
        now,
    }
}

/// What a verification found.
#[derive(Debug, Serialize)]
pub struct DoctorPacket {
    ok: bool,
    schema_version: &'static str,
    extension_id: String,
    status: &'static str,
    execute: bool,
    available: bool,
    verified: bool,
    recorded_verification: RecordedVerification,
    active_revision: String,
    entrypoint_identity: Option<String>,
    failure_kind: Option<&'static str>,
    write_performed: bool,
    external_write_outcome: ExternalWriteOutcome,
    external_writes_performed: bool,
    recommended_scopes: &'static [ScopeGroup],
    scope_apply_url: Option<String>,
}

impl DoctorPacket {
    /// Adds what the provider of the extension recommends to ask for.
    pub fn advised(self, advice: ScopeAdvice) -> Self {
        Self {
            recommended_scopes: advice.groups,
            scope_apply_url: advice.apply_url,
            ..self
        }
    }
}

/// Verifies an installed extension; without execution no probe is made, and the packet says what the last one is still worth.
pub fn doctor(
    file: &ExtensionStateFile,
    id: &str,
    mode: Mode,
    now: &str,
) -> Result<DoctorPacket, ExtensionError> {
    let before = file.read()?;
    let entry = before.get(id).ok_or(Refused::NotInstalled)?;
    if !entry.enabled {
        return Ok(doctor_packet(entry, "disabled", mode, None));
    }
    if mode == Mode::Preview {
        return Ok(DoctorPacket {
            verified: recorded(entry) == RecordedVerification::Holds,
            ..doctor_packet(entry, "probe_required", mode, None)
        });
    }
    let probe = entrypoint::probe().ok();
    let after = extension::probed(&before, id, probe.as_ref())?;
    let held = file.lock(&claim("doctor", now))?;
    if file.read()? != before {
        return Err(ExtensionError::Changed);
    }
    file.write(&held, &after)?;
    let status = if probe.is_some() {
        "ready"
    } else {
        "entrypoint_missing"
    };
    // What was just written is what the packet tells.
    let entry = after.get(id).ok_or(Refused::NotInstalled)?;
    Ok(doctor_packet(entry, status, mode, probe))
}

fn recorded(entry: &ExtensionEntry) -> RecordedVerification {
    extension::recorded(entry, is_same_program)
}

fn doctor_packet(
    entry: &ExtensionEntry,
    status: &'static str,
    mode: Mode,
    probe: Option<Entrypoint>,
) -> DoctorPacket {
    DoctorPacket {
        ok: matches!(status, "ready" | "probe_required"),
        schema_version: "loopx_extension_doctor_v0",
        extension_id: entry.id.clone(),
        status,
        execute: mode == Mode::Execute,
        available: status != "entrypoint_missing",
        verified: probe.is_some(),
        recorded_verification: recorded(entry),
        active_revision: entry.active_revision.clone(),
        failure_kind: (status == "entrypoint_missing").then_some("entrypoint_missing"),
        write_performed: mode == Mode::Execute && status != "disabled",
        entrypoint_identity: probe.map(|probe| probe.identity),
        external_write_outcome: ExternalWriteOutcome::None,
        external_writes_performed: false,
        recommended_scopes: &[],
        scope_apply_url: None,
    }
}
