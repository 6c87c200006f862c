//! The two locks of a Turn: the lane of its agent, and its journal.

use std::path::PathBuf;

use serde_json::json;

use super::journal_file::{hex, turns_dir};
use crate::contract::digest;
use crate::contract::error::ErrorCode;
use crate::contract::ids::{AgentId, TurnKey};
use crate::contract::packet::Refusal;
use crate::flow::open::{Answer, Place};
use crate::flow::ports::Ports;
use crate::store::StoreError;
use crate::store::lock::{self, Claim, Held, Lane, Policy, TurnJournal};

/// Takes the lane of an agent, at once or not at all.
pub fn lock_lane(ports: &Ports, place: &Place, agent: &AgentId) -> Answer<Held<Lane>> {
    let id = digest::nul_joined(&[place.goal.id.as_str(), agent.as_str()]).short(12);
    let file = turns_dir(place)
        .join(".lanes")
        .join(format!("{agent}-{id}.lane"));
    let now = ports.now.to_string();
    let claim = Claim {
        lock_id: &id,
        agent_id: Some(agent.as_str()),
        operation: &ports.operation,
        policy: Policy::SingleFlight,
        now: &now,
    };
    lock::acquire(&file, &claim).map_err(|error| match error {
        StoreError::LockTimeout(holder) => {
            let text = "a Turn of this agent is in flight; wait for it, then run again";
            Refusal::new(ErrorCode::TurnLaneInFlight, text)
                .with("status", "unavailable")
                .with("reason", "turn_lane_in_flight")
                .with("remediation", json!(["wait_for_in_flight_turn"]))
                .with(
                    "in_flight",
                    json!({
                        "agent_id": holder.agent_id, "operation": holder.operation, "acquired_at": holder.acquired_at,
                        "host": holder.host, "pid": holder.pid,
                    }),
                )
        }
        other => other.into(),
    })
}

/// Takes the journal lock of a Turn below its lane.
pub fn lock_journal(
    ports: &Ports,
    place: &Place,
    lane: &Held<Lane>,
    key: &TurnKey,
) -> Answer<Held<TurnJournal>> {
    let now = ports.now.to_string();
    Ok(lane.then(
        &lock_path(place, key),
        &claim(ports, Policy::Mutation, &now),
    )?)
}

/// Waits for a writer of a journal to be done with it; takes nothing when nobody ever wrote it.
pub fn wait_for_writer(
    ports: &Ports,
    place: &Place,
    key: &TurnKey,
) -> Answer<Option<Held<TurnJournal>>> {
    let file = lock_path(place, key);
    if !file.exists() {
        return Ok(None);
    }
    let now = ports.now.to_string();
    Ok(Some(lock::acquire(
        &file,
        &claim(ports, Policy::Monitor, &now),
    )?))
}

pub(super) fn lock_path(place: &Place, key: &TurnKey) -> PathBuf {
    turns_dir(place).join(format!("{}.lock", hex(key)))
}

fn claim<'a>(ports: &'a Ports, policy: Policy, now: &'a str) -> Claim<'a> {
    Claim {
        lock_id: "turn-journal",
        agent_id: None,
        operation: &ports.operation,
        policy,
        now,
    }
}
