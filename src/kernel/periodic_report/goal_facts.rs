//! Which todos of a goal speak in a report (`docs/spec/generate.md` 4).
//!
//! Facts of every agent lane count; a row no agent claimed has no producer and stays out. The
//! reporter's own outcomes come first, so a peer lane cannot push them out.

use std::collections::BTreeSet;

use crate::contract::ids::{AgentId, GoalId, TodoId};
use crate::contract::periodic_report::goal_facts::{DoneTodo, GoalFacts, OpenTodo};
use crate::contract::time::Timestamp;
use crate::contract::todo::{Role, Status, Todo};

/// Work about reports themselves, which is no progress of the goal.
const META_WORK: [&str; 3] = [
    "consume_periodic_report_intent",
    "repair_periodic_report_intent_consumption",
    "repair_periodic_report_editorial",
];

/// The rows of one goal that a report looks at.
#[derive(Debug, Clone)]
pub struct GoalRows {
    /// The goal.
    pub goal_id: GoalId,
    /// Agent todos completed in the period, oldest first.
    pub done: Vec<Todo>,
    /// Unfinished agent todos in selection order.
    pub agent: Vec<Todo>,
    /// Unfinished user todos in selection order.
    pub user: Vec<Todo>,
    /// When the newest todo was completed.
    pub newest: Option<Timestamp>,
}

/// Selects what a report says about a goal.
pub fn select(rows: &GoalRows, reporter: Option<&AgentId>, now: Timestamp) -> GoalFacts {
    let gates: Vec<&Todo> = rows
        .user
        .iter()
        .filter(|todo| todo.status() == Status::Open && todo.is_user_gate())
        .collect();
    let next = rows
        .agent
        .iter()
        .filter(|todo| is_produced(todo) && is_in_lane(todo, reporter))
        .find(|todo| is_runnable(todo, rows, &gates, now));
    let blocked = rows
        .agent
        .iter()
        .find(|todo| todo.status() == Status::Blocked && todo.rank() == 0 && is_produced(todo));
    GoalFacts {
        goal_id: rows.goal_id.clone(),
        done: outcomes(&rows.done, reporter),
        next: next.map(|todo| open_todo(todo, None)),
        gates: gates
            .into_iter()
            .map(|gate| open_todo(gate, gate.text("operator_question")))
            .collect(),
        blocked: blocked.map(|todo| open_todo(todo, todo.text("reason").or(todo.text("note")))),
        newest: rows.newest,
    }
}

fn is_produced(todo: &Todo) -> bool {
    todo.claimed_by().is_some() && !is_meta(todo)
}

/// True for finished work that is nobody's outcome in a report, because no agent claimed it.
pub fn lacks_producer(todo: &Todo) -> bool {
    let is_finished = todo.role() == Role::Agent && todo.status() == Status::Done;
    is_finished && todo.claimed_by().is_none() && !is_meta(todo)
}

fn is_meta(todo: &Todo) -> bool {
    let kind = todo.text("action_kind");
    kind.is_some_and(|kind| META_WORK.contains(&kind))
}

fn is_in_lane(todo: &Todo, reporter: Option<&AgentId>) -> bool {
    reporter.is_none_or(|agent| todo.is_claimed_by(agent))
}

fn outcomes(done: &[Todo], reporter: Option<&AgentId>) -> Vec<DoneTodo> {
    let mut outcomes: Vec<DoneTodo> = done
        .iter()
        .filter(|todo| todo.status() == Status::Done && is_produced(todo))
        .filter(|todo| todo.text("superseded_by").is_none())
        .filter_map(done_todo)
        .collect();
    outcomes.sort_by_key(|todo| {
        let is_foreign = reporter.is_some() && todo.agent.as_ref() != reporter;
        (is_foreign, std::cmp::Reverse(todo.updated_at))
    });
    outcomes
}

fn done_todo(todo: &Todo) -> Option<DoneTodo> {
    let instant = |name: &str| todo.text(name).and_then(Timestamp::parse);
    let completed_at = instant("completed_at").or_else(|| instant("updated_at"))?;
    let evidence = todo.text("evidence").or_else(|| todo.text("note"));
    Some(DoneTodo {
        todo_id: todo.id().clone(),
        text: todo.words().to_owned(),
        evidence: evidence.map(str::to_owned),
        completed_at,
        updated_at: instant("updated_at").unwrap_or(completed_at),
        agent: todo.claimed_by().and_then(AgentId::new),
    })
}

fn open_todo(todo: &Todo, note: Option<&str>) -> OpenTodo {
    OpenTodo {
        todo_id: todo.id().clone(),
        text: todo.words().to_owned(),
        note: note.map(str::to_owned),
    }
}

/// Nothing may hold it: no monitor, no unmet condition, no needed ability, no open gate over it.
fn is_runnable(todo: &Todo, rows: &GoalRows, gates: &[&Todo], now: Timestamp) -> bool {
    todo.status() == Status::Open
        && !todo.is_monitor()
        && todo.list("required_capabilities").is_empty()
        && is_resumed(todo, rows, now)
        && !gates.iter().any(|gate| is_covered(todo, gate))
}

