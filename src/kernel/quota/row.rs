//! The rows of the decision table and what each answers (docs/spec/kernel.md 6.3).

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
