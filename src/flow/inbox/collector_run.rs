//! `lark-inbox collector-run`: reads the live streams into the inboxes and never calls a dead source healthy.
//!
//! 1. configuration, right to run  2. the run lock, before anything is written  3. holes since the last sign of life  4. status  5. consumers
//!    that an earlier run left are ended  6. loop: start what is due, take one signal, keep the status true  7. every consumer ended and
//!    drained  8. the bus ended, since without a consumer it drops what arrives  9. result
//!
//! What arrives is stored by a worker of its own (`backlog`), so nothing the streams say waits for a lookup. Pauses and limits go by monotonic time; the clock is only written (`docs/spec/lark-inbox.md` 8).

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use crate::contract::channel::ids::{ChatId, ProfileName};
use crate::contract::extension::{Activation, Permission};
use crate::contract::inbox::fault::InboxFault;
use crate::contract::inbox::run_packet::{
    CallbackCounts, RunResult, SeenStatus, SourceHealth, SourceStatus,
};
use crate::contract::inbox::stream::{EventKey, StreamCode, StreamStatus};
use crate::contract::time::Timestamp;
use crate::flow::inbox::ack::claim;
use crate::flow::inbox::backlog::Backlog;
use crate::flow::inbox::capture::Capture;
use crate::flow::inbox::context::{BoundCollector, ContextArgs, Desk, Located};
use crate::flow::inbox::damage::Damage;
use crate::flow::inbox::error::InboxError;
use crate::flow::inbox::hole::Holes;
use crate::flow::inbox::lane::{Lane, Member};
use crate::flow::inbox::ports::Providers;
use crate::port::clock::Clock;
use crate::port::events::{ConsumerId, ConsumerSpec, EventStreams, StreamSignal};
use crate::store::document::collector_state::CollectorState;

/// How often the status is written without a change.
const HEARTBEAT: Duration = Duration::from_secs(30);
/// How long an asked consumer may take to end.
const GRACE: Duration = Duration::from_secs(10);
/// How long a consumer may outlive its own time.
const OVERTIME: Duration = Duration::from_secs(15);
/// How long a consumer may take to be ready.
const READY_LIMIT: Duration = Duration::from_secs(60);
/// How often a working backlog is looked at.
const BACKLOG_PACE: Duration = Duration::from_millis(200);
/// The same, when nothing else is left to do.
const DRAIN_PACE: Duration = Duration::from_millis(20);
/// How long a stopped run goes on storing what had arrived; the rest is a known hole.
const DRAIN_GRACE: Duration = Duration::from_secs(5);

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
    let program = Some(collector.config.program.clone());
    let mut streams = providers.streams(program.clone(), profile.clone(), cwd);
    let channel = providers.channel(program);
    let backlog = Backlog::default();
    let capture = Capture::new((&collector, &damage), channel.as_ref(), profile)?;
    let mut run = Run {
        collector: &collector,
        located: &located,
        request,
        state: &state,
        holes,
        damage: &damage,
        streams: streams.as_mut(),
        chats: chats(&collector),
        backlog: &backlog,
        lanes: lanes(&collector),
        health: health_at_start(seen.as_ref()),
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
    };
    run.write_status(true)?;
    run.end_left(seen.as_ref());
    let (ended, capture) = run.beside_worker(capture);
    ended?;
    Ok((run.result(&capture).packet(), activation))
}

/// Lets the worker end whatever happens: a scope waits for it.
struct Closing<'a>(&'a Backlog);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close(true);
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
    damage: &'a Damage,
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
}

