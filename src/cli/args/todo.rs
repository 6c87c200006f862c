//! Arguments of `loopx todo` and `loopx task-lease`.

use clap::{Args, Subcommand, ValueEnum};

use super::super::values;
use crate::contract::ids::{AgentId, GoalId, ReplanObligationId, TodoId, TurnInstanceId};

// Add, list, claim, change and finish todos.
#[derive(Debug, Args)]
pub(in crate::cli) struct TodoArgs {
    #[command(subcommand)]
    pub(in crate::cli) command: TodoCommand,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(in crate::cli) enum TodoCommand {
    /// Add a todo
    #[command(
        after_help = "Example: loopx todo add --goal-id demo-goal --role agent --text \"Measure the first step\""
    )]
    Add(Box<TodoAddArgs>),
    /// List todos, full records
    #[command(after_help = "Example: loopx todo list --goal-id demo-goal --format json")]
    List(TodoListArgs),
    /// Take a todo for an agent
    #[command(
        after_help = "Example: loopx todo claim --goal-id demo-goal --todo-id todo_a2a97e2e1385 --claimed-by lane-a --agent-id lane-a"
    )]
    Claim(TodoClaimArgs),
    /// Change a todo, or record the outcome of a user gate
    #[command(
        after_help = "Example: loopx todo update --goal-id demo-goal --todo-id todo_a2a97e2e1385 --decision-outcome approve"
    )]
    Update(Box<TodoUpdateArgs>),
    /// Complete a todo
    #[command(
        after_help = "Example: loopx todo complete --goal-id demo-goal --todo-id todo_a2a97e2e1385 --agent-id lane-a --evidence \"rows 1-40 measured\""
    )]
    Complete(TodoCompleteArgs),
    /// Take a todo out of the work because another one stands in for it
    #[command(
        after_help = "Example: loopx todo supersede --goal-id demo-goal --todo-id todo_a2a97e2e1385 --superseded-by todo_bd680625bfe0"
    )]
    Supersede(TodoSupersedeArgs),
    /// Put finished todos away
    #[command(after_help = "Example: loopx todo archive-completed --goal-id demo-goal")]
    ArchiveCompleted(TodoArchiveArgs),
}

/// Who a todo is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub(in crate::cli) enum RoleWord {
    User,
    Agent,
}

/// How a completed todo goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "snake_case")]
#[allow(missing_docs)]
pub(in crate::cli) enum IntentWord {
    ActiveGoal,
    NoFollowup,
    Successor,
}

// Arguments of `loopx todo add`.
#[derive(Debug, Args)]
pub(in crate::cli) struct TodoAddArgs {
    /// The goal
    #[arg(long, value_parser = values::goal_id)]
    pub(in crate::cli) goal_id: GoalId,
    /// Who it is for
    #[arg(long, value_enum)]
    pub(in crate::cli) role: RoleWord,
    /// What is to be done
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) text: String,
    /// P0 to P4; without one it comes last
    #[arg(long, value_parser = values::priority())]
    pub(in crate::cli) priority: Option<String>,
    /// What kind of todo it is
    #[arg(long, value_parser = values::task_class())]
    pub(in crate::cli) task_class: Option<String>,
    /// What it does
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) action_kind: Option<String>,
    /// The agent that owns it from the start
    #[arg(long, value_parser = values::agent_id)]
    pub(in crate::cli) claimed_by: Option<AgentId>,
    /// The only agent that may take it
    #[arg(long, value_parser = values::agent_id)]
    pub(in crate::cli) bound_agent: Option<AgentId>,
    /// An agent that may not take it; may repeat
    #[arg(long, value_parser = values::agent_id)]
    pub(in crate::cli) exclude_agent: Vec<AgentId>,
    /// A user gate: the agent it holds up
    #[arg(long, value_parser = values::agent_id)]
    pub(in crate::cli) blocks_agent: Option<AgentId>,
    /// A user gate: it holds up everybody
    #[arg(long)]
    pub(in crate::cli) global_gate: bool,
    /// A user gate: the scope it decides
    #[arg(long, value_parser = values::scope)]
    pub(in crate::cli) decision_scope: Option<String>,
    /// A scope of decisions this work falls under: an open or refused gate of the scope holds it; may repeat
    #[arg(long, value_parser = values::scope)]
    pub(in crate::cli) required_decision_scope: Vec<String>,
    /// A capability it needs; may repeat
    #[arg(long, value_parser = values::key)]
    pub(in crate::cli) required_capability: Vec<String>,
    /// A path it writes; may repeat
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) required_write_scope: Vec<String>,
    /// Wait for an instant or a done todo; several with commas
    #[arg(long, value_parser = values::resume_when)]
    pub(in crate::cli) resume_when: Option<String>,
    /// A monitor: when it is due next
    #[arg(long, value_parser = values::instant)]
    pub(in crate::cli) next_due_at: Option<String>,
    /// A monitor: how often it is due, such as `hourly`, `daily`, `30m`, `6h`, `P1D`
    #[arg(long, value_parser = values::cadence)]
    pub(in crate::cli) cadence: Option<String>,
    /// A monitor: what it looks at
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) target_key: Option<String>,
    /// The obligation it discharges
    #[arg(long, value_parser = values::obligation)]
    pub(in crate::cli) replan_obligation_id: Option<ReplanObligationId>,
    /// How a host may complete it
    #[arg(long, value_enum)]
    pub(in crate::cli) completion_intent: Option<IntentWord>,
    /// A todo that follows; may repeat
    #[arg(long, value_parser = values::todo_id)]
    pub(in crate::cli) successor_todo_id: Vec<TodoId>,
    /// Only say what would happen
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
}

