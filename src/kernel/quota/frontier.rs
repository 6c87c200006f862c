//! Which todos this agent could take, and what holds the others (docs/spec/kernel.md 4.1, 6.3).

use super::snapshot::{Question, Snapshot};
use crate::contract::ids::TodoId;
use crate::contract::scope::ScopeSet;
use crate::contract::time::Timestamp;
use crate::contract::todo::{Status, Todo};
use crate::contract::todo_timing::{Condition, conditions};

/// What keeps a todo from being taken now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hold {
    /// It is blocked or put off.
    NotOpen,
    /// Another registered agent owns, leases or is bound to it.
    Foreign,
    /// Its owner is no longer registered.
    Orphaned,
    /// It waits for a condition.
    Resume,
    /// A scope it needs was refused.
    Refused,
    /// An open gate covers it.
    Gate,
    /// The agent lacks a capability it needs.
    Capability,
}

/// The unfinished work of a goal, seen by one agent.
#[derive(Clone, Debug)]
pub struct Frontier<'a> {
    /// Every unfinished agent todo that is no monitor, with what holds it.
    pub work: Vec<(&'a Todo, Option<Hold>)>,
    /// Monitors this agent may look after, with what holds them now.
    pub monitors: Vec<(&'a Todo, Option<Hold>)>,
    /// True when monitors exist that this agent cannot look after: another's, or not open.
    pub has_other_monitors: bool,
}

impl<'a> Frontier<'a> {
    /// Looks at every unfinished agent todo once.
    pub fn new(snapshot: &'a Snapshot, question: &Question) -> Self {
        let mut frontier = Self {
            work: Vec::new(),
            monitors: Vec::new(),
            has_other_monitors: false,
        };
        let limits = Limits::new(snapshot, question);
        for todo in &snapshot.agent_todos {
            let hold = hold_under(snapshot, question, (todo, &limits));
            match (todo.is_monitor(), hold) {
                (false, hold) => frontier.work.push((todo, hold)),
                (true, Some(Hold::NotOpen | Hold::Foreign | Hold::Orphaned)) => {
                    frontier.has_other_monitors = true;
                }
                // Looking needs no capability.
                (true, Some(Hold::Capability)) => frontier.monitors.push((todo, None)),
                (true, hold) => frontier.monitors.push((todo, hold)),
            }
        }
        frontier
    }

    /// The first todo nothing holds.
    pub fn selected(&self) -> Option<&'a Todo> {
        self.work
            .iter()
            .find(|(_, hold)| hold.is_none())
            .map(|(todo, _)| *todo)
    }

    /// The first todo that would be taken if no gate were open.
    pub fn first_choice(&self) -> Option<(&'a Todo, Option<Hold>)> {
        self.work
            .iter()
            .find(|(_, hold)| matches!(hold, None | Some(Hold::Gate)))
            .copied()
    }

    /// The first todo that only lacks a capability.
    pub fn first_lacking(&self) -> Option<&'a Todo> {
        self.work
            .iter()
            .find(|(_, hold)| *hold == Some(Hold::Capability))
            .map(|(todo, _)| *todo)
    }

    /// True when an open gate holds something that nothing else holds; of the monitors, one that is due.
    pub fn has_gated(&self, now: Timestamp) -> bool {
        let is_work = self.work.iter().any(|(_, hold)| *hold == Some(Hold::Gate));
        is_work || self.has_due(Some(Hold::Gate), now)
    }

    /// True when a monitor is due that is held like this.
    pub fn has_due(&self, hold: Option<Hold>, now: Timestamp) -> bool {
        self.due(hold, now).is_some()
    }

    /// The monitor that is due and may be looked at, if one is.
    pub fn due_monitor(&self, now: Timestamp) -> Option<&'a Todo> {
        self.due(None, now)
    }

    fn due(&self, wanted: Option<Hold>, now: Timestamp) -> Option<&'a Todo> {
        let mut held = self.monitors.iter().filter(|(_, hold)| *hold == wanted);
        held.find(|(todo, _)| is_due(todo, now))
            .map(|(todo, _)| *todo)
    }
}

/// True when a monitor has to be looked at.
pub fn is_due(monitor: &Todo, now: Timestamp) -> bool {
    monitor.next_due_at().is_none_or(|due| due <= now)
}

/// What holds a todo for this agent; the order tells which hold is named.
pub fn hold(snapshot: &Snapshot, question: &Question, todo: &Todo) -> Option<Hold> {
    hold_under(snapshot, question, (todo, &Limits::new(snapshot, question)))
}

/// What people decided, or have yet to decide, about a todo; asked apart from every other hold.
pub fn decided(snapshot: &Snapshot, question: &Question, todo: &Todo) -> Option<Hold> {
    Limits::new(snapshot, question).decided(todo)
}

