//! `lark-inbox collector-run`: reads the live streams into the inboxes and never calls a dead source healthy.
//!
//! 1. configuration, right to run  2. the run lock, before anything is written  3. holes since the last sign of life  4. status  5. consumers
//!    that an earlier run left are ended  6. loop: start what is due, take one signal, keep the status true; a program too old to consume ends the run  7. every consumer ended and
//!    drained  8. the bus ended, since without a consumer it drops what arrives  9. result
//!
//! What arrives is stored by a worker of its own (`backlog`), so nothing the streams say waits for a lookup. Pauses and limits go by monotonic time; the clock is only written (`docs/spec/lark-inbox.md` 8).

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::contract::channel::ids::{ChatId, ProfileName};
use crate::contract::extension::{Activation, Permission};
use crate::contract::inbox::fault::InboxFault;
use crate::contract::inbox::listener::ListenerStatus;
use crate::contract::inbox::run_packet::{CallbackCounts, SeenStatus, SourceHealth};
use crate::contract::inbox::stream::{EventKey, StreamCode, StreamStatus};
use crate::contract::time::Timestamp;
use crate::flow::inbox::ack::claim;
use crate::flow::inbox::backlog::Backlog;
use crate::flow::inbox::capture::Capture;
use crate::flow::inbox::connection::Connections;
use crate::flow::inbox::context::{BoundCollector, ContextArgs, Desk, Located};
use crate::flow::inbox::damage::Damage;
use crate::flow::inbox::error::InboxError;
use crate::flow::inbox::hole::Holes;
use crate::flow::inbox::lane::Lane;
use crate::flow::inbox::ports::Providers;
use crate::kernel::inbox::collector_log::Seen;
use crate::port::channel::ChannelProvider;
use crate::port::clock::Clock;
use crate::port::events::EventStreams;
use crate::store::document::collector_state::CollectorState;

/// What is asked for.
pub struct RunRequest<'a> {
    pub context: &'a ContextArgs,
    pub continuous: bool,
    pub clock: &'a dyn Clock,
}

/// Runs the command.
pub fn run(
    desk: &Desk<'_>,
    providers: &dyn Providers,
    request: &RunRequest<'_>,
) -> Result<(Value, Activation), InboxError> {
    let (located, activation, collector) =
        desk.open_collector(request.context, &[Permission::CollectorManage])?;
    let profile = check(desk, &collector)?;
    let state = CollectorState::of_project(&located.project);
    let now = desk.now.to_string();
    let _held = state.lock_run(&claim("collector-run", &now))?;
    let program = Some(collector.config.program.clone());
    let chat = providers.open(program.clone());
    // The file is a report: one that cannot be read stops nobody, and the newest stored event is the sign of life then.
    let seen = state.read_status().unwrap_or_default();
    let damage = Damage::default();
    let holes = Holes::new(&collector, &damage)?;
    holes.open_since(seen.as_ref(), desk.now)?;
    if holes.is_all_damaged() {
        return Err(first_damage(&collector));
    }
    let cwd = state
        .working_folder()
        .map_err(crate::store::StoreError::write)?;
    let mut streams = providers.streams(program, profile.clone(), cwd);
    let backlog = Backlog::default();
    let connections = Connections {
        project: located.project.clone(),
        runtime_root: desk.place.runtime_root.clone(),
    };
    let capture = Capture::new(
        (&collector, &damage),
        connections,
        chat.channel.as_ref(),
        profile,
    )?;
    let mut run = Run::new(Parts {
        collector: &collector,
        located: &located,
        request,
        state: &state,
        holes,
        damage: &damage,
        streams: streams.as_mut(),
        backlog: &backlog,
        seen: seen.as_ref(),
    });
    run.write_status(true)?;
    run.end_left(seen.as_ref());
    let (ended, capture) = run.beside_worker(capture, chat.channel.as_ref());
    ended?;
    Ok((run.result(&capture).packet(), activation))
}

/// Lets the worker end whatever happens, also out of a lookup that hangs: a scope waits for it.
struct Closing<'a>(&'a Backlog, &'a dyn ChannelProvider);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close(true);
        self.1.abandon();
    }
}

/// A start heals nothing: what was lost is lost until an event arrives.
fn health_at_start(seen: Option<&SeenStatus>) -> SourceHealth {
    let lost = seen.filter(|seen| seen.source_healthy == Some(false));
    SourceHealth {
        ready: false,
        healthy: lost.is_none(),
        status: StreamStatus::Starting,
        code: lost.and_then(|seen| StreamCode::named(seen.error_code.as_deref()?)),
        losses: 0,
        reconnects: 0,
    }
}

/// No route can be used: the run ends as any command on such an inbox does.
fn first_damage(collector: &BoundCollector) -> InboxError {
    let broken = collector
        .enabled()
        .find_map(|route| route.store().ok()?.check().err());
    broken.map_or(InboxFault::NoEnabledRoute.into(), InboxError::from)
}