// Arguments of `loopx todo list`.
#[derive(Debug, Args)]
pub(in crate::cli) struct TodoListArgs {
    /// The goal
    #[arg(long, value_parser = values::goal_id)]
    pub(in crate::cli) goal_id: GoalId,
    /// Show archived todos as well
    #[arg(long)]
    pub(in crate::cli) include_archived: bool,
}

// One todo of one goal.
#[derive(Debug, Args)]
pub(in crate::cli) struct OneTodoArgs {
    /// The goal
    #[arg(long, value_parser = values::goal_id)]
    pub(in crate::cli) goal_id: GoalId,
    /// The todo
    #[arg(long, value_parser = values::todo_id)]
    pub(in crate::cli) todo_id: TodoId,
}

// The proof of a live lease.
#[derive(Debug, Args)]
pub(in crate::cli) struct LeaseProofArgs {
    /// The key of the lease
    #[arg(long, value_parser = values::key)]
    pub(in crate::cli) task_lease_idempotency_key: Option<String>,
    /// The version of the lease
    #[arg(long, requires = "task_lease_idempotency_key")]
    pub(in crate::cli) task_lease_expected_version: Option<i64>,
}

// Arguments of `loopx todo claim`.
#[derive(Debug, Args)]
pub(in crate::cli) struct TodoClaimArgs {
    #[command(flatten)]
    pub(in crate::cli) at: OneTodoArgs,
    /// The new owner; default: the acting agent
    #[arg(long, value_parser = values::agent_id)]
    pub(in crate::cli) claimed_by: Option<AgentId>,
    /// The acting agent; default: the new owner
    #[arg(long, value_parser = values::agent_id, required_unless_present = "claimed_by")]
    pub(in crate::cli) agent_id: Option<AgentId>,
    #[command(flatten)]
    pub(in crate::cli) proof: LeaseProofArgs,
    /// Only say what would happen
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
}

