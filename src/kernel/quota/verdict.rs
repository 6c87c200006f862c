//! The decision table read from its first row to its last (docs/spec/kernel.md 6.3).
//!
//! Each row is one small function; `decide` lays the later ones over the earlier ones with the exceptions the rows name.

use super::frontier::{self, Frontier, Hold, missing_capabilities, open_gates};
use super::policy::{self, QuotaState};
use super::refusal;
use super::refused_gate::RefusedGate;
use super::row::Row;
use super::snapshot::{Owed, Question, Snapshot};
use crate::contract::error::ErrorCode;
use crate::contract::ids::ReplanObligationId;
use crate::contract::packet::Refusal;
use crate::contract::settlement::Binding;
use crate::contract::todo::{Status, Todo};
use crate::kernel::replan::{self, Obligation};

/// What one decision says.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// The row that gave it.
    pub row: Row,
    /// The quota state.
    pub quota: QuotaState,
    /// The chosen todo.
    pub selected: Option<Todo>,
    /// The agent's obligation, when the decision is about it.
    pub obligation: Option<Obligation>,
    /// The capabilities the chosen todo lacks.
    pub missing_capabilities: Vec<String>,
    /// The earlier Turn that owes its spend.
    pub owed: Option<Owed>,
    /// The gates that were turned down and make this agent wait.
    pub refusing: Vec<RefusedGate>,
    /// True when an open gate was passed over for another todo, or the user is asked beside the work.
    pub is_gate_bypassed: bool,
}

impl Verdict {
    /// One sentence on why, with the one thing a row alone does not know.
    pub fn reason(&self) -> &'static str {
        if self.refusing.is_empty() {
            return self.row.reason();
        }
        "unfinished todos exist, none is runnable for this agent, and a gate that was turned down holds some of them"
    }
}

/// Decides; a refusal is an answer that selects nothing.
pub fn decide(snapshot: &Snapshot, question: &Question) -> Result<Verdict, Box<Refusal>> {
    let quota = policy::state(&snapshot.goal, snapshot.spent);
    let frontier = Frontier::new(snapshot, question);
    let mut verdict = Verdict {
        row: Row::Paused,
        quota,
        selected: None,
        obligation: None,
        missing_capabilities: Vec::new(),
        owed: None,
        refusing: Vec::new(),
        is_gate_bypassed: false,
    };
    if matches!(quota, QuotaState::Paused(_)) {
        return Ok(verdict);
    }
    let has_runnable = replan::has_runnable_advancement(&frontier);
    verdict.obligation = question
        .agent
        .as_ref()
        .and_then(|agent| Obligation::derive(snapshot, agent, has_runnable));
    named_todo(snapshot, question)?;
    named_obligation(snapshot, question, verdict.obligation.as_ref())?;
    base(&mut verdict, snapshot, question, &frontier);
    match snapshot
        .turn
        .admitted
        .as_ref()
        .map(|identity| &identity.binding)
    {
        Some(Binding::Replan(bound)) => keep_to_obligation(&mut verdict, bound),
        _ if question.todo.is_some() => narrow(&mut verdict, snapshot, question, &frontier),
        _ => {}
    }
    overlay(&mut verdict, snapshot, question);
    verdict.refusing = refusal::holding(verdict.row, snapshot, question, &frontier);
    if verdict.row != Row::CapabilityRepair {
        verdict.missing_capabilities.clear();
    }
    Ok(verdict)
}

fn base(verdict: &mut Verdict, snapshot: &Snapshot, question: &Question, frontier: &Frontier<'_>) {
    verdict.row = match verdict.quota {
        QuotaState::Paused(_) => Row::Paused,
        QuotaState::BlockedHealth => Row::BlockedHealth,
        QuotaState::Throttled => Row::Throttled,
        QuotaState::Waiting | QuotaState::FocusWait => Row::BlockedWait,
        QuotaState::OperatorGate => {
            if let Some(todo) = gate_fallback(frontier) {
                select(verdict, todo);
                verdict.is_gate_bypassed = true;
                Row::GateFallback
            } else {
                Row::OperatorGate
            }
        }
        QuotaState::Eligible => eligible(verdict, snapshot, question, frontier),
    };
}

