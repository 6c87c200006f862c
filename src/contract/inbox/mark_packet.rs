//! The result of `processing` and `reaction-complete`.

use serde::Serialize;

use crate::contract::channel::outcome::ExternalWriteOutcome;

/// Which of the two commands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkCommand {
    Processing,
    Complete,
}

/// Where a mark operation ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum MarkStatus {
    NotConfigured,
    PreviewReady,
    Processing,
    ReceiptRecovered,
    OperationConfigChanged,
    ProviderOutcomeUncertain,
    Failed,
    OperationReceiptFailed,
    ReceiptFailed,
    CleanupPending,
    Completed,
    AlreadyComplete,
}

impl MarkStatus {
    /// Tells whether the command did what it was asked to.
    pub fn is_ok(self) -> bool {
        use MarkStatus::{
            AlreadyComplete, Completed, NotConfigured, PreviewReady, Processing, ReceiptRecovered,
        };
        matches!(
            self,
            NotConfigured
                | PreviewReady
                | Processing
                | ReceiptRecovered
                | Completed
                | AlreadyComplete
        )
    }

    fn blocker(self, command: MarkCommand) -> Option<&'static str> {
        Some(match (self, command) {
            (Self::OperationConfigChanged, _) => {
                "lark_inbox_processing_reaction_operation_config_changed"
            }
            (Self::ProviderOutcomeUncertain, _) => {
                "lark_inbox_processing_reaction_provider_outcome_uncertain"
            }
            (Self::Failed, _) => "lark_inbox_processing_reaction_create_failed",
            (Self::OperationReceiptFailed, _) => {
                "lark_inbox_processing_reaction_operation_receipt_failed"
            }
            (Self::ReceiptFailed, _) => "lark_inbox_processing_reaction_receipt_failed",
            (Self::CleanupPending, MarkCommand::Processing) => {
                "lark_inbox_received_reaction_delete_failed"
            }
            (Self::CleanupPending, MarkCommand::Complete) => "lark_inbox_reaction_delete_failed",
            _ => return None,
        })
    }
}

/// What happened to the marks of one message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MarkCounts {
    pub created: u32,
    pub deleted: u32,
    pub pending_delete: u32,
    pub outcome: ExternalWriteOutcome,
}

/// The result of one command.
#[derive(Debug, Serialize)]
pub struct MarkPacket {
    ok: bool,
    schema_version: &'static str,
    operation: MarkCommand,
    status: MarkStatus,
    execute: bool,
    configured: bool,
    external_write_authority_asserted: bool,
    external_write_outcome: ExternalWriteOutcome,
    external_writes_performed: bool,
    created_count: u32,
    deleted_count: u32,
    pending_delete_count: u32,
    private_sender_profile_captured: bool,
    private_chat_id_captured: bool,
    private_message_id_captured: bool,
    raw_provider_payload_captured: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    blocker: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    export_pending: Option<bool>,
}

impl MarkPacket {
    /// Builds a result.
    pub fn new(
        operation: MarkCommand,
        execute: bool,
        status: MarkStatus,
        counts: MarkCounts,
    ) -> Self {
        Self {
            ok: status.is_ok(),
            schema_version: "lark_event_inbox_reaction_operation_v0",
            operation,
            status,
            execute,
            configured: status != MarkStatus::NotConfigured,
            external_write_authority_asserted: execute,
            external_write_outcome: counts.outcome,
            external_writes_performed: counts.outcome.touched(),
            created_count: counts.created,
            deleted_count: counts.deleted,
            pending_delete_count: counts.pending_delete,
            private_sender_profile_captured: false,
            private_chat_id_captured: false,
            private_message_id_captured: false,
            raw_provider_payload_captured: false,
            blocker: status.blocker(operation),
            export_pending: None,
        }
    }

    /// Says that a file is missing although its row is there.
    #[must_use]
    pub fn with_export_pending(mut self, pending: bool) -> Self {
        self.export_pending = pending.then_some(true);
        self
    }
}
