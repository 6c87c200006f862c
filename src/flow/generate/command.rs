//! What was asked for.

use std::path::PathBuf;

use crate::contract::ids::{AgentId, GoalId};
use crate::contract::periodic_report::artifact::RendererAdapter;
use crate::contract::periodic_report::profile::Profile;

/// Whether files are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GenerateMode {
    /// Compute everything, write nothing.
    Preview,
    /// Write the report.
    Publish,
}

/// The language of labels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReportLanguage {
    /// English.
    English,
    /// Simplified Chinese.
    Chinese,
}

impl ReportLanguage {
    /// Returns the language tag.
    pub const fn tag(self) -> &'static str {
        match self {
            Self::English => "en",
            Self::Chinese => "zh-CN",
        }
    }
}

/// One `--source`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceChoice {
    /// The journal of the goal.
    ProjectProgress,
    /// A repository, by default that of the current folder.
    Git(Option<PathBuf>),
    /// A file of typed facts.
    Facts(PathBuf),
}

/// One generation.
#[derive(Debug, Clone)]
pub struct GenerateCommand {
    /// The profile.
    pub profile: Profile,
    /// The file it came from, when it is no preset.
    pub profile_file: Option<PathBuf>,
    /// The sources in their order; none means what applies here.
    pub sources: Vec<SourceChoice>,
    /// The goal.
    pub goal_id: Option<GoalId>,
    /// The reporter.
    pub agent_id: Option<AgentId>,
    /// The window as typed.
    pub window: String,
    /// The zone as typed.
    pub timezone: Option<String>,
    /// The heading.
    pub title: Option<String>,
    /// The language of labels.
    pub language: ReportLanguage,
    /// The folder to make.
    pub out: Option<PathBuf>,
    /// The artifact to print in place of the packet.
    pub print: Option<RendererAdapter>,
    /// Whether files are written.
    pub mode: GenerateMode,
}
