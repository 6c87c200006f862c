//! `loopx extension …` and `loopx capability …`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

// Install, verify and switch optional providers.
#[derive(Debug, Args)]
pub(crate) struct ExtensionArgs {
    #[command(subcommand)]
    pub(crate) command: ExtensionCommand,
    /// The record of installed extensions; default: extensions/state.json of the runtime root
    #[arg(long, global = true, value_name = "PATH")]
    pub(crate) state_file: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum ExtensionCommand {
    /// Install an extension; the probe must verify it
    #[command(after_help = "Example: loopx extension install --bundled loopx-lark --execute")]
    Install(SourceArgs),
    /// Move to another revision and keep the one before
    #[command(after_help = "Example: loopx extension upgrade --bundled loopx-lark --execute")]
    Upgrade(SourceArgs),
    /// Let gated commands use an installed extension again
    #[command(after_help = "Example: loopx extension enable loopx-lark --execute")]
    Enable(TargetArgs),
    /// Stop gated commands from using an extension; nothing else changes
    #[command(after_help = "Example: loopx extension disable loopx-lark --execute")]
    Disable(TargetArgs),
    /// Return to the revision before, verified on the way
    #[command(after_help = "Example: loopx extension rollback loopx-lark --execute")]
    Rollback(TargetArgs),
    /// Verify an installed extension; no provider is called
    #[command(after_help = "Example: loopx extension doctor loopx-lark --execute")]
    Doctor(TargetArgs),
    /// List bundled and installed extensions
    #[command(after_help = "Example: loopx extension list --format json")]
    List,
}

#[derive(Debug, Args)]
pub(crate) struct SourceArgs {
    /// A bundled extension: loopx-lark or loopx-finance-execution
    #[arg(
        long,
        value_name = "ID",
        required_unless_present = "manifest",
        conflicts_with = "manifest"
    )]
    pub(crate) bundled: Option<String>,
    /// A manifest file
    #[arg(long, value_name = "PATH")]
    pub(crate) manifest: Option<PathBuf>,
    /// Act; without it the command only says what it would do
    #[arg(long)]
    pub(crate) execute: bool,
}

#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    /// The extension
    #[arg(value_name = "ID")]
    pub(crate) id: String,
    /// Act; without it the command only says what it would do
    #[arg(long)]
    pub(crate) execute: bool,
}

// See what the program and its extensions can do.
#[derive(Debug, Args)]
pub(crate) struct CapabilityArgs {
    #[command(subcommand)]
    pub(crate) command: CapabilityCommand,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum CapabilityCommand {
    /// List capabilities and who provides them; listing grants nothing
    #[command(after_help = "Example: loopx capability list --format json")]
    List,
}
