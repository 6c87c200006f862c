//! The loop of a collector run: starts what is due, takes one signal, looks at the clock, ends what is late.

use std::time::Duration;

use crate::contract::inbox::stream::{EventKey, StreamCode, StreamStatus};
use crate::flow::inbox::collector_run::Run;
use crate::flow::inbox::error::InboxError;
use crate::flow::inbox::lane::{Lane, Member};
use crate::port::events::{ConsumerId, ConsumerSpec, StreamSignal};

/// How often the status is written without a change.
const HEARTBEAT: Duration = Duration::from_secs(30);
/// How long an asked consumer may take to end.
pub(super) const GRACE: Duration = Duration::from_secs(10);
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

impl Run<'_> {
    pub(super) fn work(&mut self) -> Result<(), InboxError> {
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
    pub(super) fn drain(&mut self) -> Result<(), InboxError> {
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
                if key == EventKey::Callback {
                    self.callbacks.started = true;
                    self.listener.active = true;
                    self.write_listener();
                }
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

    pub(super) fn whole(&self) -> Duration {
        Duration::from_secs(self.collector.config.consume_timeout.seconds)
    }

    /// The end of the run window; a continuous run has none.
    pub(super) fn window_end(&self) -> Option<Duration> {
        (!self.request.continuous).then(|| self.whole())
    }
}

/// When a consumer should have ended by itself, or should have been ready.
fn limit(member: &Member) -> Duration {
    match member.ready_since {
        Some(_) => member.started + member.timeout + OVERTIME,
        None => member.started + READY_LIMIT.min(member.timeout + OVERTIME),
    }
}