fn check(desk: &Desk<'_>, collector: &BoundCollector) -> Result<ProfileName, InboxError> {
    if !collector.config.enabled {
        return Err(InboxFault::CollectorDisabled.into());
    }
    if collector.enabled().next().is_none() {
        return Err(InboxFault::NoEnabledRoute.into());
    }
    if collector.config.operation_callbacks && !desk.place.is_runtime_pinned {
        return Err(InboxFault::RuntimeNotPinned.into());
    }
    let profile = collector
        .profile
        .as_ref()
        .ok_or(InboxFault::CollectorRule("a profile is required"))?;
    Ok(profile.profile.clone())
}

fn chats(collector: &BoundCollector) -> Vec<ChatId> {
    let routes = collector.enabled();
    routes
        .filter_map(|route| route.route.as_ref().map(|route| route.chat.clone()))
        .collect()
}

fn lanes(collector: &BoundCollector) -> Vec<Lane> {
    let mut lanes = vec![Lane::new(EventKey::Message)];
    if collector.config.operation_callbacks {
        lanes.push(Lane::new(EventKey::Callback));
    }
    lanes
}

pub(super) struct Run<'a> {
    pub(super) collector: &'a BoundCollector,
    pub(super) located: &'a Located,
    pub(super) request: &'a RunRequest<'a>,
    pub(super) state: &'a CollectorState,
    pub(super) holes: Holes<'a>,
    pub(super) damage: &'a Damage,
    pub(super) logged: Option<Seen>,
    pub(super) streams: &'a mut dyn EventStreams,
    pub(super) chats: Vec<ChatId>,
    pub(super) backlog: &'a Backlog,
    pub(super) lanes: Vec<Lane>,
    pub(super) health: SourceHealth,
    pub(super) outage_until: Option<Duration>,
    /// All consumers are being ended because the source stayed lost.
    pub(super) restart_pending: bool,
    pub(super) stopping: bool,
    pub(super) budget_spent: bool,
    pub(super) last_event_at: Option<Timestamp>,
    pub(super) last_loss_at: Option<Timestamp>,
    /// The same by monotonic time: an event that came before heals nothing.
    pub(super) lost_at: Option<Duration>,
    /// Since then no consumer of messages is there that we did not ask to end.
    pub(super) manned_until: Option<Timestamp>,
    pub(super) written: Option<Duration>,
    pub(super) callbacks: CallbackCounts,
    pub(super) listener: ListenerStatus,
}

/// What a run is made of.
struct Parts<'a> {
    collector: &'a BoundCollector,
    located: &'a Located,
    request: &'a RunRequest<'a>,
    state: &'a CollectorState,
    holes: Holes<'a>,
    damage: &'a Damage,
    streams: &'a mut dyn EventStreams,
    backlog: &'a Backlog,
    seen: Option<&'a SeenStatus>,
}

impl<'a> Run<'a> {
    fn new(parts: Parts<'a>) -> Self {
        let listener = parts.state.read_listener().unwrap_or_default();
        Self {
            collector: parts.collector,
            located: parts.located,
            request: parts.request,
            state: parts.state,
            holes: parts.holes,
            damage: parts.damage,
            logged: None,
            streams: parts.streams,
            chats: chats(parts.collector),
            backlog: parts.backlog,
            lanes: lanes(parts.collector),
            health: health_at_start(parts.seen),
            outage_until: None,
            restart_pending: false,
            stopping: false,
            budget_spent: false,
            last_event_at: None,
            last_loss_at: None,
            lost_at: None,
            manned_until: None,
            written: None,
            callbacks: CallbackCounts::default(),
            listener: ListenerStatus::resumed(listener.as_ref()),
        }
    }
}

impl Run<'_> {
    /// Works to the end while a worker stores what arrives, and gives back what the worker counted.
    fn beside_worker<'c>(
        &mut self,
        capture: Capture<'c>,
        channel: &dyn ChannelProvider,
    ) -> (Result<(), InboxError>, Capture<'c>) {
        let backlog = self.backlog;
        let (ended, capture) = std::thread::scope(|scope| {
            let closing = Closing(backlog, channel);
            let worker = scope.spawn(|| backlog.work(capture));
            let ended = self.work().and_then(|()| self.drain());
            self.close();
            drop(closing);
            (ended, worker.join())
        });
        let capture = capture.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (ended, capture)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.request.clock.now()
    }

    pub(super) fn is_configured(&self) -> bool {
        Path::new(&self.located.config).exists()
    }

    /// Consumers of earlier runs are ended, if the bus itself names them; no other process is touched.
    fn end_left(&self, seen: Option<&SeenStatus>) {
        let left = seen
            .map(|seen| seen.consumer_pids.as_slice())
            .unwrap_or_default();
        if left.is_empty() {
            return;
        }
        let registered = self.streams.registered().unwrap_or_default();
        for (_, pid) in left.iter().filter(|consumer| registered.contains(consumer)) {
            self.streams.end_left(*pid);
        }
    }
}
