//! Arguments of `loopx turn`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::super::values;
use crate::contract::ids::{AgentId, GoalId, TodoId, TurnInstanceId, TurnKey};

// Plan, run and read one bounded Turn.
#[derive(Debug, Args)]
pub(in crate::cli) struct TurnArgs {
    #[command(subcommand)]
    pub(in crate::cli) command: TurnCommand,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(in crate::cli) enum TurnCommand {
    /// Show what a Turn would do
    #[command(after_help = "Example: loopx turn plan --goal-id demo-goal --agent-id lane-a")]
    Plan(Box<TurnPlanArgs>),
    /// Run one bounded host process on the captured decision, once
    #[command(
        after_help = "Example: loopx turn run-once --goal-id demo-goal --agent-id lane-a --turn-instance-id turn-1 --project . --host-command-json '[\"./host.sh\"]' --validation-command-json '[\"./check.sh\"]' --execute"
    )]
    RunOnce(Box<TurnRunOnceArgs>),
    /// Look at the journal of a Turn
    #[command(
        after_help = "Example: loopx turn inspect-journal --goal-id demo-goal --agent-id lane-a --turn-key sha256:0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0"
    )]
    InspectJournal(TurnInspectArgs),
    /// Read the decision a Turn was started on
    #[command(
        after_help = "Example: loopx turn detail --goal-id demo-goal --agent-id lane-a --turn-key sha256:0f1e2d3c4b5a69788796a5b4c3d2e1f00f1e2d3c4b5a69788796a5b4c3d2e1f0 --select /decision/selected_todo"
    )]
    Detail(TurnDetailArgs),
    /// Compare an admitted replan contract with its captured source
    #[command(
        after_help = "Example: loopx turn replan-review --goal-id demo-goal --agent-id lane-a --reader-ref turn-capture:0f1e2d3c4b5a69788796a5b4c3d2e1f0"
    )]
    ReplanReview(TurnReplanReviewArgs),
    /// Say how a loop goes on after a Turn
    #[command(
        after_help = "Example: loopx turn managed-step --goal-id demo-goal --agent-id lane-a"
    )]
    ManagedStep(Box<TurnManagedStepArgs>),
}

/// The kinds of host.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub(in crate::cli) enum HostWord {
    CodexCli,
    ClaudeCode,
    GenericCli,
}

/// The execution modes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub(in crate::cli) enum ModeWord {
    InteractiveVisible,
    IsolatedHeadless,
}

/// Who schedules the next wake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
#[allow(missing_docs)]
pub(in crate::cli) enum SchedulerWord {
    HostAutomation,
    AgentCliLoop,
    OuterController,
    None,
}

/// What a host starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub(in crate::cli) enum ContextWord {
    Fresh,
    ResumeIfAvailable,
}

// The flags of every planned Turn.
#[derive(Debug, Args)]
pub(in crate::cli) struct TurnCommon {
    /// The goal
    #[arg(long, value_parser = values::goal_id)]
    pub(in crate::cli) goal_id: GoalId,
    /// The agent
    #[arg(long)]
    pub(in crate::cli) agent_id: String,
    /// The kind of host
    #[arg(long, value_enum)]
    pub(in crate::cli) host: Option<HostWord>,
    /// Visible or isolated
    #[arg(long, value_enum)]
    pub(in crate::cli) execution_mode: Option<ModeWord>,
    /// Who schedules the next wake
    #[arg(long, value_enum)]
    pub(in crate::cli) scheduler_owner: Option<SchedulerWord>,
    /// The Turn instance
    #[arg(long, value_parser = values::instance)]
    pub(in crate::cli) turn_instance_id: Option<TurnInstanceId>,
    /// Look at exactly this todo
    #[arg(long, value_parser = values::todo_id)]
    pub(in crate::cli) todo_id: Option<TodoId>,
    /// What the host starts from
    #[arg(long, value_enum, default_value = "fresh")]
    pub(in crate::cli) iteration_context: ContextWord,
    /// A capability the agent has; may repeat
    #[arg(long, value_parser = values::key)]
    pub(in crate::cli) available_capability: Vec<String>,
    /// Resume the session of this goal
    #[arg(long, value_parser = values::goal_id, requires_all = ["resume_agent_id", "resume_todo_id"])]
    pub(in crate::cli) resume_goal_id: Option<GoalId>,
    /// Resume the session of this agent
    #[arg(long, value_parser = values::agent_id, requires_all = ["resume_goal_id", "resume_todo_id"])]
    pub(in crate::cli) resume_agent_id: Option<AgentId>,
    /// Resume the session of this todo
    #[arg(long, value_parser = values::todo_id, requires_all = ["resume_goal_id", "resume_agent_id"])]
    pub(in crate::cli) resume_todo_id: Option<TodoId>,
    /// Accepted for older callers; changes nothing
    #[arg(long)]
    pub(in crate::cli) scan_root: Option<PathBuf>,
    /// Accepted for older callers; changes nothing
    #[arg(long)]
    pub(in crate::cli) scan_path: Vec<PathBuf>,
    /// Accepted for older callers; changes nothing
    #[arg(long)]
    pub(in crate::cli) limit: Option<u32>,
}

