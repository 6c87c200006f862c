//! What every transition shares.

use serde_json::json;

use super::Outcome;
use crate::contract::error::ErrorCode;
use crate::contract::ids::{AgentId, TodoId};
use crate::contract::packet::Refusal;
use crate::contract::time::Timestamp;
use crate::contract::todo::Todo;

/// Refuses a todo that would follow itself.
pub(super) fn require_others(todo: &Todo, successors: &[TodoId]) -> Outcome<()> {
    if successors.contains(todo.id()) {
        let text = "a todo cannot follow itself; name another one";
        return Err(Refusal::new(ErrorCode::InvalidArguments, text));
    }
    Ok(())
}

/// Notes who changed a record and when.
pub fn touch(todo: &mut Todo, actor: Option<&AgentId>, now: Timestamp) {
    if let Some(actor) = actor {
        todo.set("last_actor_agent_id", json!(actor));
    }
    todo.set("updated_at", json!(now));
}

/// The refusal of a todo that is not open for this.
pub fn not_open(todo: &Todo) -> Refusal {
    Refusal::new(
        ErrorCode::TodoNotOpen,
        "the todo is not open for this; `loopx todo list` shows where it stands",
    )
    .with("todo_status", todo.status().as_str())
}

pub(super) fn gate_decision_required() -> Refusal {
    let text = "a gate is closed by a recorded decision only; use `loopx todo update --decision-outcome approve|reject|cancel`";
    Refusal::new(ErrorCode::GateDecisionRequired, text)
}