fn eligible(
    verdict: &mut Verdict,
    snapshot: &Snapshot,
    question: &Question,
    frontier: &Frontier<'_>,
) -> Row {
    // Row 6 stands against rows 8 to 11.
    if verdict.obligation.is_some() {
        return Row::AutonomousReplan;
    }
    let is_monitor_only = is_monitor_only(snapshot, question);
    if let Some(monitor) = frontier.due_monitor(question.now) {
        select(verdict, monitor);
        return Row::MonitorDue;
    }
    if is_monitor_only {
        return monitors_alone(frontier, question);
    }
    if let Some(todo) = gate_fallback(frontier) {
        select(verdict, todo);
        verdict.is_gate_bypassed = true;
        return Row::GateFallback;
    }
    if let Some(todo) = frontier.selected() {
        select(verdict, todo);
        verdict.is_gate_bypassed = open_gates(snapshot).next().is_some();
        return Row::NormalRun;
    }
    if frontier.has_gated(question.now) {
        return Row::GateCoversAll;
    }
    if let Some(todo) = frontier.first_lacking() {
        verdict.missing_capabilities = missing_capabilities(question, todo)
            .map(str::to_owned)
            .collect();
        select(verdict, todo);
        return Row::CapabilityRepair;
    }
    if frontier.has_due(Some(Hold::Refused), question.now) {
        return Row::ScopeWait;
    }
    if frontier.work.is_empty() {
        return nothing_unfinished(snapshot, frontier);
    }
    scope_row(frontier, question)
}

fn is_monitor_only(snapshot: &Snapshot, question: &Question) -> bool {
    let agent = question.agent.as_ref();
    agent.is_some_and(|agent| snapshot.goal.is_monitor_only(agent))
}

/// An agent that only looks after monitors, none of which it may look at now.
fn monitors_alone(frontier: &Frontier<'_>, question: &Question) -> Row {
    if frontier.has_due(Some(Hold::Gate), question.now) {
        Row::GateCoversAll
    } else if frontier.has_due(Some(Hold::Refused), question.now) {
        Row::ScopeWait
    } else {
        Row::MonitorOnly
    }
}

fn nothing_unfinished(snapshot: &Snapshot, frontier: &Frontier<'_>) -> Row {
    if !frontier.monitors.is_empty() || frontier.has_other_monitors {
        return Row::MonitorQuiet;
    }
    if replan::is_terminal(snapshot) {
        Row::TerminalNoFollowup
    } else {
        Row::SuccessorReplan
    }
}

/// The scope rows: whose the unfinished todos are and what holds them.
fn scope_row(frontier: &Frontier<'_>, question: &Question) -> Row {
    let agent = question.agent.as_ref();
    let is_own = |todo: &Todo| {
        todo.claimed_by().is_none() || agent.is_some_and(|agent| todo.is_claimed_by(agent))
    };
    if frontier
        .work
        .iter()
        .all(|(_, hold)| *hold == Some(Hold::Orphaned))
    {
        return Row::ReassignmentRequired;
    }
    if frontier
        .work
        .iter()
        .all(|(todo, hold)| is_own(todo) && *hold == Some(Hold::NotOpen))
    {
        return Row::ScopeExhausted;
    }
    Row::ScopeWait
}

fn gate_fallback<'a>(frontier: &Frontier<'a>) -> Option<&'a Todo> {
    match frontier.first_choice() {
        Some((_, Some(Hold::Gate))) => frontier.selected(),
        _ => None,
    }
}

fn select(verdict: &mut Verdict, todo: &Todo) {
    verdict.selected = Some(todo.clone());
}

/// Checks the todo a question names; its own Turn may name a todo that is finished by now.
fn named_todo(snapshot: &Snapshot, question: &Question) -> Result<(), Box<Refusal>> {
    let Some(id) = &question.todo else {
        return Ok(());
    };
    let bound = snapshot
        .turn
        .admitted
        .as_ref()
        .and_then(|identity| identity.binding.todo());
    if bound == Some(id) {
        return Ok(());
    }
    let refuse = |code, text: &str| {
        Err(Box::new(
            Refusal::new(code, text).with("todo_id", id.as_str()),
        ))
    };
    let Some(todo) = &snapshot.named else {
        return refuse(
            ErrorCode::TodoNotFound,
            "the named todo does not exist; `loopx todo list` shows what does",
        );
    };
    if todo.status() != Status::Open || todo.is_archived() {
        return refuse(
            ErrorCode::TodoNotOpen,
            "the named todo is not open; name an open one",
        );
    }
    let agent = question.agent.as_ref();
    if todo.claimed_by().is_some() && !agent.is_some_and(|agent| todo.is_claimed_by(agent)) {
        return refuse(
            ErrorCode::ClaimOwnerMismatch,
            "the named todo belongs to another owner; it has to be released or handed over",
        );
    }
    Ok(())
}

