//! `facts=FILE`: typed project facts somebody wrote down.
//!
//! The file is a `periodic_report_project_progress_projection_v0`. Whatever is wrong with it makes
//! the source fail by name; the report then stands on its other sources.

use std::io::Read as _;
use std::path::PathBuf;

use crate::contract::error::ContractError;
use crate::contract::json;
use crate::contract::parse::Label;
use crate::contract::periodic_report::projection::read_progress;
use crate::contract::periodic_report::source::SourceResult;
use crate::contract::public_safety;
use crate::contract::time::Timestamp;
use crate::port::source::{SourceAdapter, SourceReading, SourceScope};
use crate::workspace::input;

const IDENTITY: (&str, &str) = ("project_progress", "validated_project_progress");

/// One facts file.
pub(crate) struct FactsFile {
    path: PathBuf,
    read: Option<Option<Vec<u8>>>,
}

impl FactsFile {
    /// Names a facts file; `-` is standard input.
    pub(crate) fn at(path: PathBuf) -> Self {
        Self { path, read: None }
    }

    fn bytes(&mut self) -> Option<&[u8]> {
        let path = &self.path;
        let read = self.read.get_or_insert_with(|| read_bounded(path));
        read.as_deref()
    }

    fn result(&mut self, language: &str) -> Option<SourceResult> {
        let value = json::parse(self.bytes()?).ok()?;
        public_safety::guard(&value).ok()?;
        read_progress(&Label::named("facts"), &value, Some(language)).ok()
    }
}

fn read_bounded(path: &std::path::Path) -> Option<Vec<u8>> {
    let mut bytes = Vec::new();
    let read = match path == std::path::Path::new("-") {
        true => std::io::stdin()
            .lock()
            .take(json::MAX_INPUT_BYTES + 1)
            .read_to_end(&mut bytes),
        false => {
            bytes = input::read_bounded(path, json::MAX_INPUT_BYTES + 1).ok()?;
            Ok(0)
        }
    };
    read.ok()
        .filter(|_| bytes.len() as u64 <= json::MAX_INPUT_BYTES)
        .map(|_| bytes)
}

impl SourceAdapter for FactsFile {
    fn newest_fact(&mut self, not_after: Timestamp) -> Option<Timestamp> {
        let result = self.result("en")?;
        let items = result.sections.iter().flat_map(|section| &section.items);
        items
            .filter_map(|item| item.occurred_at)
            .filter(|instant| *instant <= not_after)
            .max()
    }

    fn snapshot(&mut self, scope: &SourceScope) -> Result<SourceReading, ContractError> {
        match self.result(&scope.language) {
            None => SourceReading::failed(IDENTITY, scope, "facts_invalid"),
            Some(result) => Ok(SourceReading {
                result,
                omitted: 0,
                withheld: 0,
                reason: None,
            }),
        }
    }
}
