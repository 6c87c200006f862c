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
use crate::contract::inbox::stream::{
    ConsumerEnd, EventKey, SourceState, StreamCode, StreamStatus,
};
use crate::contract::time::Timestamp;
use crate::flow::inbox::ack::claim;
use crate::flow::inbox::capture::Capture;
use crate::flow::inbox::context::{BoundCollector, ContextArgs, Desk, Located};
use crate::flow::inbox::error::InboxError;
use crate::flow::inbox::hole::Holes;
use crate::flow::inbox::lane::{Lane, Member};
use crate::flow::inbox::ports::Providers;
use crate::kernel::inbox::live::{self, Circumstances};
use crate::port::clock::Clock;
use crate::port::events::{ConsumerId, ConsumerSpec, EventStreams, StreamSignal};
use crate::store::document::collector_state::CollectorState;
use crate::workspace::env;

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

struct Run<'a> {
    collector: &'a BoundCollector,
    located: &'a Located,
    request: &'a RunRequest<'a>,
    state: &'a CollectorState,
    holes: Holes,
    streams: &'a mut dyn EventStreams,
    chats: Vec<ChatId>,
    capture: Capture<'a>,
    lanes: Vec<Lane>,
    health: SourceHealth,
    outage_until: Option<Duration>,
    /// All consumers are being ended because the source stayed lost.
    restart_pending: bool,
    stopping: bool,
    budget_spent: bool,
    last_event_at: Option<Timestamp>,
    last_loss_at: Option<Timestamp>,
    written: Option<Duration>,
    callbacks: CallbackCounts,
}

