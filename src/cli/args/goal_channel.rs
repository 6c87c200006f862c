//! `loopx goal-channel …`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

// Bind goals to chats.
#[derive(Debug, Args)]
pub(crate) struct GoalChannelArgs {
    #[command(subcommand)]
    pub(crate) command: GoalChannelCommand,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum GoalChannelCommand {
    /// Name the chats of this machine
    Target(TargetArgs),
}

#[derive(Debug, Args)]
pub(crate) struct TargetArgs {
    #[command(subcommand)]
    pub(crate) command: TargetCommand,
    /// Another store of targets
    #[arg(long, global = true, hide = true, value_name = "PATH")]
    pub(crate) target_path: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum TargetCommand {
    /// Add a chat with the identity that speaks there
    #[command(
        after_help = "Example: loopx goal-channel target add --name team --chat-id oc_abc --identity-mode project_bot --sender-profile project-bot --bot-app-id cli_abc --bot-display-name Relay --execute"
    )]
    Add(Box<TargetAddArgs>),
    /// List the chats of this machine
    #[command(after_help = "Example: loopx goal-channel target list --format json")]
    List,
}

#[derive(Debug, Args)]
pub(crate) struct TargetAddArgs {
    /// The name goals use
    #[arg(long, value_name = "NAME")]
    pub(crate) name: String,
    /// The provider
    #[arg(long, default_value = "lark", value_parser = ["lark"], value_name = "PROVIDER")]
    pub(crate) provider: String,
    /// The chat
    #[arg(long, value_name = "ID")]
    pub(crate) chat_id: String,
    /// What the chat is called; default: the name
    #[arg(long, value_name = "NAME")]
    pub(crate) chat_name: Option<String>,
    /// Whose identity speaks
    #[arg(long, default_value = "local_user", value_parser = ["local_user", "project_bot"], value_name = "MODE")]
    pub(crate) identity_mode: String,
    /// The profile of the sender
    #[arg(long, value_name = "NAME")]
    pub(crate) sender_profile: Option<String>,
    /// The identity of the sender
    #[arg(long, value_parser = ["bot"], value_name = "IDENTITY")]
    pub(crate) sender_identity: Option<String>,
    /// The application of the bot
    #[arg(long, value_name = "ID")]
    pub(crate) bot_app_id: String,
    /// The open id of the bot
    #[arg(long, value_name = "ID")]
    pub(crate) bot_open_id: Option<String>,
    /// The name the provider shows for the application
    #[arg(long, value_name = "NAME")]
    pub(crate) bot_display_name: Option<String>,
    /// The provider program
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) cli_bin: Option<String>,
    /// Act; without it the command only says what it would do
    #[arg(long)]
    pub(crate) execute: bool,
}
