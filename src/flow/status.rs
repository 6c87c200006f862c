//! `status`: the health of the goals, what needs a person first, and the unfinished todos. It reads and writes nothing.

use serde_json::{Value, json};

use super::inbox::urgency;
use super::open::{self, Answer, Place};
use super::ports::Ports;
use super::snapshot;
use super::turn::unfinished::{self, Unfinished};
use crate::contract::ids::GoalId;
use crate::contract::todo::{Role, Status, Todo};
use crate::kernel::quota::policy::{self, QuotaState};
use crate::kernel::quota::refused_gate::RefusedGate;
use crate::kernel::quota::snapshot::Spent;
use crate::kernel::quota::summary::{Listed, bounded};
use crate::store::rows::Head;
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
        let row = one(ports, &place, reader.as_ref())?;
        attention.extend(
            row.attention
                .map(|reason| json!({"goal_id": id, "reason": reason})),
        );
        let mut packet = row.packet;
        let inboxes = urgency::of_goal(ports, &place);
        if !inboxes.is_empty() {
            packet["inboxes"] = json!(inboxes);
        }
        goals.push(packet);
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
            "claimed_by": todo.claimed_by(), "reason": todo.text("reason"),
        })
    };
    bounded(todos.iter(), line)
}

/// What the store holds of a goal; nothing of a goal that was never written.
#[derive(Default)]
struct Stored {
    agent_todos: Vec<Todo>,
    user_todos: Vec<Todo>,
    spent: Spent,
    head: Option<Head>,
    holding: Vec<RefusedGate>,
    unfinished: Unfinished,
}

impl Stored {
    fn read(ports: &Ports, place: &Place, reader: &Reader) -> Answer<Self> {
        let goal = &place.goal;
        let rows = reader.rows();
        let agent_todos = rows.unfinished(&goal.id, Role::Agent)?;
        let open = |todo: &&Todo| todo.status() == Status::Open;
        let refusals = rows.refusals(&goal.id)?;
        let mut holding: Vec<_> = refusals.iter().map(snapshot::refused_gate).collect();
        // Nobody is asked about them again (spec 4.4), so whoever looks has to see what they hold.
        holding.retain(|gate| {
            let mut todos = agent_todos.iter().filter(open);
            todos.any(|todo| gate.concerns(todo))
        });
        Ok(Self {
            agent_todos,
            user_todos: rows.unfinished(&goal.id, Role::User)?,
            spent: snapshot::spent(rows, goal, ports.now)?,
            head: rows.head(&goal.id)?,
            holding,
            unfinished: unfinished::of(place, rows)?,
        })
    }
}

fn one(ports: &Ports, place: &Place, reader: Option<&Reader>) -> Answer<Row> {
    let goal = &place.goal;
    let stored = match reader {
        None => Stored::default(),
        Some(reader) => Stored::read(ports, place, reader)?,
    };
    let (user_todos, spent) = (&stored.user_todos, stored.spent);
    let state = policy::state(goal, spent);
    let has_gate = user_todos.iter().any(Todo::is_user_gate);
    let attention = match state {
        QuotaState::Paused(_) => None,
        QuotaState::BlockedHealth => Some("blocked_health"),
        QuotaState::OperatorGate => Some("operator_gate"),
        _ if has_gate => Some("open_user_gate"),
        _ if !user_todos.is_empty() => Some("open_user_todo"),
        _ if !stored.holding.is_empty() => Some("refused_gate"),
        _ => None,
    };
    let (agents, users) = (lines(&stored.agent_todos), lines(user_todos));
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
        "provider_revision": super::todo::revision_text(stored.head.as_ref()),
    });
    if !stored.holding.is_empty() {
        let gates = stored.holding.iter().map(|gate| gate.to_value(&goal.id));
        packet["refused_gates"] = gates.collect();
    }
    add_turns(&mut packet, stored.unfinished);
    if agents.rest + users.rest > 0 {
        packet["todos_omitted"] =
            json!({"agent": agents.rest, "user": users.rest, "complete": "loopx todo list"});
    }
    Ok(Row { packet, attention })
}

/// The Turns that are not finished; a goal without one says nothing about them.
fn add_turns(packet: &mut Value, unfinished: Unfinished) {
    let Unfinished {
        turns,
        omitted,
        unsettled,
    } = unfinished;
    if !turns.is_empty() {
        packet["unfinished_turns"] = json!(turns);
    }
    if omitted > 0 {
        packet["unfinished_turns_omitted"] = json!(omitted);
    }
    if !unsettled.is_empty() {
        packet["unsettled_turns"] = json!(unsettled);
    }
}
