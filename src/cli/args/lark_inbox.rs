//! `loopx lark-inbox …`.

use std::path::PathBuf;

use clap::{ArgGroup, Args, Subcommand, ValueEnum};

// Collect, read, answer and acknowledge the messages of a chat.
#[derive(Debug, Args)]
pub(crate) struct LarkInboxArgs {
    #[command(subcommand)]
    pub(crate) command: LarkInboxCommand,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum LarkInboxCommand {
    /// Show pending messages; acknowledges nothing
    #[command(
        after_help = "Example: loopx lark-inbox drain --goal-id weekly-release --limit 20 --format json"
    )]
    Drain(DrainArgs),
    /// Acknowledge messages whose effect is recorded
    #[command(
        after_help = "Example: loopx lark-inbox ack --goal-id weekly-release --message-id om_abc --execute"
    )]
    Ack(AckArgs),
    /// Settle an unaddressed message by its effect, or by the reason that nothing follows
    #[command(
        after_help = "Example: loopx lark-inbox material-review --goal-id weekly-release --message-id om_abc --no-follow-up 'out of scope' --execute"
    )]
    MaterialReview(MaterialArgs),
    /// Store events given on standard input
    #[command(
        after_help = "Example: loopx lark-inbox ingest --config .loopx/config/inbox.json --execute < events.ndjson"
    )]
    Ingest(ActArgs),
    /// Write the files of an inbox anew from its database
    #[command(
        after_help = "Example: loopx lark-inbox export --config .loopx/config/inbox.json --execute"
    )]
    Export(ActArgs),
    /// Send one message to the chat of an inbox
    #[command(
        after_help = "Example: loopx lark-inbox send --goal-id weekly-release --text 'Build is green' --execute"
    )]
    Send(SendArgs),
    /// Answer a captured message
    #[command(
        after_help = "Example: loopx lark-inbox reply --goal-id weekly-release --message-id om_abc --text 'Done' --execute"
    )]
    Reply(ReplyArgs),
    /// Notify reviewers of a pull request, once
    #[command(
        after_help = "Example: loopx lark-inbox notify-reviewer --goal-id weekly-release --pull-request-url https://git.example/pull/7 --text '<at open_id=\"ou_x\">Name</at> please review' --execute"
    )]
    NotifyReviewer(NotifyArgs),
    /// Mark a captured message as being worked on
    #[command(
        after_help = "Example: loopx lark-inbox processing --goal-id weekly-release --message-id om_abc --execute"
    )]
    Processing(MarkArgs),
    /// Remove the own marks from a message
    #[command(
        after_help = "Example: loopx lark-inbox reaction-complete --goal-id weekly-release --message-id om_abc --execute"
    )]
    ReactionComplete(MarkArgs),
    /// Read one page of a route's history into its inbox
    #[command(
        after_help = "Example: loopx lark-inbox history-catch-up --config .loopx/config/lark-collector.json --route-key feedback --start 2026-08-01T00:00:00Z --execute"
    )]
    HistoryCatchUp(HistoryArgs),
    /// Show the service that would collect
    #[command(
        after_help = "Example: loopx lark-inbox collector-plan --config .loopx/config/lark-collector.json"
    )]
    CollectorPlan(CollectorArgs),
    /// Install and start the collecting service
    #[command(
        after_help = "Example: loopx lark-inbox collector-install --config .loopx/config/lark-collector.json --execute"
    )]
    CollectorInstall(CollectorActArgs),
    /// Show whether the service runs and whether events really arrive
    #[command(
        after_help = "Example: loopx lark-inbox collector-status --config .loopx/config/lark-collector.json --probe-event-bus"
    )]
    CollectorStatus(CollectorStatusArgs),
    /// Show what a collector did
    #[command(
        after_help = "Example: loopx lark-inbox collector-log --config .loopx/config/lark-collector.json --follow"
    )]
    CollectorLog(CollectorLogArgs),
    /// Add one route to a collector
    #[command(
        after_help = "Example: loopx lark-inbox collector-route-reconcile --config .loopx/config/lark-collector.json --route-key feedback --chat-id oc_abc --event-inbox-config .loopx/config/lark/feedback.json --execute"
    )]
    CollectorRouteReconcile(ReconcileArgs),
    /// Collect; started by the service
    #[command(
        hide = true,
        after_help = "Example: loopx lark-inbox collector-run --project . --config .loopx/config/lark-collector.json --lark-cli-executable lark-cli --continuous"
    )]
    CollectorRun(CollectorRunArgs),
    /// Probe the access to a document's comments
    #[command(
        after_help = "Example: loopx lark-inbox document-comment-status --config .loopx/config/lark/doc.json"
    )]
    DocumentCommentStatus(DocumentArgs),
    /// Read one page of a document's comments
    #[command(
        after_help = "Example: loopx lark-inbox document-comment-capture --config .loopx/config/lark/doc.json --execute"
    )]
    DocumentCommentCapture(DocumentActArgs),
    /// Answer a captured document comment
    #[command(
        after_help = "Example: loopx lark-inbox document-comment-reply --config .loopx/config/lark/doc.json --event-id lark-comment-1 --text 'Fixed' --execute"
    )]
    DocumentCommentReply(DocumentReplyArgs),
    /// Acknowledge a captured document comment
    #[command(
        after_help = "Example: loopx lark-inbox document-comment-ack --config .loopx/config/lark/doc.json --event-id lark-comment-1 --execute"
    )]
    DocumentCommentAck(DocumentAckArgs),
}