// Arguments of `loopx todo update`.
#[derive(Debug, Args)]
pub(in crate::cli) struct TodoUpdateArgs {
    #[command(flatten)]
    pub(in crate::cli) at: OneTodoArgs,
    /// The acting agent
    #[arg(long, value_parser = values::agent_id)]
    pub(in crate::cli) agent_id: Option<AgentId>,
    /// New words
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) text: Option<String>,
    /// P0 to P4
    #[arg(long, value_parser = values::priority())]
    pub(in crate::cli) priority: Option<String>,
    /// Where it stands; `blocked` needs a reason
    #[arg(long, value_enum)]
    pub(in crate::cli) status: Option<StatusWord>,
    /// A remark
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) note: Option<String>,
    /// What was found
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) evidence: Option<String>,
    /// Why
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) reason: Option<String>,
    /// A scope of decisions this work falls under; may repeat, replaces the list
    #[arg(long, value_parser = values::scope)]
    pub(in crate::cli) required_decision_scope: Vec<String>,
    /// Wait for an instant or a done todo; several with commas
    #[arg(long, value_parser = values::resume_when)]
    pub(in crate::cli) resume_when: Option<String>,
    /// A monitor: when it is due next
    #[arg(long, value_parser = values::instant)]
    pub(in crate::cli) next_due_at: Option<String>,
    /// How a host may complete it
    #[arg(long, value_enum, conflicts_with = "clear_completion_intent")]
    pub(in crate::cli) completion_intent: Option<IntentWord>,
    /// No host may complete it
    #[arg(long)]
    pub(in crate::cli) clear_completion_intent: bool,
    /// A todo that follows; may repeat
    #[arg(long, value_parser = values::todo_id)]
    pub(in crate::cli) successor_todo_id: Vec<TodoId>,
    /// The recorded outcome of a user gate; `reject` and `cancel` keep holding what the gate held until it is approved
    #[arg(long, value_enum)]
    pub(in crate::cli) decision_outcome: Option<OutcomeWord>,
    /// Give the claim back
    #[arg(long)]
    pub(in crate::cli) clear_claim: bool,
    /// Only say what would happen
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
}

/// Where a todo stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub(in crate::cli) enum StatusWord {
    Open,
    Blocked,
    Deferred,
    Done,
}

/// The outcomes of a user gate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub(in crate::cli) enum OutcomeWord {
    Approve,
    Reject,
    Cancel,
}

// Arguments of `loopx todo complete`.
#[derive(Debug, Args)]
pub(in crate::cli) struct TodoCompleteArgs {
    #[command(flatten)]
    pub(in crate::cli) at: OneTodoArgs,
    /// The acting agent
    #[arg(long, value_parser = values::agent_id)]
    pub(in crate::cli) agent_id: AgentId,
    /// What was found
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) evidence: Option<String>,
    /// A remark
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) note: Option<String>,
    /// Nothing follows
    #[arg(long, conflicts_with = "successor_todo_id")]
    pub(in crate::cli) no_follow_up: bool,
    /// A todo that follows; may repeat
    #[arg(long, value_parser = values::todo_id)]
    pub(in crate::cli) successor_todo_id: Vec<TodoId>,
    /// The Turn it belongs to
    #[arg(long, value_parser = values::instance)]
    pub(in crate::cli) turn_instance_id: Option<TurnInstanceId>,
    #[command(flatten)]
    pub(in crate::cli) proof: LeaseProofArgs,
    /// Only say what would happen
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
}

// Arguments of `loopx todo supersede`.
#[derive(Debug, Args)]
pub(in crate::cli) struct TodoSupersedeArgs {
    #[command(flatten)]
    pub(in crate::cli) at: OneTodoArgs,
    /// The todo that stands in for it
    #[arg(long, value_parser = values::todo_id)]
    pub(in crate::cli) superseded_by: Option<TodoId>,
    /// Why
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) reason: Option<String>,
    /// Only say what would happen
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
}

// Arguments of `loopx todo archive-completed`.
#[derive(Debug, Args)]
pub(in crate::cli) struct TodoArchiveArgs {
    /// The goal
    #[arg(long, value_parser = values::goal_id)]
    pub(in crate::cli) goal_id: GoalId,
    /// One todo; default: every finished one
    #[arg(long, value_parser = values::todo_id)]
    pub(in crate::cli) todo_id: Option<TodoId>,
    /// Only say what would happen
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
}

