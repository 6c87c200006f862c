//! The packets of local inbox commands: counts and states, never text.

use serde::Serialize;
use serde_json::{Value, json};

use crate::contract::channel::outcome::ExternalWriteOutcome;
use crate::contract::digest;

/// The error packet of inbox commands.
pub const ERROR_SCHEMA: &str = "lark_event_inbox_error_v0";

/// What a routed packet says in addition.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct RoutedFlags {
    pub route_count: usize,
    chat_ids_returned: bool,
    profiles_returned: bool,
}

impl RoutedFlags {
    /// Counts the routes a command touched.
    pub const fn of(route_count: usize) -> Self {
        Self {
            route_count,
            chat_ids_returned: false,
            profiles_returned: false,
        }
    }
}

/// Chooses the version of a packet by whether it is routed.
const fn versioned(
    routed: Option<RoutedFlags>,
    single: &'static str,
    many: &'static str,
) -> &'static str {
    if routed.is_some() { many } else { single }
}

/// How a batch of events went.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IngestCounts {
    pub requested: usize,
    pub accepted: usize,
    pub invalid: usize,
    pub duplicate: usize,
}

/// The result of `ingest`.
#[derive(Debug, Serialize)]
pub struct IngestPacket {
    ok: bool,
    schema_version: &'static str,
    execute: bool,
    requested_count: usize,
    accepted_count: usize,
    invalid_count: usize,
    duplicate_count: usize,
    write_performed: bool,
    #[serde(flatten)]
    routed: Option<RoutedFlags>,
    local_private_content_returned: bool,
    external_reads_performed: bool,
    external_writes_performed: bool,
    external_write_outcome: ExternalWriteOutcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    export_pending: Option<bool>,
}

impl IngestPacket {
    /// Builds the result.
    pub fn new(
        execute: bool,
        counts: IngestCounts,
        routed: Option<RoutedFlags>,
        export_pending: bool,
    ) -> Self {
        Self {
            ok: true,
            schema_version: versioned(
                routed,
                "lark_event_inbox_ingest_v0",
                "lark_event_inbox_ingest_v1",
            ),
            execute,
            requested_count: counts.requested,
            accepted_count: counts.accepted,
            invalid_count: counts.invalid,
            duplicate_count: counts.duplicate,
            write_performed: execute && counts.accepted > 0,
            routed,
            local_private_content_returned: false,
            external_reads_performed: false,
            external_writes_performed: false,
            external_write_outcome: ExternalWriteOutcome::None,
            export_pending: export_pending.then_some(true),
        }
    }
}

/// The result of `ack`.
#[derive(Debug, Serialize)]
pub struct AckPacket {
    ok: bool,
    schema_version: &'static str,
    execute: bool,
    requested_count: usize,
    new_count: usize,
    already_acknowledged_count: usize,
    /// Ids that no stored message has; a typing error looks like that.
    #[serde(skip_serializing_if = "Option::is_none")]
    uncaptured_count: Option<usize>,
    write_performed: bool,
    /// The ids as they were given.
    message_ids: Vec<String>,
    #[serde(flatten)]
    routed: Option<RoutedFlags>,
    local_private_content_captured: bool,
    external_writes_performed: bool,
    external_write_outcome: ExternalWriteOutcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    export_pending: Option<bool>,
}

impl AckPacket {
    /// Builds the result.
    pub fn new(
        (execute, export_pending): (bool, bool),
        message_ids: Vec<String>,
        new_count: usize,
        routed: Option<RoutedFlags>,
    ) -> Self {
        Self {
            ok: true,
            schema_version: versioned(routed, "lark_event_inbox_ack_v0", "lark_event_inbox_ack_v1"),
            execute,
            requested_count: message_ids.len(),
            new_count,
            already_acknowledged_count: message_ids.len() - new_count,
            uncaptured_count: None,
            write_performed: execute && new_count > 0,
            message_ids,
            routed,
            local_private_content_captured: false,
            external_writes_performed: false,
            external_write_outcome: ExternalWriteOutcome::None,
            export_pending: export_pending.then_some(true),
        }
    }

    /// Says how many of the ids no stored message has.
    #[must_use]
    pub fn with_uncaptured(mut self, count: usize) -> Self {
        self.uncaptured_count = (count > 0).then_some(count);
        self
    }
}

/// The result of `export`.
#[derive(Debug, Serialize)]
pub struct ExportPacket {
    ok: bool,
    schema_version: &'static str,
    status: &'static str,
    execute: bool,
    export_count: u64,
    stale_count: u64,
    removed_count: u64,
    orphan_count: u64,
    write_performed: bool,
    #[serde(flatten)]
    routed: Option<RoutedFlags>,
    local_private_content_returned: bool,
    external_reads_performed: bool,
    external_writes_performed: bool,
    external_write_outcome: ExternalWriteOutcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    export_pending: Option<bool>,
}

