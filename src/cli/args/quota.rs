//! Arguments of `loopx quota`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::super::values;
use crate::contract::ids::{AgentId, GoalId, ReplanObligationId, TodoId, TurnInstanceId};

// Ask what may happen next, and account for what was spent.
#[derive(Debug, Args)]
pub(in crate::cli) struct QuotaArgs {
    #[command(subcommand)]
    pub(in crate::cli) command: QuotaCommand,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(in crate::cli) enum QuotaCommand {
    /// Decide what one agent may do next, and why
    #[command(after_help = "Example: loopx quota should-run --goal-id demo-goal --agent-id lane-a")]
    ShouldRun(Box<ShouldRunArgs>),
    /// Rank goals by what they need
    #[command(after_help = "Example: loopx quota status")]
    Status(RankingArgs),
    /// Rank goals by what they need, as a plan
    #[command(after_help = "Example: loopx quota plan --include-archived")]
    Plan(RankingArgs),
    /// Spend one slot for a written-back Turn
    #[command(
        after_help = "Example: loopx quota spend-slot --goal-id demo-goal --agent-id lane-a --todo-id todo_a2a97e2e1385 --turn-instance-id turn-1 --execute"
    )]
    SpendSlot(SpendSlotArgs),
    /// Correct one spend
    #[command(
        after_help = "Example: loopx quota void-slot --goal-id demo-goal --void-generated-at 2026-09-18T09:00:00Z --reason-summary \"wrong lane\" --execute"
    )]
    VoidSlot(VoidSlotArgs),
    /// Record a look at a monitor
    #[command(
        after_help = "Example: loopx quota monitor-poll --goal-id demo-goal --agent-id lane-a --todo-id todo_a2a97e2e1385 --result unchanged --next-due-at 2026-09-18T10:00:00Z --execute"
    )]
    MonitorPoll(MonitorPollArgs),
}

// Arguments of `loopx quota should-run`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ShouldRunArgs {
    /// The goal
    #[arg(long, value_parser = values::goal_id)]
    pub(in crate::cli) goal_id: GoalId,
    /// The asking agent
    #[arg(long)]
    pub(in crate::cli) agent_id: Option<String>,
    /// A capability the agent has; may repeat
    #[arg(long, value_parser = values::key)]
    pub(in crate::cli) available_capability: Vec<String>,
    /// Record the admission of this Turn instance
    #[arg(long, value_parser = values::instance)]
    pub(in crate::cli) turn_instance_id: Option<TurnInstanceId>,
    /// Look at exactly this todo
    #[arg(long, value_parser = values::todo_id, conflicts_with = "replan_obligation_id")]
    pub(in crate::cli) todo_id: Option<TodoId>,
    /// Look at exactly this obligation
    #[arg(long, value_parser = values::obligation)]
    pub(in crate::cli) replan_obligation_id: Option<ReplanObligationId>,
    /// Print the complete envelope instead of the decision
    #[arg(long)]
    pub(in crate::cli) turn_envelope: bool,
    /// Accepted for older callers; the complete decision is always printed
    #[arg(long)]
    pub(in crate::cli) include_detail: Vec<String>,
    /// Keep a private copy of the decision in this new folder
    #[arg(long, value_name = "DIR", conflicts_with = "decision_output_root")]
    pub(in crate::cli) decision_output_dir: Option<PathBuf>,
    /// Keep a private copy in a new folder below this existing one
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) decision_output_root: Option<PathBuf>,
    /// Accepted for older callers; changes nothing
    #[arg(long)]
    pub(in crate::cli) record_host_poll: bool,
    /// What the wake runs on
    #[arg(long, value_parser = values::key, default_value = "agent-cli")]
    pub(in crate::cli) host_surface: String,
    /// Who schedules the next wake
    #[arg(long, value_parser = values::key, default_value = "agent_cli_loop")]
    pub(in crate::cli) scheduler_owner: String,
    /// Visible or isolated
    #[arg(long, value_parser = values::key, default_value = "interactive-visible")]
    pub(in crate::cli) execution_mode: String,
    /// Accepted for older callers; changes nothing
    #[arg(long)]
    pub(in crate::cli) limit: Option<u32>,
}

