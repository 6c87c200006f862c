//! Why an inbox command failed, and what it may have done outside before.

use serde_json::{Value, json};

use crate::contract::channel::outcome::ExternalWriteOutcome;
use crate::contract::extension::Unavailable;
use crate::contract::inbox::fault::InboxFault;
use crate::contract::inbox::packet::ERROR_SCHEMA;
use crate::contract::inbox::service_packet::DEPENDENCY_INCOMPATIBLE;
use crate::flow::extension_gate::Gate;
use crate::flow::store_code::store_code;
use crate::port::tools::TooOld;
use crate::store::StoreError;

/// A failure of an inbox command.
#[derive(Debug, thiserror::Error)]
pub enum InboxError {
    #[error(transparent)]
    Fault(#[from] InboxFault),
    #[error(transparent)]
    Unavailable(#[from] Unavailable),
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The provider's program is too old for what it was asked; nothing was written.
    #[error(transparent)]
    ProgramTooOld(#[from] TooOld),
    /// The store failed after a write outside.
    #[error("{source}")]
    StoreAfter {
        source: StoreError,
        outcome: ExternalWriteOutcome,
    },
}

impl From<Gate> for InboxError {
    fn from(gate: Gate) -> Self {
        match gate {
            Gate::Unavailable(refusal) => Self::Unavailable(refusal),
            Gate::Store(error) => Self::Store(error),
        }
    }
}

impl InboxError {
    /// Returns the error packet. It holds our own sentences only.
    pub fn packet(&self) -> Value {
        let mut packet =
            json!({"ok": false, "schema_version": ERROR_SCHEMA, "error": self.to_string()});
        let outcome = match self {
            Self::StoreAfter { outcome, .. } => *outcome,
            _ => ExternalWriteOutcome::None,
        };
        packet["external_write_outcome"] = json!(outcome);
        match self {
            Self::Fault(fault) => {
                packet["error_code"] = json!(fault.error_code());
                if let InboxFault::RouteDisabled(key) = fault {
                    packet["route_key"] = json!(key);
                }
            }
            Self::Unavailable(refusal) => {
                packet["error_code"] = json!("extension_unavailable");
                packet["recovery_command"] = json!(refusal.recovery_command);
            }
            Self::ProgramTooOld(old) => {
                packet["error_code"] = json!(DEPENDENCY_INCOMPATIBLE);
                packet["dependency"] = dependency(old);
            }
            Self::Store(error) | Self::StoreAfter { source: error, .. } => {
                add_store(&mut packet, error)
            }
        }
        packet
    }
}

/// Names the program, what was found of it and what is needed.
pub(super) fn dependency(old: &TooOld) -> Value {
    json!({"program": old.need.program, "found_version": old.version, "needed_version": old.need.least})
}

fn add_store(packet: &mut Value, error: &StoreError) {
    packet["error_code"] = json!(store_code(error));
    if let StoreError::LockTimeout(_) = error {
        packet["lock_timeout"] = json!(true);
        packet["incident_recorded"] = json!(false);
        packet["incident_channel"] = Value::Null;
        packet["operator_action"] =
            json!("look at the process that holds the lock, then run the same command again");
    }
}
