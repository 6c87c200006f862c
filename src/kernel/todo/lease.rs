//! What a live lease on a todo lets others do with it.

use super::Outcome;
use crate::contract::error::ErrorCode;
use crate::contract::ids::AgentId;
use crate::contract::lease::Lease;
use crate::contract::packet::Refusal;
use crate::contract::time::Timestamp;

/// A proof of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseProof {
    /// The key of the acquisition.
    pub key: String,
    /// The version it was at.
    pub version: Option<i64>,
}

/// Checks the proof against the lease of a todo; without a live lease none is needed.
pub fn check_lease(
    lease: Option<&Lease>,
    proof: Option<&LeaseProof>,
    agent: &AgentId,
    now: Timestamp,
) -> Outcome<()> {
    let Some(lease) = lease.filter(|lease| lease.is_live(now)) else {
        return match proof {
            None => Ok(()),
            Some(_) => Err(Refusal::new(
                ErrorCode::LeaseNotActive,
                "the named lease is not active; acquire one, or leave its proof out",
            )),
        };
    };
    let is_proven =
        proof.is_some_and(|proof| proof.key == lease.idempotency_key) && &lease.owner == agent;
    if !is_proven {
        let text = "a live lease covers this todo and the proof does not match it; use the holder's key, or wait for its end";
        return Err(
            Refusal::new(ErrorCode::TodoLeaseConflict, text).with("owner", lease.owner.as_str())
        );
    }
    match proof.and_then(|proof| proof.version) {
        Some(version) if version != lease.version => {
            let text = "the lease has moved on; `loopx task-lease inspect` shows its version";
            Err(Refusal::new(ErrorCode::VersionMismatch, text).with("version", lease.version))
        }
        _ => Ok(()),
    }
}

/// Refuses a change of where a todo stands while somebody else holds a live lease on it. Without an acting agent nobody
/// can be the holder.
pub fn require_unleased(
    lease: Option<&Lease>,
    agent: Option<&AgentId>,
    now: Timestamp,
) -> Outcome<()> {
    let Some(lease) = lease.filter(|lease| lease.is_live(now)) else {
        return Ok(());
    };
    if agent == Some(&lease.owner) {
        return Ok(());
    }
    let text = "a live lease covers this todo and this call does not hold it; its holder completes it with the key, or wait for its end";
    Err(Refusal::new(ErrorCode::TodoLeaseConflict, text).with("owner", lease.owner.as_str()))
}