// Arguments of `loopx quota status` and `plan`.
#[derive(Debug, Args)]
pub(in crate::cli) struct RankingArgs {
    /// Show archived goals as well
    #[arg(long)]
    pub(in crate::cli) include_archived: bool,
}

/// Who spends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub(in crate::cli) enum SourceWord {
    Heartbeat,
    Controller,
    Adapter,
    VisibleGoal,
}

// Arguments of `loopx quota spend-slot`.
#[derive(Debug, Args)]
pub(in crate::cli) struct SpendSlotArgs {
    /// The goal
    #[arg(long, value_parser = values::goal_id)]
    pub(in crate::cli) goal_id: GoalId,
    /// The agent
    #[arg(long, value_parser = values::agent_id)]
    pub(in crate::cli) agent_id: Option<AgentId>,
    /// How many slots; a Turn spends exactly one
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(i64).range(1..=1_000_000), allow_hyphen_values = true)]
    pub(in crate::cli) slots: i64,
    /// Who spends
    #[arg(long, value_enum, default_value = "heartbeat")]
    pub(in crate::cli) source: SourceWord,
    /// The todo of the Turn
    #[arg(long, value_parser = values::todo_id, conflicts_with = "replan_obligation_id")]
    pub(in crate::cli) todo_id: Option<TodoId>,
    /// The obligation of the Turn
    #[arg(long, value_parser = values::obligation)]
    pub(in crate::cli) replan_obligation_id: Option<ReplanObligationId>,
    /// The Turn instance
    #[arg(long, value_parser = values::instance)]
    pub(in crate::cli) turn_instance_id: Option<TurnInstanceId>,
    /// Act; without it the command only says what it would do
    #[arg(long)]
    pub(in crate::cli) execute: bool,
}

// Arguments of `loopx quota void-slot`.
#[derive(Debug, Args)]
pub(in crate::cli) struct VoidSlotArgs {
    /// The goal
    #[arg(long, value_parser = values::goal_id)]
    pub(in crate::cli) goal_id: GoalId,
    /// Who corrects
    #[arg(long, value_parser = values::agent_id)]
    pub(in crate::cli) agent_id: Option<AgentId>,
    /// The instant of the spend
    #[arg(long, value_parser = values::instant)]
    pub(in crate::cli) void_generated_at: String,
    /// Why
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) reason_summary: String,
    /// Act; without it the command only says what it would do
    #[arg(long)]
    pub(in crate::cli) execute: bool,
}

/// What a look at a monitor found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub(in crate::cli) enum PollWord {
    Changed,
    Unchanged,
}

// Arguments of `loopx quota monitor-poll`.
#[derive(Debug, Args)]
pub(in crate::cli) struct MonitorPollArgs {
    /// The goal
    #[arg(long, value_parser = values::goal_id)]
    pub(in crate::cli) goal_id: GoalId,
    /// The acting agent
    #[arg(long, value_parser = values::agent_id)]
    pub(in crate::cli) agent_id: AgentId,
    /// The monitor
    #[arg(long, value_parser = values::todo_id)]
    pub(in crate::cli) todo_id: TodoId,
    /// What was found
    #[arg(long, value_enum)]
    pub(in crate::cli) result: PollWord,
    /// When it is due next
    #[arg(long, value_parser = values::instant)]
    pub(in crate::cli) next_due_at: Option<String>,
    /// The Turn it closes
    #[arg(long, value_parser = values::instance)]
    pub(in crate::cli) turn_instance_id: Option<TurnInstanceId>,
    /// Act; without it the command only says what it would do
    #[arg(long)]
    pub(in crate::cli) execute: bool,
}
