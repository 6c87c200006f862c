//! Completion: how a finished todo goes on, its replay and its terminal closeout.

use serde_json::{Value, json};

use super::Outcome;
use super::rules::{gate_decision_required, not_open, require_meant_for, require_others, touch};
use crate::contract::error::ErrorCode;
use crate::contract::ids::{AgentId, TodoId, TurnInstanceId};
use crate::contract::packet::Refusal;
use crate::contract::time::Timestamp;
use crate::contract::todo::{Role, Status, Todo};

/// How a finished todo goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Continuation {
    /// The goal goes on.
    ActiveGoal,
    /// Nothing follows.
    NoFollowup,
    /// These todos follow.
    Successor(Vec<TodoId>),
}

impl Continuation {
    /// The word of the record.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Continuation::ActiveGoal => "active_goal",
            Continuation::NoFollowup => "no_followup",
            Continuation::Successor(_) => "successor",
        }
    }

    /// The declaration a driver completes by.
    pub fn intent(&self) -> Value {
        let successors: &[TodoId] = match self {
            Continuation::Successor(successors) => successors,
            _ => &[],
        };
        json!({"continuation": self.as_str(), "successor_todo_ids": successors})
    }

    /// Reads the declaration of a record.
    pub fn of_intent(todo: &Todo) -> Option<Self> {
        let intent = todo.get("completion_intent")?;
        match todo.completion_intent()? {
            "active_goal" => Some(Continuation::ActiveGoal),
            "no_followup" => Some(Continuation::NoFollowup),
            "successor" => {
                let ids = intent.get("successor_todo_ids").and_then(Value::as_array)?;
                let ids: Option<Vec<TodoId>> = ids
                    .iter()
                    .map(|id| id.as_str().and_then(TodoId::new))
                    .collect();
                ids.filter(|ids| !ids.is_empty())
                    .map(Continuation::Successor)
            }
            _ => None,
        }
    }
}

/// A completion as it is asked for.
#[derive(Clone, Debug)]
pub struct Completion<'a> {
    /// The acting agent.
    pub agent: &'a AgentId,
    /// How it goes on.
    pub continuation: Continuation,
    /// What was found.
    pub evidence: Option<&'a str>,
    /// A remark.
    pub note: Option<&'a str>,
    /// The Turn it belongs to.
    pub instance: Option<&'a TurnInstanceId>,
    /// True when that Turn's writeback and spend are stored.
    pub is_turn_settled: bool,
    /// The instant.
    pub now: Timestamp,
}

/// Completes a todo; `None` when this exact completion is stored already.
pub fn complete(todo: &Todo, asked: &Completion<'_>) -> Outcome<Option<Todo>> {
    if todo.is_user_gate() {
        return Err(gate_decision_required());
    }
    if let Continuation::Successor(successors) = &asked.continuation {
        require_others(todo, successors)?;
    }
    if todo.status() == Status::Done {
        return again(todo, asked);
    }
    if todo.status() != Status::Open || todo.is_archived() {
        return Err(not_open(todo));
    }
    if todo.role() == Role::Agent
        && let Some(owner) = todo.claimed_by()
        && owner != asked.agent.as_str()
    {
        let text = "another agent owns this todo; only its owner completes it";
        return Err(Refusal::new(ErrorCode::ClaimOwnerMismatch, text).with("claimed_by", owner));
    }
    require_meant_for(todo, asked.agent)?;
    let mut done = todo.clone();
    if done.claimed_by().is_none() {
        done.set("claimed_by", json!(asked.agent));
    }
    done.set_status(Status::Done);
    set_continuation(&mut done, &asked.continuation);
    done.set("completion_turn_key", json!(asked.instance));
    done.set("completed_at", json!(asked.now));
    set_words(&mut done, asked);
    touch(&mut done, Some(asked.agent), asked.now);
    Ok(Some(done))
}

/// The same completion again, or the one change that is allowed later: nothing follows after all, inside the settled Turn.
fn again(todo: &Todo, asked: &Completion<'_>) -> Outcome<Option<Todo>> {
    let instance = asked.instance.map(|instance| instance.as_str());
    let is_same_turn = instance.is_some()
        && todo.text("completion_turn_key") == instance
        && todo.is_claimed_by(asked.agent);
    if !is_same_turn {
        return Err(not_open(todo));
    }
    if todo.text("completion_continuation") == Some(asked.continuation.as_str()) {
        return Ok(None);
    }
    let is_closeout = asked.continuation == Continuation::NoFollowup
        && todo.text("completion_continuation") == Some("active_goal");
    if is_closeout && asked.is_turn_settled {
        return Ok(Some(closed_out(todo, asked.now)));
    }
    Err(not_open(todo))
}

/// The terminal closeout of a completed todo: nothing follows.
pub fn closed_out(todo: &Todo, now: Timestamp) -> Todo {
    let mut closed = todo.clone();
    set_continuation(&mut closed, &Continuation::NoFollowup);
    closed.set("completion_recovery", json!("same_turn_terminal_closeout"));
    touch(&mut closed, None, now);
    closed
}

pub(super) fn set_continuation(todo: &mut Todo, continuation: &Continuation) {
    todo.set("completion_continuation", json!(continuation.as_str()));
    todo.set(
        "no_followup",
        if *continuation == Continuation::NoFollowup {
            json!(true)
        } else {
            Value::Null
        },
    );
    if let Continuation::Successor(successors) = continuation {
        todo.set("successor_todo_ids", json!(successors));
    }
}

fn set_words(todo: &mut Todo, asked: &Completion<'_>) {
    if let Some(evidence) = asked.evidence {
        todo.set("evidence", json!(evidence));
    }
    if let Some(note) = asked.note {
        todo.set("note", json!(note));
    }
}
