//! `loopx lark-inbox collector-…` and `document-comment-…`: one arm a command.

use super::args::lark_inbox::{CollectorRunArgs, LarkInboxCommand as Command};
use super::lark_inbox::{Answer, packet};
use crate::compose::{self, InboxProviders};
use crate::contract::inbox::fault::InboxFault;
use crate::flow::inbox::collector_run::{self, RunRequest};
use crate::flow::inbox::context::{ContextArgs, Desk};
use crate::port::channel::ProgramChoice;

/// Runs one command of the collector or the document connector.
pub(super) fn answer(desk: &Desk<'_>, command: &Command) -> Answer {
    match command {
        Command::CollectorRun(args) => run(desk, args),
        _ => Err(InboxFault::NotConfigured.into()),
    }
}

fn run(desk: &Desk<'_>, args: &CollectorRunArgs) -> Answer {
    let providers = InboxProviders {
        choice: ProgramChoice {
            executable: Some(args.lark_cli_executable.clone()),
            interpreter: args.node_executable.clone(),
        },
    };
    let context = ContextArgs {
        project: Some(args.project.clone()),
        config: Some(args.config.clone()),
        ..ContextArgs::default()
    };
    let request = RunRequest {
        context: &context,
        continuous: args.continuous,
        clock: &compose::clock(),
    };
    packet(collector_run::run(desk, &providers, &request)?)
}
