//! Claim, update, supersession and archiving.

use serde_json::{Value, json};

use super::Outcome;
use super::complete::{Continuation, set_continuation};
use super::rules::{gate_decision_required, not_open, require_meant_for, require_others, touch};
use crate::contract::error::ErrorCode;
use crate::contract::ids::{AgentId, TodoId};
use crate::contract::packet::Refusal;
use crate::contract::time::Timestamp;
use crate::contract::todo::{Status, Todo};

/// Takes a todo for an owner; `None` when it has it already.
pub fn claim(
    todo: &Todo,
    owner: &AgentId,
    actor: &AgentId,
    now: Timestamp,
) -> Outcome<Option<Todo>> {
    if todo.status() == Status::Done || todo.is_archived() {
        return Err(not_open(todo));
    }
    match todo.claimed_by() {
        Some(current) if current == owner.as_str() => Ok(None),
        Some(current) => {
            let text = "another agent owns this todo; it has to release it or hand it over";
            Err(Refusal::new(ErrorCode::ClaimOwnerMismatch, text).with("claimed_by", current))
        }
        None => {
            require_meant_for(todo, owner)?;
            let mut taken = todo.clone();
            taken.set("claimed_by", json!(owner));
            touch(&mut taken, Some(actor), now);
            Ok(Some(taken))
        }
    }
}