// Hold a todo for exclusive work for a while.
#[derive(Debug, Args)]
pub(in crate::cli) struct TaskLeaseArgs {
    #[command(subcommand)]
    pub(in crate::cli) command: TaskLeaseCommand,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(in crate::cli) enum TaskLeaseCommand {
    /// Take a lease
    #[command(
        after_help = "Example: loopx task-lease acquire --goal-id demo-goal --todo-id todo_a2a97e2e1385 --owner lane-a --idempotency-key key-1"
    )]
    Acquire(AcquireArgs),
    /// Make a lease last longer
    #[command(
        after_help = "Example: loopx task-lease renew --goal-id demo-goal --todo-id todo_a2a97e2e1385 --owner lane-a --idempotency-key key-1 --expected-version 1"
    )]
    Renew(RenewArgs),
    /// Give a lease to another owner
    #[command(
        after_help = "Example: loopx task-lease transfer --goal-id demo-goal --todo-id todo_a2a97e2e1385 --owner lane-a --idempotency-key key-1 --new-owner lane-b --new-idempotency-key key-2 --expected-version 2"
    )]
    Transfer(TransferArgs),
    /// End a lease
    #[command(
        after_help = "Example: loopx task-lease release --goal-id demo-goal --todo-id todo_a2a97e2e1385 --owner lane-b --idempotency-key key-2 --expected-version 3"
    )]
    Release(ReleaseArgs),
    /// Show the lease of a todo
    #[command(
        after_help = "Example: loopx task-lease inspect --goal-id demo-goal --todo-id todo_a2a97e2e1385"
    )]
    Inspect(OneTodoArgs),
}

// Whose lease of which todo is changed.
#[derive(Debug, Args)]
pub(in crate::cli) struct HolderArgs {
    #[command(flatten)]
    pub(in crate::cli) at: OneTodoArgs,
    /// The holder
    #[arg(long, value_parser = values::agent_id)]
    pub(in crate::cli) owner: AgentId,
    /// The holder's key
    #[arg(long, value_parser = values::key)]
    pub(in crate::cli) idempotency_key: String,
    /// Only say what would happen
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
}

// The version of the lease a change is meant for.
#[derive(Debug, Args)]
pub(in crate::cli) struct SeenArgs {
    /// The version seen; `task-lease inspect` shows it
    #[arg(long)]
    pub(in crate::cli) expected_version: Option<i64>,
}

// Arguments of `loopx task-lease acquire`.
#[derive(Debug, Args)]
pub(in crate::cli) struct AcquireArgs {
    #[command(flatten)]
    pub(in crate::cli) holder: HolderArgs,
    /// How long, 1 to 86400 seconds; default 2700
    #[arg(long, value_parser = clap::value_parser!(i64).range(1..=86_400))]
    pub(in crate::cli) ttl_seconds: Option<i64>,
    /// A path it covers; may repeat
    #[arg(long, value_parser = values::words)]
    pub(in crate::cli) write_scope: Vec<String>,
}

// Arguments of `loopx task-lease renew`.
#[derive(Debug, Args)]
pub(in crate::cli) struct RenewArgs {
    #[command(flatten)]
    pub(in crate::cli) holder: HolderArgs,
    #[command(flatten)]
    pub(in crate::cli) seen: SeenArgs,
    /// How long from now, 1 to 86400 seconds; default: the time it was acquired for
    #[arg(long, value_parser = clap::value_parser!(i64).range(1..=86_400))]
    pub(in crate::cli) ttl_seconds: Option<i64>,
}

// Arguments of `loopx task-lease transfer`.
#[derive(Debug, Args)]
pub(in crate::cli) struct TransferArgs {
    #[command(flatten)]
    pub(in crate::cli) holder: HolderArgs,
    #[command(flatten)]
    pub(in crate::cli) seen: SeenArgs,
    /// The new owner
    #[arg(long, value_parser = values::agent_id)]
    pub(in crate::cli) new_owner: AgentId,
    /// The new owner's key
    #[arg(long, value_parser = values::key)]
    pub(in crate::cli) new_idempotency_key: String,
}

// Arguments of `loopx task-lease release`.
#[derive(Debug, Args)]
pub(in crate::cli) struct ReleaseArgs {
    #[command(flatten)]
    pub(in crate::cli) holder: HolderArgs,
    #[command(flatten)]
    pub(in crate::cli) seen: SeenArgs,
}
