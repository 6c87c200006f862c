//! Where the facts of a report come from.
//!
//! An adapter reads one source for one window and says how completely. It is handed the stored
//! facts it needs; it never opens the store.

use std::path::PathBuf;

use crate::contract::error::ContractError;
use crate::contract::ids::Token;
use crate::contract::periodic_report::goal_facts::GoalFacts;
use crate::contract::periodic_report::source::{Section, SourceHead, SourceResult};
use crate::contract::periodic_report::vocabulary::SourceStatus;
use crate::contract::time::{Timestamp, Window};

/// What a report wants to know.
#[derive(Debug, Clone)]
pub struct SourceScope {
    /// The period.
    pub window: Window,
    /// The language of labels.
    pub language: String,
    /// When the report is generated.
    pub generated_at: Timestamp,
}

/// What one source gave.
#[derive(Debug, Clone)]
pub struct SourceReading {
    /// The facts with their identity.
    pub result: SourceResult,
    /// Facts that did not fit.
    pub omitted: usize,
    /// Facts whose text may not be shown.
    pub withheld: usize,
    /// Why it is not complete, or what it left out.
    pub reason: Option<&'static str>,
}

impl SourceReading {
    /// Makes the reading of a source that is read when the report is generated.
    pub fn live(
        identity: (&str, &str),
        scope: &SourceScope,
        status: SourceStatus,
        sections: Vec<Section>,
    ) -> Result<Self, ContractError> {
        let token = |text| {
            Token::new(text).ok_or_else(|| ContractError::invalid("source_id", "must be a token"))
        };
        let head = SourceHead {
            source_id: token(identity.0)?,
            source_kind: token(identity.1)?,
            status,
            observed_at: scope.generated_at,
            retryable: status != SourceStatus::Complete,
            snapshot_ref: None,
        };
        Ok(Self {
            result: SourceResult::build(head, sections)?,
            omitted: 0,
            withheld: 0,
            reason: None,
        })
    }

    /// Makes the reading of a source that could not be read.
    pub fn failed(
        identity: (&str, &str),
        scope: &SourceScope,
        reason: &'static str,
    ) -> Result<Self, ContractError> {
        let failed = Self::live(identity, scope, SourceStatus::Failed, Vec::new())?;
        Ok(Self {
            reason: Some(reason),
            ..failed
        })
    }
}

/// One source of a report.
pub trait SourceAdapter {
    /// Returns the newest fact not later than an instant, as far as this source knows.
    fn newest_fact(&mut self, not_after: Timestamp) -> Option<Timestamp>;
    /// Reads the source for a period.
    fn snapshot(&mut self, scope: &SourceScope) -> Result<SourceReading, ContractError>;
}

/// A source somebody asked for.
#[derive(Debug, Clone)]
pub enum SourceRequest {
    /// The history of a repository.
    GitHistory(PathBuf),
    /// A file of typed facts.
    FactsFile(PathBuf),
    /// The journal of a goal, as far as it could be read.
    ProjectProgress(GoalReading),
}

/// The journal of a goal.
#[derive(Debug, Clone)]
pub enum GoalReading {
    /// What it says about a period, and its newest completed todo.
    Facts(Box<GoalFacts>),
    /// The registry does not know the goal.
    NotFound,
    /// Registry or store could not be read.
    Unreadable,
}

/// Opens sources by kind.
pub trait SourceOpener {
    /// Opens one source; what is wrong with it is said by its snapshot.
    fn open(&self, request: SourceRequest) -> Box<dyn SourceAdapter>;
}