/// The changes `todo update` can make.
#[derive(Clone, Debug, Default)]
pub struct Update {
    /// The acting agent.
    pub agent: Option<AgentId>,
    /// Members that are simply set; `null` removes one.
    pub members: Vec<(&'static str, Value)>,
    /// The new status.
    pub status: Option<Status>,
    /// The recorded outcome of a gate.
    pub outcome: Option<String>,
    /// Gives the claim back.
    pub clear_claim: bool,
}

/// Updates a todo; `None` when nothing differs.
pub fn update(todo: &Todo, asked: &Update, now: Timestamp) -> Outcome<Option<Todo>> {
    // A gate that was turned down holds work until it is decided anew, wherever it lies.
    let is_decided_anew = asked.outcome.is_some() && todo.text("decision_outcome").is_some();
    if todo.is_archived() && !is_decided_anew {
        return Err(not_open(todo));
    }
    check_update(todo, asked)?;
    let mut changed = todo.clone();
    for (name, value) in &asked.members {
        changed.set(name, value.clone());
    }
    if asked.clear_claim {
        changed.set("claimed_by", Value::Null);
    }
    if let Some(outcome) = &asked.outcome {
        let has_reason = asked.members.iter().any(|(name, _)| *name == "reason");
        if !has_reason && todo.text("decision_outcome") != Some(outcome) {
            // The reason of an earlier outcome stays with that outcome.
            changed.set("reason", Value::Null);
        }
        changed.set("decision_outcome", json!(outcome));
        changed.set("archive_state", json!("active"));
        changed.set_status(Status::Done);
        changed.set("completion_continuation", json!("active_goal"));
    } else if let Some(status) = asked.status {
        changed.set_status(status);
        if status == Status::Done && todo.status() != Status::Done {
            changed.set("completion_continuation", json!("active_goal"));
            // As `todo complete` does: work without an owner is nobody's outcome in a report.
            if let (Some(agent), None) = (&asked.agent, todo.claimed_by()) {
                changed.set("claimed_by", json!(agent));
            }
        }
    }
    if changed == *todo {
        return Ok(None);
    }
    if changed.status() == Status::Done && todo.status() != Status::Done {
        changed.set("completed_at", json!(now));
    }
    touch(&mut changed, asked.agent.as_ref(), now);
    Ok(Some(changed))
}

fn check_update(todo: &Todo, asked: &Update) -> Outcome<()> {
    let intents = asked
        .members
        .iter()
        .filter(|(name, _)| *name == "completion_intent");
    for (_, intent) in intents {
        let ids = intent.get("successor_todo_ids").and_then(Value::as_array);
        let ids = ids.into_iter().flatten().filter_map(Value::as_str);
        require_others(todo, &ids.filter_map(TodoId::new).collect::<Vec<_>>())?;
    }
    if asked.outcome.is_some() && !todo.is_user_gate() {
        let text = "an outcome is recorded on a user gate only; this todo is none";
        return Err(Refusal::new(ErrorCode::InvalidArguments, text));
    }
    if todo.is_user_gate() && asked.outcome.is_none() && asked.status == Some(Status::Done) {
        return Err(gate_decision_required());
    }
    if todo.status() == Status::Done
        && asked.outcome.is_none()
        && asked.status.is_some_and(|status| status != Status::Done)
    {
        return Err(not_open(todo));
    }
    let moves = asked.clear_claim || asked.status.is_some();
    if let Some(agent) = asked.agent.as_ref().filter(|_| moves) {
        require_meant_for(todo, agent)?;
    }
    if let (Some(agent), Some(owner)) = (&asked.agent, todo.claimed_by())
        && owner != agent.as_str()
        && moves
    {
        let text = "another agent owns this todo; only its owner changes where it stands";
        return Err(Refusal::new(ErrorCode::ClaimOwnerMismatch, text).with("claimed_by", owner));
    }
    Ok(())
}

/// Takes a todo out of the work because another one stands in for it.
pub fn supersede(
    todo: &Todo,
    by: Option<&TodoId>,
    reason: Option<&str>,
    now: Timestamp,
) -> Outcome<Todo> {
    require_others(todo, by.map(std::slice::from_ref).unwrap_or_default())?;
    if todo.is_user_gate() && todo.text("decision_outcome").is_none() {
        return Err(gate_decision_required());
    }
    if todo.status() == Status::Done || todo.is_archived() {
        return Err(not_open(todo));
    }
    let mut superseded = todo.clone();
    superseded.set_status(Status::Done);
    let continuation = by.map_or(Continuation::ActiveGoal, |by| {
        Continuation::Successor(vec![by.clone()])
    });
    set_continuation(&mut superseded, &continuation);
    superseded.set("superseded_by", json!(by));
    if let Some(reason) = reason {
        superseded.set("reason", json!(reason));
    }
    touch(&mut superseded, None, now);
    Ok(superseded)
}

/// Puts a finished todo away.
pub fn archive(todo: &Todo, now: Timestamp) -> Outcome<Todo> {
    if todo.is_user_gate() && todo.text("decision_outcome").is_none() {
        return Err(gate_decision_required());
    }
    if todo.is_user_gate() && todo.text("decision_outcome") != Some("approve") {
        let text = "a gate that was turned down holds work until it is approved; it is not put away before";
        return Err(Refusal::new(ErrorCode::GateDecisionRequired, text));
    }
    if todo.status() != Status::Done {
        let text = "only a finished todo is archived; complete or supersede it first";
        return Err(
            Refusal::new(ErrorCode::TodoNotOpen, text).with("todo_status", todo.status().as_str())
        );
    }
    let mut archived = todo.clone();
    archived.set("archive_state", json!("archived"));
    touch(&mut archived, None, now);
    Ok(archived)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::ids::TurnInstanceId;
    use crate::contract::todo::Role;
    use crate::kernel::todo::{Completion, complete};

    fn todo(role: Role) -> Todo {
        Todo::new(TodoId::new("todo_abc").unwrap(), role, "do it")
    }

    fn agent(name: &str) -> AgentId {
        AgentId::new(name).unwrap()
    }

    fn now() -> Timestamp {
        Timestamp::parse("2026-01-01T00:00:00Z").unwrap()
    }

    fn asked<'a>(agent: &'a AgentId, instance: Option<&'a TurnInstanceId>) -> Completion<'a> {
        Completion {
            agent,
            continuation: Continuation::ActiveGoal,
            evidence: None,
            note: None,
            instance,
            is_turn_settled: false,
            now: now(),
        }
    }

    #[test]
    fn a_completion_claims_writes_its_continuation_and_replays_in_its_turn() {
        let (a, turn) = (agent("lane-a"), TurnInstanceId::new("t1").unwrap());
        let done = complete(&todo(Role::Agent), &asked(&a, Some(&turn)))
            .unwrap()
            .unwrap();
        assert_eq!(done.text("completion_continuation"), Some("active_goal"));
        assert!(done.is_claimed_by(&a));
        assert_eq!(complete(&done, &asked(&a, Some(&turn))).unwrap(), None);
        assert_eq!(
            complete(&done, &asked(&a, None)).unwrap_err().code,
            ErrorCode::TodoNotOpen
        );
    }

    #[test]
    fn nothing_follows_only_after_the_turn_is_settled() {
        let (a, turn) = (agent("lane-a"), TurnInstanceId::new("t1").unwrap());
        let done = complete(&todo(Role::Agent), &asked(&a, Some(&turn)))
            .unwrap()
            .unwrap();
        let mut final_word = asked(&a, Some(&turn));
        final_word.continuation = Continuation::NoFollowup;
        assert!(complete(&done, &final_word).is_err());
        final_word.is_turn_settled = true;
        let closed = complete(&done, &final_word).unwrap().unwrap();
        assert!(closed.flag("no_followup"));
    }

    #[test]
    fn a_gate_is_closed_by_an_outcome_alone() {
        let mut gate = todo(Role::User);
        gate.set("task_class", json!("user_gate"));
        let done = Update {
            status: Some(Status::Done),
            ..Update::default()
        };
        assert_eq!(
            update(&gate, &done, now()).unwrap_err().code,
            ErrorCode::GateDecisionRequired
        );
        assert_eq!(
            supersede(&gate, None, None, now()).unwrap_err().code,
            ErrorCode::GateDecisionRequired
        );
        let decided = Update {
            outcome: Some("reject".into()),
            ..Update::default()
        };
        let decided = update(&gate, &decided, now()).unwrap().unwrap();
        assert_eq!(decided.status(), Status::Done);
    }

    #[test]
    fn a_foreign_owner_is_never_displaced() {
        let mut owned = todo(Role::Agent);
        owned.set("claimed_by", json!("lane-b"));
        let a = agent("lane-a");
        assert_eq!(
            claim(&owned, &a, &a, now()).unwrap_err().code,
            ErrorCode::ClaimOwnerMismatch
        );
        assert_eq!(
            complete(&owned, &asked(&a, None)).unwrap_err().code,
            ErrorCode::ClaimOwnerMismatch
        );
    }
}