// Where the inbox is configured.
#[derive(Debug, Args)]
pub(crate) struct ContextFlags {
    /// The project; default: the goal's, else the current folder
    #[arg(long, value_name = "PATH")]
    pub(crate) project: Option<PathBuf>,
    /// The inbox or collector configuration, relative to the project
    #[arg(long, value_name = "PATH")]
    pub(crate) config: Option<PathBuf>,
    /// The goal whose inbox is used
    #[arg(long, value_name = "ID")]
    pub(crate) goal_id: Option<String>,
    /// The agent whose inbox is used
    #[arg(long, value_name = "ID")]
    pub(crate) agent_id: Option<String>,
}

// Acts only when asked to.
#[derive(Debug, Args)]
pub(crate) struct ExecuteFlag {
    /// Act; without it the command only says what it would do
    #[arg(long)]
    pub(crate) execute: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DrainArgs {
    #[command(flatten)]
    pub(crate) context: ContextFlags,
    /// How many messages at most; less than 1 counts as 1, more than 100 as 100
    #[arg(
        long,
        default_value_t = 20,
        value_name = "N",
        allow_negative_numbers = true
    )]
    pub(crate) limit: i64,
}

#[derive(Debug, Args)]
pub(crate) struct ActArgs {
    #[command(flatten)]
    pub(crate) context: ContextFlags,
    #[command(flatten)]
    pub(crate) act: ExecuteFlag,
}

#[derive(Debug, Args)]
pub(crate) struct AckArgs {
    #[command(flatten)]
    pub(crate) context: ContextFlags,
    /// A message; may repeat
    #[arg(long, required = true, value_name = "ID")]
    pub(crate) message_id: Vec<String>,
    #[command(flatten)]
    pub(crate) act: ExecuteFlag,
}

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("effect").required(true).args(["effect_receipt_json", "no_follow_up"])))]
pub(crate) struct MaterialArgs {
    #[command(flatten)]
    pub(crate) context: ContextFlags,
    /// The message
    #[arg(long, value_name = "ID")]
    pub(crate) message_id: String,
    /// The receipt of the committed effect
    #[arg(long, value_name = "JSON")]
    pub(crate) effect_receipt_json: Option<String>,
    /// Why nothing follows
    #[arg(long, value_name = "REASON")]
    pub(crate) no_follow_up: Option<String>,
    #[command(flatten)]
    pub(crate) act: ExecuteFlag,
}

