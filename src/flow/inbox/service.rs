//! `lark-inbox collector-plan` and `collector-install`: the service that keeps a collector running.
//!
//! plan: 1. configuration  2. who collects the profile already  3. the program  4. the exact service text and its digest
//! install: the plan, then  5. preview returns here  6. the program is new enough and can consume  7. service file  8. recorded  9. started

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::contract::digest;
use crate::contract::extension::{Activation, Permission};
use crate::contract::inbox::fault::InboxFault;
use crate::contract::inbox::service_packet::{InstallStatus, Plan, PlanStatus};
use crate::contract::inbox::words::{PROGRAM_FLAG, RUN_WORDS};
use crate::failpoint;
use crate::failpoint::Point;
use crate::flow::Mode;
use crate::flow::inbox::ack::claim;
use crate::flow::inbox::context::{BoundCollector, ContextArgs, Desk, Located};
use crate::flow::inbox::error::{InboxError, dependency};
use crate::flow::inbox::ports::Providers;
use crate::kernel::inbox::service::{ServiceSpec, render};
use crate::port::channel::ProgramChoice;
use crate::port::supervisor::ServiceSupervisor;
use crate::port::tools::TooOld;
use crate::store::StoreError;
use crate::store::document::collector_service::{CollectorServices, service_path, write_service};
use crate::store::document::collector_state::CollectorState;
use crate::workspace::{entrypoint, env};

/// Runs `collector-plan`.
pub fn plan(
    desk: &Desk<'_>,
    providers: &dyn Providers,
    args: &ContextArgs,
) -> Result<(Value, Activation), InboxError> {
    let (located, activation, collector) =
        desk.open_collector(args, &[Permission::CollectorManage])?;
    let planned = Planned::make(desk, providers, (&located, &collector))?;
    Ok((planned.plan(&collector).packet(), activation))
}

/// Runs `collector-install`.
pub fn install(
    desk: &Desk<'_>,
    (providers, supervisor): (&dyn Providers, &dyn ServiceSupervisor),
    args: &ContextArgs,
    mode: Mode,
) -> Result<(Value, Activation), InboxError> {
    let (located, activation, collector) =
        desk.open_collector(args, &[Permission::CollectorManage])?;
    if !collector.config.enabled {
        return Err(InboxFault::InstallDisabled.into());
    }
    let planned = Planned::make(desk, providers, (&located, &collector))?;
    let plan = planned.plan(&collector);
    let (done, old) = match (planned.status, mode) {
        (PlanStatus::InstallReady, Mode::Preview) => (Some(InstallStatus::PreviewReady), None),
        (PlanStatus::InstallReady, Mode::Execute) => {
            let (done, old) =
                planned.execute(desk, providers, (supervisor, &located, &collector))?;
            (Some(done), old)
        }
        _ => (None, None),
    };
    let mut packet = plan.install_packet(mode.is_execute(), done);
    if let Some(old) = old {
        packet["error"] = json!(old.to_string());
        packet["dependency"] = dependency(&old);
    }
    Ok((packet, activation))
}

struct Planned {
    status: PlanStatus,
    program: Option<ProgramChoice>,
    text: String,
}

impl Planned {
    fn make(
        desk: &Desk<'_>,
        providers: &dyn Providers,
        (located, collector): (&Located, &BoundCollector),
    ) -> Result<Self, InboxError> {
        let program = providers.locate(&collector.config.program);
        let status = status(desk, collector, program.is_some())?;
        Ok(Self {
            text: service_text(desk, located, collector, program.as_ref()),
            status,
            program,
        })
    }

