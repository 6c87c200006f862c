//! One gate that was turned down: what it still holds, and the command that reopens it (docs/spec/kernel.md 4.4).

use serde_json::{Map, Value, json};

use super::places::shell_line;
use crate::contract::ids::GoalId;
use crate::contract::scope::DecisionScope;
use crate::contract::todo::Todo;

/// A gate that was turned down and still rules.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedGate {
    gate_id: String,
    outcome: String,
    scope: Option<String>,
    /// What needs this scope is held, whoever would do it.
    covered: Option<DecisionScope>,
    /// Who is held whatever a todo needs.
    held: Held,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Held {
    Everyone,
    Agent(String),
    Nobody,
}

/// Which parts of a recorded refusal a later decision has not replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruling {
    /// It is the latest for its scope and the latest of its gate.
    Whole,
    /// Another gate of the same scope, or the same gate in another scope, was decided later.
    Scope,
    /// See [`Ruling::Scope`].
    Gate,
}

impl RefusedGate {
    /// Reads a recorded refusal.
    pub fn new(
        (gate_id, outcome): (&str, &str),
        scope: Option<&str>,
        body: &Map<String, Value>,
        ruling: Ruling,
    ) -> Self {
        let covered = scope.filter(|_| ruling != Ruling::Gate);
        Self {
            gate_id: gate_id.to_owned(),
            outcome: outcome.to_owned(),
            scope: scope.map(str::to_owned),
            covered: covered.and_then(DecisionScope::parse),
            held: match ruling {
                Ruling::Scope => Held::Nobody,
                Ruling::Whole | Ruling::Gate => Held::read(scope, body),
            },
        }
    }

    /// The scope it refuses.
    pub fn scope(&self) -> Option<&DecisionScope> {
        self.covered.as_ref()
    }

    /// True when it holds this agent whatever a todo needs.
    pub fn holds_all(&self, agent: Option<&str>) -> bool {
        match &self.held {
            Held::Agent(blocked) => Some(blocked.as_str()) == agent,
            Held::Everyone => true,
            Held::Nobody => false,
        }
    }

    /// True when some agent may not take the todo because of it.
    pub fn concerns(&self, todo: &Todo) -> bool {
        self.held != Held::Nobody || self.covers(todo)
    }

    /// True when it refuses a scope that the todo needs.
    pub fn covers(&self, todo: &Todo) -> bool {
        let needed = todo.required_scopes();
        self.scope()
            .is_some_and(|scope| needed.iter().any(|needed| scope.covers(needed)))
    }

    /// Names the gate, with the command that decides it anew.
    pub fn to_value(&self, goal: &GoalId) -> Value {
        let words = [
            "loopx",
            "todo",
            "update",
            "--goal-id",
            goal.as_str(),
            "--todo-id",
            &self.gate_id,
            "--decision-outcome",
            "approve",
        ];
        json!({
            "gate_id": self.gate_id, "outcome": self.outcome, "decision_scope": self.scope,
            "reopen_command": shell_line(&words.map(str::to_owned)),
        })
    }
}

impl Held {
    /// As an open gate holds: its scope does not narrow what it says of everyone or of one agent.
    fn read(scope: Option<&str>, body: &Map<String, Value>) -> Self {
        // An unreadable scope says nothing about its reach: no permission is drawn from it.
        let is_unreadable = scope.is_some_and(|scope| DecisionScope::parse(scope).is_none());
        if is_unreadable || body.get("global_gate") == Some(&Value::Bool(true)) {
            return Self::Everyone;
        }
        let agent = body.get("blocks_agent").and_then(Value::as_str);
        agent.map_or(Self::Nobody, |agent| Self::Agent(agent.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn todo(needs: &[&str]) -> Todo {
        let body = json!({
            "todo_id": "todo_abc", "role": "agent", "status": "open", "done": false, "text": "Ship",
            "archive_state": "active", "required_decision_scopes": needs,
        });
        Todo::parse(body.as_object().unwrap().clone()).unwrap()
    }

    fn gate(scope: Option<&str>, body: Value, ruling: Ruling) -> RefusedGate {
        let body = body.as_object().unwrap();
        RefusedGate::new(("todo_gate", "reject"), scope, body, ruling)
    }

    #[test]
    fn a_refusal_reaches_its_scope_its_agent_or_everyone() {
        let ship = todo(&["production:goal:ship"]);
        let other = todo(&["production:goal:other"]);
        let scope = Some("production:goal:ship");
        let scoped = gate(scope, json!({}), Ruling::Whole);
        assert!(scoped.concerns(&ship) && !scoped.concerns(&other));
        assert!(!scoped.holds_all(Some("lane-a")));
        let agents = gate(None, json!({"blocks_agent": "lane-a"}), Ruling::Whole);
        assert!(agents.holds_all(Some("lane-a")) && !agents.holds_all(Some("lane-b")));
        assert!(!agents.holds_all(None) && agents.concerns(&other));
        let global = gate(None, json!({"global_gate": true}), Ruling::Whole);
        assert!(global.holds_all(None) && global.concerns(&other));
        let idle = gate(None, json!({}), Ruling::Whole);
        assert!(!idle.holds_all(Some("lane-a")) && !idle.concerns(&ship));
        let unreadable = gate(Some("odd"), json!({}), Ruling::Whole);
        assert!(unreadable.holds_all(None));
    }

    #[test]
    fn a_later_decision_replaces_only_what_it_speaks_of() {
        let (ship, other) = (todo(&["production:goal:ship"]), todo(&[]));
        let body = json!({"global_gate": true});
        let of = |ruling| gate(Some("production:goal:ship"), body.clone(), ruling);
        let (whole, scope, rest) = (of(Ruling::Whole), of(Ruling::Scope), of(Ruling::Gate));
        assert!(whole.scope().is_some() && whole.holds_all(None) && whole.concerns(&other));
        assert!(scope.concerns(&ship) && !scope.holds_all(None) && !scope.concerns(&other));
        assert!(rest.scope().is_none() && rest.holds_all(None) && rest.concerns(&other));
    }
}
