//! `loopx periodic-report …`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use crate::flow::generate::SourceChoice;

// Decide, build, render and generate periodic reports.
#[derive(Debug, Args)]
pub(crate) struct PeriodicReportArgs {
    #[command(subcommand)]
    pub(crate) command: PeriodicReportCommand,
}

#[derive(Debug, Subcommand)]
#[command(defer = true)]
pub(crate) enum PeriodicReportCommand {
    /// Make a report of a week from this checkout: Markdown, one HTML page and a bundle
    #[command(after_help = GENERATE_HELP)]
    Generate(Box<GenerateArgs>),
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

const GENERATE_HELP: &str = "\
Windows: this-week (default), last-week, last-7-days, latest, today, yesterday, or START/END with
local dates (2026-11-16/2026-11-23) or instants with an offset.

Example: loopx periodic-report generate
         loopx periodic-report generate --window last-week --timezone Europe/Paris
         loopx periodic-report generate --source git=../other --source facts=facts.json --out weekly
         loopx periodic-report generate --preview --print markdown";

// What to report on, for which period, and where it goes.
#[derive(Debug, Args)]
pub(crate) struct GenerateArgs {
    /// A built-in profile; default: weekly
    #[arg(long, value_enum, value_name = "NAME", conflicts_with = "profile_json")]
    pub(crate) preset: Option<PresetName>,
    /// A profile, one JSON object; `-` reads standard input
    #[arg(long, value_name = "PATH")]
    pub(crate) profile_json: Option<PathBuf>,
    /// The goal to report on; default: the only active goal of the project
    #[arg(long, value_name = "ID")]
    pub(crate) goal_id: Option<String>,
    /// The agent whose own work comes first and whose next action is shown
    #[arg(long, value_name = "ID")]
    pub(crate) agent_id: Option<String>,
    /// project-progress, git[=PATH] or facts=FILE; may be repeated
    #[arg(long = "source", value_name = "KIND[=ARG]", value_parser = parse_source)]
    pub(crate) sources: Vec<SourceChoice>,
    /// The period
    #[arg(
        long,
        value_name = "WINDOW",
        default_value = "this-week",
        allow_hyphen_values = true
    )]
    pub(crate) window: String,
    /// The IANA zone of local days; default: the profile's, TZ, the system's, UTC
    #[arg(long, value_name = "ZONE", allow_hyphen_values = true)]
    pub(crate) timezone: Option<String>,
    /// The heading; default: the goal's title or the folder's name, and the period
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub(crate) title: Option<String>,
    /// The language of labels; facts stay as written
    #[arg(long, value_enum, value_name = "LANGUAGE", default_value = "en")]
    pub(crate) language: LanguageName,
    /// The folder to create; default: below .loopx/reports of the project
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,
    /// Print this artifact in place of the packet
    #[arg(long, value_enum, value_name = "ARTIFACT")]
    pub(crate) print: Option<PrintName>,
    /// Compute everything and write nothing
    #[arg(long)]
    pub(crate) preview: bool,
}

/// The language of labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum LanguageName {
    #[value(name = "en")]
    English,
    #[value(name = "zh-CN")]
    Chinese,
}

/// An artifact that can be printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum PrintName {
    Markdown,
    Html,
}

fn parse_source(text: &str) -> Result<SourceChoice, String> {
    let (kind, argument) = match text.split_once('=') {
        Some((kind, argument)) => (kind, Some(argument)),
        None => (text, None),
    };
    match (kind, argument) {
        ("project-progress", None) => Ok(SourceChoice::ProjectProgress),
        ("git", None) => Ok(SourceChoice::Git(None)),
        ("git", Some(path)) if !path.is_empty() => Ok(SourceChoice::Git(Some(path.into()))),
        ("facts", Some(path)) if !path.is_empty() => Ok(SourceChoice::Facts(path.into())),
        _ => Err("expected project-progress, git, git=PATH or facts=FILE".to_owned()),
    }
}

// The one input of a pure command.
#[derive(Debug, Args)]
pub(crate) struct RequestArgs {
    /// The request, one JSON object; `-` reads standard input
    #[arg(long, value_name = "PATH")]
    pub(crate) request_json: PathBuf,
}

// A profile by name or by file.
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