impl Run<'_> {
    fn now(&self) -> Timestamp {
        self.request.clock.now()
    }

    fn whole(&self) -> Duration {
        Duration::from_secs(self.collector.config.consume_timeout.seconds)
    }

    /// The end of the run window; a continuous run has none.
    fn window_end(&self) -> Option<Duration> {
        (!self.request.continuous).then(|| self.whole())
    }

    fn is_configured(&self) -> bool {
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

    fn take(&mut self, signal: StreamSignal) -> Result<(), InboxError> {
        match signal {
            StreamSignal::Stop => {
                self.stopping = true;
                self.end_members();
                Ok(())
            }
            StreamSignal::Event(id, event) => self.event(id, event),
            StreamSignal::Ready(id) => self.ready(id),
            StreamSignal::Source(SourceState::Lost) => self.outage(),
            StreamSignal::Source(SourceState::Connected) => self.connected(),
            StreamSignal::Warning(id) if self.key_of(id) == Some(EventKey::Message) => {
                Ok(self.holes.warned(self.now())?)
            }
            StreamSignal::Warning(_) => Ok(()),
            StreamSignal::Ended(id, end) => self.ended(id, &end),
        }
    }

    fn key_of(&self, id: ConsumerId) -> Option<EventKey> {
        self.lanes
            .iter()
            .find(|lane| lane.members.iter().any(|member| member.id == id))
            .map(|lane| lane.key)
    }

    fn event(&mut self, id: ConsumerId, event: Value) -> Result<(), InboxError> {
        if self.key_of(id) == Some(EventKey::Callback) {
            return self.callback(&event);
        }
        let streams = &*self.streams;
        let pause = |duration| streams.pause(duration);
        if !self.capture.take(event, &pause)? {
            return Ok(());
        }
        let now = self.now();
        let was_silent = self.last_event_at.is_none();
        self.last_event_at = Some(now);
        self.holes.alive(now);
        if let Some(lane) = self
            .lanes
            .iter_mut()
            .find(|lane| lane.key == EventKey::Message)
        {
            lane.losses = 0;
        }
        if self.outage_until.is_none()
            && self.health.code.take().is_some()
                | !std::mem::replace(&mut self.health.healthy, true)
                | was_silent
        {
            return self.write_status(true);
        }
        Ok(())
    }

    /// A typed callback proves that the listener is registered; without an executor of operations each is refused by its code.
    fn callback(&mut self, event: &Value) -> Result<(), InboxError> {
        if event["type"] != EventKey::Callback.as_str() {
            return Ok(());
        }
        self.callbacks.received += 1;
        self.callbacks.failed += 1;
        self.callbacks.ready = true;
        self.write_status(true)
    }

    fn ready(&mut self, id: ConsumerId) -> Result<(), InboxError> {
        let now = self.streams.elapsed();
        let instant = self.now();
        let Some(lane) = self
            .lanes
            .iter_mut()
            .find(|lane| lane.members.iter().any(|member| member.id == id))
        else {
            return Ok(());
        };
        if let Some(member) = lane.member(id) {
            member.ready_since = Some(now);
        }
        if lane.key == EventKey::Callback {
            self.callbacks.ready = true;
            return self.write_status(true);
        }
        let old: Vec<ConsumerId> = lane
            .members
            .iter()
            .filter(|member| member.id != id && !member.stopping)
            .map(|member| member.id)
            .collect();
        if self.health.losses > 0 && old.is_empty() {
            self.health.reconnects += 1;
        }
        for old in old {
            self.end_member(old);
        }
        if self.outage_until.is_none() {
            self.health.ready = true;
            self.health.status = StreamStatus::Running;
            self.holes.close(instant)?;
        }
        self.holes.alive(instant);
        self.write_status(true)
    }

    /// The first sign of a lost connection begins an outage, one for all consumers.
    fn outage(&mut self) -> Result<(), InboxError> {
        if self.outage_until.is_some() || self.stopping {
            return Ok(());
        }
        let shortened =
            env::test_hook(env::TEST_PROVIDER_TIMEOUT_MS).and_then(|text| text.parse().ok());
        let patience = shortened.map_or(
            Duration::from_secs(live::OUTAGE_SECONDS),
            Duration::from_millis,
        );
        self.outage_until = Some(self.streams.elapsed() + patience);
        let now = self.now();
        self.count_loss(EventKey::Message, StreamCode::SourceDisconnected, now);
        self.health.ready = false;
        self.holes.disconnected(now)?;
        self.write_status(true)
    }

    fn connected(&mut self) -> Result<(), InboxError> {
        if self.outage_until.take().is_none() || self.restart_pending {
            return Ok(());
        }
        self.health.reconnects += 1;
        self.health.ready = self
            .lanes
            .iter()
            .any(|lane| lane.key == EventKey::Message && lane.is_ready());
        self.holes.close(self.now())?;
        self.write_status(true)
    }

    fn ended(&mut self, id: ConsumerId, end: &ConsumerEnd) -> Result<(), InboxError> {
        let Some(index) = self
            .lanes
            .iter()
            .position(|lane| lane.members.iter().any(|member| member.id == id))
        else {
            return Ok(());
        };
        let Some(member) = self.lanes[index].remove(id) else {
            return Ok(());
        };
        let circumstances = Circumstances {
            was_ready: member.ready_since.is_some(),
            we_stopped_it: member.stopping,
            configuration_gone: !self.is_configured(),
            in_outage: self.outage_until.is_some(),
        };
        let judged = live::judge(end, circumstances);
        self.refresh_ready();
        match (judged.status, judged.loss) {
            (StreamStatus::Stopped, _) => self.stopped(),
            (StreamStatus::ConfigurationRemoved, _) => {
                self.end_all(StreamStatus::ConfigurationRemoved);
                self.write_status(true)
            }
            (StreamStatus::StreamEnded, loss) => self.planned_end(index, loss),
            (status, Some(code)) => self.lose(index, status, code),
            (_, None) => self.write_status(true),
        }
    }

    fn refresh_ready(&mut self) {
        let message_ready = self
            .lanes
            .iter()
            .any(|lane| lane.key == EventKey::Message && lane.is_ready());
        self.health.ready &= message_ready;
    }

    fn stopped(&mut self) -> Result<(), InboxError> {
        let is_idle = self.lanes.iter().all(|lane| lane.members.is_empty());
        if self.stopping {
            self.health.status = StreamStatus::Stopped;
        } else if self.restart_pending && is_idle {
            // A dead bus would be inherited by the next consumer: it goes with the last one.
            self.streams.stop_bus();
            self.restart_pending = false;
            self.outage_until = None;
            self.health.status = StreamStatus::SourceDisconnected;
            let now = self.streams.elapsed();
            let spread = self.streams.spread();
            for lane in self.lanes.iter_mut().filter(|lane| !lane.is_over) {
                lane.retry_at = Some(
                    now + live::pause(lane.losses.max(1), StreamStatus::SourceDisconnected, spread),
                );
            }
        }
        self.write_status(true)
    }

    /// A consumer reached its own time: the end of a window, a late roll-over, or an end inside an outage.
    fn planned_end(&mut self, index: usize, loss: Option<StreamCode>) -> Result<(), InboxError> {
        let key = self.lanes[index].key;
        if let Some(code) = loss {
            self.health.code = Some(code);
            self.health.healthy = false;
        }
        self.health.status = StreamStatus::StreamEnded;
        if !self.request.continuous {
            self.lanes[index].is_over = true;
            self.callbacks.succeeded |= key == EventKey::Callback;
            if key == EventKey::Message {
                // The window of the run is that of its messages: the other consumer ends with it.
                self.end_members();
            }
            return self.write_status(true);
        }
        if key == EventKey::Message && !self.lanes[index].is_ready() {
            self.holes.consumer_lost(self.now())?;
        }
        if !self.lanes[index].is_manned() {
            self.lanes[index].retry_at = Some(self.streams.elapsed());
        }
        self.write_status(true)
    }

    fn lose(
        &mut self,
        index: usize,
        status: StreamStatus,
        code: StreamCode,
    ) -> Result<(), InboxError> {
        let (key, now) = (self.lanes[index].key, self.now());
        let is_counted = key == EventKey::Message;
        if is_counted {
            self.health.status = status;
            if self.outage_until.is_none() {
                self.holes.consumer_lost(now)?;
            }
        }
        // In an outage the end is part of the loss that was counted already.
        match self.outage_until.is_some() && is_counted {
            true if !self.lanes[index].is_manned() => self.outage_until = None,
            true => {}
            false => self.count_loss(key, code, now),
        }
        let lane = &mut self.lanes[index];
        if lane.losses > live::RETRY_BUDGET {
            lane.is_over = true;
            lane.retry_at = None;
            if key == EventKey::Message {
                self.budget_spent = true;
                self.end_members();
            }
            return self.write_status(true);
        }
        let pause = live::pause(lane.losses.max(1), status, self.streams.spread());
        lane.retry_at = Some(self.streams.elapsed() + pause);
        self.write_status(true)
    }

    fn count_loss(&mut self, key: EventKey, code: StreamCode, now: Timestamp) {
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.key == key) {
            lane.losses += 1;
        }
        if key == EventKey::Message {
            self.health.losses += 1;
            self.health.code = Some(code);
            self.health.healthy = false;
            self.last_loss_at = Some(now);
        }
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

    fn end_all(&mut self, status: StreamStatus) {
        self.stopping = true;
        self.health.status = status;
        self.end_members();
    }

    fn end_members(&mut self) {
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

    fn end_member(&mut self, id: ConsumerId) {
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

    fn write_status(&mut self, running: bool) -> Result<(), InboxError> {
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
