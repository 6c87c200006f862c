//! Arguments of `loopx handoff`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::super::values;
use crate::contract::ids::{AgentId, GoalId, TodoId};

// Pass a todo from one session or agent to the next.
#[derive(Debug, Args)]
pub(in crate::cli) struct HandoffArgs {
    #[command(subcommand)]
    pub(in crate::cli) command: HandoffCommand,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(in crate::cli) enum HandoffCommand {
    /// Leave a note for the next session or agent
    #[command(
        after_help = "Example: loopx handoff prepare --goal-id demo-goal --todo-id todo_a2a97e2e1385 --agent-id lane-a --session-id s1 --operation-id op-1 --expected-revision rev-4:90740ca02eed --rationale \"The other lane has the machine\""
    )]
    Prepare(PrepareArgs),
    /// See whether a todo can be taken over; `--format digest` adds its digests
    #[command(
        after_help = "Example: loopx handoff inspect --goal-id demo-goal --todo-id todo_a2a97e2e1385 --agent-id lane-b --session-id s2"
    )]
    Inspect(SubjectArgs),
    /// Take a prepared todo over
    #[command(
        after_help = "Example: loopx handoff adopt --goal-id demo-goal --todo-id todo_a2a97e2e1385 --agent-id lane-b --session-id s2 --operation-id op-2 --expected-revision rev-5:a775a3f4136a"
    )]
    Adopt(AdoptArgs),
}

impl super::Command {
    /// Tells whether this command knows `--format digest`.
    pub(in crate::cli) const fn prints_digests(&self) -> bool {
        matches!(
            self,
            Self::Handoff(HandoffArgs {
                command: HandoffCommand::Inspect(_)
            })
        )
    }
}

// Which todo, who acts and in which session.
#[derive(Debug, Args)]
pub(in crate::cli) struct SubjectArgs {
    /// The goal
    #[arg(long, value_parser = values::goal_id)]
    pub(in crate::cli) goal_id: GoalId,
    /// The todo
    #[arg(long, value_parser = values::todo_id)]
    pub(in crate::cli) todo_id: TodoId,
    /// Who acts: the owner in prepare, the adopter in adopt
    #[arg(long, value_parser = values::agent_id)]
    pub(in crate::cli) agent_id: AgentId,
    /// The acting session, at most 160 characters
    #[arg(long, value_parser = session)]
    pub(in crate::cli) session_id: String,
    /// The folder artifacts are looked for in; default: the goal's project
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) workspace: Option<PathBuf>,
    /// A relative path that has to be there; at most eight
    #[arg(long, value_name = "REL")]
    pub(in crate::cli) artifact: Vec<String>,
}

// A change, made once.
#[derive(Debug, Args)]
pub(in crate::cli) struct OperationArgs {
    /// Names the change; the same one on a retry
    #[arg(long, value_parser = operation)]
    pub(in crate::cli) operation_id: String,
    /// The revision it rests on; the same one on a retry
    #[arg(long, value_name = "REV")]
    pub(in crate::cli) expected_revision: String,
    /// Show what would happen
    #[arg(long)]
    pub(in crate::cli) dry_run: bool,
}

// Arguments of `loopx handoff prepare`.
#[derive(Debug, Args)]
pub(in crate::cli) struct PrepareArgs {
    #[command(flatten)]
    pub(in crate::cli) subject: SubjectArgs,
    #[command(flatten)]
    pub(in crate::cli) operation: OperationArgs,
    /// The note as a JSON object: work_summary, rationale, approaches_tried, next_steps, files_touched, key_decisions, open_questions, source_refs
    #[arg(long, value_name = "FILE", conflicts_with_all = ["rationale", "source_ref"])]
    pub(in crate::cli) from_context: Option<PathBuf>,
    /// Why the work is handed over
    #[arg(long)]
    pub(in crate::cli) rationale: Option<String>,
    /// A reference to what was found
    #[arg(long, requires = "rationale")]
    pub(in crate::cli) source_ref: Vec<String>,
}

// Arguments of `loopx handoff adopt`.
#[derive(Debug, Args)]
pub(in crate::cli) struct AdoptArgs {
    #[command(flatten)]
    pub(in crate::cli) subject: SubjectArgs,
    #[command(flatten)]
    pub(in crate::cli) operation: OperationArgs,
    /// Who is to own the todo; default: the adopter
    #[arg(long, value_parser = values::agent_id)]
    pub(in crate::cli) target_agent_id: Option<AgentId>,
    /// The key of a lease the target holds already
    #[arg(long, value_name = "KEY")]
    pub(in crate::cli) task_lease_idempotency_key: Option<String>,
    /// The version of that lease
    #[arg(long, value_name = "N", requires = "task_lease_idempotency_key")]
    pub(in crate::cli) task_lease_expected_version: Option<i64>,
}

fn session(word: &str) -> Result<String, String> {
    bounded(word, "a session id")
}

fn operation(word: &str) -> Result<String, String> {
    bounded(word, "an operation id")
}

fn bounded(word: &str, what: &str) -> Result<String, String> {
    use crate::contract::{public_safety, text};
    let word = text::trim(word);
    let is_bounded = !word.is_empty() && !text::is_longer_than(word, 160);
    match is_bounded && public_safety::is_pathless(word) {
        true => Ok(word.to_owned()),
        false => Err(format!("{what} is 1 to 160 public-safe characters")),
    }
}
