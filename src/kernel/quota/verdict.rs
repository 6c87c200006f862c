//! The rows of the decision table, in their order (docs/spec/kernel.md 6.3).
//!
//! Each row is one small function; `decide` lays the later ones over the earlier ones with the exceptions the rows name.

use super::frontier::{Frontier, Hold, missing_capabilities, open_gates};
use super::policy::{self, QuotaState};
use super::refusal::{self, RefusedGate};
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

/// One row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Row {
    Paused,
    BlockedHealth,
    OperatorGate,
    Throttled,
    BlockedWait,
    NormalRun,
    GateCoversAll,
    CapabilityRepair,
    AutonomousReplan,
    TerminalNoFollowup,
    GateFallback,
    ScopeWait,
    ScopeExhausted,
    ReassignmentRequired,
    SuccessorReplan,
    MonitorDue,
    MonitorQuiet,
    MonitorOnly,
    Settled,
    UnsettledRecovery,
    CapabilityIntent,
}

/// The answer columns of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Columns {
    /// The decision word.
    pub decision: &'static str,
    /// What it amounts to.
    pub effective_action: &'static str,
    /// Whether the agent works.
    pub should_run: bool,
    /// The interaction mode of the row alone.
    pub mode: &'static str,
    /// Whether a validated Turn of this row spends a slot.
    pub spends: bool,
}

impl Row {
    /// The answer columns.
    #[rustfmt::skip]
    pub fn columns(self) -> Columns {
        let (decision, effective_action, should_run, mode, spends) = match self {
            Row::Paused => ("skip", "quota_skip", false, "skip", false),
            Row::BlockedHealth => ("skip", "blocked_health", false, "health_blocked", false),
            Row::OperatorGate | Row::GateCoversAll => ("skip", "operator_gate_notify", false, "user_gate", false),
            Row::Throttled => ("skip", "throttled_skip", false, "quota_throttled", false),
            Row::BlockedWait => ("skip", "blocked_wait", false, "blocked_wait", false),
            Row::NormalRun => ("run", "normal_run", true, "bounded_delivery", true),
            Row::CapabilityRepair => ("repair_bridge", "capability_bridge_repair", true, "capability_bridge_repair", false),
            Row::AutonomousReplan => ("autonomous_replan_required", "autonomous_replan_required", true, "autonomous_replan", true),
            Row::TerminalNoFollowup => ("skip", "terminal_no_followup", false, "terminal_no_followup", false),
            Row::GateFallback => ("safe_bypass_user_gate_fallback", "scoped_user_gate_fallback", true, "scoped_user_gate_fallback", true),
            Row::ScopeWait => ("agent_scope_wait", "agent_scope_wait", false, "agent_scope_wait", false),
            Row::ScopeExhausted => ("agent_scope_exhausted", "agent_scope_exhausted", false, "agent_scope_exhausted", false),
            Row::ReassignmentRequired => ("reassignment_required", "reassignment_required", false, "reassignment_required", false),
            Row::SuccessorReplan => ("successor_replan_required", "successor_replan_required", true, "successor_replan_required", true),
            Row::MonitorDue => ("observe", "monitor_due", true, "monitor_due", true),
            Row::MonitorQuiet => ("skip", "monitor_quiet_skip", false, "monitor_quiet_skip", false),
            Row::MonitorOnly => ("skip", "agent_monitor_only", false, "agent_monitor_only", false),
            Row::Settled => ("skip", "heartbeat_settled_skip", false, "heartbeat_settled_skip", false),
            Row::UnsettledRecovery => ("run", "unsettled_host_turn_recovery", true, "unsettled_host_turn_recovery", false),
            Row::CapabilityIntent => ("run", "governed_capability_intent", true, "bounded_delivery", false),
        };
        Columns { decision, effective_action, should_run, mode, spends }
    }

    /// One sentence on why.
    pub const fn reason(self) -> &'static str {
        match self {
            Row::Paused => {
                "the goal is stopped, paused, archived or without a share; every permission is off until it is resumed"
            }
            Row::BlockedHealth => "the goal's health blocks work",
            Row::OperatorGate => "the goal waits for a recorded decision",
            Row::Throttled => "every slot of the window is spent",
            Row::BlockedWait => "the goal waits for something outside this agent",
            Row::NormalRun => "a runnable todo is selected",
            Row::GateCoversAll => "an open gate covers every runnable todo",
            Row::CapabilityRepair => "the next todo needs a capability this agent lacks",
            Row::AutonomousReplan => "the agent owes a replan before further delivery",
            Row::TerminalNoFollowup => "the goal is complete and nothing follows",
            Row::GateFallback => "an open gate covers the first choice; another todo is runnable",
            Row::ScopeWait => "unfinished todos exist and none is runnable for this agent",
            Row::ScopeExhausted => "only blocked or deferred todos of this agent are left",
            Row::ReassignmentRequired => {
                "the todos left belong to agents that are no longer registered"
            }
            Row::SuccessorReplan => {
                "nothing is unfinished and no completion said that nothing follows"
            }
            Row::MonitorDue => "a monitor is due",
            Row::MonitorQuiet => "no monitor is due and nothing else is left",
            Row::MonitorOnly => "this agent looks after monitors only and none is due",
            Row::Settled => "this Turn is settled",
            Row::UnsettledRecovery => "an earlier Turn is written back and owes its spend",
            Row::CapabilityIntent => "a capability intent is pending",
        }
    }
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
    let is_monitor_only = question
        .agent
        .as_ref()
        .is_some_and(|agent| snapshot.goal.is_monitor_only(agent));
    if let Some(monitor) = frontier.due_monitor(question.now) {
        select(verdict, monitor);
        return Row::MonitorDue;
    }
    if is_monitor_only {
        return Row::MonitorOnly;
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
    if frontier.has_gated() {
        return Row::GateCoversAll;
    }
    if let Some(todo) = frontier.first_lacking() {
        verdict.missing_capabilities = missing_capabilities(question, todo)
            .map(str::to_owned)
            .collect();
        select(verdict, todo);
        return Row::CapabilityRepair;
    }
    if frontier.work.is_empty() {
        return nothing_unfinished(snapshot, frontier);
    }
    scope_row(frontier, question)
}

fn nothing_unfinished(snapshot: &Snapshot, frontier: &Frontier<'_>) -> Row {
    if !frontier.monitors.is_empty() || frontier.has_foreign_monitors {
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
    if let Some(monitor) = frontier.monitors.iter().find(|todo| todo.id() == id) {
        let is_due = monitor.next_due_at().is_none_or(|due| due <= question.now);
        verdict.row = if is_due {
            Row::MonitorDue
        } else {
            Row::MonitorQuiet
        };
        if is_due {
            select(verdict, monitor);
        }
        return;
    }
    let found = frontier.work.iter().find(|(todo, _)| todo.id() == id);
    let covered_first = matches!(frontier.first_choice(), Some((_, Some(Hold::Gate))));
    verdict.row = match found {
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
        Some((todo, Some(Hold::Capability))) => {
            verdict.missing_capabilities = missing_capabilities(question, todo)
                .map(str::to_owned)
                .collect();
            verdict.selected = Some((*todo).clone());
            Row::CapabilityRepair
        }
        Some((_, Some(Hold::Gate))) => Row::GateCoversAll,
        _ => Row::ScopeWait,
    };
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
