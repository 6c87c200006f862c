//! What the sync at turn start keeps and says: the position of one route, whose marks come next, and the result without any content
//! (`docs/spec/lark-inbox.md` 11).

use serde_json::{Map, Value, json};

use crate::contract::canonical;
use crate::contract::channel::ids::Opaque;
use crate::contract::channel::outcome::ExternalWriteOutcome;
use crate::contract::inbox::service_packet::DEPENDENCY_INCOMPATIBLE;
use crate::contract::json as strict;
use crate::contract::time::Timestamp;

/// The name of the hook.
pub const HOOK: &str = "lark.turn_start_inbox_sync";
/// The capability it belongs to.
pub const CAPABILITY: &str = "lark-event-inbox";
/// The schema of a position.
pub const SYNC_CURSOR: &str = "lark_turn_start_sync_cursor_v0";
/// The schema of whose marks come next.
pub const DISPATCH_CURSOR: &str = "lark_turn_start_dispatch_cursor_v0";
/// The schema of the messages whose marks were tried.
pub const READS: &str = "lark_event_inbox_turn_start_reads_v0";

/// How far one route is read at turn starts.
#[derive(Clone, PartialEq, Eq)]
pub struct SyncCursor {
    /// Everything before is read; none until the first window is complete.
    pub last_end: Option<Timestamp>,
    pub window_start: Timestamp,
    pub window_end: Timestamp,
    /// The next page of the window; none when it is complete.
    pub token: Option<Opaque>,
}

impl std::fmt::Debug for SyncCursor {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("<private cursor>")
    }
}

impl SyncCursor {
    /// Returns the row: sorted keys, compact.
    pub fn to_row(&self) -> String {
        let value = json!({
            "schema_version": SYNC_CURSOR,
            "last_end": self.last_end,
            "window_start": self.window_start,
            "window_end": self.window_end,
            "next_page_token": self.token.as_ref().map(Opaque::as_str),
        });
        // Texts and nulls always have a canonical form.
        canonical::compact(&value).unwrap_or_default()
    }

    /// Reads a row; none is not what was written.
    pub fn from_row(text: &str) -> Option<Self> {
        let body = object(text, SYNC_CURSOR)?;
        let time = |name: &str| body.get(name)?.as_str().and_then(Timestamp::parse);
        let token = match body.get("next_page_token")? {
            Value::Null => None,
            Value::String(token) if !token.is_empty() => Some(Opaque::new(token.as_str())),
            _ => return None,
        };
        let last_end = match body.get("last_end")? {
            Value::Null => None,
            _ => Some(time("last_end")?),
        };
        Some(Self {
            last_end,
            window_start: time("window_start")?,
            window_end: time("window_end")?,
            token,
        })
    }
}

/// Which marks a route was given last.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DispatchCursor {
    /// The number of the dispatch; the route that waits longest comes first.
    pub sequence: u64,
    /// The place of the last message in drain order.
    pub after: (String, String),
}

impl DispatchCursor {
    /// Returns the row.
    pub fn to_row(&self) -> String {
        let value = json!({"schema_version": DISPATCH_CURSOR, "sequence": self.sequence, "create_time": self.after.0,
            "message_id": self.after.1});
        canonical::compact(&value).unwrap_or_default()
    }

    /// Reads a row; none is not what was written.
    pub fn from_row(text: &str) -> Option<Self> {
        let body = object(text, DISPATCH_CURSOR)?;
        let word = |name: &str| body.get(name)?.as_str().map(str::to_owned);
        Some(Self {
            sequence: body.get("sequence")?.as_u64()?,
            after: (word("create_time")?, word("message_id")?),
        })
    }
}

fn object(text: &str, schema: &str) -> Option<Map<String, Value>> {
    let body = strict::parse_object(text.as_bytes()).ok()?;
    (body.get("schema_version")?.as_str()? == schema).then_some(body)
}

/// Why a route, or the sync as a whole, did not do all it was asked to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SyncFault {
    /// Another turn is at it.
    InProgress,
    ExtensionUnavailable,
    ProgramTooOld,
    ProviderUnavailable,
    ProviderFailed,
    PermissionRequired,
    AuthorizationRequired,
    ProviderContract,
    ThreadIncomplete,
    WindowIncomplete,
    InboxReadbackFailed,
    CursorReadbackFailed,
    StoreBusy,
    StoreNewer,
    StoreFailed,
}

impl SyncFault {
    /// Returns the code of the result.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InProgress => "turn_start_sync_in_progress",
            Self::ExtensionUnavailable => "extension_unavailable",
            Self::ProgramTooOld => DEPENDENCY_INCOMPATIBLE,
            Self::ProviderUnavailable => "provider_unavailable",
            Self::ProviderFailed => "provider_failed",
            Self::PermissionRequired => "group_history_permission_required",
            Self::AuthorizationRequired => "group_history_authorization_required",
            Self::ProviderContract => "provider_contract_error",
            Self::ThreadIncomplete => "group_history_thread_incomplete",
            Self::WindowIncomplete => "turn_start_window_incomplete",
            Self::InboxReadbackFailed => "inbox_readback_failed",
            Self::CursorReadbackFailed => "cursor_readback_failed",
            Self::StoreBusy => "store_busy",
            Self::StoreNewer => "schema_unsupported",
            Self::StoreFailed => "store_corrupt",
        }
    }

    /// Says how a sync ended in which nothing else came of it.
    const fn status(self) -> &'static str {
        match self {
            Self::InProgress | Self::ThreadIncomplete | Self::WindowIncomplete => "partial",
            Self::ProviderContract
            | Self::InboxReadbackFailed
            | Self::CursorReadbackFailed
            | Self::StoreFailed => "failed",
            _ => "unavailable",
        }
    }
}

