//! Optional providers: their manifests, what is recorded of an installation, the packets about it (`docs/spec/goal-channel.md` 26).
//!
//! Installation makes a provider discoverable and usable; it grants no scope and no authority at the provider.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::digest;
use super::error::ContractError;
use super::parse::{Fields, Label, read_text};

/// The schema of a manifest.
pub const MANIFEST_SCHEMA: &str = "loopx_extension_manifest_v0";
/// The schema of the recorded state.
pub const STATE_SCHEMA: &str = "loopx_extension_state_v0";
/// The family of its later versions.
pub const STATE_FAMILY: &str = "loopx_extension_state_v";
/// The chat provider that is bundled.
pub const CHAT_EXTENSION: &str = "loopx-lark";
/// The simulation-only executor that is bundled.
pub const SIMULATOR_EXTENSION: &str = "loopx-finance-execution";
/// The most revisions that are kept.
pub const MAX_REVISIONS: usize = 5;

/// What a command needs from the chat provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Permission {
    InboxRead,
    InboxWrite,
    ReplySend,
    CollectorManage,
    ReviewerNotification,
    ProjectionSink,
    HostedPublish,
    GoalChannelManage,
    OperationSimulate,
}

impl Permission {
    /// Returns the name in a manifest.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InboxRead => "lark.inbox.read",
            Self::InboxWrite => "lark.inbox.write",
            Self::ReplySend => "lark.reply.send",
            Self::CollectorManage => "lark.collector.manage",
            Self::ReviewerNotification => "lark.reviewer_notification.send",
            Self::ProjectionSink => "lark.projection_sink.use",
            Self::HostedPublish => "lark.miaoda_html.publish",
            Self::GoalChannelManage => "lark.goal_channel.manage",
            Self::OperationSimulate => "finance.operation.simulate",
        }
    }

    /// Returns the extension that holds it.
    pub const fn extension(self) -> &'static str {
        match self {
            Self::OperationSimulate => SIMULATOR_EXTENSION,
            _ => CHAT_EXTENSION,
        }
    }
}

/// What an extension is and offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Manifest {
    schema_version: &'static str,
    pub id: String,
    pub version: String,
    pub permissions: Vec<String>,
    pub provides: Vec<String>,
}

impl Manifest {
    /// Returns a bundled manifest.
    pub fn bundled(id: &str) -> Option<Self> {
        let texts = |items: &[&str]| items.iter().map(|item| (*item).to_owned()).collect();
        let (permissions, provides) = match id {
            CHAT_EXTENSION => (
                texts(&CHAT_PERMISSIONS.map(Permission::as_str)),
                texts(&CHAT_CAPABILITIES),
            ),
            SIMULATOR_EXTENSION => (
                texts(&[Permission::OperationSimulate.as_str()]),
                texts(&[SIMULATOR_CAPABILITY]),
            ),
            _ => return None,
        };
        Some(Self {
            schema_version: MANIFEST_SCHEMA,
            id: id.to_owned(),
            version: "1".to_owned(),
            permissions,
            provides,
        })
    }

    /// Reads a manifest.
    pub fn parse(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::closed(at, value)?;
        fields.constant("schema_version", MANIFEST_SCHEMA)?;
        let manifest = Self {
            schema_version: MANIFEST_SCHEMA,
            id: fields.with("id", read_extension_id)?,
            version: fields.text("version", 64)?,
            permissions: read_names(&mut fields, "permissions")?,
            provides: read_names(&mut fields, "provides")?,
        };
        fields.finish(manifest)
    }

    /// Returns the revision: any change of the manifest is another one.
    pub fn revision(&self) -> String {
        // A manifest of texts always has a canonical form.
        digest::digest(&json!(self))
            .map(|digest| digest.short(16))
            .unwrap_or_default()
    }
}

const CHAT_PERMISSIONS: [Permission; 8] = [
    Permission::InboxRead,
    Permission::InboxWrite,
    Permission::ReplySend,
    Permission::CollectorManage,
    Permission::ReviewerNotification,
    Permission::ProjectionSink,
    Permission::HostedPublish,
    Permission::GoalChannelManage,
];
const CHAT_CAPABILITIES: [&str; 8] = [
    "lark-event-inbox",
    "lark-reviewer-notification",
    "lark-kanban-projection",
    "lark-goal-channel",
    "lark-explore-projection",
    "lark-periodic-report-announcement",
    "lark-periodic-report-source",
    "lark-miaoda-html-report",
];
const SIMULATOR_CAPABILITY: &str = "human-confirmed-operation-executor";
/// The capabilities the program itself provides.
pub const BUILT_IN_CAPABILITIES: [&str; 1] = ["periodic-report"];
/// The bundled extensions, in catalogue order.
pub const BUNDLED: [&str; 2] = [CHAT_EXTENSION, SIMULATOR_EXTENSION];

fn read_extension_id(at: &Label, value: &Value) -> Result<String, ContractError> {
    let id = read_text(at, value, 80)?;
    let plain = id.bytes().all(|byte| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'-' | b'_' | b'.')
    });
    match plain && id.as_bytes()[0].is_ascii_lowercase() {
        true => Ok(id),
        false => Err(ContractError::invalid(at, "must be a lower-case name")),
    }
}

fn read_names(fields: &mut Fields<'_>, name: &'static str) -> Result<Vec<String>, ContractError> {
    let items = fields.list(name)?;
    items
        .iter()
        .map(|(at, item)| read_text(at, item, 120))
        .collect()
}

