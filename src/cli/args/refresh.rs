//! Arguments of `loopx refresh-state`.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Args, ValueEnum};

use super::super::values;
use crate::contract::ids::{AgentId, GoalId, ReplanObligationId, TodoId, TurnInstanceId};

// Arguments of `loopx refresh-state`.
#[derive(Debug, Args)]
#[command(
    after_help = "Example: loopx refresh-state --goal-id demo-goal --agent-id lane-a --todo-id todo_a2a97e2e1385 --turn-instance-id turn-1 --classification step_done --delivery-outcome outcome_progress --delivery-batch-scale implementation --next-action \"Go on\" --settle-turn"
)]
pub(in crate::cli) struct RefreshArgs {
    /// The goal
    #[arg(long, value_parser = values::goal_id)]
    pub(in crate::cli) goal_id: GoalId,
    /// The acting agent
    #[arg(long, value_parser = values::agent_id)]
    pub(in crate::cli) agent_id: Option<AgentId>,
    /// The todo of the Turn
    #[arg(long, value_parser = values::todo_id, conflicts_with = "replan_obligation_id")]
    pub(in crate::cli) todo_id: Option<TodoId>,
    /// The obligation of the Turn
    #[arg(long, value_parser = values::obligation)]
    pub(in crate::cli) replan_obligation_id: Option<ReplanObligationId>,
    /// The Turn instance
    #[arg(long, value_parser = values::instance)]
    pub(in crate::cli) turn_instance_id: Option<TurnInstanceId>,
    /// The class of this run
    #[arg(long, value_parser = values::key, default_value = "state_refreshed")]
    pub(in crate::cli) classification: String,
    /// What should happen next
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) recommended_action: Option<String>,
    /// The durable next action
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) next_action: Option<String>,
    /// How much was delivered
    #[arg(long, value_parser = ["test_only", "single_surface", "multi_surface", "implementation"])]
    pub(in crate::cli) delivery_batch_scale: Option<String>,
    /// What came of it
    #[arg(long, value_parser = ["surface_only", "outcome_gap", "outcome_progress", "primary_goal_outcome"])]
    pub(in crate::cli) delivery_outcome: Option<String>,
    /// The boundary it was reached at
    #[arg(long, value_enum)]
    pub(in crate::cli) delivery_boundary: Option<BoundaryWord>,
    /// Whose progress it is
    #[arg(long, value_parser = ["goal", "agent_lane"])]
    pub(in crate::cli) progress_scope: Option<String>,
    /// The lane of the progress
    #[arg(long, value_parser = values::agent_id)]
    pub(in crate::cli) agent_lane: Option<AgentId>,
    /// Record an autonomous replan
    #[arg(long)]
    pub(in crate::cli) autonomous_replan_recorded: bool,
    /// What the replan changed; may repeat
    #[arg(long, value_parser = crate::kernel::replan::DELTA_KINDS)]
    pub(in crate::cli) repair_delta_kind: Vec<String>,
    /// The agent's vision: the whole contract object, or `-`
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) agent_vision_json: Option<PathBuf>,
    #[command(flatten)]
    pub(in crate::cli) vision: VisionArgs,
    /// Why the vision stays as it is
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) vision_unchanged_reason: Option<String>,
    /// A capability the agent has; may repeat
    #[arg(long, value_parser = values::key)]
    pub(in crate::cli) available_capability: Vec<String>,
    /// The project; default: the goal's
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) project: Option<PathBuf>,
    /// A Markdown projection of the state, inside the project
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) state_file: Option<OsString>,
    /// Only say what would happen
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
    /// Accepted for older callers; changes nothing
    #[arg(long)]
    pub(in crate::cli) no_global_sync: bool,
    /// Spend for the Turn in the same transaction
    #[arg(long)]
    pub(in crate::cli) settle_turn: bool,
    /// Hold outside delivery back for this Turn
    #[arg(long, conflicts_with = "resume_external_sinks")]
    pub(in crate::cli) suppress_external_sinks: bool,
    /// Let outside delivery go on with the key of its pause
    #[arg(long, value_name = "KEY", requires = "turn_instance_id")]
    pub(in crate::cli) resume_external_sinks: Option<String>,
}

// A field-level patch of the latest open vision.
#[derive(Debug, Args)]
pub(in crate::cli) struct VisionArgs {
    /// The state of the vision
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) vision_state: Option<String>,
    /// What the agent sees
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) vision_summary: Option<String>,
    /// Its role
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) vision_role_scope: Option<String>,
    /// When it is reached
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) vision_acceptance: Option<String>,
    /// How it is advanced
    #[arg(long, value_parser = ["as_needed", "repeat_until_closed"])]
    pub(in crate::cli) vision_advancement_policy: Option<String>,
    /// What makes it replan
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) vision_replan_trigger: Option<String>,
    /// What it may explore
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) vision_dreaming_policy: Option<String>,
    /// What changed last
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) vision_last_patch: Option<String>,
}

/// The boundaries of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
#[allow(missing_docs)]
pub(in crate::cli) enum BoundaryWord {
    InFlightContinuation,
    SemanticCloseout,
}