/// What one sync did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncCounts {
    pub routes: usize,
    /// Routes that are read up to now.
    pub synced: usize,
    pub pages: u64,
    pub requested: usize,
    pub accepted: usize,
    pub duplicate: usize,
    pub revised: usize,
    /// Messages that wait for the agent, whoever stored them.
    pub pending: u64,
    /// A call was made.
    pub has_read: bool,
    /// A row was written.
    pub has_written: bool,
    pub marks_tried: u32,
    pub marks_created: u32,
    pub marks_failed: u32,
    pub marks_outcome: ExternalWriteOutcome,
    pub export_pending: bool,
    /// The first fault, in route order.
    pub fault: Option<SyncFault>,
}

impl SyncCounts {
    /// Says how the sync ended. What waits in the inbox is told even where the provider could not be asked.
    pub fn status(&self) -> &'static str {
        match self.fault {
            None if self.pending > 0 => "observed",
            None => "empty",
            Some(_) if self.pending > 0 || self.synced > 0 => "partial",
            Some(fault) => fault.status(),
        }
    }

    fn to_value(&self) -> Value {
        let mut packet = json!({
            "schema_version": "lark_turn_start_inbox_sync_v0",
            "status": self.status(),
            "error_code": self.fault.map(SyncFault::as_str),
            "route_count": self.routes,
            "synced_route_count": self.synced,
            "page_count": self.pages,
            "requested_count": self.requested,
            "accepted_count": self.accepted,
            "duplicate_count": self.duplicate,
            "revised_count": self.revised,
            "pending_count": self.pending,
            "received_reaction_attempt_count": self.marks_tried,
            "received_reaction_count": self.marks_created,
            "received_reaction_failure_count": self.marks_failed,
            "external_write_outcome": self.marks_outcome,
            "external_read_performed": self.has_read,
            "chat_ids_returned": false,
            "profiles_returned": false,
            "local_private_content_returned": false,
            "provider_payload_returned": false,
        });
        if self.export_pending {
            packet["export_pending"] = json!(true);
        }
        packet
    }

    /// Returns the dispatch of the hook; `drain` is the command that shows what waits.
    pub fn dispatch(&self, drain: &str) -> Value {
        let status = self.status();
        let needs_read = self.pending > 0 && matches!(status, "observed" | "partial");
        let result = json!({
            "schema_version": "loopx_turn_start_capability_hook_result_v0",
            "hook_id": HOOK,
            "capability_id": CAPABILITY,
            "phase": "turn_start",
            "status": status,
            "observation_count": self.pending,
            "agent_read_required": needs_read,
            "external_reads_performed": self.has_read,
            "external_writes_performed": self.marks_outcome.touched(),
            "local_private_state_mutated": self.has_written,
            "private_content_returned": false,
            "provider_payload_returned": false,
            "error_code": self.fault.map(SyncFault::as_str),
            "inbox_sync": self.to_value(),
        });
        let reads: Vec<Value> = needs_read
            .then(|| {
                json!({"hook_id": HOOK, "capability_id": CAPABILITY, "kind": "local_private_inbox", "command": drain,
                    "reason": "messages wait in the inbox", "ordering": "before_work"})
            })
            .into_iter()
            .collect();
        dispatch((1, vec![result]), reads, Vec::new())
    }
}

/// Returns the dispatch of a hook whose configuration cannot be read.
pub fn unconfigured() -> Value {
    let failure = json!({"hook_id": HOOK, "capability_id": CAPABILITY, "error_code": "inbox_configuration_unavailable"});
    dispatch((0, Vec::new()), Vec::new(), vec![failure])
}

fn dispatch(
    (invoked, results): (usize, Vec<Value>),
    reads: Vec<Value>,
    failures: Vec<Value>,
) -> Value {
    json!({
        "schema_version": "loopx_turn_start_capability_hook_dispatch_v1",
        "registered_count": 1,
        "invoked_count": invoked,
        "results": results,
        "required_reads": reads,
        "failures": failures,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix(1_789_000_000 + seconds).expect("an instant")
    }

    #[test]
    fn positions_read_back_as_their_own_text() {
        let cursor = SyncCursor {
            last_end: None,
            window_start: at(0),
            window_end: at(5),
            token: Some(Opaque::new("t")),
        };
        assert_eq!(SyncCursor::from_row(&cursor.to_row()), Some(cursor));
        let dispatch = DispatchCursor {
            sequence: 3,
            after: ("1".to_owned(), "om_a".to_owned()),
        };
        assert_eq!(DispatchCursor::from_row(&dispatch.to_row()), Some(dispatch));
        assert_eq!(SyncCursor::from_row("{}"), None);
    }

    #[test]
    fn what_waits_is_told_even_when_the_provider_is_away() {
        let mut counts = SyncCounts {
            routes: 1,
            fault: Some(SyncFault::ProviderUnavailable),
            ..SyncCounts::default()
        };
        assert_eq!(counts.status(), "unavailable");
        assert_eq!(counts.dispatch("d")["required_reads"], json!([]));
        counts.pending = 2;
        let dispatch = counts.dispatch("d");
        assert_eq!(dispatch["results"][0]["status"], "partial");
        assert_eq!(dispatch["required_reads"][0]["command"], "d");
    }

    #[test]
    fn a_contract_error_of_the_provider_is_a_failure_and_requires_no_read() {
        let counts = SyncCounts {
            fault: Some(SyncFault::ProviderContract),
            ..SyncCounts::default()
        };
        let dispatch = counts.dispatch("d");
        let result = &dispatch["results"][0];
        assert_eq!(result["status"], "failed");
        assert_eq!(result["agent_read_required"], false);
        assert_eq!(result["error_code"], "provider_contract_error");
    }
}
