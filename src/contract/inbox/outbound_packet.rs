//! The result of `send` and `reply`: flags, states and one key; no profile, chat, message id or word of the text.

use serde::Serialize;

use super::guidance::Guidance;
use crate::contract::channel::body::{ContentFormat, FormatFallback};
use crate::contract::channel::key::{OutboundKey, Placement};
use crate::contract::channel::outcome::ExternalWriteOutcome;

/// Which command a result belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutboundKind {
    Send,
    Reply,
}

/// Why a message is not sent, or not proved to be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutboundBlocker {
    SenderUnconfigured,
    /// The provider's program could not be started.
    ProviderUnavailable,
    SenderIdentityMismatch,
    SenderNotInChat,
    MentionUnresolved,
    PreviewMismatch,
    ProviderFailed,
    OutcomeUnknown,
    NotVerified,
    CleanupPending,
}

impl OutboundBlocker {
    fn text(self, kind: OutboundKind) -> String {
        let prefix = match kind {
            OutboundKind::Send => "lark_outbound_message_",
            OutboundKind::Reply => "lark_inbox_reply_",
        };
        let rest = match self {
            Self::SenderUnconfigured => "sender_unconfigured",
            Self::ProviderUnavailable => "provider_unavailable",
            Self::SenderIdentityMismatch => "sender_identity_mismatch",
            Self::SenderNotInChat => "sender_not_in_configured_chat",
            Self::MentionUnresolved => "mention_identity_unresolved",
            Self::PreviewMismatch => "provider_preview_mismatch",
            Self::ProviderFailed => "provider_failed",
            Self::OutcomeUnknown => "delivery_outcome_unknown",
            Self::NotVerified => "not_verified",
            Self::CleanupPending => "reaction_cleanup_pending",
        };
        format!("{prefix}{rest}")
    }

    const fn status(self) -> &'static str {
        match self {
            Self::OutcomeUnknown | Self::NotVerified => "sent_unverified",
            Self::CleanupPending => "sent_verified_cleanup_pending",
            _ => "gate_required",
        }
    }
}

/// How far an outgoing message came.
#[derive(Clone, Copy, Debug, Default)]
pub struct OutboundProgress {
    pub sender_verified: bool,
    pub membership_verified: bool,
    pub format_passed: bool,
    pub preview_performed: bool,
    pub preview_verified: bool,
    pub outcome: ExternalWriteOutcome,
    pub verification_performed: bool,
    pub is_verified: bool,
    pub cleanup_verified: bool,
    pub export_pending: bool,
    /// Guidance has to be looked at before the message leaves.
    pub review_required: bool,
    pub format: ContentFormat,
    pub fallback: Option<FormatFallback>,
}

/// What no result ever captures.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct PrivateFlags {
    private_sender_profile_captured: bool,
    private_chat_id_captured: bool,
    private_message_id_captured: bool,
    private_reply_content_captured: bool,
    raw_provider_payload_captured: bool,
}

/// The result of one command.
#[derive(Debug, Serialize)]
pub struct OutboundPacket {
    ok: bool,
    schema_version: &'static str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocker: Option<String>,
    execute: bool,
    idempotency_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    placement: Option<Placement>,
    external_write_authority_asserted: bool,
    external_write_outcome: ExternalWriteOutcome,
    external_write_performed: bool,
    verification_performed: bool,
    reply_verified: bool,
    reaction_cleanup_verified: bool,
    sender_identity_verified: bool,
    sender_chat_membership_verified: bool,
    format_preflight_passed: bool,
    provider_preview_performed: bool,
    provider_preview_verified: bool,
    #[serde(flatten)]
    private: PrivateFlags,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_format: Option<ContentFormat>,
    #[serde(skip_serializing_if = "Option::is_none")]
    format_fallback: Option<FormatFallback>,
    #[serde(skip_serializing_if = "Option::is_none")]
    outbound_guidance: Option<Guidance>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reaction_cleanup_deferred: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    export_pending: Option<bool>,
}

/// Whether a command may write, as its packet says.
#[derive(Clone, Copy, Debug)]
pub struct OutboundCommand {
    pub kind: OutboundKind,
    pub execute: bool,
}

impl OutboundPacket {
    /// Builds a result: blocked, previewed or verified.
    pub fn new(
        command: OutboundCommand,
        message: Option<(&OutboundKey, Placement)>,
        progress: OutboundProgress,
        blocker: Option<OutboundBlocker>,
    ) -> Self {
        let status = match blocker {
            Some(blocker) => blocker.status(),
            None if progress.review_required => "agent_review_required",
            None if progress.is_verified => "sent_verified",
            None => "preview_ready",
        };
        let is_reply = command.kind == OutboundKind::Reply;
        Self {
            ok: blocker.is_none(),
            schema_version: if is_reply {
                "lark_event_inbox_reply_v0"
            } else {
                "lark_outbound_message_v0"
            },
            status,
            blocker: blocker.map(|blocker| blocker.text(command.kind)),
            execute: command.execute,
            idempotency_key: message.map(|(key, _)| key.public()),
            placement: message.map(|(_, placement)| placement),
            external_write_authority_asserted: command.execute,
            external_write_outcome: progress.outcome,
            external_write_performed: progress.outcome.touched(),
            verification_performed: progress.verification_performed,
            reply_verified: progress.is_verified,
            reaction_cleanup_verified: progress.cleanup_verified,
            sender_identity_verified: progress.sender_verified,
            sender_chat_membership_verified: progress.membership_verified,
            format_preflight_passed: progress.format_passed,
            provider_preview_performed: progress.preview_performed,
            provider_preview_verified: progress.preview_verified,
            private: PrivateFlags::default(),
            content_format: (is_reply || progress.fallback.is_some()).then_some(progress.format),
            format_fallback: progress.fallback,
            outbound_guidance: None,
            reaction_cleanup_deferred: (!is_reply && progress.is_verified).then_some(false),
            export_pending: progress.export_pending.then_some(true),
        }
    }

    /// Shows the guidance the message stands under.
    #[must_use]
    pub fn with_guidance(mut self, guidance: Option<Guidance>) -> Self {
        self.outbound_guidance = guidance;
        self
    }
}
