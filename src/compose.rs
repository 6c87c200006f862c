//! The door: builds the ports; the only file that names concrete providers, sources and hosts.

use std::path::Path;

use crate::contract::error::ErrorCode;
use crate::contract::packet::Refusal;
use crate::flow::Ports;
use crate::host::exec::StructuredHost;
use crate::port::clock::{Clock, SystemClock};
use crate::port::ids::SystemIds;
use crate::port::source::{SourceAdapter, SourceOpener, SourceRequest};
use crate::port::tools::{Found, Tool, Tools};
use crate::provider::lark;
use crate::source::facts_file::FactsFile;
use crate::source::git_history;
use crate::source::git_history::GitHistory;
use crate::source::project_progress::ProjectProgress;
use crate::workspace::{Workspace, env};

/// Builds the ports of one command.
pub(crate) fn ports(
    registry: Option<&Path>,
    runtime_root: Option<&Path>,
    operation: &str,
) -> Result<Ports, Refusal> {
    let text = "the current folder cannot be read; change to one that can";
    let workspace = Workspace::locate(registry, runtime_root)
        .map_err(|_| Refusal::new(ErrorCode::InputUnreadable, text))?;
    Ok(Ports {
        workspace,
        now: SystemClock::new(env::test_hook(env::TEST_NOW).as_deref()).now(),
        ids: Box::new(SystemIds),
        host: Box::new(StructuredHost),
        operation: operation.to_owned(),
    })
}

/// Looks for the programs that adapters call.
pub(crate) fn programs() -> impl Tools {
    Programs
}

struct Programs;

impl Tools for Programs {
    fn find(&self, tool: Tool) -> Found {
        match tool {
            Tool::Git => git_history::find_program(),
            Tool::Channel => lark::find_program(),
        }
    }
}

/// Opens the built-in sources.
pub(crate) struct BuiltinSources;

impl SourceOpener for BuiltinSources {
    fn open(&self, request: SourceRequest) -> Box<dyn SourceAdapter> {
        match request {
            SourceRequest::GitHistory(folder) => Box::new(GitHistory::at(folder)),
            SourceRequest::FactsFile(path) => Box::new(FactsFile::at(path)),
            SourceRequest::ProjectProgress(reading) => Box::new(ProjectProgress::new(reading)),
        }
    }
}
