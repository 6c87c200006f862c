//! The command line as clap types: the global flags and one file per family.

mod extension;
pub(super) mod goal;
pub(super) mod goal_channel;
pub(super) mod handoff;
pub(super) mod lark_inbox;
pub(super) mod maintenance;
mod manual;
mod periodic_report;
pub(super) mod quota;
pub(super) mod refresh;
pub(super) mod todo;
pub(super) mod turn;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};

pub(super) use extension::{
    CapabilityArgs, CapabilityCommand, ExtensionArgs, ExtensionCommand, SourceArgs,
};
pub(super) use manual::{CompletionsArgs, ManArgs};
pub(super) use periodic_report::{
    GenerateArgs, InspectProfileArgs, LanguageName, PeriodicReportArgs, PeriodicReportCommand,
    PrintName,
};

/// Local-first control plane for long-running agent goals.
#[derive(Debug, Parser)]
#[command(
    name = "loopx",
    version,
    propagate_version = false,
    arg_required_else_help = false,
    after_help = "Example: loopx periodic-report generate --window this-week"
)]
pub(super) struct Cli {
    #[command(flatten)]
    pub(super) global: Global,
    #[command(subcommand)]
    pub(super) command: Command,
}

// Flags every command takes, before or after its name.
#[derive(Debug, Args)]
pub(super) struct Global {
    /// The registry file; default: .loopx/registry.json of the project
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        help_heading = "Global options"
    )]
    pub(super) registry: Option<PathBuf>,
    /// The folder of runtime state; default: what the registry names, else `runtime` beside it
    #[arg(
        long,
        global = true,
        value_name = "PATH",
        help_heading = "Global options"
    )]
    pub(super) runtime_root: Option<PathBuf>,
    /// Text for people, or one JSON packet for machines
    #[arg(
        long,
        global = true,
        value_enum,
        default_value = "markdown",
        value_name = "FORMAT",
        help_heading = "Global options"
    )]
    pub(super) format: Format,
}

/// How the packet is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// Text for people
    #[value(alias = "text")]
    Markdown,
    /// One JSON object
    Json,
    /// One JSON object with its digests; `handoff inspect` alone
    #[value(hide = true)]
    Digest,
}

/// The command families.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(super) enum Command {
    /// Decide, build, render and generate periodic reports
    PeriodicReport(PeriodicReportArgs),
    /// Make a goal
    Bootstrap(goal::BootstrapArgs),
    /// Add agents to the roster of a goal
    RegisterAgent(goal::RegisterAgentArgs),
    /// Change the standing configuration of a goal
    ConfigureGoal(Box<goal::ConfigureGoalArgs>),
    /// Stop, pause, archive or resume a goal
    GoalLifecycle(goal::GoalLifecycleArgs),
    /// Add, list, claim, change and finish todos
    Todo(todo::TodoArgs),
    /// Record a decision about a gate of the goal itself
    OperatorGate(goal::OperatorGateArgs),
    /// Hold a todo for exclusive work for a while
    TaskLease(todo::TaskLeaseArgs),
    /// Pass a todo from one session or agent to the next
    Handoff(handoff::HandoffArgs),
    /// Ask what may happen next, and account for what was spent
    Quota(quota::QuotaArgs),
    /// Show health, attention and unfinished todos
    Status(goal::StatusArgs),
    /// Plan, run and read one bounded Turn
    Turn(turn::TurnArgs),
    /// Write back what was done, and settle its Turn
    RefreshState(Box<refresh::RefreshArgs>),
    /// Install, verify and switch optional providers
    Extension(ExtensionArgs),
    /// Collect, read, answer and acknowledge the messages of a chat
    LarkInbox(lark_inbox::LarkInboxArgs),
    /// Bind goals to chats
    GoalChannel(goal_channel::GoalChannelArgs),
    /// See what the program and its extensions can do
    Capability(CapabilityArgs),
    /// Look at store, rights and programs; put right what needs no decision
    Doctor(maintenance::DoctorArgs),
    /// Copy everything a lost disk would take, and prove the copy
    Backup(maintenance::BackupArgs),
    /// Bring a backup back
    Restore(maintenance::RestoreArgs),
    /// Print a shell completion script
    Completions(CompletionsArgs),
    /// Print the manual page, or write one page per command
    Man(ManArgs),
}
