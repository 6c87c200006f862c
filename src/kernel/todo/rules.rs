//! What every transition shares.

use serde_json::json;

use super::Outcome;
use crate::contract::error::ErrorCode;
use crate::contract::ids::{AgentId, TodoId};
use crate::contract::packet::Refusal;
use crate::contract::time::Timestamp;
use crate::contract::todo::{Role, Todo};

/// Refuses a todo that would follow itself.
pub(super) fn require_others(todo: &Todo, successors: &[TodoId]) -> Outcome<()> {
    if successors.contains(todo.id()) {
        let text = "a todo cannot follow itself; name another one";
        return Err(Refusal::new(ErrorCode::InvalidArguments, text));
    }
    Ok(())
}

/// Refuses an agent the todo is not for: it is bound to another one, or shuts this one out.
pub fn require_meant_for(todo: &Todo, agent: &AgentId) -> Outcome<()> {
    if todo.may_go_to(agent.as_str()) {
        return Ok(());
    }
    let text = "this todo is bound to another agent or excludes this one; let an agent it is meant for take it";
    let refusal = Refusal::new(ErrorCode::ClaimOwnerMismatch, text);
    Err(match todo.text("bound_agent") {
        Some(bound) => refusal.with("bound_agent", bound),
        None => refusal,
    })
}

/// Refuses an agent the todo is not for, or that does not own it while another one does.
pub fn require_not_anothers(todo: &Todo, agent: &AgentId) -> Outcome<()> {
    require_meant_for(todo, agent)?;
    match todo.claimed_by() {
        Some(owner) if owner != agent.as_str() => {
            let text = "another agent owns this todo; only its owner changes when it is due";
            let refusal = Refusal::new(ErrorCode::ClaimOwnerMismatch, text);
            Err(refusal.with("claimed_by", owner))
        }
        _ => Ok(()),
    }
}

/// Completes and checks a new record: what only a gate can do makes it one, and an owner has to be an agent it is meant for.
pub fn check_new(todo: &mut Todo) -> Outcome<()> {
    let is_gate_like = todo.flag("global_gate") || todo.text("blocks_agent").is_some();
    if is_gate_like && todo.role() == Role::User && todo.task_class().is_none() {
        todo.set("task_class", json!("user_gate"));
    }
    if is_gate_like && !todo.is_user_gate() {
        let text = "--global-gate and --blocks-agent hold work up on a user gate alone; add it with --role user --task-class user_gate";
        return Err(Refusal::new(ErrorCode::InvalidArguments, text));
    }
    if todo.role() == Role::Agent && todo.task_class() == Some("user_gate") {
        let text = "a gate is decided by a person; add it with --role user --task-class user_gate";
        return Err(Refusal::new(ErrorCode::InvalidArguments, text));
    }
    match todo.claimed_by() {
        Some(owner) if !todo.may_go_to(owner) => {
            let text = "--claimed-by names an agent that --bound-agent or --exclude-agent keeps away; leave one of them out";
            Err(Refusal::new(ErrorCode::InvalidArguments, text))
        }
        _ => Ok(()),
    }
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
