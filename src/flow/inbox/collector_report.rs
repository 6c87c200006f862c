//! What a collector run says of itself: its status file, its log, its result, and the last word at its end.

use std::time::Duration;

use crate::contract::inbox::run_packet::{RunResult, SourceStatus};
use crate::contract::inbox::stream::EventKey;
use crate::contract::time::Timestamp;
use crate::flow::inbox::capture::Capture;
use crate::flow::inbox::collector_loop::GRACE;
use crate::flow::inbox::collector_run::Run;
use crate::flow::inbox::error::InboxError;
use crate::flow::inbox::lane::Lane;
use crate::kernel::inbox::collector_log::{self, Seen};
use crate::kernel::inbox::gaps;
use crate::port::events::{ConsumerId, StreamSignal};
use crate::store::document::collector_log::CollectorLog;
impl Run<'_> {
    /// The status says that nothing runs, and since when; after that the last consumers and the bus go. What arrived and is not stored
    /// becomes a hole.
    pub(super) fn close(&mut self) {
        self.manned_until.get_or_insert(self.request.clock.now());
        if let Some(oldest) = self.backlog.oldest() {
            let _ = self.holes.unstored(oldest.at);
        }
        self.end_living();
        self.lanes.iter_mut().for_each(|lane| lane.members.clear());
        self.health.ready = false;
        self.listener_ended(self.listener.returncode);
        let _ = self.write_status(false);
        self.streams.stop_bus();
    }

    /// Consumers that a failure left: asked, given time, ended. What they still bring lies behind the last sign of life.
    fn end_living(&mut self) {
        let members = self.lanes.iter().flat_map(|lane| &lane.members);
        let mut living: Vec<ConsumerId> = members.map(|member| member.id).collect();
        for id in &living {
            self.streams.terminate(*id);
        }
        let until = self.streams.elapsed() + GRACE;
        while !living.is_empty() && self.streams.elapsed() < until {
            let left = until.saturating_sub(self.streams.elapsed());
            if let Some(StreamSignal::Ended(id, _)) = self.streams.next(left) {
                living.retain(|living| *living != id);
            }
        }
        for id in living {
            self.streams.kill(id);
        }
    }

    /// Writes the listener's own file; one that cannot be written stops no capture.
    pub(super) fn write_listener(&self) {
        if self.collector.config.operation_callbacks {
            let _ = self
                .state
                .write_listener(&self.listener.to_value(self.now()));
        }
    }

    /// The evidence stays, the readiness goes.
    pub(super) fn listener_ended(&mut self, exit: Option<i32>) {
        self.listener.active = false;
        self.listener.ready = false;
        self.listener.returncode = exit;
        self.write_listener();
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
            drained_at: gaps::proved_until(oldest.map(|oldest| oldest.at), sign),
            updated_at: sign,
        };
        self.written = Some(now);
        self.state.write_status(&status)?;
        self.log(running, instant);
        Ok(())
    }

    /// Writes what changed since the last state; a log that cannot be written stops nothing.
    pub(super) fn log(&mut self, running: bool, at: Timestamp) {
        let seen = Seen {
            running,
            ready: self.health.ready,
            healthy: self.health.healthy,
            code: self.health.code,
            losses: self.health.losses,
            captured: self.backlog.captured(),
            rejected_callbacks: self.callbacks.failed,
            damaged: self.damage.list().len(),
        };
        let lines = collector_log::news(self.logged.as_ref(), &seen, at);
        self.logged = Some(seen);
        if !lines.is_empty() {
            let _ = CollectorLog::of_project(&self.located.project).append(&lines);
        }
    }

    pub(super) fn result(&self, capture: &Capture<'_>) -> RunResult {
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
