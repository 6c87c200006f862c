//! The result of one collector run, and the status file it keeps true while it runs.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::stream::{EventKey, StreamCode, StreamStatus};
use crate::contract::channel::ids::RouteKey;
use crate::contract::channel::outcome::ExternalWriteOutcome;
use crate::contract::time::Timestamp;

/// The schema of the status file.
pub const SOURCE_STATUS: &str = "lark_event_collector_source_status_v0";
/// The family of its later versions.
pub const SOURCE_STATUS_FAMILY: &str = "lark_event_collector_source_status_v";

/// What a run counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RunCounts {
    pub connection_delivery_count: u64,
    pub connection_delivery_failure_count: u64,
    pub captured_count: u64,
    pub reply_context_verified_count: u64,
    pub reply_to_bot_count: u64,
    pub self_message_skipped_count: u64,
}

/// The health of the source as of now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SourceHealth {
    pub ready: bool,
    pub healthy: bool,
    pub status: StreamStatus,
    pub code: Option<StreamCode>,
    pub losses: u32,
    pub reconnects: u32,
}

/// A route whose inbox cannot be used, and what it missed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DamagedRoute {
    pub route_key: String,
    pub error_code: String,
    pub unstored_since: Timestamp,
    pub unstored_event_count: u64,
}

impl DamagedRoute {
    fn read(value: &Value) -> Option<Self> {
        let word = |name: &str| value.get(name)?.as_str().filter(|text| text.len() <= 80);
        let code = ["store_corrupt", "schema_unsupported"]
            .into_iter()
            .find(|code| word("error_code") == Some(code))?;
        Some(Self {
            route_key: RouteKey::new(word("route_key")?)?.as_str().to_owned(),
            error_code: code.to_owned(),
            unstored_since: word("unstored_since").and_then(Timestamp::parse)?,
            unstored_event_count: value.get("unstored_event_count")?.as_u64()?,
        })
    }
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct RunResult {
    pub damaged: Vec<DamagedRoute>,
    pub has_routes: bool,
    pub budget_spent: bool,
    pub health: SourceHealth,
    pub counts: RunCounts,
    pub routes: usize,
    pub routed_routes: usize,
    pub identity_checked: bool,
    pub identity_verified: bool,
    pub callbacks: Option<CallbackCounts>,
}

/// What the callback consumer of a run did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallbackCounts {
    pub started: bool,
    pub ready: bool,
    pub received: u64,
    pub verified: u64,
    pub failed: u64,
    pub succeeded: bool,
}

impl RunResult {
    /// Returns the packet.
    pub fn packet(&self) -> Value {
        let schema = if self.has_routes {
            "lark_event_collector_run_v1"
        } else {
            "lark_event_collector_run_v0"
        };
        let counts = &self.counts;
        let mut packet = json!({
            "ok": !self.budget_spent,
            "schema_version": schema,
            "status": if self.budget_spent { "consumer_failed" } else { "completed" },
            "stream_status": self.health.status,
            "error_code": self.health.code,
            "source_healthy": self.health.healthy,
            "source_loss_count": self.health.losses,
            "source_reconnect_count": self.health.reconnects,
            "connection_delivery_count": counts.connection_delivery_count,
            "connection_delivery_failure_count": counts.connection_delivery_failure_count,
            "external_write_outcome": ExternalWriteOutcome::None,
            "captured_count": counts.captured_count,
            "route_count": self.routes,
            "routed_route_count": self.routed_routes,
            "damaged_route_count": self.damaged.len(),
            "unstored_event_count": self.damaged.iter().map(|route| route.unstored_event_count).sum::<u64>(),
            "multi_chat_routing": self.routes > 1,
            "reply_context_verified_count": counts.reply_context_verified_count,
            "reply_to_bot_count": counts.reply_to_bot_count,
            "received_reaction_count": 0,
            "received_reaction_failure_count": 0,
            "self_message_skipped_count": counts.self_message_skipped_count,
            "external_writes_performed": false,
            "profile_identity_checked": self.identity_checked,
            "profile_identity_verified": self.identity_verified,
            "chat_ids_returned": false,
            "local_paths_returned": false,
            "private_content_returned": false,
        });
        if let Some(callbacks) = self.callbacks {
            add_callbacks(&mut packet, callbacks);
        }
        packet
    }
}

fn add_callbacks(packet: &mut Value, callbacks: CallbackCounts) {
    let fields = json!({
        "operation_callback_listener_started": callbacks.started,
        "operation_callback_listener_ready": callbacks.ready,
        "operation_callback_received_count": callbacks.received,
        "operation_callback_verified_count": callbacks.verified,
        "operation_callback_failure_count": callbacks.failed,
        "operation_callback_consumer_succeeded": callbacks.succeeded,
        "operation_callback_console_configuration_preflighted": false,
        "operation_result_recovery_attempt_count": 0,
        "operation_result_recovery_verified_count": 0,
        "operation_result_recovery_failure_count": 0,
        "operation_simulation_recovery_attempt_count": 0,
        "operation_simulation_recovery_observed_count": 0,
        "operation_simulation_recovery_failure_count": 0,
    });
    if let (Value::Object(packet), Value::Object(fields)) = (packet, fields) {
        packet.extend(fields);
    }
}

