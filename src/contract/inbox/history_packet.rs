//! The receipt of one history call. The position itself and everything that names the chat stay private.

use serde::Serialize;
use serde_json::{Value, json};

use super::link_evidence::LinkEvidence;
use crate::contract::channel::ids::RouteKey;
use crate::contract::channel::outcome::ExternalWriteOutcome;

const SCHEMA: &str = "lark_group_history_catch_up_v0";

/// Why a page is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum HistoryFailure {
    #[serde(rename = "group_history_permission_required")]
    PermissionRequired,
    #[serde(rename = "group_history_authorization_required")]
    AuthorizationRequired,
    #[serde(rename = "group_history_provider_failed")]
    ProviderFailed,
    #[serde(rename = "group_history_provider_unavailable")]
    ProviderUnavailable,
    #[serde(rename = "group_history_provider_payload_invalid")]
    PayloadInvalid,
    #[serde(rename = "group_history_thread_incomplete")]
    ThreadIncomplete,
    #[serde(rename = "group_history_inbox_readback_failed")]
    InboxReadbackFailed,
    #[serde(rename = "group_history_cursor_commit_failed")]
    CursorCommitFailed,
}

/// How a page divides.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HistoryCounts {
    pub requested: usize,
    pub accepted: usize,
    pub duplicate: usize,
    pub revised: usize,
    pub skipped: usize,
    pub own: usize,
    pub completed_threads: usize,
    pub incomplete_threads: usize,
}

/// What was proved after a call.
#[derive(Clone, Debug, Default)]
pub struct HistoryReadback {
    pub cursor_state: Option<&'static str>,
    pub cursor_digest: Option<String>,
    pub events_verified: usize,
}

impl HistoryReadback {
    fn to_value(&self) -> Value {
        let state = self.cursor_state.unwrap_or("not_committed");
        json!({
            "schema_version": "lark_group_history_readback_v0",
            "verified": state != "not_committed",
            "cursor_state": state,
            "cursor_digest": self.cursor_digest,
            "inbox_event_count_verified": self.events_verified,
            "private_cursor_values_returned": false,
        })
    }
}

/// What a successful call did.
#[derive(Clone, Debug)]
pub struct HistorySuccess<'a> {
    pub route_key: &'a RouteKey,
    pub transition: &'static str,
    pub is_preview: bool,
    pub is_complete: bool,
    pub counts: HistoryCounts,
    pub links: LinkEvidence,
    pub readback: HistoryReadback,
    pub export_pending: bool,
}

impl HistorySuccess<'_> {
    /// Returns the packet.
    pub fn packet(&self) -> Value {
        let is_replayed = self.transition == "replayed";
        let status = match (self.is_preview && !is_replayed, self.is_complete) {
            (true, _) => "preview_ready",
            (false, true) => "history_complete",
            (false, false) => "page_captured",
        };
        let wrote = !self.is_preview && !is_replayed;
        let mut packet = json!({
            "ok": true,
            "schema_version": SCHEMA,
            "status": status,
            "route_key": self.route_key,
            "cursor_transition": self.transition,
            "requested_count": self.counts.requested,
            "accepted_count": self.counts.accepted,
            "duplicate_count": self.counts.duplicate,
            "revised_count": self.counts.revised,
            "skipped_count": self.counts.skipped,
            "history_complete": self.is_complete,
            "completed_thread_count": self.counts.completed_threads,
            "link_evidence": self.links,
            "external_read_performed": !is_replayed,
            "external_write_outcome": ExternalWriteOutcome::None,
            "cursor_state_mutated": wrote,
            "inbox_state_mutated": wrote && self.counts.accepted + self.counts.revised > 0,
            "chat_id_returned": false,
            "profile_returned": false,
            "private_cursor_values_returned": false,
            "readback": self.readback.to_value(),
        });
        if !is_replayed {
            packet["self_message_skipped_count"] = json!(self.counts.own);
        }
        if self.export_pending {
            packet["export_pending"] = json!(true);
        }
        packet
    }
}

/// What a refused page left behind.
#[derive(Clone, Copy, Debug)]
pub struct HistoryRefusal<'a> {
    pub route_key: &'a RouteKey,
    pub failure: HistoryFailure,
    pub exit: Option<i32>,
    pub invalid_messages: Option<usize>,
    /// What was stored of a partial page.
    pub partial: Option<HistoryCounts>,
    pub inbox_mutated: bool,
    pub cursor_mutated: bool,
}

impl<'a> HistoryRefusal<'a> {
    /// A page that changed nothing.
    pub const fn of(route_key: &'a RouteKey, failure: HistoryFailure) -> Self {
        Self {
            route_key,
            failure,
            exit: None,
            invalid_messages: None,
            partial: None,
            inbox_mutated: false,
            cursor_mutated: false,
        }
    }

    /// Returns the packet.
    pub fn packet(&self) -> Value {
        let mut packet = json!({
            "ok": false,
            "schema_version": SCHEMA,
            "status": self.failure,
            "route_key": self.route_key,
            "external_write_outcome": ExternalWriteOutcome::None,
            "external_read_performed": self.failure != HistoryFailure::ProviderUnavailable,
            "cursor_state_mutated": self.cursor_mutated,
            "inbox_state_mutated": self.inbox_mutated,
            "chat_id_returned": false,
            "profile_returned": false,
            "private_cursor_values_returned": false,
            "provider_payload_returned": false,
            "private_provider_error_returned": false,
            "readback": HistoryReadback::default().to_value(),
        });
        if let Some(exit) = self.exit {
            packet["provider_exit_code"] = json!(exit);
        }
        if let Some(invalid) = self.invalid_messages {
            packet["invalid_message_count"] = json!(invalid);
        }
        if self.failure == HistoryFailure::PermissionRequired {
            packet["guidance"] = json!({
                "schema_version": "lark_bot_group_history_permission_guidance_v0",
                "identity": "bot",
                "capability": "group_history_pagination",
                "action": "enable_application_scopes_and_publish",
                "required_scopes": ["im:message.group_msg", "im:message.group_msg.include_bot:read"],
                "api_document_url": "https://open.feishu.cn/document/server-docs/im-v1/message/list",
            });
        }
        if let Some(counts) = self.partial {
            packet["page_partial"] = json!(true);
            packet["incomplete_thread_count"] = json!(counts.incomplete_threads);
            packet["completed_thread_count"] = json!(counts.completed_threads);
            packet["requested_count"] = json!(counts.requested);
            packet["accepted_count"] = json!(counts.accepted);
            packet["duplicate_count"] = json!(counts.duplicate);
            packet["revised_count"] = json!(counts.revised);
            packet["skipped_count"] = json!(counts.skipped);
            packet["self_message_skipped_count"] = json!(counts.own);
        }
        packet
    }
}