    fn plan<'a>(&self, collector: &'a BoundCollector) -> Plan<'a> {
        Plan {
            status: self.status,
            config: &collector.config,
            profile_source: collector.profile.as_ref().map(|bound| json!(bound.source)),
            disabled_routes: collector.disabled_keys().len(),
            enabled_routes: collector.enabled().count(),
            program_available: self.program.is_some(),
            service_digest: digest::content_digest(self.text.as_bytes()).short(16),
        }
    }

    fn execute(
        &self,
        desk: &Desk<'_>,
        providers: &dyn Providers,
        (supervisor, located, collector): (&dyn ServiceSupervisor, &Located, &BoundCollector),
    ) -> Result<(InstallStatus, Option<TooOld>), InboxError> {
        let bound = collector
            .profile
            .as_ref()
            .ok_or(InboxFault::CollectorRule("a profile is required"))?;
        match providers.is_compatible(&collector.config.program, &bound.profile) {
            Ok(true) => {}
            Ok(false) => return Ok((InstallStatus::DependencyIncompatible, None)),
            Err(old) => return Ok((InstallStatus::DependencyIncompatible, Some(old))),
        }
        let config = &collector.config;
        let services = CollectorServices::of_runtime(&desk.place.runtime_root);
        let now = desk.now.to_string();
        let held = services.lock(&claim("collector-install", &now))?;
        if services.is_taken(&bound.profile, &config.service_name)? {
            return Err(InboxFault::ProfileCollected.into());
        }
        CollectorState::of_project(&located.project)
            .prepare()
            .map_err(StoreError::write)?;
        let path = installed_path(collector);
        write_service(&path, &self.text).map_err(StoreError::write)?;
        failpoint!(Point::CollectorServiceWritten);
        services.record(&held, &bound.profile, &config.service_name)?;
        let status = match supervisor.start(config.supervisor, &config.service_name, &path) {
            true => InstallStatus::Installed,
            false => InstallStatus::SupervisorStartFailed,
        };
        Ok((status, None))
    }
}

/// Returns where the service of a collector is installed.
pub(super) fn installed_path(collector: &BoundCollector) -> PathBuf {
    let home = env::path(env::HOME).unwrap_or_else(|| PathBuf::from("/"));
    service_path(
        &home,
        collector.config.supervisor,
        &collector.config.service_name,
    )
}

fn status(
    desk: &Desk<'_>,
    collector: &BoundCollector,
    has_program: bool,
) -> Result<PlanStatus, InboxError> {
    if collector.enabled().next().is_none() {
        return Ok(PlanStatus::NoEnabledRoute);
    }
    if collector.config.operation_callbacks && !desk.place.is_runtime_pinned {
        return Ok(PlanStatus::PinnedRuntimeRequired);
    }
    let services = CollectorServices::of_runtime(&desk.place.runtime_root);
    if let Some(bound) = &collector.profile
        && services.is_taken(&bound.profile, &collector.config.service_name)?
    {
        return Ok(PlanStatus::ProfileAlreadyCollected);
    }
    Ok(if has_program {
        PlanStatus::InstallReady
    } else {
        PlanStatus::DependencyMissing
    })
}

fn service_text(
    desk: &Desk<'_>,
    located: &Located,
    collector: &BoundCollector,
    program: Option<&ProgramChoice>,
) -> String {
    let text = |path: &Path| path.to_string_lossy().into_owned();
    let mut argv = vec![entrypoint::path().map_or_else(|| "loopx".to_owned(), |path| text(&path))];
    if desk.place.is_runtime_pinned {
        let root = std::path::absolute(&desk.place.runtime_root)
            .unwrap_or_else(|_| desk.place.runtime_root.clone());
        argv.extend(["--runtime-root".to_owned(), text(&root)]);
    }
    argv.extend(RUN_WORDS.map(str::to_owned));
    argv.extend([
        "--project".to_owned(),
        text(&located.project),
        "--config".to_owned(),
        text(&located.config),
    ]);
    let executable = program
        .and_then(|choice| choice.executable.clone())
        .unwrap_or_else(|| collector.config.program.clone());
    argv.extend([PROGRAM_FLAG.to_owned(), executable]);
    if let Some(interpreter) = program.and_then(|choice| choice.interpreter.clone()) {
        argv.extend(["--node-executable".to_owned(), interpreter]);
    }
    let state = CollectorState::of_project(&located.project);
    let (stdout, stderr) = (text(&state.log("stdout")), text(&state.log("stderr")));
    let spec = ServiceSpec {
        name: &collector.config.service_name,
        argv,
        project: &text(&located.project),
        stdout: &stdout,
        stderr: &stderr,
    };
    render(collector.config.supervisor, &spec)
}