impl Run<'_> {
    /// Works to the end while a worker stores what arrives, and gives back what the worker counted.
    fn beside_worker<'c>(&mut self, capture: Capture<'c>) -> (Result<(), InboxError>, Capture<'c>) {
        let backlog = self.backlog;
        let (ended, capture) = std::thread::scope(|scope| {
            let _closing = Closing(backlog);
            let worker = scope.spawn(|| backlog.work(capture));
            let ended = self.work().and_then(|()| self.drain());
            self.close();
            backlog.close(true);
            (ended, worker.join())
        });
        let capture = capture.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (ended, capture)
    }

    pub(super) fn now(&self) -> Timestamp {
        self.request.clock.now()
    }

    fn whole(&self) -> Duration {
        Duration::from_secs(self.collector.config.consume_timeout.seconds)
    }

    /// The end of the run window; a continuous run has none.
    pub(super) fn window_end(&self) -> Option<Duration> {
        (!self.request.continuous).then(|| self.whole())
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

    fn work(&mut self) -> Result<(), InboxError> {
        loop {
            self.start_due()?;
            if self.is_over() {
                return Ok(());
            }
            let wait = self.wait();
            if let Some(signal) = self.streams.next(wait) {
                self.take(signal)?;
            }
            self.look_at_backlog()?;
            self.look_at_times()?;
        }
    }

    /// Stores what had arrived before the last consumer ended; a stop gives it little time.
    fn drain(&mut self) -> Result<(), InboxError> {
        let mut until = self.stopping.then(|| self.streams.elapsed() + DRAIN_GRACE);
        while self.backlog.oldest().is_some() {
            let now = self.streams.elapsed();
            if until.is_some_and(|until| until <= now) {
                break;
            }
            if let Some(StreamSignal::Stop) = self.streams.next(DRAIN_PACE) {
                until.get_or_insert(now + DRAIN_GRACE);
            }
            self.look_at_backlog()?;
            let written = self.written.unwrap_or_default();
            if now.saturating_sub(written) >= HEARTBEAT {
                self.write_status(true)?;
            }
        }
        self.look_at_backlog()
    }

    fn is_over(&self) -> bool {
        let idle = self.lanes.iter().all(|lane| lane.members.is_empty());
        let message_over = self
            .lanes
            .iter()
            .any(|lane| lane.key == EventKey::Message && lane.is_over);
        idle && (self.stopping || message_over)
    }

    /// Starts every consumer that is due.
    fn start_due(&mut self) -> Result<(), InboxError> {
        let now = self.streams.elapsed();
        for index in 0..self.lanes.len() {
            let lane = &self.lanes[index];
            let is_due = lane.retry_at.is_some_and(|at| at <= now)
                && !lane.is_over
                && !self.stopping
                && !self.restart_pending;
            if !is_due {
                continue;
            }
            if !self.is_configured() {
                self.end_all(StreamStatus::ConfigurationRemoved);
                return self.write_status(true);
            }
            if self.window_end().is_some_and(|end| now >= end) {
                self.lanes[index].is_over = true;
                self.lanes[index].retry_at = None;
                continue;
            }
            self.start(index)?;
        }
        Ok(())
    }

    fn start(&mut self, index: usize) -> Result<(), InboxError> {
        let now = self.streams.elapsed();
        let is_first =
            self.window_end().is_none() || self.lanes[index].losses == 0 && self.health.losses == 0;
        let (text, timeout) = match self.window_end().filter(|_| !is_first) {
            None => (
                self.collector.config.consume_timeout.text.clone(),
                self.whole(),
            ),
            Some(end) => {
                let seconds = end.saturating_sub(now).as_secs().max(1);
                (format!("{seconds}s"), Duration::from_secs(seconds))
            }
        };
        let key = self.lanes[index].key;
        let spec = ConsumerSpec {
            key,
            timeout: text,
            chats: &self.chats,
        };
        let started = self.streams.start(&spec);
        let lane = &mut self.lanes[index];
        lane.retry_at = None;
        match started {
            Ok((id, pid)) => {
                let member = Member {
                    id,
                    pid,
                    started: now,
                    timeout,
                    ready_since: None,
                    stopping: false,
                    kill_at: None,
                };
                lane.members.push(member);
                self.callbacks.started |= key == EventKey::Callback;
                self.write_status(true)
            }
            Err(_) => self.lose(
                index,
                StreamStatus::StreamNotReady,
                StreamCode::StreamNotReady,
            ),
        }
    }

    fn wait(&self) -> Duration {
        let now = self.streams.elapsed();
        let times = self.lanes.iter().flat_map(|lane| {
            let is_open = |member: &&Member| member.kill_at.is_none();
            let limits = lane.members.iter().filter(is_open).map(limit);
            let retry = lane
                .retry_at
                .filter(|_| !self.restart_pending && !self.stopping);
            let rollover = lane.rollover_at().filter(|_| self.rolls_over(lane));
            let kills = lane.members.iter().filter_map(|member| member.kill_at);
            retry
                .into_iter()
                .chain(rollover)
                .chain(kills)
                .chain(limits)
                .collect::<Vec<_>>()
        });
        let heartbeat = self.written.map_or(now, |written| written + HEARTBEAT);
        let next = times
            .chain(self.outage_until)
            .chain([heartbeat])
            .min()
            .unwrap_or(heartbeat);
        let is_working = self.backlog.oldest().is_some() || self.holes.is_waiting();
        let most = if is_working { BACKLOG_PACE } else { HEARTBEAT };
        next.saturating_sub(now).min(most)
    }

    fn rolls_over(&self, lane: &Lane) -> bool {
        self.request.continuous
            && lane.key == EventKey::Message
            && lane.retry_at.is_none()
            && !self.stopping
            && !self.restart_pending
    }

    /// What is due by time alone.
    fn look_at_times(&mut self) -> Result<(), InboxError> {
        let now = self.streams.elapsed();
        self.holes.flush()?;
        for lane in &mut self.lanes {
            lane.settle(now);
        }
        self.kill_late(now);
        if self.outage_until.is_some_and(|until| until <= now)
            && !self.restart_pending
            && !self.stopping
        {
            self.restart_pending = true;
            self.end_members();
            if self.lanes.iter().all(|lane| lane.members.is_empty()) {
                self.stopped()?;
            }
        }
        let due: Vec<usize> = (0..self.lanes.len())
            .filter(|index| {
                self.rolls_over(&self.lanes[*index])
                    && self.lanes[*index].rollover_at().is_some_and(|at| at <= now)
            })
            .collect();
        for index in due {
            match self.is_configured() {
                true => self.start(index)?,
                false => self.end_all(StreamStatus::ConfigurationRemoved),
            }
        }
        if self
            .written
            .is_none_or(|written| now.saturating_sub(written) >= HEARTBEAT)
        {
            if !self.is_configured() && !self.stopping {
                self.end_all(StreamStatus::ConfigurationRemoved);
            }
            self.holes.look_at_damage(self.now())?;
            self.write_status(true)?;
        }
        Ok(())
    }

    fn kill_late(&mut self, now: Duration) {
        let mut late = Vec::new();
        for member in self.lanes.iter().flat_map(|lane| &lane.members) {
            // Asked once; one that does not even end then is killed.
            let overdue = now >= limit(member) && !member.stopping && member.kill_at.is_none();
            if overdue || member.kill_at.is_some_and(|at| at <= now) {
                late.push((member.id, overdue));
            }
        }
        for (id, overdue) in late {
            match overdue {
                true => self.streams.terminate(id),
                false => self.streams.kill(id),
            }
            if let Some(member) = self.lanes.iter_mut().find_map(|lane| lane.member(id)) {
                member.kill_at = Some(now + GRACE);
            }
        }
    }

    pub(super) fn end_all(&mut self, status: StreamStatus) {
        self.stopping = true;
        self.health.status = status;
        self.end_members();
    }

    pub(super) fn end_members(&mut self) {
        let ids: Vec<ConsumerId> = self
            .lanes
            .iter()
            .flat_map(|lane| &lane.members)
            .map(|member| member.id)
            .collect();
        for id in ids {
            self.end_member(id);
        }
    }

    pub(super) fn end_member(&mut self, id: ConsumerId) {
        let kill_at = self.streams.elapsed() + GRACE;
        let member = self.lanes.iter_mut().find_map(|lane| lane.member(id));
        if let Some(member) = member.filter(|member| !member.stopping) {
            member.stopping = true;
            member.kill_at = Some(kill_at);
            self.streams.terminate(id);
        }
        self.note_manning();
    }

    /// Notes since when nobody listens to messages.
    pub(super) fn note_manning(&mut self) {
        let is_manned = self
            .lanes
            .iter()
            .any(|lane| lane.key == EventKey::Message && lane.is_ready());
        self.manned_until = match is_manned {
            true => None,
            false => self.manned_until.or_else(|| Some(self.now())),
        };
    }

    /// The status says that nothing runs, and since when; after that the last consumers and the bus go. What arrived and is not stored
    /// becomes a hole.
    fn close(&mut self) {
        self.manned_until.get_or_insert(self.request.clock.now());
        if let Some(oldest) = self.backlog.oldest() {
            let _ = self.holes.unstored(oldest.at);
        }
        let ids: Vec<ConsumerId> = self
            .lanes
            .iter()
            .flat_map(|lane| &lane.members)
            .map(|member| member.id)
            .collect();
        for id in ids {
            self.streams.kill(id);
        }
        self.lanes.iter_mut().for_each(|lane| lane.members.clear());
        self.health.ready = false;
        let _ = self.write_status(false);
        self.streams.stop_bus();
    }

    pub(super) fn write_status(&mut self, running: bool) -> Result<(), InboxError> {
        let (instant, now) = (self.now(), self.streams.elapsed());
        let later =
            |at: Duration| instant.plus_seconds(at.saturating_sub(now).as_secs().cast_signed());
        let message = self.lanes.iter().find(|lane| lane.key == EventKey::Message);
        let window = match self.window_end() {
            Some(end) => Some(end),
            None => message.and_then(Lane::ends_at),
        };
        let pids = self
            .lanes
            .iter()
            .map(|lane| (lane.key, lane.pids()))
            .filter(|(_, pids)| !pids.is_empty());
        let sign = match self.manned_until.filter(|_| !running) {
            Some(until) => until.min(instant),
            None => instant,
        };
        let oldest = self.backlog.oldest();
        let status = SourceStatus {
            running,
            health: self.health,
            next_retry_at: message
                .and_then(|lane| lane.retry_at)
                .filter(|_| running)
                .and_then(later),
            last_event_at: self.last_event_at,
            last_loss_at: self.last_loss_at,
            window_ends_at: window.filter(|_| running).and_then(later),
            consumer_pids: pids.collect(),
            route_count: self.collector.routes.len(),
            disabled_route_count: self.collector.disabled_keys().len(),
            damaged: self.damage.list(),
            drained_at: oldest.map_or(sign, |oldest| oldest.at.min(sign)),
            updated_at: sign,
        };
        self.written = Some(now);
        self.state.write_status(&status)?;
        Ok(())
    }

    fn result(&self, capture: &Capture<'_>) -> RunResult {
        RunResult {
            damaged: self.damage.list(),
            has_routes: self.collector.config.has_routes,
            budget_spent: self.budget_spent,
            health: self.health,
            counts: capture.counts(),
            routes: self.collector.routes.len(),
            routed_routes: capture.touched_routes(),
            identity_checked: capture.own_app().was_asked(),
            identity_verified: capture.own_app().is_known(),
            callbacks: self
                .collector
                .config
                .operation_callbacks
                .then_some(self.callbacks),
        }
    }
}

/// When a consumer should have ended by itself, or should have been ready.
fn limit(member: &Member) -> Duration {
    match member.ready_since {
        Some(_) => member.started + member.timeout + OVERTIME,
        None => member.started + READY_LIMIT.min(member.timeout + OVERTIME),
    }
}
