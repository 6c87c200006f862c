//! The packet of goal-channel commands (`docs/spec/goal-channel.md` 6).

use serde_json::{Value, json};

use super::outcome::ExternalWriteOutcome;
use super::target::PROVIDER;
use crate::contract::extension::Activation;

/// What one command answers.
#[derive(Clone, Debug)]
pub struct ChannelPacket<'a> {
    pub operation: &'static str,
    pub goal_id: Option<&'a str>,
    pub execute: bool,
    pub status: &'static str,
    pub outcome: ExternalWriteOutcome,
    pub readback_verified: bool,
    pub idempotency_key: Option<String>,
    pub receipt_id: Option<String>,
    pub summary: &'static str,
    pub blocker: Option<&'static str>,
    pub recovery_command: Option<String>,
    pub details: Option<Value>,
    pub activation: Option<&'a Activation>,
}

impl<'a> ChannelPacket<'a> {
    /// A packet that did nothing yet.
    pub const fn new(
        operation: &'static str,
        execute: bool,
        status: &'static str,
        summary: &'static str,
    ) -> Self {
        Self {
            operation,
            goal_id: None,
            execute,
            status,
            outcome: ExternalWriteOutcome::None,
            readback_verified: false,
            idempotency_key: None,
            receipt_id: None,
            summary,
            blocker: None,
            recovery_command: None,
            details: None,
            activation: None,
        }
    }

    /// The same command, stopped.
    #[must_use]
    pub fn blocked(mut self, blocker: &'static str) -> Self {
        self.blocker = Some(blocker);
        self
    }

    /// Returns the packet.
    pub fn packet(&self) -> Value {
        let mut packet = json!({
            "schema_version": "loopx_goal_channel_operation_v0",
            "ok": self.blocker.is_none(),
            "goal_id": self.goal_id,
            "provider": PROVIDER,
            "operation": self.operation,
            "execute": self.execute,
            "status": self.status,
            "external_write_outcome": self.outcome,
            "external_write_performed": self.outcome.touched(),
            "readback_verified": self.readback_verified,
            "idempotency_key": self.idempotency_key,
            "receipt_id": self.receipt_id,
            "public_summary": self.summary,
            "private_provider_payload_captured": false,
        });
        if let Some(blocker) = self.blocker {
            packet["blocker"] = json!(blocker);
            packet["error_code"] = json!(blocker);
        }
        if let Some(command) = &self.recovery_command {
            packet["recovery_command"] = json!(command);
        }
        if let Some(details) = &self.details {
            packet["details"] = details.clone();
        }
        if let (None, Some(activation)) = (self.blocker, self.activation) {
            packet["extension_activation"] = json!(activation);
        }
        packet
    }
}
