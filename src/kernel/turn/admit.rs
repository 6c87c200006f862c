//! Live admission: whether today's state admits a Turn, whatever was observed when it was planned
//! (docs/spec/kernel.md 9.4 step 7).

use crate::contract::ids::AgentId;
use crate::contract::settlement::{Binding, SettlementIdentity};
use crate::contract::todo::Status;
use crate::kernel::quota::frontier::{self, Hold};
use crate::kernel::quota::policy::{self, QuotaState};
use crate::kernel::quota::snapshot::{Question, Snapshot};

/// Why a Turn is not admitted now; `Ok` admits it.
pub fn check(
    snapshot: &Snapshot,
    question: &Question,
    identity: &SettlementIdentity,
) -> Result<(), &'static str> {
    if !snapshot.goal.has_agent(&identity.agent) {
        return Err("agent_not_registered");
    }
    match policy::state(&snapshot.goal, snapshot.spent) {
        QuotaState::Paused(cause) => return Err(cause),
        QuotaState::BlockedHealth => return Err("blocked_health"),
        QuotaState::Throttled => return Err("throttled"),
        QuotaState::Waiting | QuotaState::FocusWait => return Err("goal_waiting"),
        // A goal that waits for a person lets through only what its open gates leave free.
        QuotaState::OperatorGate if frontier::open_gates(snapshot).next().is_none() => {
            return Err("operator_gate");
        }
        QuotaState::OperatorGate | QuotaState::Eligible => {}
    }
    if policy::is_full(&snapshot.goal, snapshot.spent, 0) {
        return Err("throttled");
    }
    if snapshot
        .turn
        .admitted
        .as_ref()
        .is_some_and(|admitted| admitted.binding != Binding::Unbound && admitted != identity)
    {
        return Err("heartbeat_receipt_identity_conflict");
    }
    match &identity.binding {
        Binding::Todo(_) => check_todo(snapshot, question, &identity.agent),
        Binding::Replan(_) => Ok(()),
        Binding::Unbound => Err("missing_turn_lineage"),
    }
}

fn check_todo(
    snapshot: &Snapshot,
    question: &Question,
    agent: &AgentId,
) -> Result<(), &'static str> {
    let Some(todo) = &snapshot.named else {
        return Err("todo_not_found");
    };
    if todo.status() != Status::Open || todo.is_archived() {
        return Err("todo_not_open");
    }
    if snapshot.goal.is_monitor_only(agent) && !todo.is_monitor() {
        return Err("agent_monitor_only");
    }
    match frontier::hold(snapshot, question, todo) {
        Some(Hold::Foreign | Hold::Orphaned) => {
            let is_owned = todo
                .claimed_by()
                .is_some_and(|owner| agent.as_str() != owner);
            Err(if is_owned {
                "claim_owner_mismatch"
            } else {
                "todo_lease_conflict"
            })
        }
        // A Turn that was selected may go on when it lacks a capability or waits for a condition, never against a person's decision;
        // the first hold that is named may hide that one.
        _ => match frontier::decided(snapshot, question, todo) {
            Some(Hold::Refused) => Err("decision_scope_rejected"),
            Some(_) => Err("open_gate"),
            None => Ok(()),
        },
    }
}
