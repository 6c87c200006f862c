//! The result of `notify-reviewer`: flags, states and one key; no profile, chat, message id, address or word of the text.

use serde::Serialize;

use super::outbound_packet::{OutboundProgress, PrivateFlags};
use crate::contract::channel::key::OutboundKey;
use crate::contract::channel::outcome::ExternalWriteOutcome;

/// Why a reviewer is not notified, or not proved to be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotificationBlocker {
    DedicatedBotRequired,
    DedicatedBotMismatch,
    DestinationUnavailable,
    IdentityUnresolved,
    ReaderAuthRequired,
    ProviderFailed,
    ProviderUnavailable,
    DedupeReadbackFailed,
    GroupAccessRequired,
    OutcomeUnknown,
    PreviewMismatch,
    NotVerified,
}

impl NotificationBlocker {
    /// Returns the stable code.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::DedicatedBotRequired => "dedicated_bot_identity_required",
            Self::DedicatedBotMismatch => "dedicated_bot_identity_mismatch",
            Self::DestinationUnavailable => "reviewer_notification_destination_unavailable",
            Self::IdentityUnresolved => "reviewer_notification_identity_unresolved",
            Self::ReaderAuthRequired => "reviewer_notification_reader_auth_required",
            Self::ProviderFailed => "reviewer_notification_provider_failed",
            Self::ProviderUnavailable => "reviewer_notification_provider_unavailable",
            Self::DedupeReadbackFailed => "reviewer_notification_dedupe_readback_failed",
            Self::GroupAccessRequired => "lark_bot_group_access_required",
            Self::OutcomeUnknown => "lark_notification_delivery_outcome_unknown",
            Self::PreviewMismatch => "lark_notification_provider_preview_mismatch",
            Self::NotVerified => "lark_notification_not_verified",
        }
    }

    const fn status(self) -> &'static str {
        match self {
            Self::OutcomeUnknown | Self::NotVerified => "sent_unverified",
            _ => "gate_required",
        }
    }
}

/// How far a notification came, beside what every outgoing message has.
#[derive(Clone, Copy, Debug, Default)]
pub struct NotificationProgress {
    pub outbound: OutboundProgress,
    pub reader_verified: bool,
    pub search_performed: bool,
    /// The same notification was there already.
    pub was_there: bool,
}

/// The result of one notification.
#[derive(Debug, Serialize)]
pub struct NotificationPacket {
    ok: bool,
    schema_version: &'static str,
    status: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocker: Option<&'static str>,
    execute: bool,
    idempotency_key: Option<String>,
    external_write_authority_asserted: bool,
    external_write_outcome: ExternalWriteOutcome,
    external_write_performed: bool,
    verification_performed: bool,
    notification_verified: bool,
    sender_identity_verified: bool,
    reader_identity_verified: bool,
    sender_chat_membership_verified: bool,
    dedupe_search_performed: bool,
    format_preflight_passed: bool,
    provider_preview_performed: bool,
    provider_preview_verified: bool,
    #[serde(flatten)]
    private: PrivateFlags,
    #[serde(skip_serializing_if = "Option::is_none")]
    export_pending: Option<bool>,
}

impl NotificationPacket {
    /// Builds a result: blocked, previewed, found or verified.
    pub fn new(
        execute: bool,
        key: Option<&OutboundKey>,
        progress: NotificationProgress,
        blocker: Option<NotificationBlocker>,
    ) -> Self {
        let outbound = progress.outbound;
        let status = match blocker {
            Some(blocker) => blocker.status(),
            None if progress.was_there => "already_sent",
            None if outbound.is_verified => "sent_verified",
            None => "preview_ready",
        };
        Self {
            ok: blocker.is_none(),
            schema_version: "lark_reviewer_notification_v0",
            status,
            blocker: blocker.map(NotificationBlocker::as_str),
            execute,
            idempotency_key: key.map(OutboundKey::public),
            external_write_authority_asserted: execute,
            external_write_outcome: outbound.outcome,
            external_write_performed: outbound.outcome.touched(),
            verification_performed: outbound.verification_performed,
            notification_verified: outbound.is_verified,
            sender_identity_verified: outbound.sender_verified,
            reader_identity_verified: progress.reader_verified,
            sender_chat_membership_verified: outbound.membership_verified,
            dedupe_search_performed: progress.search_performed,
            format_preflight_passed: outbound.format_passed,
            provider_preview_performed: outbound.preview_performed,
            provider_preview_verified: outbound.preview_verified,
            private: PrivateFlags::default(),
            export_pending: outbound.export_pending.then_some(true),
        }
    }
}