/// The status file of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceStatus {
    pub running: bool,
    pub health: SourceHealth,
    pub next_retry_at: Option<Timestamp>,
    pub last_event_at: Option<Timestamp>,
    pub last_loss_at: Option<Timestamp>,
    pub window_ends_at: Option<Timestamp>,
    pub consumer_pids: Vec<(EventKey, Vec<u32>)>,
    pub route_count: usize,
    pub disabled_route_count: usize,
    pub damaged: Vec<DamagedRoute>,
    /// Everything that arrived before is stored.
    pub drained_at: Timestamp,
    pub updated_at: Timestamp,
}

impl SourceStatus {
    /// Returns the document.
    pub fn to_value(&self) -> Value {
        let pids: Map<String, Value> = self
            .consumer_pids
            .iter()
            .map(|(key, pids)| (key.as_str().to_owned(), json!(pids)))
            .collect();
        json!({
            "schema_version": SOURCE_STATUS,
            "running": self.running,
            "ready": self.health.ready,
            "source_healthy": self.health.healthy,
            "stream_status": self.health.status,
            "error_code": self.health.code,
            "loss_count": self.health.losses,
            "reconnect_count": self.health.reconnects,
            "next_retry_at": self.next_retry_at,
            "last_event_at": self.last_event_at,
            "last_loss_at": self.last_loss_at,
            "window_ends_at": self.window_ends_at,
            "consumer_pids": pids,
            "route_count": self.route_count,
            "disabled_route_count": self.disabled_route_count,
            "damaged_routes": self.damaged,
            "drained_at": self.drained_at,
            "updated_at": self.updated_at,
            "private_content_returned": false,
        })
    }
}

/// What another command reads of a status file; every part may be missing in a file written by hand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenStatus {
    pub running: bool,
    pub source_healthy: Option<bool>,
    pub stream_status: Option<String>,
    pub error_code: Option<String>,
    pub last_event_at: Option<String>,
    pub updated_at: Option<Timestamp>,
    pub drained_at: Option<Timestamp>,
    pub damaged: Vec<DamagedRoute>,
    pub consumer_pids: Vec<(EventKey, u32)>,
}

impl SeenStatus {
    /// Reads a status file.
    pub fn read(value: &Value) -> Self {
        // Codes and instants are shown again: only plain words pass.
        let word = |name: &str| {
            let text = value.get(name).and_then(Value::as_str)?;
            let plain = |byte: u8| {
                byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b':' | b'-' | b'.')
            };
            (text.len() <= 80 && text.bytes().all(plain)).then(|| text.to_owned())
        };
        let pids = value
            .get("consumer_pids")
            .and_then(Value::as_object)
            .into_iter()
            .flatten();
        let consumer_pids = pids.flat_map(|(key, pids)| {
            let key = [EventKey::Message, EventKey::Callback]
                .into_iter()
                .find(|known| known.as_str() == key);
            let pids = pids
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_u64);
            pids.filter_map(move |pid| Some((key?, u32::try_from(pid).ok()?)))
                .collect::<Vec<_>>()
        });
        Self {
            running: value.get("running") == Some(&Value::Bool(true)),
            source_healthy: value.get("source_healthy").and_then(Value::as_bool),
            stream_status: word("stream_status"),
            error_code: word("error_code"),
            last_event_at: word("last_event_at"),
            updated_at: value
                .get("updated_at")
                .and_then(Value::as_str)
                .and_then(Timestamp::parse),
            drained_at: value
                .get("drained_at")
                .and_then(Value::as_str)
                .and_then(Timestamp::parse),
            damaged: value
                .get("damaged_routes")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .filter_map(DamagedRoute::read)
                .collect(),
            consumer_pids: consumer_pids.collect(),
        }
    }

    /// Tells whether a running collector has not written for too long.
    pub fn is_stale(&self, now: Timestamp) -> bool {
        self.running && self.updated_at.is_none_or(|at| now.seconds_since(at) > 90)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_reads_back_with_its_consumers() {
        let status = SourceStatus {
            running: true,
            health: SourceHealth {
                ready: true,
                healthy: false,
                status: StreamStatus::SourceDisconnected,
                code: Some(StreamCode::SourceDisconnected),
                losses: 1,
                reconnects: 0,
            },
            next_retry_at: None,
            last_event_at: None,
            last_loss_at: None,
            window_ends_at: None,
            consumer_pids: vec![(EventKey::Message, vec![7, 8])],
            route_count: 1,
            disabled_route_count: 0,
            damaged: vec![DamagedRoute {
                route_key: "alpha".to_owned(),
                error_code: "store_corrupt".to_owned(),
                unstored_since: Timestamp::from_unix(1_785_000_000).expect("instant"),
                unstored_event_count: 2,
            }],
            drained_at: Timestamp::from_unix(1_785_000_000).expect("instant"),
            updated_at: Timestamp::from_unix(1_785_000_000).expect("instant"),
        };
        let seen = SeenStatus::read(&status.to_value());
        assert_eq!(
            seen.error_code.as_deref(),
            Some("lark_event_source_disconnected")
        );
        assert_eq!(
            seen.consumer_pids,
            vec![(EventKey::Message, 7), (EventKey::Message, 8)]
        );
        assert_eq!(seen.damaged, status.damaged);
        assert!(!seen.is_stale(status.updated_at.plus_seconds(90).expect("instant")));
        assert!(seen.is_stale(status.updated_at.plus_seconds(91).expect("instant")));
    }
}