/// One installed revision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct InstalledRevision {
    pub revision: String,
    pub manifest: Manifest,
}

/// What is recorded of one extension.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ExtensionEntry {
    pub id: String,
    pub enabled: bool,
    pub active_revision: String,
    pub rollback_revision: Option<String>,
    pub doctor_verified_revision: Option<String>,
    pub doctor_verified_entrypoint_identity: Option<String>,
    /// Cheap facts of the verified file: while they hold, its bytes are not read again.
    pub doctor_verified_entrypoint_facts: Option<String>,
    pub revisions: Vec<InstalledRevision>,
}

impl ExtensionEntry {
    /// Returns the manifest of the active revision; the bundled one where the record has none.
    pub fn manifest(&self) -> Option<Manifest> {
        let recorded = self
            .revisions
            .iter()
            .find(|known| known.revision == self.active_revision);
        recorded
            .map(|known| known.manifest.clone())
            .or_else(|| Manifest::bundled(&self.id))
    }

    fn parse(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        let revisions = fields.list_or_empty("revisions")?;
        let revisions = revisions
            .iter()
            .map(|(at, item)| read_revision(at, item))
            .collect::<Result<_, _>>()?;
        let entry = Self {
            id: fields.with("id", read_extension_id)?,
            enabled: fields.boolean("enabled")?,
            active_revision: fields.text("active_revision", 64)?,
            rollback_revision: fields.optional_text("rollback_revision", 64)?,
            doctor_verified_revision: fields.optional_text("doctor_verified_revision", 64)?,
            doctor_verified_entrypoint_identity: fields
                .optional_text("doctor_verified_entrypoint_identity", 128)?,
            doctor_verified_entrypoint_facts: fields
                .optional_text("doctor_verified_entrypoint_facts", 128)?,
            revisions,
        };
        fields.finish(entry)
    }
}

fn read_revision(at: &Label, value: &Value) -> Result<InstalledRevision, ContractError> {
    let mut fields = Fields::open(at, value)?;
    let read = InstalledRevision {
        revision: fields.text("revision", 64)?,
        manifest: fields.with("manifest", Manifest::parse)?,
    };
    fields.finish(read)
}

/// Everything that is installed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExtensionState {
    pub entries: Vec<ExtensionEntry>,
}

impl ExtensionState {
    /// Reads the recorded state.
    pub fn parse(value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(&Label::root(), value)?;
        fields.constant("schema_version", STATE_SCHEMA)?;
        let at = fields.at("extensions");
        let Value::Object(map) = fields.required("extensions")? else {
            return Err(ContractError::invalid(at, "must be an object"));
        };
        let entries = map.iter().map(|(id, entry)| {
            let parsed = ExtensionEntry::parse(&at, entry)?;
            match &parsed.id == id {
                true => Ok(parsed),
                false => Err(ContractError::invalid(
                    &at,
                    "names an entry under another id",
                )),
            }
        });
        let entries = entries.collect::<Result<_, _>>()?;
        fields.finish(Self { entries })
    }

    /// Returns the document.
    pub fn to_value(&self) -> Value {
        let entries: Map<String, Value> = self
            .entries
            .iter()
            .map(|entry| (entry.id.clone(), json!(entry)))
            .collect();
        json!({"schema_version": STATE_SCHEMA, "extensions": entries})
    }

    /// Finds an installed extension.
    pub fn get(&self, id: &str) -> Option<&ExtensionEntry> {
        self.entries.iter().find(|entry| entry.id == id)
    }
}

/// What an entrypoint is at this moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entrypoint {
    pub identity: String,
    pub facts: String,
}

/// What an earlier verification of an extension is worth now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum RecordedVerification {
    /// The active revision was verified for this very program.
    Holds,
    /// It was verified for another program or another revision.
    Stale,
    /// Nothing is recorded: never verified, or the last probe failed.
    Absent,
}

/// A gated command's right to run, as its packet shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Activation {
    pub schema_version: &'static str,
    pub extension_id: String,
    pub provider_version: String,
    pub revision: String,
    pub enabled: bool,
    pub doctor_verified: bool,
    pub required_permissions: Vec<String>,
}

/// Why a gated command does not run, and the exact command that cures it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{sentence}")]
pub struct Unavailable {
    pub sentence: &'static str,
    pub recovery_command: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bundled_provider_has_eight_permissions_and_eight_capabilities() {
        let manifest = Manifest::bundled(CHAT_EXTENSION).expect("bundled");
        assert_eq!(
            (manifest.permissions.len(), manifest.provides.len()),
            (8, 8)
        );
        assert_eq!(manifest.revision().len(), 16);
        assert_eq!(
            Manifest::parse(&Label::root(), &json!(manifest)),
            Ok(manifest)
        );
    }

    #[test]
    fn state_reads_back_as_it_was_written() {
        let manifest = Manifest::bundled(CHAT_EXTENSION).expect("bundled");
        let entry = ExtensionEntry {
            id: CHAT_EXTENSION.to_owned(),
            enabled: true,
            active_revision: manifest.revision(),
            rollback_revision: None,
            doctor_verified_revision: Some(manifest.revision()),
            doctor_verified_entrypoint_identity: Some("x".to_owned()),
            doctor_verified_entrypoint_facts: None,
            revisions: vec![InstalledRevision {
                revision: manifest.revision(),
                manifest,
            }],
        };
        let state = ExtensionState {
            entries: vec![entry],
        };
        assert_eq!(ExtensionState::parse(&state.to_value()), Ok(state));
    }
}
