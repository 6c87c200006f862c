//! The order of things, from the profile to the packet.

use super::answer::{Made, answer};
use super::command::{GenerateCommand, GenerateMode};
use super::compose::{Heading, compose};
use super::publish::{Target, publish};
use super::setting::Setting;
use super::sources::Sources;
use crate::contract::packet::Refusal;
use crate::contract::periodic_report::artifact::RendererAdapter;
use crate::contract::periodic_report::generate::GenerateResult;
use crate::flow::Ports;
use crate::port::source::SourceOpener;

/// A finished generation.
pub struct Generated {
    /// The packet.
    pub result: GenerateResult,
    /// The text of the artifact to print.
    pub printed: Option<String>,
}

/// Generates one report.
pub fn run(
    ports: &Ports,
    opener: &dyn SourceOpener,
    command: &GenerateCommand,
) -> Result<Generated, Refusal> {
    let setting = Setting::decide(ports, command)?;
    let mut sources = Sources::open(ports, opener, command)?;
    let window = setting.window(|| sources.newest(setting.generated_at))?;
    let readings = sources.read(command, &setting, window)?;
    let folder = ports
        .workspace
        .project()
        .file_name()
        .and_then(|name| name.to_str());
    let heading = Heading {
        window,
        goal_title: sources.goal_title(),
        folder_name: folder,
    };
    let composed = compose(command, &setting, &heading, &readings)?;
    let target = Target {
        out: command.out.as_deref(),
        setting: &setting,
        window,
    };
    let place = match command.mode {
        GenerateMode::Preview => None,
        GenerateMode::Publish => Some(publish(ports.workspace.project(), &target, &composed)?),
    };
    let made = Made {
        command,
        setting: &setting,
        window,
        readings: &readings,
        composed: &composed,
        has_goal: sources.has_goal(),
        choice_of_goals: sources.choice_of_goals(),
    };
    let result = answer(&made, place);
    let printed = command
        .print
        .map(|wanted| printed(&composed.artifacts, wanted));
    Ok(Generated { result, printed })
}

fn printed(
    artifacts: &[(
        RendererAdapter,
        crate::contract::periodic_report::artifact::Artifact,
    )],
    wanted: RendererAdapter,
) -> String {
    let found = artifacts.iter().find(|(adapter, _)| *adapter == wanted);
    found
        .map(|(_, artifact)| artifact.content.clone())
        .unwrap_or_default()
}
