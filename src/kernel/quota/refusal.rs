//! Gates that were turned down: what they keep from running, and how each is named (docs/spec/kernel.md 4.4, 6.4).

use serde_json::{Value, json};

use super::frontier::{Frontier, Hold};
use super::refused_gate::RefusedGate;
use super::row::Row;
use super::snapshot::{Question, Snapshot};
use crate::contract::ids::GoalId;
use crate::contract::todo::Todo;

/// How many gates one decision names; the others are counted.
const NAMED: usize = 100;

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
    let all = frontier.work.iter().chain(&frontier.monitors);
    let held: Vec<&Todo> = all
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
