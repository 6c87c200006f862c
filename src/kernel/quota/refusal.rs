//! Gates that were turned down: what they keep from running, and how each is named (docs/spec/kernel.md 4.4, 6.4).

use serde_json::{Map, Value, json};

use super::frontier::{Frontier, Hold};
use super::snapshot::{Question, Snapshot, shell_line};
use super::verdict::Row;
use crate::contract::ids::GoalId;
use crate::contract::scope::DecisionScope;
use crate::contract::todo::Todo;

/// How many gates one decision names; the others are counted.
const NAMED: usize = 100;

/// A gate whose ruling decision is a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedGate {
    gate_id: String,
    outcome: String,
    scope: Option<String>,
    reach: Reach,
}

/// What a refused gate keeps from running.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Reach {
    Scope(DecisionScope),
    Agent(String),
    Everyone,
    /// A gate that blocks nobody, or a scope that cannot be read.
    Nothing,
}

impl RefusedGate {
    /// Reads a recorded refusal.
    pub fn new(
        (gate_id, outcome): (&str, &str),
        scope: Option<&str>,
        body: &Map<String, Value>,
    ) -> Self {
        let reach = match scope {
            Some(scope) => DecisionScope::parse(scope).map_or(Reach::Nothing, Reach::Scope),
            None => match body.get("blocks_agent").and_then(Value::as_str) {
                Some(agent) => Reach::Agent(agent.to_owned()),
                None if body.get("global_gate") == Some(&Value::Bool(true)) => Reach::Everyone,
                None => Reach::Nothing,
            },
        };
        Self {
            gate_id: gate_id.to_owned(),
            outcome: outcome.to_owned(),
            scope: scope.map(str::to_owned),
            reach,
        }
    }

    /// The scope it refuses.
    pub fn scope(&self) -> Option<&DecisionScope> {
        match &self.reach {
            Reach::Scope(scope) => Some(scope),
            _ => None,
        }
    }

    /// True when it holds this agent whatever a todo needs.
    pub fn holds_all(&self, agent: Option<&str>) -> bool {
        match &self.reach {
            Reach::Agent(blocked) => Some(blocked.as_str()) == agent,
            Reach::Everyone => true,
            Reach::Scope(_) | Reach::Nothing => false,
        }
    }

    /// True when some agent may not take the todo because of it.
    pub fn concerns(&self, todo: &Todo) -> bool {
        match &self.reach {
            Reach::Scope(_) => self.covers(todo),
            Reach::Agent(_) | Reach::Everyone => true,
            Reach::Nothing => false,
        }
    }

    fn covers(&self, todo: &Todo) -> bool {
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

/// The gates that make an agent wait: those that hold a todo nothing but a refusal keeps from it.
pub fn holding(
    row: Row,
    snapshot: &Snapshot,
    question: &Question,
    frontier: &Frontier<'_>,
) -> Vec<RefusedGate> {
    if row != Row::ScopeWait {
        return Vec::new();
    }
    let is_asked = |todo: &Todo| question.todo.as_ref().is_none_or(|id| todo.id() == id);
    let held: Vec<&Todo> = frontier
        .work
        .iter()
        .filter(|(todo, hold)| *hold == Some(Hold::Refused) && is_asked(todo))
        .map(|(todo, _)| *todo)
        .collect();
    if held.is_empty() {
        return Vec::new();
    }
    let agent = question.agent.as_ref().map(|agent| agent.as_str());
    let holds =
        |gate: &&RefusedGate| gate.holds_all(agent) || held.iter().any(|todo| gate.covers(todo));
    snapshot.refusals.iter().filter(holds).cloned().collect()
}

/// What a decision says about them.
pub fn frontier_value(goal: &GoalId, gates: &[RefusedGate]) -> Value {
    let named = gates.iter().take(NAMED).map(|gate| gate.to_value(goal));
    json!({
        "schema_version": "agent_scope_frontier_v0",
        "refused_gates": named.collect::<Vec<_>>(),
        "refused_gates_omitted": gates.len().saturating_sub(NAMED),
    })
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

    fn gate(scope: Option<&str>, body: Value) -> RefusedGate {
        RefusedGate::new(("todo_gate", "reject"), scope, body.as_object().unwrap())
    }

    #[test]
    fn a_refusal_reaches_its_scope_its_agent_or_everyone() {
        let ship = todo(&["production:goal:ship"]);
        let other = todo(&["production:goal:other"]);
        let scoped = gate(Some("production:goal:ship"), json!({"global_gate": true}));
        assert!(scoped.concerns(&ship) && !scoped.concerns(&other));
        assert!(!scoped.holds_all(Some("lane-a")));
        let agents = gate(None, json!({"blocks_agent": "lane-a"}));
        assert!(agents.holds_all(Some("lane-a")) && !agents.holds_all(Some("lane-b")));
        assert!(!agents.holds_all(None) && agents.concerns(&other));
        let global = gate(None, json!({"global_gate": true}));
        assert!(global.holds_all(None) && global.concerns(&other));
        for idle in [
            gate(None, json!({})),
            gate(Some("odd"), json!({"global_gate": true})),
        ] {
            assert!(!idle.holds_all(Some("lane-a")) && !idle.concerns(&ship));
        }
    }
}