/// What a message is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum MessagePurpose {
    Unspecified,
    Help,
    Progress,
    Urgent,
}

#[derive(Debug, Args)]
pub(crate) struct OutboundFlags {
    /// The text, with structured mentions such as <at open_id="ou_x">Name</at>
    #[arg(long, allow_hyphen_values = true, value_name = "TEXT")]
    pub(crate) text: String,
    /// Ask the provider without sending
    #[arg(long)]
    pub(crate) provider_preflight: bool,
    /// What the message is for
    #[arg(
        long,
        value_enum,
        default_value = "unspecified",
        value_name = "PURPOSE"
    )]
    pub(crate) message_purpose: MessagePurpose,
    /// The digest of guidance that was reviewed
    #[arg(long, value_name = "DIGEST")]
    pub(crate) reviewed_guidance_digest: Option<String>,
    #[command(flatten)]
    pub(crate) act: ExecuteFlag,
}

#[derive(Debug, Args)]
pub(crate) struct SendArgs {
    #[command(flatten)]
    pub(crate) context: ContextFlags,
    /// The route of a collector
    #[arg(long, value_name = "KEY")]
    pub(crate) route_key: Option<String>,
    #[command(flatten)]
    pub(crate) outbound: OutboundFlags,
}

#[derive(Debug, Args)]
pub(crate) struct ReplyArgs {
    #[command(flatten)]
    pub(crate) context: ContextFlags,
    /// The captured message that is answered
    #[arg(long, value_name = "ID")]
    pub(crate) message_id: String,
    #[command(flatten)]
    pub(crate) outbound: OutboundFlags,
}

#[derive(Debug, Args)]
pub(crate) struct NotifyArgs {
    #[command(flatten)]
    pub(crate) context: ContextFlags,
    /// The route of a collector
    #[arg(long, value_name = "KEY")]
    pub(crate) route_key: Option<String>,
    /// The pull request, an https address
    #[arg(long, value_name = "URL")]
    pub(crate) pull_request_url: String,
    /// The words, with a structured mention of every reviewer; the address is added where it is missing
    #[arg(long, allow_hyphen_values = true, value_name = "TEXT")]
    pub(crate) text: String,
    /// The profile of the signed-in person who searches; default: the configured one
    #[arg(long, value_name = "PROFILE")]
    pub(crate) reader_profile: Option<String>,
    /// Ask the provider without sending
    #[arg(long)]
    pub(crate) provider_preflight: bool,
    #[command(flatten)]
    pub(crate) act: ExecuteFlag,
}

#[derive(Debug, Args)]
pub(crate) struct MarkArgs {
    #[command(flatten)]
    pub(crate) context: ContextFlags,
    /// The captured message
    #[arg(long, value_name = "ID")]
    pub(crate) message_id: String,
    #[command(flatten)]
    pub(crate) act: ExecuteFlag,
}

// Which provider program is called.
#[derive(Debug, Args)]
pub(crate) struct ProgramFlags {
    /// The provider program; default: the configured name
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) lark_cli_executable: Option<String>,
    /// The interpreter of a provider program that is a script
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) node_executable: Option<String>,
}

#[derive(Debug, Args)]
pub(crate) struct HistoryArgs {
    #[command(flatten)]
    pub(crate) context: ContextFlags,
    /// The route
    #[arg(long, value_name = "KEY")]
    pub(crate) route_key: String,
    /// The first instant, with an offset
    #[arg(long, value_name = "RFC3339")]
    pub(crate) start: String,
    /// Messages a page, 1 to 50
    #[arg(long, default_value_t = 50, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50))]
    pub(crate) page_size: u32,
    #[command(flatten)]
    pub(crate) program: ProgramFlags,
    #[command(flatten)]
    pub(crate) act: ExecuteFlag,
}

