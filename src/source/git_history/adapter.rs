//! The adapter: one walk serves the search for the newest fact and the snapshot.

use std::path::PathBuf;

use super::reading::{Reason, Repository, Snapshot};
use super::words::Language;
use crate::contract::error::ContractError;
use crate::contract::time::Timestamp;
use crate::port::source::{SourceAdapter, SourceReading, SourceScope};

const IDENTITY: (&str, &str) = ("git_history", "project_activity");

/// The history of one repository.
pub(crate) struct GitHistory {
    folder: PathBuf,
    walked: Option<Result<Repository, Reason>>,
}

impl GitHistory {
    /// Looks at a repository by any folder inside it.
    pub(crate) fn at(folder: PathBuf) -> Self {
        Self {
            folder,
            walked: None,
        }
    }

    fn read(&mut self, scope: &SourceScope) -> Result<Snapshot, Reason> {
        let repository = match self.walked.take() {
            None => Repository::for_window(&self.folder, &scope.window)?,
            Some(walked) => walked?.reaching(&scope.window)?,
        };
        let snapshot = repository.snapshot(&scope.window, Language::of(&scope.language));
        self.walked = Some(Ok(repository));
        snapshot
    }
}

impl SourceAdapter for GitHistory {
    fn newest_fact(&mut self, not_after: Timestamp) -> Option<Timestamp> {
        if self.walked.is_none() {
            self.walked = Some(Repository::newest_first(&self.folder));
        }
        let repository = self.walked.as_ref()?.as_ref().ok()?;
        repository.newest(not_after)
    }

    fn snapshot(&mut self, scope: &SourceScope) -> Result<SourceReading, ContractError> {
        let snapshot = match self.read(scope) {
            Ok(snapshot) => snapshot,
            Err(reason) => {
                self.walked = Some(Err(reason));
                Snapshot::failed(reason)
            }
        };
        let reading = SourceReading::live(IDENTITY, scope, snapshot.status, snapshot.sections)?;
        Ok(SourceReading {
            omitted: snapshot.omitted,
            withheld: snapshot.withheld,
            reason: snapshot.reason.map(Reason::as_str),
            ..reading
        })
    }
}