// Arguments of `loopx turn plan`.
#[derive(Debug, Args)]
pub(in crate::cli) struct TurnPlanArgs {
    #[command(flatten)]
    pub(in crate::cli) common: TurnCommon,
    /// Show source, session and transaction as well
    #[arg(long)]
    pub(in crate::cli) include_transaction_detail: bool,
}

/// What a failed validation asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
#[allow(missing_docs)]
pub(in crate::cli) enum RecoveryWord {
    RepairRequired,
    ReplanRequired,
}

// Arguments of `loopx turn run-once`.
#[derive(Debug, Args)]
pub(in crate::cli) struct TurnRunOnceArgs {
    #[command(flatten)]
    pub(in crate::cli) common: TurnCommon,
    /// The folder host and validator run in
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) project: PathBuf,
    /// The host: a JSON array of words, run without a shell
    #[arg(long, value_name = "JSON", alias = "host-adapter-command-json")]
    pub(in crate::cli) host_command_json: Option<String>,
    /// The validator: a JSON array of words; exit 0 passes the result
    #[arg(long, value_name = "JSON")]
    pub(in crate::cli) validation_command_json: Option<String>,
    /// How long a validator may take
    #[arg(long, default_value_t = 30, value_parser = clap::value_parser!(u64).range(1..=86_400))]
    pub(in crate::cli) validation_timeout_seconds: u64,
    /// What a failed validation asks for
    #[arg(long, value_enum, default_value = "repair_required")]
    pub(in crate::cli) validation_failure_kind: RecoveryWord,
    /// How long a host may take
    #[arg(long, default_value_t = 120, value_parser = clap::value_parser!(u64).range(0..=604_800))]
    pub(in crate::cli) timeout_seconds: u64,
    /// Try a failed Turn again
    #[arg(long)]
    pub(in crate::cli) retry_failed_turn: bool,
    /// Resume this stored Turn
    #[arg(long, value_parser = values::turn_key)]
    pub(in crate::cli) resume_turn_key: Option<TurnKey>,
    /// Accepted for older callers; changes nothing
    #[arg(long)]
    pub(in crate::cli) no_global_sync: bool,
    /// Act; without it the command only says what it would do
    #[arg(long)]
    pub(in crate::cli) execute: bool,
    /// codex-cli: the program
    #[arg(long, default_value = "codex")]
    pub(in crate::cli) codex_bin: String,
    /// codex-cli: the model
    #[arg(long, value_parser = values::key)]
    pub(in crate::cli) codex_model: Option<String>,
    /// codex-cli: the sandbox
    #[arg(long, value_parser = values::key)]
    pub(in crate::cli) codex_sandbox: Option<String>,
}

// The owner of a stored Turn.
#[derive(Debug, Args)]
pub(in crate::cli) struct TurnOwnerArgs {
    /// The goal
    #[arg(long, value_parser = values::goal_id)]
    pub(in crate::cli) goal_id: GoalId,
    /// The agent
    #[arg(long, value_parser = values::agent_id)]
    pub(in crate::cli) agent_id: AgentId,
}

// Arguments of `loopx turn inspect-journal`.
#[derive(Debug, Args)]
pub(in crate::cli) struct TurnInspectArgs {
    #[command(flatten)]
    pub(in crate::cli) owner: TurnOwnerArgs,
    /// The Turn
    #[arg(long, value_parser = values::turn_key)]
    pub(in crate::cli) turn_key: TurnKey,
    /// Judge a retry of a failed Turn
    #[arg(long)]
    pub(in crate::cli) retry_failed_turn: bool,
}

// Arguments of `loopx turn detail`.
#[derive(Debug, Args)]
pub(in crate::cli) struct TurnDetailArgs {
    #[command(flatten)]
    pub(in crate::cli) owner: TurnOwnerArgs,
    /// The Turn
    #[arg(long, value_parser = values::turn_key)]
    pub(in crate::cli) turn_key: TurnKey,
    /// A JSON pointer into the source; may repeat
    #[arg(long, value_name = "POINTER", value_parser = pointer)]
    pub(in crate::cli) select: Vec<String>,
    /// Print the whole source beside the selections
    #[arg(long)]
    pub(in crate::cli) include_source: bool,
}

fn pointer(word: &str) -> Result<String, String> {
    if word.is_empty() || word.starts_with('/') {
        Ok(word.to_owned())
    } else {
        Err("a JSON pointer is empty or starts with `/`".to_owned())
    }
}

// Arguments of `loopx turn replan-review`.
#[derive(Debug, Args)]
pub(in crate::cli) struct TurnReplanReviewArgs {
    #[command(flatten)]
    pub(in crate::cli) owner: TurnOwnerArgs,
    /// The opaque reference a host was given
    #[arg(long, value_parser = values::key)]
    pub(in crate::cli) reader_ref: String,
    /// The admitted contract; default: the journal's own
    #[arg(long, value_name = "FILE")]
    pub(in crate::cli) admitted_contract: Option<PathBuf>,
}

// Arguments of `loopx turn managed-step`.
#[derive(Debug, Args)]
pub(in crate::cli) struct TurnManagedStepArgs {
    #[command(flatten)]
    pub(in crate::cli) common: TurnCommon,
    /// The finished Turn
    #[arg(long, value_parser = values::turn_key)]
    pub(in crate::cli) turn_key: Option<TurnKey>,
}
