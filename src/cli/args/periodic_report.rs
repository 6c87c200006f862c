//! `loopx periodic-report …`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Decide, build, render and generate periodic reports.
#[derive(Debug, Args)]
pub(crate) struct PeriodicReportArgs {
    #[command(subcommand)]
    pub(crate) command: PeriodicReportCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum PeriodicReportCommand {
    /// Say what a profile would allow; nothing is read, made or stored
    #[command(after_help = "Example: loopx periodic-report inspect-profile --preset weekly")]
    InspectProfile(InspectProfileArgs),
    /// Decide whether a report is due
    #[command(
        after_help = "Example: loopx periodic-report evaluate-trigger --request-json request.json"
    )]
    EvaluateTrigger(RequestArgs),
    /// Compose one run from its receipts
    #[command(
        after_help = "Example: loopx periodic-report compose-run --request-json request.json"
    )]
    ComposeRun(RequestArgs),
    /// Group typed project facts into a source result
    #[command(after_help = "Example: loopx periodic-report build-source --request-json facts.json")]
    BuildSource(RequestArgs),
    /// Build a document from source results; its summary is compiled
    #[command(
        after_help = "Example: loopx periodic-report build-document --request-json parts.json"
    )]
    BuildDocument(RequestArgs),
    /// Render a document as Markdown or as a page
    #[command(after_help = "Example: loopx periodic-report render --request-json - > report.html")]
    Render(RequestArgs),
    /// Plan who is mentioned for a document, by typed facts alone
    #[command(
        after_help = "Example: loopx periodic-report plan-audience --request-json request.json"
    )]
    PlanAudience(RequestArgs),
    /// Bundle a document with its artifacts
    #[command(after_help = "Example: loopx periodic-report bundle --request-json request.json")]
    Bundle(RequestArgs),
    /// Judge whether the extensions of a profile are there
    #[command(after_help = "Example: loopx periodic-report readiness --request-json request.json")]
    Readiness(RequestArgs),
    /// Settle what the sinks did with one generation
    #[command(
        after_help = "Example: loopx periodic-report delivery-receipt --request-json request.json"
    )]
    DeliveryReceipt(RequestArgs),
    /// Lay out one report as project resources
    #[command(
        after_help = "Example: loopx periodic-report archive-bundle --request-json request.json"
    )]
    ArchiveBundle(RequestArgs),
}

/// The one input of a pure command.
#[derive(Debug, Args)]
pub(crate) struct RequestArgs {
    /// The request, one JSON object; `-` reads standard input
    #[arg(long, value_name = "PATH")]
    pub(crate) request_json: PathBuf,
}

/// A profile by name or by file.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct InspectProfileArgs {
    /// A profile, one JSON object; `-` reads standard input
    #[arg(long, value_name = "PATH")]
    pub(crate) profile_json: Option<PathBuf>,
    /// A built-in profile
    #[arg(long, value_enum, value_name = "NAME")]
    pub(crate) preset: Option<PresetName>,
}

/// The names of the one preset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PresetName {
    Weekly,
    WeeklyProgress,
    WeeklyReport,
}

impl PresetName {
    /// Returns the name as typed.
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Weekly => "weekly",
            Self::WeeklyProgress => "weekly-progress",
            Self::WeeklyReport => "weekly-report",
        }
    }
}
