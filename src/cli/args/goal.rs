//! Arguments of `bootstrap`, `register-agent`, `configure-goal`, `goal-lifecycle`, `operator-gate` and `status`.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use serde_json::Number;

use super::super::values;
use crate::contract::ids::{AgentId, GoalId};

// Arguments of `loopx bootstrap`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: loopx bootstrap --goal-id demo-goal --title Demo --objective \"Measure twice\" --project ."
)]
pub(in crate::cli) struct BootstrapArgs {
    /// The goal to make
    #[arg(long, value_parser = values::goal_id)]
    pub(in crate::cli) goal_id: GoalId,
    /// A short name for people
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) title: Option<String>,
    /// What it is for
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) objective: Option<String>,
    /// The project folder; default: the project of the current folder
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
    /// Only say what would happen
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
}

// Arguments of `loopx register-agent`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: loopx register-agent --goal-id demo-goal --agent-id lane-a --execute"
)]
pub(in crate::cli) struct RegisterAgentArgs {
    /// The goal
    #[arg(long, value_parser = values::goal_id)]
    pub(in crate::cli) goal_id: GoalId,
    /// The agent; may repeat
    #[arg(long, required = true, value_parser = values::agent_id)]
    pub(in crate::cli) agent_id: Vec<AgentId>,
    /// Refuse an agent that is registered already
    #[arg(long)]
    pub(in crate::cli) require_new: bool,
    /// Act; without it the command only says what it would do
    #[arg(long)]
    pub(in crate::cli) execute: bool,
}

// Arguments of `loopx configure-goal`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: loopx configure-goal --goal-id demo-goal --quota-compute 0.5 --execute"
)]
pub(in crate::cli) struct ConfigureGoalArgs {
    /// The goal
    #[arg(long, value_parser = values::goal_id)]
    pub(in crate::cli) goal_id: GoalId,
    /// The share of the window's slots
    #[arg(long, value_parser = values::amount, allow_hyphen_values = true)]
    pub(in crate::cli) quota_compute: Option<Number>,
    /// The rolling window in hours
    #[arg(long, value_parser = values::positive, allow_hyphen_values = true)]
    pub(in crate::cli) quota_window_hours: Option<Number>,
    /// A fixed number of slots, or `default` for the share
    #[arg(long, value_name = "N|default", allow_hyphen_values = true, value_parser = slots)]
    pub(in crate::cli) quota_allowed_slots: Option<Slots>,
    /// Whom the goal waits for; `codex` lets agents work
    #[arg(long, value_parser = values::waiting_on(), conflicts_with = "clear_waiting_on")]
    pub(in crate::cli) waiting_on: Option<String>,
    /// Name nobody: the goal waits until `--waiting-on codex`
    #[arg(long)]
    pub(in crate::cli) clear_waiting_on: bool,
    /// Health: `high` blocks the goal
    #[arg(long, value_enum)]
    pub(in crate::cli) severity: Option<Severity>,
    /// Keep the focus elsewhere
    #[arg(long, conflicts_with = "clear_focus_wait")]
    pub(in crate::cli) focus_wait: bool,
    /// Take the focus back
    #[arg(long)]
    pub(in crate::cli) clear_focus_wait: bool,
    /// The question the user is asked
    #[arg(long, value_parser = values::words, conflicts_with = "clear_operator_question")]
    pub(in crate::cli) operator_question: Option<String>,
    /// Ask no question
    #[arg(long)]
    pub(in crate::cli) clear_operator_question: bool,
    /// A gate to be decided; may repeat
    #[arg(long, value_parser = values::words, conflicts_with = "clear_missing_gates")]
    pub(in crate::cli) missing_gate: Vec<String>,
    /// Wait for no gate
    #[arg(long)]
    pub(in crate::cli) clear_missing_gates: bool,
    /// A path the goal may write; may repeat, replaces the list
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) write_scope: Vec<String>,
    /// The whole roster in order; may repeat, replaces the list
    #[arg(long, value_parser = values::agent_id)]
    pub(in crate::cli) registered_agent: Vec<AgentId>,
    /// How an agent works; may repeat
    #[arg(long, value_name = "AGENT=normal|monitor_only", value_parser = work_mode)]
    pub(in crate::cli) agent_work_mode: Vec<(AgentId, &'static str)>,
    /// The goal's report settings as one JSON object, or `-`
    #[arg(long, value_name = "PATH", conflicts_with = "clear_periodic_report")]
    pub(in crate::cli) periodic_report_json: Option<PathBuf>,
    /// Return to the machine's report settings
    #[arg(long)]
    pub(in crate::cli) clear_periodic_report: bool,
    /// The plan revision the preview printed
    #[arg(long)]
    pub(in crate::cli) expected_plan_revision: Option<String>,
    /// Refuse when the registry is another one
    #[arg(long)]
    pub(in crate::cli) expected_registry_revision: Option<String>,
    /// Act; without it the command only says what it would do
    #[arg(long)]
    pub(in crate::cli) execute: bool,
}