fn named_obligation(
    snapshot: &Snapshot,
    question: &Question,
    current: Option<&Obligation>,
) -> Result<(), Box<Refusal>> {
    let Some(id) = &question.obligation else {
        return Ok(());
    };
    let bound = snapshot
        .turn
        .admitted
        .as_ref()
        .and_then(|identity| identity.binding.obligation());
    if bound == Some(id) || current.is_some_and(|current| &current.id == id) {
        return Ok(());
    }
    let text = "the named replan obligation is not the current one; ask again without it";
    Err(Box::new(Refusal::new(
        ErrorCode::ReplanObligationMismatch,
        text,
    )))
}

/// A Turn that is bound to an obligation runs on that one or on nothing.
fn keep_to_obligation(verdict: &mut Verdict, bound: &ReplanObligationId) {
    if verdict
        .obligation
        .as_ref()
        .is_some_and(|current| &current.id == bound)
    {
        return;
    }
    verdict.obligation = None;
    verdict.selected = None;
    if verdict.quota == QuotaState::Eligible {
        verdict.row = Row::ScopeWait;
    }
}

/// Looks at exactly one todo and falls back to no other.
fn narrow(
    verdict: &mut Verdict,
    snapshot: &Snapshot,
    question: &Question,
    frontier: &Frontier<'_>,
) {
    if !matches!(
        verdict.quota,
        QuotaState::Eligible | QuotaState::OperatorGate
    ) {
        return;
    }
    if verdict.row == Row::AutonomousReplan && snapshot.turn.admitted.is_none() {
        return;
    }
    let is_bypass = verdict.quota == QuotaState::OperatorGate;
    let Some(id) = &question.todo else { return };
    verdict.selected = None;
    verdict.missing_capabilities.clear();
    if let Some(named) = frontier.monitors.iter().find(|(todo, _)| todo.id() == id) {
        verdict.row = if is_bypass {
            Row::OperatorGate
        } else {
            narrow_to_monitor(verdict, *named, question)
        };
        return;
    }
    let found = frontier.work.iter().find(|(todo, _)| todo.id() == id);
    let covered_first = matches!(frontier.first_choice(), Some((_, Some(Hold::Gate))));
    let is_monitor_only = is_monitor_only(snapshot, question);
    verdict.row = match found {
        _ if is_monitor_only && !is_bypass => Row::MonitorOnly,
        Some((todo, None)) if !is_bypass || covered_first => {
            verdict.selected = Some((*todo).clone());
            verdict.is_gate_bypassed = open_gates(snapshot).next().is_some();
            if covered_first {
                Row::GateFallback
            } else {
                Row::NormalRun
            }
        }
        _ if is_bypass => Row::OperatorGate,
        Some((_, Some(Hold::Gate))) => Row::GateCoversAll,
        Some((todo, Some(Hold::Capability))) => {
            verdict.missing_capabilities = missing_capabilities(question, todo)
                .map(str::to_owned)
                .collect();
            verdict.selected = Some((*todo).clone());
            Row::CapabilityRepair
        }
        _ => Row::ScopeWait,
    };
}

fn narrow_to_monitor(
    verdict: &mut Verdict,
    (monitor, hold): (&Todo, Option<Hold>),
    question: &Question,
) -> Row {
    match hold {
        Some(Hold::Gate) => Row::GateCoversAll,
        Some(Hold::Refused) => Row::ScopeWait,
        None if frontier::is_due(monitor, question.now) => {
            select(verdict, monitor);
            Row::MonitorDue
        }
        _ => Row::MonitorQuiet,
    }
}

/// Rows 12 and 13: the state of Turns, and a pending capability intent over everything else.
fn overlay(verdict: &mut Verdict, snapshot: &Snapshot, question: &Question) {
    if snapshot.intent.is_some() {
        verdict.row = Row::CapabilityIntent;
        verdict.selected = None;
        verdict.obligation = None;
        return;
    }
    if question.instance.is_some() && snapshot.turn.is_settled {
        verdict.row = Row::Settled;
        verdict.selected = None;
        verdict.obligation = None;
        return;
    }
    if let Some(owed) = &snapshot.owed {
        verdict.owed = Some(owed.clone());
        if !policy::is_full(&snapshot.goal, snapshot.spent, 1) {
            verdict.row = Row::UnsettledRecovery;
            verdict.selected = None;
            verdict.obligation = None;
            verdict.is_gate_bypassed = false;
        }
    }
}
