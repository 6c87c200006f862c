//! May this Todo pass from one session or agent to the next?
//!
//! The guard compares only what the transfer rests on: the Todo, its lease, its gate decisions and the
//! roster entries of the two agents. Other writes of the goal do not make a handoff stale.

use serde_json::Value;

use crate::contract::error::ErrorCode;
use crate::contract::handoff::{self, Note};
use crate::contract::ids::AgentId;
use crate::contract::lease::Lease;
use crate::contract::packet::Refusal;
use crate::contract::time::Timestamp;
use crate::contract::todo::{Status, Todo};

/// How the note of a Todo is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoteState {
    /// The Todo is still the one it was written for.
    Current,
    /// The Todo changed since.
    Stale,
    /// There is none.
    Missing,
}

impl NoteState {
    /// Looks at the note of a Todo.
    pub fn of(note: Option<&Note>, todo: &Todo) -> Self {
        match note {
            None => Self::Missing,
            Some(note) if note.is_current(todo) => Self::Current,
            Some(_) => Self::Stale,
        }
    }

    /// The word of the packet.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Current => "current",
            Self::Stale => "stale",
            Self::Missing => "missing",
        }
    }
}

/// Tells whether a session may continue: a current note of another session, with everything it needs there.
pub fn may_continue(state: NoteState, note: Option<&Note>, at: (&str, bool)) -> bool {
    let (session, is_ready) = at;
    let is_other = note.is_some_and(|note| note.source_session() != session);
    state == NoteState::Current && is_other && is_ready
}

/// Whose roster entries and which Todo a guard watches.
#[derive(Debug, Clone, Copy)]
pub struct Watch<'a> {
    /// The Todo.
    pub todo: &'a Todo,
    /// The acting agent and the one that is to own the Todo.
    pub agents: [&'a AgentId; 2],
}

impl Watch<'_> {
    /// Tells whether an event after the named revision concerns the handoff.
    pub fn concerns(&self, event: &Value) -> bool {
        let todo = event.get("todo_id").and_then(Value::as_str);
        todo == Some(self.todo.id().as_str()) || self.concerns_authority(event)
    }

    /// Tells whether an event changed a gate the Todo requires, or the place of one of the agents on the roster. What its
    /// owner does on the Todo itself after an adoption takes nothing from the owner.
    pub fn concerns_authority(&self, event: &Value) -> bool {
        let word = |name: &str| event.get(name).and_then(Value::as_str);
        let detail = |name: &str| event.get("details")?.get(name)?.as_str();
        match word("event_kind") {
            Some("gate_decision") => detail("decision_scope")
                .is_some_and(|scope| self.todo.list("required_decision_scopes").contains(&scope)),
            Some("agent_register") => self.names_agent(detail("agents")),
            Some("goal_config") if word("status") == Some("edited") => true,
            Some("goal_config") => {
                self.names_agent(detail("roster_agents"))
                    || self.names_agent(detail("work_mode_agents"))
            }
            _ => false,
        }
    }

    fn names_agent(&self, list: Option<&str>) -> bool {
        let mut names = list.unwrap_or("").split(',');
        names.any(|name| self.agents.iter().any(|agent| agent.as_str() == name))
    }
}

/// Refuses a Todo that is not open.
pub fn require_open(todo: &Todo) -> Result<(), Refusal> {
    match todo.status() == Status::Open && !todo.is_archived() {
        true => Ok(()),
        false => Err(super::todo::not_open(todo)),
    }
}

/// Refuses a note that is written by somebody else than the owner.
pub fn require_owner(todo: &Todo, actor: &AgentId) -> Result<(), Refusal> {
    if todo.claimed_by() == Some(actor.as_str()) {
        return Ok(());
    }
    let text =
        "only the current owner prepares a handoff; claim the todo first, or let its owner prepare";
    Err(Refusal::new(ErrorCode::ContinuationOwnerRequired, text))
}

/// What an adoption changes.
#[derive(Debug, Clone, PartialEq)]
pub enum Adoption {
    /// The owner changes; the Todo as it will be.
    Transfer(Box<Todo>),
    /// The target owns the Todo already: only a receipt is kept.
    ReceiptOnly,
}

impl Adoption {
    /// The word of the packet.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Transfer(_) => "transferred",
            Self::ReceiptOnly => "already_owned",
        }
    }
}

