//! The door: builds the ports; the only file that names concrete providers, sources and hosts.

use std::path::Path;

use crate::contract::error::ErrorCode;
use crate::contract::packet::Refusal;
use crate::flow::Ports;
use crate::flow::inbox::ports::Providers;
use crate::host::exec::StructuredHost;
use crate::port::channel::{ChannelProvider, ProgramChoice};
use crate::port::clock::{Clock, SystemClock};
use crate::port::ids::SystemIds;
use crate::provider::lark::Lark;
use crate::source::git_placement::GitPlacement;
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
        ids: Box::new(SystemIds),
        host: Box::new(StructuredHost),
        operation: operation.to_owned(),
    })
}

/// The version control around configuration files.
pub(crate) const PLACEMENT: GitPlacement = GitPlacement;

/// The clock of a command.
pub(crate) fn clock() -> SystemClock {
    SystemClock::new(env::test_hook(env::TEST_NOW).as_deref())
}

/// The providers of inbox commands.
#[derive(Clone, Debug, Default)]
pub(crate) struct InboxProviders {
    /// What the command line says about the program; it wins over the configuration.
    pub(crate) choice: ProgramChoice,
}

impl Providers for InboxProviders {
    fn channel(&self, program: Option<String>) -> Box<dyn ChannelProvider> {
        let mut choice = self.choice.clone();
        choice.executable = choice.executable.or(program);
        Box::new(Lark::new(choice))
    }
}