fn is_covered(todo: &Todo, gate: &Todo) -> bool {
    let by_agent =
        gate.text("blocks_agent").is_some() && gate.text("blocks_agent") == todo.claimed_by();
    let by_scope = match (gate.text("decision_scope"), gate.decision_scope()) {
        (None, _) => false,
        (Some(_), None) => true,
        (Some(_), Some(scope)) => todo
            .required_scopes()
            .iter()
            .any(|needed| scope.covers(needed)),
    };
    gate.flag("global_gate") || by_agent || by_scope
}

/// A condition holds when the todo it names is finished or its instant has come; other words wait.
fn is_resumed(todo: &Todo, rows: &GoalRows, now: Timestamp) -> bool {
    let unfinished: BTreeSet<&TodoId> = rows.agent.iter().chain(&rows.user).map(Todo::id).collect();
    let words = todo.text("resume_when").unwrap_or("");
    let mut conditions = words
        .split(',')
        .map(str::trim)
        .filter(|one| !one.is_empty());
    conditions.all(|condition| {
        let bare = ["todo_done:", "todo:", "after:", "time:"]
            .iter()
            .find_map(|prefix| condition.strip_prefix(prefix))
            .unwrap_or(condition);
        match TodoId::new(bare) {
            Some(id) => !unfinished.contains(&id),
            None => Timestamp::parse(bare).is_some_and(|instant| instant <= now),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::todo::Role;
    use serde_json::{Value, json};

    fn todo(id: &str, members: Value) -> Todo {
        let mut todo = Todo::new(TodoId::new(id).expect("an id"), Role::Agent, id);
        if let Some(status) = members["status"].as_str().and_then(Status::parse) {
            todo.set_status(status);
        }
        for (name, value) in members.as_object().expect("an object") {
            todo.set(name, value.clone());
        }
        todo
    }

    fn now() -> Timestamp {
        Timestamp::parse("2026-11-19T12:00:00Z").expect("an instant")
    }

    fn rows() -> GoalRows {
        GoalRows {
            goal_id: GoalId::new("harbour").expect("an id"),
            done: Vec::new(),
            agent: Vec::new(),
            user: Vec::new(),
            newest: None,
        }
    }

    #[test]
    fn a_row_no_agent_claimed_stays_out() {
        let mut rows = rows();
        rows.done = vec![todo(
            "todo_aaa",
            json!({"status": "done", "completed_at": "2026-11-18T10:00:00Z"}),
        )];
        rows.agent = vec![todo("todo_bbb", json!({}))];
        let facts = select(&rows, None, now());
        assert!(facts.done.is_empty() && facts.next.is_none());
    }

    #[test]
    fn the_reporters_own_outcomes_come_first_then_the_newest() {
        let done = |id: &str, agent: &str, at: &str| {
            todo(
                id,
                json!({"status": "done", "claimed_by": agent, "completed_at": at, "updated_at": at}),
            )
        };
        let mut rows = rows();
        rows.done = vec![
            done("todo_aaa", "lane-a", "2026-11-17T10:00:00Z"),
            done("todo_bbb", "lane-b", "2026-11-18T10:00:00Z"),
            done("todo_ccc", "lane-b", "2026-11-19T10:00:00Z"),
        ];
        let order = |agent: Option<&str>| -> Vec<String> {
            let agent = agent.and_then(AgentId::new);
            let facts = select(&rows, agent.as_ref(), now());
            facts
                .done
                .iter()
                .map(|todo| todo.todo_id.to_string())
                .collect()
        };
        assert_eq!(order(None), ["todo_ccc", "todo_bbb", "todo_aaa"]);
        assert_eq!(order(Some("lane-a")), ["todo_aaa", "todo_ccc", "todo_bbb"]);
    }

    #[test]
    fn an_open_gate_over_a_todo_and_an_unmet_condition_hold_it() {
        let mut rows = rows();
        rows.agent = vec![
            todo(
                "todo_aaa",
                json!({"claimed_by": "lane-a", "resume_when": "todo_done:todo_ccc"}),
            ),
            todo(
                "todo_bbb",
                json!({"claimed_by": "lane-a", "resume_when": "after:2026-11-20T00:00:00Z"}),
            ),
            todo("todo_ccc", json!({"claimed_by": "lane-a"})),
        ];
        let next = |rows: &GoalRows| select(rows, None, now()).next.map(|todo| todo.text);
        assert_eq!(next(&rows).as_deref(), Some("todo_ccc"));
        rows.user = vec![todo(
            "todo_ddd",
            json!({"role": "user", "task_class": "user_gate", "global_gate": true}),
        )];
        rows.user = rows
            .user
            .into_iter()
            .filter_map(|todo| Todo::parse(todo.body().clone()))
            .collect();
        assert_eq!(next(&rows), None);
    }
}