/// Decides what an adoption changes. A leased Todo is not moved to another owner.
pub fn adopt(
    todo: &Todo,
    lease: Option<&Lease>,
    (actor, target): (&AgentId, &AgentId),
    now: Timestamp,
) -> Result<Adoption, Refusal> {
    if todo.claimed_by() == Some(target.as_str()) {
        return Ok(Adoption::ReceiptOnly);
    }
    if lease.is_some_and(|lease| lease.is_live(now)) {
        let text =
            "a live lease covers this todo; release or transfer it with `loopx task-lease` first";
        return Err(Refusal::new(ErrorCode::ContinuationLeaseUnsupported, text));
    }
    super::todo::require_meant_for(todo, target)?;
    let mut moved = todo.clone();
    moved.set("claimed_by", Value::String(target.to_string()));
    super::todo::touch(&mut moved, Some(actor), now);
    Ok(Adoption::Transfer(Box::new(moved)))
}

/// Tells whether somebody else holds a live lease on the Todo.
pub fn is_leased_elsewhere(lease: Option<&Lease>, owner: &AgentId, now: Timestamp) -> bool {
    lease.is_some_and(|lease| lease.is_live(now) && lease.owner != *owner)
}

/// What was sealed when a Todo was adopted, to be found again on every replay.
#[derive(Debug, Clone, Copy)]
pub struct Seal<'a> {
    /// Who was to own it.
    pub target: &'a AgentId,
    /// Digest of the note.
    pub note_facts: &'a str,
    /// Digest of the Todo without its owner.
    pub stable_facts: &'a str,
}

impl Seal<'_> {
    /// Tells whether the Todo still stands as it was sealed.
    pub fn holds(&self, todo: &Todo) -> bool {
        let is_note = Note::of(todo).is_some_and(|note| note.facts() == self.note_facts);
        require_open(todo).is_ok()
            && todo.claimed_by() == Some(self.target.as_str())
            && is_note
            && handoff::stable_facts(todo) == self.stable_facts
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::ids::TodoId;
    use crate::contract::todo::Role;
    use serde_json::json;

    fn agent(name: &str) -> AgentId {
        AgentId::new(name).expect("valid")
    }

    fn todo() -> Todo {
        let mut todo = Todo::new(
            TodoId::new("todo_abc").expect("valid"),
            Role::Agent,
            "carry on",
        );
        todo.set("claimed_by", json!("lane-a"));
        todo.set(
            "required_decision_scopes",
            json!(["production:goal:release"]),
        );
        todo
    }

    fn concerns(event: &Value) -> bool {
        let (a, b) = (agent("lane-a"), agent("lane-b"));
        Watch {
            todo: &todo(),
            agents: [&a, &b],
        }
        .concerns(event)
    }

    #[test]
    fn only_what_the_transfer_rests_on_concerns_it() {
        for event in [
            json!({"event_kind": "todo_update", "todo_id": "todo_abc"}),
            json!({"event_kind": "lease", "todo_id": "todo_abc"}),
            json!({"event_kind": "gate_decision", "todo_id": "todo_gate", "details": {"decision_scope": "production:goal:release"}}),
            json!({"event_kind": "agent_register", "details": {"agents": "lane-x,lane-b"}}),
            json!({"event_kind": "goal_config", "status": "edited"}),
            json!({"event_kind": "goal_config", "status": "applied", "details": {"roster_agents": "lane-a"}}),
        ] {
            assert!(concerns(&event), "{event}");
        }
        for event in [
            json!({"event_kind": "todo_add", "todo_id": "todo_other"}),
            json!({"event_kind": "gate_decision", "todo_id": "todo_gate", "details": {"decision_scope": "other:goal:x"}}),
            json!({"event_kind": "agent_register", "details": {"agents": "lane-x"}}),
            json!({"event_kind": "goal_config", "status": "applied"}),
            json!({"event_kind": "quota_spend", "todo_id": null}),
        ] {
            assert!(!concerns(&event), "{event}");
        }
    }

    #[test]
    fn the_owner_of_a_todo_adopts_it_without_moving_it() {
        let now = Timestamp::parse("2026-01-01T00:00:00Z").expect("valid");
        let (a, b) = (agent("lane-a"), agent("lane-b"));
        assert_eq!(
            adopt(&todo(), None, (&a, &a), now),
            Ok(Adoption::ReceiptOnly)
        );
        let moved = adopt(&todo(), None, (&b, &b), now);
        let Ok(Adoption::Transfer(moved)) = moved else {
            panic!("a transfer")
        };
        assert_eq!(moved.claimed_by(), Some("lane-b"));
        assert_eq!(
            handoff::stable_facts(&moved),
            handoff::stable_facts(&todo())
        );
    }
}