/// A fixed cap, or the one that follows from the share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Slots {
    /// This many.
    Fixed(u64),
    /// What the share gives.
    Share,
}

fn slots(word: &str) -> Result<Slots, String> {
    match word {
        "default" => Ok(Slots::Share),
        word => word
            .parse()
            .map(Slots::Fixed)
            .map_err(|_| "must be a whole number or `default`".to_owned()),
    }
}

fn work_mode(word: &str) -> Result<(AgentId, &'static str), String> {
    let (agent, mode) = word
        .rsplit_once('=')
        .ok_or("must be AGENT=normal or AGENT=monitor_only")?;
    let mode = match mode {
        "normal" => "normal",
        "monitor_only" => "monitor_only",
        _ => return Err("must be AGENT=normal or AGENT=monitor_only".to_owned()),
    };
    Ok((values::agent_id(agent)?, mode))
}

/// The health of a goal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(in crate::cli) enum Severity {
    /// Nothing blocks it
    Normal,
    /// It is blocked
    High,
}

// Arguments of `loopx goal-lifecycle`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: loopx goal-lifecycle --goal-id demo-goal --operation pause --reason \"holiday\" --execute"
)]
pub(in crate::cli) struct GoalLifecycleArgs {
    /// The goal
    #[arg(long, value_parser = values::goal_id)]
    pub(in crate::cli) goal_id: GoalId,
    /// What to do
    #[arg(long, value_enum)]
    pub(in crate::cli) operation: LifecycleWord,
    /// Why
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) reason: Option<String>,
    /// Refuse when the registry is another one
    #[arg(long)]
    pub(in crate::cli) expected_registry_revision: Option<String>,
    /// Act; without it the command only says what it would do
    #[arg(long)]
    pub(in crate::cli) execute: bool,
}

/// The lifecycle operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub(in crate::cli) enum LifecycleWord {
    Stop,
    Pause,
    Archive,
    Resume,
}

// Arguments of `loopx operator-gate`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: loopx operator-gate --goal-id demo-goal --gate release --decision approve"
)]
pub(in crate::cli) struct OperatorGateArgs {
    /// The goal
    #[arg(long, value_parser = values::goal_id)]
    pub(in crate::cli) goal_id: GoalId,
    /// The gate's name
    #[arg(long, value_parser = values::key)]
    pub(in crate::cli) gate: String,
    /// The decision
    #[arg(long, value_enum)]
    pub(in crate::cli) decision: GateWord,
    /// Why, in one sentence
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) reason_summary: Option<String>,
    /// The question that was asked
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) operator_question: Option<String>,
    /// What the agent is told to run
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) agent_command: Option<String>,
    /// What should happen next
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) recommended_action: Option<String>,
    /// Who records it
    #[arg(long, value_parser = values::agent_id)]
    pub(in crate::cli) agent_id: Option<AgentId>,
    /// Only say what would happen
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
}

/// The decisions of an operator gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub(in crate::cli) enum GateWord {
    Approve,
    Reject,
    Defer,
}

// Arguments of `loopx status`.
#[derive(Debug, Args)]
#[command(after_help = "Example: loopx status --goal-id demo-goal")]
pub(in crate::cli) struct StatusArgs {
    /// One goal; default: every goal
    #[arg(long, value_parser = values::goal_id)]
    pub(in crate::cli) goal_id: Option<GoalId>,
}
