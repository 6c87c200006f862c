//! `lark-inbox collector-run`: reads the live streams into the inboxes and never calls a dead source healthy.
//!
//! 1. configuration, right to run  2. the run lock, before anything is written  3. holes since the last sign of life  4. status  5. consumers
//!    that an earlier run left are ended  6. loop: start what is due, take one signal, keep the status true  7. every consumer ended and
//!    drained  8. the bus ended, since without a consumer it drops what arrives  9. result
//!
//! Pauses and limits go by monotonic time; the clock is only written (`docs/spec/lark-inbox.md` 8).

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
use crate::flow::inbox::capture::Capture;
use crate::flow::inbox::context::{BoundCollector, ContextArgs, Desk, Located};
use crate::flow::inbox::error::InboxError;
use crate::flow::inbox::hole::Holes;
use crate::flow::inbox::lane::{Lane, Member};
use crate::flow::inbox::ports::Providers;
use crate::port::clock::Clock;
use crate::port::events::{ConsumerId, ConsumerSpec, EventStreams};
use crate::store::document::collector_state::CollectorState;

/// How often the status is written without a change.
const HEARTBEAT: Duration = Duration::from_secs(30);
/// How long an asked consumer may take to end.
const GRACE: Duration = Duration::from_secs(10);
/// How long a consumer may outlive its own time.
const OVERTIME: Duration = Duration::from_secs(15);

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
    let seen = state.read_status()?;
    let holes = Holes::new(&collector)?;
    holes.open_since(seen.as_ref().and_then(|seen| seen.updated_at), desk.now)?;
    let cwd = state
        .working_folder()
        .map_err(crate::store::StoreError::write)?;
    let program = Some(collector.config.program.clone());
    let mut streams = providers.streams(program.clone(), profile.clone(), cwd);
    let channel = providers.channel(program);
    let chats: Vec<ChatId> = collector
        .enabled()
        .filter_map(|route| route.route.as_ref().map(|route| route.chat.clone()))
        .collect();
    let mut run = Run {
        collector: &collector,
        located: &located,
        request,
        state: &state,
        holes,
        streams: streams.as_mut(),
        chats,
        capture: Capture::new(&collector, channel.as_ref(), profile)?,
        lanes: lanes(&collector),
        health: SourceHealth {
            ready: false,
            healthy: true,
            status: StreamStatus::Starting,
            code: None,
            losses: 0,
            reconnects: 0,
        },
        outage_until: None,
        restart_pending: false,
        stopping: false,
        budget_spent: false,
        last_event_at: None,
        last_loss_at: None,
        written: None,
        callbacks: CallbackCounts::default(),
    };
    run.write_status(true)?;
    run.end_left(seen.as_ref());
    let ended = run.work();
    run.close();
    ended?;
    Ok((run.result().packet(), activation))
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
    pub(super) holes: Holes,
    pub(super) streams: &'a mut dyn EventStreams,
    pub(super) chats: Vec<ChatId>,
    pub(super) capture: Capture<'a>,
    pub(super) lanes: Vec<Lane>,
    pub(super) health: SourceHealth,
    pub(super) outage_until: Option<Duration>,
    /// All consumers are being ended because the source stayed lost.
    pub(super) restart_pending: bool,
    pub(super) stopping: bool,
    pub(super) budget_spent: bool,
    pub(super) last_event_at: Option<Timestamp>,
    pub(super) last_loss_at: Option<Timestamp>,
    pub(super) written: Option<Duration>,
    pub(super) callbacks: CallbackCounts,
}

impl Run<'_> {
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
            self.look_at_times()?;
        }
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
            let retry = lane
                .retry_at
                .filter(|_| !self.restart_pending && !self.stopping);
            let rollover = lane.rollover_at().filter(|_| self.rolls_over(lane));
            let kills = lane.members.iter().filter_map(|member| member.kill_at);
            retry
                .into_iter()
                .chain(rollover)
                .chain(kills)
                .collect::<Vec<_>>()
        });
        let heartbeat = self.written.map_or(now, |written| written + HEARTBEAT);
        let next = times
            .chain(self.outage_until)
            .chain([heartbeat])
            .min()
            .unwrap_or(heartbeat);
        next.saturating_sub(now).min(HEARTBEAT)
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
            self.write_status(true)?;
        }
        Ok(())
    }

    fn kill_late(&mut self, now: Duration) {
        let mut late = Vec::new();
        for member in self.lanes.iter().flat_map(|lane| &lane.members) {
            let overdue = now > member.started + member.timeout + OVERTIME && !member.stopping;
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
    }

    /// After the last consumer: the bus goes too, and the status says that nothing runs.
    fn close(&mut self) {
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
        self.streams.stop_bus();
        self.health.ready = false;
        let _ = self.write_status(false);
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
            updated_at: instant,
        };
        self.written = Some(now);
        self.state.write_status(&status)?;
        Ok(())
    }

    fn result(&self) -> RunResult {
        RunResult {
            has_routes: self.collector.config.has_routes,
            budget_spent: self.budget_spent,
            health: self.health,
            counts: self.capture.counts(),
            routes: self.collector.routes.len(),
            routed_routes: self.capture.touched_routes(),
            identity_checked: self.capture.own_app().was_asked(),
            identity_verified: self.capture.own_app().is_known(),
            callbacks: self
                .collector
                .config
                .operation_callbacks
                .then_some(self.callbacks),
        }
    }
}