/// What people decided and have yet to decide, read once for all todos.
struct Limits {
    /// An open gate holds everything this agent could do.
    gates_hold_all: bool,
    gates: ScopeSet,
    /// A refusal holds everything this agent could do.
    refusals_hold_all: bool,
    refusals: ScopeSet,
}

impl Limits {
    fn new(snapshot: &Snapshot, question: &Question) -> Self {
        let agent = question.agent.as_ref().map(|agent| agent.as_str());
        Self {
            gates_hold_all: open_gates(snapshot).any(|gate| holds_all(gate, agent)),
            gates: open_gates(snapshot)
                .filter_map(Todo::decision_scope)
                .collect(),
            refusals_hold_all: snapshot.refusals.iter().any(|gate| gate.holds_all(agent)),
            refusals: snapshot
                .refusals
                .iter()
                .filter_map(|gate| gate.scope().cloned())
                .collect(),
        }
    }

    fn decided(&self, todo: &Todo) -> Option<Hold> {
        let needed = todo.required_scopes();
        let meets = |scopes: &ScopeSet| needed.iter().any(|scope| scopes.covers(scope));
        if self.refusals_hold_all || meets(&self.refusals) {
            return Some(Hold::Refused);
        }
        (self.gates_hold_all || meets(&self.gates)).then_some(Hold::Gate)
    }
}

/// True when an open gate holds this agent whatever a todo needs.
fn holds_all(gate: &Todo, agent: Option<&str>) -> bool {
    // An unreadable scope says nothing about its reach: no permission is drawn from it.
    let is_unreadable = gate.text("decision_scope").is_some() && gate.decision_scope().is_none();
    let is_agents = agent.is_some() && gate.text("blocks_agent") == agent;
    gate.flag("global_gate") || is_agents || is_unreadable
}

fn hold_under(
    snapshot: &Snapshot,
    question: &Question,
    (todo, limits): (&Todo, &Limits),
) -> Option<Hold> {
    if todo.status() != Status::Open {
        return Some(Hold::NotOpen);
    }
    if let Some(hold) = owner_hold(snapshot, question, todo) {
        return Some(hold);
    }
    if !resume_met(snapshot, todo, question.now) {
        return Some(Hold::Resume);
    }
    if let Some(hold) = limits.decided(todo) {
        return Some(hold);
    }
    if missing_capabilities(question, todo).next().is_some() {
        return Some(Hold::Capability);
    }
    None
}

fn owner_hold(snapshot: &Snapshot, question: &Question, todo: &Todo) -> Option<Hold> {
    let agent = question.agent.as_ref().map(|agent| agent.as_str());
    if let Some(owner) = todo.claimed_by()
        && Some(owner) != agent
    {
        let is_known = snapshot
            .goal
            .agents
            .iter()
            .any(|known| known.as_str() == owner);
        return Some(if is_known {
            Hold::Foreign
        } else {
            Hold::Orphaned
        });
    }
    let is_kept_away = match agent {
        Some(agent) => !todo.may_go_to(agent),
        None => todo.text("bound_agent").is_some(),
    };
    let is_leased = snapshot
        .leases
        .get(todo.id())
        .is_some_and(|lease| lease.is_live(question.now) && Some(lease.owner.as_str()) != agent);
    (is_kept_away || is_leased).then_some(Hold::Foreign)
}

/// The gates nobody has decided yet.
pub fn open_gates(snapshot: &Snapshot) -> impl Iterator<Item = &Todo> {
    snapshot
        .user_todos
        .iter()
        .filter(|todo| todo.is_user_gate())
}

/// The capabilities a todo needs and the agent lacks.
pub fn missing_capabilities<'a>(
    question: &'a Question,
    todo: &'a Todo,
) -> impl Iterator<Item = &'a str> {
    let has = |wanted: &str| question.capabilities.iter().any(|have| have == wanted);
    todo.list("required_capabilities")
        .into_iter()
        .filter(move |wanted| !has(wanted))
}

/// The todos a condition names.
pub fn awaited_todos(todo: &Todo) -> Vec<TodoId> {
    let all = conditions(todo.text("resume_when").unwrap_or(""));
    all.filter_map(|condition| match condition {
        Condition::Done(id) => Some(id),
        _ => None,
    })
    .collect()
}

/// True when every condition holds: a todo is done, an instant has come. Any other words wait for a change of the todo.
fn resume_met(snapshot: &Snapshot, todo: &Todo, now: Timestamp) -> bool {
    conditions(todo.text("resume_when").unwrap_or("")).all(|condition| match condition {
        Condition::Instant(instant) => instant <= now,
        Condition::Done(id) => snapshot.awaited.get(&id) == Some(&Status::Done),
        Condition::Unknown => false,
    })
}
