//! The packets of the document-comment commands: readiness, counts, codes; no address, profile, position or word.

use serde_json::{Value, json};

use crate::contract::channel::ids::RouteKey;
use crate::contract::channel::outcome::ExternalWriteOutcome;

/// Why a document command stops.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommentBlocker {
    ProgramUnsupported,
    AddressFilterUnsupported,
    PermissionRequired,
    AuthorizationRequired,
    ListFailed,
    RepliesFailed,
    ReplyFailed,
    ResponseInvalid,
    RightsUnknown,
    RightsInvalid,
    IdentityMismatch,
    ReplyNotSupported,
    ReplyTextInvalid,
    ReplyDigestMismatch,
    RecoveryPending,
    ReadbackFailed,
}

impl CommentBlocker {
    /// Returns the code of the packet.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ProgramUnsupported => "lark_document_comment_cli_unsupported",
            Self::AddressFilterUnsupported => "connector_address_filter_unsupported",
            Self::PermissionRequired => "lark_document_comment_permission_required",
            Self::AuthorizationRequired => "lark_document_comment_authorization_required",
            Self::ListFailed => "lark_document_comment_list_failed",
            Self::RepliesFailed => "lark_document_comment_replies_failed",
            Self::ReplyFailed => "lark_document_comment_reply_failed",
            Self::ResponseInvalid => "lark_document_comment_response_invalid",
            Self::RightsUnknown => "permission_probe_unknown",
            Self::RightsInvalid => "permission_probe_invalid",
            Self::IdentityMismatch => "permission_probe_identity_mismatch",
            Self::ReplyNotSupported => "comment_reply_not_supported",
            Self::ReplyTextInvalid => "comment_reply_text_invalid",
            Self::ReplyDigestMismatch => "reply_receipt_digest_mismatch",
            Self::RecoveryPending => "comment_reply_recovery_pending",
            Self::ReadbackFailed => "comment_reply_readback_failed",
        }
    }
}

/// What a capture did.
#[derive(Clone, Copy, Debug, Default)]
pub struct CaptureCounts {
    pub requested: usize,
    pub accepted: usize,
    pub duplicate: usize,
    pub skipped: usize,
}

/// The result of a capture.
#[derive(Clone, Debug)]
pub struct CapturePacket<'a> {
    pub source_ref: &'a RouteKey,
    pub status: &'static str,
    pub counts: CaptureCounts,
    pub committed: bool,
    pub read_performed: bool,
    pub blocker: Option<CommentBlocker>,
    pub export_pending: bool,
}

impl CapturePacket<'_> {
    /// Returns the packet.
    pub fn packet(&self) -> Value {
        let mut packet = json!({
            "ok": self.blocker.is_none(),
            "schema_version": "lark_document_comment_capture_v0",
            "status": self.status,
            "source_ref": self.source_ref,
            "requested_count": self.counts.requested,
            "accepted_count": self.counts.accepted,
            "duplicate_count": self.counts.duplicate,
            "skipped_count": self.counts.skipped,
            "cursor_state_mutated": self.committed,
            "inbox_state_mutated": self.committed && self.counts.accepted > 0,
            "external_read_performed": self.read_performed,
            "external_write_outcome": ExternalWriteOutcome::None,
            "document_url_returned": false,
            "profile_returned": false,
            "private_cursor_values_returned": false,
        });
        finish(&mut packet, self.blocker, self.export_pending);
        packet
    }
}

/// The result of an answer.
#[derive(Clone, Debug)]
pub struct ReplyPacket {
    pub status: &'static str,
    pub execute: bool,
    pub outcome: ExternalWriteOutcome,
    pub verified: bool,
    pub key: String,
    pub blocker: Option<CommentBlocker>,
    pub export_pending: bool,
}

impl ReplyPacket {
    /// Returns the packet.
    pub fn packet(&self) -> Value {
        let mut packet = json!({
            "ok": self.blocker.is_none(),
            "schema_version": "lark_document_comment_reply_v0",
            "status": self.status,
            "execute": self.execute,
            "external_write_outcome": self.outcome,
            "external_write_performed": self.outcome.touched(),
            "readback_verified": self.verified,
            "idempotency_key": self.key,
            "document_url_returned": false,
            "profile_returned": false,
        });
        finish(&mut packet, self.blocker, self.export_pending);
        packet
    }
}

fn finish(packet: &mut Value, blocker: Option<CommentBlocker>, export_pending: bool) {
    if let Some(blocker) = blocker {
        packet["blocker"] = json!(blocker.as_str());
    }
    if export_pending {
        packet["export_pending"] = json!(true);
    }
}

/// The readiness of a document.
#[derive(Clone, Debug)]
pub struct StatusPacket<'a> {
    pub source_ref: &'a RouteKey,
    pub enabled: bool,
    pub supported: bool,
    pub may_read: bool,
    pub may_create: bool,
    pub responds: bool,
    pub captured: u64,
    pub pending: u64,
    /// What is stored can be read and gone on with.
    pub is_healthy: bool,
    pub blocker: Option<CommentBlocker>,
}

impl StatusPacket<'_> {
    /// Returns the packet.
    pub fn packet(&self) -> Value {
        let is_ready = self.blocker.is_none() && self.enabled && self.is_healthy;
        let mut packet = json!({
            "ok": is_ready,
            "schema_version": "lark_document_comment_status_v0",
            "status": if is_ready { "ready" } else { "attention_required" },
            "source_ref": self.source_ref,
            "enabled": self.enabled,
            "program_supported": self.supported,
            "permission_read_ready": self.may_read,
            "permission_create_ready": self.may_create,
            "response_enabled": self.responds,
            "inbox_healthy": self.is_healthy,
            "captured_count": self.captured,
            "pending_count": self.pending,
            "external_write_outcome": ExternalWriteOutcome::None,
            "document_url_returned": false,
            "profile_returned": false,
            "private_cursor_values_returned": false,
        });
        finish(&mut packet, self.blocker, false);
        packet
    }
}

/// The result of an acknowledgement.
pub fn ack_packet(status: &'static str, execute: bool, export_pending: bool) -> Value {
    let is_ok = status != "verified_response_required";
    let mut packet = json!({
        "ok": is_ok,
        "schema_version": "lark_document_comment_ack_v0",
        "status": if is_ok { status } else { "blocked" },
        "execute": execute,
        "new_count": u8::from(status == "acknowledged"),
        "already_acknowledged_count": u8::from(status == "already_acknowledged"),
        "write_performed": status == "acknowledged",
        "ack_decision": {
            "schema_version": "agent_external_event_ack_decision_v0",
            "ready": is_ok,
            "reason": if is_ok { "ready" } else { status },
        },
        "external_write_outcome": ExternalWriteOutcome::None,
        "external_writes_performed": false,
    });
    if !is_ok {
        packet["blocker"] = json!(status);
    }
    finish(&mut packet, None, export_pending);
    packet
}