/// The sums of an export.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExportCounts {
    pub expected: u64,
    pub stale: u64,
    pub removed: u64,
    pub orphans: u64,
}

impl ExportPacket {
    /// Builds the result.
    pub fn new(
        execute: bool,
        counts: ExportCounts,
        routed: Option<RoutedFlags>,
        export_pending: bool,
    ) -> Self {
        let changes = counts.stale + counts.removed > 0;
        let status = match (execute, changes) {
            (false, _) => "preview_ready",
            (true, true) => "exported",
            (true, false) => "already_exported",
        };
        Self {
            ok: true,
            schema_version: versioned(
                routed,
                "lark_event_inbox_export_v0",
                "lark_event_inbox_export_v1",
            ),
            status,
            execute,
            export_count: counts.expected,
            stale_count: counts.stale,
            removed_count: counts.removed,
            orphan_count: counts.orphans,
            write_performed: execute && changes,
            routed,
            local_private_content_returned: false,
            external_reads_performed: false,
            external_writes_performed: false,
            external_write_outcome: ExternalWriteOutcome::None,
            export_pending: export_pending.then_some(true),
        }
    }
}

/// The kinds of a committed effect.
pub const EFFECT_KINDS: [&str; 5] = [
    "working_session_turn",
    "todo_update",
    "authority_update",
    "design_update",
    "no_follow_up",
];
/// The schema of an effect receipt.
pub const EFFECT_RECEIPT: &str = "agent_external_event_effect_receipt_v0";

/// The public reference of an event or effect: a digest of its id.
pub fn reference(id: &str) -> String {
    format!("sha256:{}", digest::content_digest(id.as_bytes()).short(24))
}

/// The id of an effect that is "nothing follows", for a reason.
pub fn no_follow_up_id(event_id: &str, reason: &str) -> String {
    format!(
        "no-follow-up-{}",
        digest::nul_joined(&[event_id, reason]).short(24)
    )
}

/// The two references and the kind of one settlement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    pub event_ref: String,
    pub effect_ref: String,
    pub effect_kind: String,
}

impl Settlement {
    /// Returns the row of the ledger.
    pub fn to_row(&self) -> String {
        json!({"event_ref": self.event_ref, "effect_ref": self.effect_ref, "effect_kind": self.effect_kind, "status": "committed"}).to_string()
    }

    /// Tells whether a row of the ledger says the same.
    pub fn is_row(&self, row: &Value) -> bool {
        row["event_ref"] == self.event_ref.as_str()
            && row["effect_ref"] == self.effect_ref.as_str()
            && row["effect_kind"] == self.effect_kind.as_str()
    }
}

/// The result of `material-review`.
#[derive(Debug, Serialize)]
pub struct MaterialPacket {
    ok: bool,
    schema_version: &'static str,
    status: &'static str,
    execute: bool,
    event_ref: String,
    effect_kind: Option<String>,
    effect_ref: Option<String>,
    receipt_recorded: bool,
    write_performed: bool,
    local_private_content_returned: bool,
    external_writes_performed: bool,
    external_write_outcome: ExternalWriteOutcome,
    #[serde(skip_serializing_if = "Option::is_none")]
    ack_decision: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    export_pending: Option<bool>,
}

impl MaterialPacket {
    /// Builds the result of a settlement in the given state.
    pub fn new(execute: bool, status: &'static str, settlement: &Settlement) -> Self {
        Self {
            ok: matches!(status, "preview_ready" | "settled" | "already_settled"),
            schema_version: "lark_event_inbox_material_review_settlement_v0",
            status,
            execute,
            event_ref: settlement.event_ref.clone(),
            effect_kind: Some(settlement.effect_kind.clone()),
            effect_ref: Some(settlement.effect_ref.clone()),
            receipt_recorded: matches!(status, "settled" | "already_settled"),
            write_performed: status == "settled",
            local_private_content_returned: false,
            external_writes_performed: false,
            external_write_outcome: ExternalWriteOutcome::None,
            ack_decision: None,
            export_pending: None,
        }
    }

    /// Builds the result of a receipt that commits something else.
    pub fn undecided(execute: bool, event_ref: String) -> Self {
        let reason = "durable_effect_required";
        let none = Settlement {
            event_ref,
            effect_ref: String::new(),
            effect_kind: String::new(),
        };
        Self {
            effect_kind: None,
            effect_ref: None,
            ack_decision: Some(
                json!({"schema_version": "agent_external_event_ack_decision_v0", "ready": false, "reason": reason}),
            ),
            ..Self::new(execute, reason, &none)
        }
    }

    /// Says that a file is missing although its row is there.
    #[must_use]
    pub fn with_export_pending(mut self, pending: bool) -> Self {
        self.export_pending = pending.then_some(true);
        self
    }
}
