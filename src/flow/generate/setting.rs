//! Profile, instant, zone and window: decided before any source is read.

use super::command::GenerateCommand;
use crate::contract::error::ErrorCode;
use crate::contract::packet::Refusal;
use crate::contract::periodic_report::artifact::RendererAdapter;
use crate::contract::periodic_report::profile::Profile;
use crate::contract::periodic_report::vocabulary::TriggerKind;
use crate::contract::time::{Timestamp, Window};
use crate::flow::Ports;
use crate::kernel::periodic_report::window::{WindowFault, WindowRequest};
use crate::kernel::zone::Zone;
use crate::workspace::{env, zone as system_zone};

/// What holds for the whole generation.
pub(super) struct Setting {
    pub renderers: Vec<RendererAdapter>,
    pub generated_at: Timestamp,
    pub zone: Zone,
    pub asked: WindowRequest,
}

impl Setting {
    /// Decides what can be decided without reading a source.
    pub(super) fn decide(ports: &Ports, command: &GenerateCommand) -> Result<Self, Refusal> {
        require_allowed(&command.profile)?;
        let renderers = renderers(&command.profile)?;
        if command
            .print
            .is_some_and(|wanted| !renderers.contains(&wanted))
        {
            return Err(Refusal::new(
                ErrorCode::ReportArtifactNotRendered,
                "the profile does not render the artifact to print; name another one or add its renderer",
            ));
        }
        Ok(Self {
            renderers,
            generated_at: generated_at(ports)?,
            zone: zone(command)?,
            asked: WindowRequest::parse(&command.window).map_err(|fault| bad_window(&fault))?,
        })
    }

    /// Resolves the window; `newest` is asked only for the window that needs it.
    pub(super) fn window(
        &self,
        newest: impl FnOnce() -> Option<Timestamp>,
    ) -> Result<Window, Refusal> {
        let newest = match self.asked {
            WindowRequest::Latest => newest(),
            _ => None,
        };
        self.asked
            .resolve(&self.zone, self.generated_at, newest)
            .map_err(|fault| bad_window(&fault))
    }
}

fn require_allowed(profile: &Profile) -> Result<(), Refusal> {
    let refused = |message: &str| Err(Refusal::new(ErrorCode::ReportGenerationNotAllowed, message));
    if !profile.enabled {
        return refused(
            "the profile is not enabled; set enabled to true in it or use --preset weekly",
        );
    }
    if !profile.trigger_policy.enables(TriggerKind::Manual) {
        return refused(
            "the profile does not enable manual reports; add manual to its enabled_kinds",
        );
    }
    Ok(())
}

fn renderers(profile: &Profile) -> Result<Vec<RendererAdapter>, Refusal> {
    let mut adapters = Vec::new();
    for (index, binding) in profile.renderer_bindings.iter().enumerate() {
        let adapter = RendererAdapter::find(binding.adapter_id.as_str()).ok_or_else(|| {
            let message = format!(
                "renderer_bindings[{index}].adapter_id must be markdown_v0 or html_artifact_v0"
            );
            Refusal::new(ErrorCode::InputInvalid, message)
        })?;
        if !adapters.contains(&adapter) {
            adapters.push(adapter);
        }
    }
    Ok(adapters)
}

fn generated_at(ports: &Ports) -> Result<Timestamp, Refusal> {
    let Some(value) = env::value(env::SOURCE_DATE_EPOCH) else {
        return Ok(ports.now);
    };
    let seconds = value.to_str().and_then(|text| text.parse::<i64>().ok());
    seconds.and_then(Timestamp::from_unix).ok_or_else(|| {
        let message = "SOURCE_DATE_EPOCH must be whole seconds since 1970; unset it or correct it";
        Refusal::new(ErrorCode::ReportWindowInvalid, message)
    })
}

/// The flag, else the profile's schedule, else the environment, else the system, else UTC.
fn zone(command: &GenerateCommand) -> Result<Zone, Refusal> {
    let schedule = command.profile.schedule.as_ref();
    let variable = env::value(env::TIME_ZONE).map(|value| value.to_string_lossy().into_owned());
    let variable = variable.as_deref().and_then(system_zone::of_variable);
    let named = command
        .timezone
        .clone()
        .map(|name| (name, "--timezone"))
        .or_else(|| schedule.map(|schedule| (schedule.timezone.clone(), "the profile's schedule")))
        .or_else(|| variable.map(|name| (name.to_owned(), "the variable TZ")))
        .or_else(|| system_zone::system_name().map(|name| (name, "the system")));
    let Some((name, origin)) = named else {
        return Ok(Zone::utc());
    };
    Zone::named(&name).ok_or_else(|| {
        let message = format!(
            "the time zone named by {origin} is not known; name one such as Europe/Paris with --timezone"
        );
        Refusal::new(ErrorCode::ReportTimezoneUnknown, message)
    })
}

fn bad_window(fault: &WindowFault) -> Refusal {
    Refusal::new(
        ErrorCode::ReportWindowInvalid,
        format!("the window {fault}"),
    )
}
