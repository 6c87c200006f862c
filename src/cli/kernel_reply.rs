//! What the kernel's commands share at the door: their ports, and the exit code of a refusal.

use serde_json::Value;

use super::args::Global;
use super::emit::{self, Reply};
use crate::compose;
use crate::contract::error::ErrorCode;
use crate::contract::packet::Refusal;
use crate::flow::Ports;

/// Codes of arguments that were not understood: exit 2.
const MISUSES: [ErrorCode; 3] = [
    ErrorCode::InvalidArguments,
    ErrorCode::SettleTurnRequiresTurnBinding,
    ErrorCode::VersionRequired,
];

/// Runs a flow with its ports and answers with its packet.
pub(super) fn with_ports(
    global: &Global,
    command: &str,
    flow: impl FnOnce(&Ports) -> Result<Value, Refusal>,
) -> Reply {
    let ports = compose::ports(
        global.registry.as_deref(),
        global.runtime_root.as_deref(),
        command,
    );
    answer(ports.and_then(|ports| flow(&ports)), command)
}

/// Answers with a packet or a refusal. A packet of its own says by `ok` how it went.
pub(super) fn answer(result: Result<Value, Refusal>, command: &str) -> Reply {
    match result {
        Ok(packet) => Reply::titled(packet, command),
        Err(refusal) if MISUSES.contains(&refusal.code) => misused(&refusal, command),
        Err(refusal) => Reply::refused(refusal, emit::ERROR_SCHEMA, command),
    }
}

/// Answers that the arguments were not understood.
pub(super) fn misused(refusal: &Refusal, command: &str) -> Reply {
    Reply::misused(&refusal.packet(emit::ERROR_SCHEMA, command))
}

/// A refusal of arguments that exclude each other or lack one another.
pub(super) fn misuse(message: &str) -> Refusal {
    Refusal::new(ErrorCode::InvalidArguments, message)
}
