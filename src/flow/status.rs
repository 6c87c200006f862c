//! `status`: the health of the goals, what needs a person first, and the unfinished todos. It reads and writes nothing.

use serde_json::{Value, json};

use super::open::{self, Answer};
use super::ports::Ports;
use super::snapshot;
use crate::contract::goal::Goal;
use crate::contract::ids::GoalId;
use crate::contract::todo::{Role, Todo};
use crate::kernel::quota::policy::{self, QuotaState};
use crate::kernel::quota::snapshot::{Question, Spent};
use crate::kernel::quota::summary::{Listed, bounded};
use crate::store::state::Reader;

/// Shows one goal, or all.
pub fn show(ports: &Ports, only: Option<&GoalId>) -> Answer {
    let mut goals = Vec::new();
    let mut attention = Vec::new();
    let (registry, _) = open::registry(ports)?;
    let named = match only {
        Some(id) => vec![id.clone()],
        None => registry.goals()?.into_iter().map(|goal| goal.id).collect(),
    };
    for id in &named {
        let place = open::goal(ports, id)?;
        let reader = place.reader()?;
        let row = one(ports, &place.goal, reader.as_ref())?;
        attention.extend(
            row.attention
                .map(|reason| json!({"goal_id": id, "reason": reason})),
        );
        goals.push(row.packet);
    }
    Ok(json!({
        "ok": true,
        "schema_version": "loopx_status_v0",
        "registry_revision": registry.revision(),
        "goal_count": goals.len(),
        "attention_queue": attention,
        "goals": goals,
    }))
}

struct Row {
    packet: Value,
    attention: Option<&'static str>,
}

/// The first todos of a list: a goal of any size has a status that can be read.
fn lines(todos: &[Todo]) -> Listed {
    let line = |todo: &Todo| {
        json!({
            "todo_id": todo.id(), "status": todo.status().as_str(), "text": todo.words(), "priority": todo.text("priority"),
            "claimed_by": todo.claimed_by(),
        })
    };
    bounded(todos.iter(), line)
}

fn one(ports: &Ports, goal: &Goal, reader: Option<&Reader>) -> Answer<Row> {
    let question = Question {
        agent: None,
        todo: None,
        obligation: None,
        instance: None,
        capabilities: Vec::new(),
        now: ports.now,
        places: Default::default(),
    };
    let (agent_todos, user_todos, spent, revision) = match reader {
        None => (Vec::new(), Vec::new(), Spent::default(), None),
        Some(reader) => {
            let rows = reader.rows();
            (
                rows.unfinished(&goal.id, Role::Agent)?,
                rows.unfinished(&goal.id, Role::User)?,
                snapshot::spent(rows, goal, &question)?,
                rows.head(&goal.id)?,
            )
        }
    };
    let state = policy::state(goal, spent);
    let has_gate = user_todos.iter().any(Todo::is_user_gate);
    let attention = match state {
        QuotaState::Paused(_) => None,
        QuotaState::BlockedHealth => Some("blocked_health"),
        QuotaState::OperatorGate => Some("operator_gate"),
        _ if has_gate => Some("open_user_gate"),
        _ if !user_todos.is_empty() => Some("open_user_todo"),
        _ => None,
    };
    let (agents, users) = (lines(&agent_todos), lines(&user_todos));
    let mut packet = json!({
        "goal_id": goal.id,
        "title": goal.text("title"),
        "status": goal.status.as_str(),
        "state": state.as_str(),
        "waiting_on": goal.text("waiting_on"),
        "registered_agents": goal.agents,
        "quota": policy::packet(goal, spent, state),
        "agent_todos": agents.items,
        "user_todos": users.items,
        "missing_gates": goal.missing_gates,
        "provider_revision": super::todo::revision_text(revision.as_ref()),
    });
    if agents.rest + users.rest > 0 {
        packet["todos_omitted"] =
            json!({"agent": agents.rest, "user": users.rest, "complete": "loopx todo list"});
    }
    Ok(Row { packet, attention })
}