#[derive(Debug, Args)]
pub(crate) struct CollectorArgs {
    /// The project; default: the current folder
    #[arg(long, default_value = ".", value_name = "PATH")]
    pub(crate) project: PathBuf,
    /// The collector configuration, relative to the project
    #[arg(long, value_name = "PATH")]
    pub(crate) config: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct CollectorActArgs {
    #[command(flatten)]
    pub(crate) collector: CollectorArgs,
    #[command(flatten)]
    pub(crate) act: ExecuteFlag,
}

#[derive(Debug, Args)]
pub(crate) struct CollectorStatusArgs {
    #[command(flatten)]
    pub(crate) collector: CollectorArgs,
    /// Ask the local event bus
    #[arg(long)]
    pub(crate) probe_event_bus: bool,
}

#[derive(Debug, Args)]
pub(crate) struct CollectorLogArgs {
    #[command(flatten)]
    pub(crate) collector: CollectorArgs,
    /// How many of the newest lines
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u16).range(1..))]
    pub(crate) lines: u16,
    /// Go on with what comes, until stopped
    #[arg(long)]
    pub(crate) follow: bool,
}

#[derive(Debug, Args)]
pub(crate) struct ReconcileArgs {
    #[command(flatten)]
    pub(crate) collector: CollectorArgs,
    /// The new route's public name
    #[arg(long, value_name = "KEY")]
    pub(crate) route_key: String,
    /// The chat
    #[arg(long, value_name = "ID")]
    pub(crate) chat_id: String,
    /// The inbox configuration of the route, relative to the project
    #[arg(long, value_name = "PATH")]
    pub(crate) event_inbox_config: String,
    #[command(flatten)]
    pub(crate) act: ExecuteFlag,
}

#[derive(Debug, Args)]
pub(crate) struct CollectorRunArgs {
    /// The project
    #[arg(long, value_name = "PATH")]
    pub(crate) project: PathBuf,
    /// The collector configuration, relative to the project
    #[arg(long, value_name = "PATH")]
    pub(crate) config: PathBuf,
    /// The provider program
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) lark_cli_executable: String,
    /// The interpreter of a provider program that is a script
    #[arg(long, value_name = "PROGRAM")]
    pub(crate) node_executable: Option<String>,
    /// Run until stopped, rolling consumers over
    #[arg(long)]
    pub(crate) continuous: bool,
}

#[derive(Debug, Args)]
pub(crate) struct DocumentArgs {
    /// The project; default: the current folder
    #[arg(long, default_value = ".", value_name = "PATH")]
    pub(crate) project: PathBuf,
    /// The document-comment configuration, relative to the project
    #[arg(long, value_name = "PATH")]
    pub(crate) config: PathBuf,
}

#[derive(Debug, Args)]
pub(crate) struct DocumentActArgs {
    #[command(flatten)]
    pub(crate) document: DocumentArgs,
    #[command(flatten)]
    pub(crate) act: ExecuteFlag,
}

#[derive(Debug, Args)]
pub(crate) struct DocumentReplyArgs {
    #[command(flatten)]
    pub(crate) document: DocumentArgs,
    /// The captured comment
    #[arg(long, value_name = "ID")]
    pub(crate) event_id: String,
    /// The answer
    #[arg(long, allow_hyphen_values = true, value_name = "TEXT")]
    pub(crate) text: String,
    #[command(flatten)]
    pub(crate) act: ExecuteFlag,
}

#[derive(Debug, Args)]
pub(crate) struct DocumentAckArgs {
    #[command(flatten)]
    pub(crate) document: DocumentArgs,
    /// The captured comment
    #[arg(long, value_name = "ID")]
    pub(crate) event_id: String,
    #[command(flatten)]
    pub(crate) act: ExecuteFlag,
}
