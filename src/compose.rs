//! The door: builds the ports; the only file that names concrete providers, sources and hosts.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use crate::contract::channel::ids::ProfileName;
use crate::contract::error::ErrorCode;
use crate::contract::extension::CHAT_EXTENSION;
use crate::contract::extension_scopes::ScopeAdvice;
use crate::contract::inbox::comment::CommentConfig;
use crate::contract::packet::Refusal;
use crate::contract::time::Timestamp;
use crate::flow::Ports;
use crate::flow::inbox::ports::{Channels, Chat, Providers};
pub(crate) use crate::host::codex_cli::CodexCli;
use crate::host::exec::StructuredHost;
use crate::host::supervisor::UserSupervisor;
use crate::port::channel::ProgramChoice;
use crate::port::clock::{Clock, SystemClock};
use crate::port::comments::CommentSource;
use crate::port::events::EventStreams;
use crate::port::ids::SystemIds;
use crate::port::source::{SourceAdapter, SourceOpener, SourceRequest};
use crate::port::tools::{Found, ProgramAge, TooOld, Tool, Tools};
use crate::process;
use crate::provider::lark::{self, Lark, LarkComments, LarkStreams};
use crate::source::facts_file::FactsFile;
use crate::source::git_history;
use crate::source::git_history::GitHistory;
use crate::source::git_history::GitPlacement;
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
        now: clock().now(),
        clock: Rc::new(clock()),
        ids: Rc::new(SystemIds),
        host: Rc::new(StructuredHost),
        inbox: Rc::new(providers(None, None)),
        placement: Rc::new(PLACEMENT),
        operation: operation.to_owned(),
    })
}

/// What the provider behind an extension recommends to ask for.
pub(crate) fn scope_advice(extension: &str) -> ScopeAdvice {
    match extension {
        CHAT_EXTENSION => lark::recommended_scopes(),
        _ => ScopeAdvice::default(),
    }
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

/// The version control around configuration files.
pub(crate) const PLACEMENT: GitPlacement = GitPlacement;

/// What keeps services running on this machine.
pub(crate) const SUPERVISOR: UserSupervisor = UserSupervisor;

/// Waits while somebody reads what is printed; false when nobody does any more.
pub(crate) fn wait_while_read(pause: std::time::Duration) -> bool {
    process::wait_while_read(pause)
}

/// The clock of a command.
pub(crate) fn clock() -> SystemClock {
    SystemClock::new(env::test_now)
}

/// The instant of a command.
pub(crate) fn now() -> Timestamp {
    clock().now()
}

/// The providers of inbox commands, with what the command line says about the program.
pub(crate) const fn providers(
    executable: Option<String>,
    interpreter: Option<String>,
) -> InboxProviders {
    InboxProviders {
        choice: ProgramChoice {
            executable,
            interpreter,
        },
    }
}

/// The providers of inbox commands.
#[derive(Clone, Debug, Default)]
pub(crate) struct InboxProviders {
    /// What the command line says about the program; it wins over the configuration.
    choice: ProgramChoice,
}

impl InboxProviders {
    fn choose(&self, program: Option<String>) -> ProgramChoice {
        let mut choice = self.choice.clone();
        choice.executable = choice.executable.or(program);
        choice
    }
}

impl Channels for InboxProviders {
    fn open(&self, program: Option<String>) -> Chat {
        let lark = Lark::new(self.choose(program));
        Chat {
            channel: Box::new(lark.clone()),
            reader: Box::new(lark.clone()),
            age: Box::new(lark),
        }
    }
}

impl Providers for InboxProviders {
    fn streams(
        &self,
        program: Option<String>,
        profile: ProfileName,
        cwd: PathBuf,
    ) -> Box<dyn EventStreams> {
        let streams = LarkStreams::new(&self.choose(program), profile, cwd);
        streams.catch_stop();
        Box::new(streams)
    }

    fn comments(&self, config: &CommentConfig) -> Box<dyn CommentSource> {
        Box::new(LarkComments::new(&self.choice, config.clone()))
    }

    fn probe(
        &self,
        program: Option<String>,
        profile: ProfileName,
        cwd: PathBuf,
    ) -> Result<bool, TooOld> {
        let streams = LarkStreams::new(&self.choose(program), profile, cwd);
        match streams.probe_bus() {
            true => Ok(true),
            false => streams.outdated().map_or(Ok(false), Err),
        }
    }

    fn locate(&self, program: &str) -> Option<ProgramChoice> {
        lark::located(program)
    }

    fn is_compatible(&self, program: &str, profile: &ProfileName) -> Result<bool, TooOld> {
        lark::is_compatible(program, profile)
    }
}
