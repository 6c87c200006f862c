//! What a signal of the streams means for a run: events, readiness, outages, ends.

use std::time::Duration;

use crate::contract::inbox::listener::ListenerFailure;
use crate::contract::inbox::live_event::{ClickRefused, LiveClick, LiveEvent};
use crate::contract::inbox::stream::{
    ConsumerEnd, EventKey, SourceState, StreamCode, StreamStatus,
};
use crate::contract::time::Timestamp;
use crate::flow::inbox::backlog::Arrival;
use crate::flow::inbox::collector_run::Run;
use crate::flow::inbox::error::InboxError;
use crate::kernel::inbox::live::{self, Circumstances};
use crate::port::events::{ConsumerId, StreamSignal};
use crate::workspace::env;

impl Run<'_> {
    pub(super) fn take(&mut self, signal: StreamSignal) -> Result<(), InboxError> {
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

    pub(super) fn key_of(&self, id: ConsumerId) -> Option<EventKey> {
        self.lanes
            .iter()
            .find(|lane| lane.members.iter().any(|member| member.id == id))
            .map(|lane| lane.key)
    }

    pub(super) fn event(&mut self, id: ConsumerId, event: LiveEvent) -> Result<(), InboxError> {
        let message = match event {
            LiveEvent::Click(click) => return self.callback(click),
            LiveEvent::Message(message) => Some(*message),
            LiveEvent::Other => None,
        };
        if self.key_of(id) == Some(EventKey::Callback) {
            return Ok(());
        }
        let arrival = Arrival {
            at: self.now(),
            elapsed: self.streams.elapsed(),
        };
        self.holes.alive(arrival.at);
        if message.is_some_and(|message| !self.backlog.put(arrival, message)) {
            self.holes.warned(arrival.at)?;
        }
        Ok(())
    }

    /// What the worker did meanwhile: an event that came after the last loss heals the source, a failure ends the run.
    pub(super) fn look_at_backlog(&mut self) -> Result<(), InboxError> {
        if let Some(error) = self.backlog.failure() {
            self.health.healthy = false;
            self.health.code = Some(StreamCode::CaptureFailed);
            return Err(error);
        }
        let Some(arrival) = self.backlog.heard() else {
            return Ok(());
        };
        self.log(true, self.now());
        let was_silent = self.last_event_at.is_none();
        self.last_event_at = self.last_event_at.max(Some(arrival.at));
        let is_after_loss = self.lost_at.is_none_or(|lost| arrival.elapsed > lost);
        if !is_after_loss || self.outage_until.is_some() {
            return Ok(());
        }
        if let Some(lane) = self
            .lanes
            .iter_mut()
            .find(|lane| lane.key == EventKey::Message)
        {
            lane.losses = 0;
        }
        let was_lost =
            self.health.code.take().is_some() | !std::mem::replace(&mut self.health.healthy, true);
        match was_lost || was_silent {
            true => self.write_status(true),
            false => Ok(()),
        }
    }

    /// A typed callback proves that the listener is registered. No operation is recorded here that it could belong to, so each is refused by
    /// its code and none is ever verified.
    pub(super) fn callback(&mut self, click: LiveClick) -> Result<(), InboxError> {
        let refused = click.read.err().unwrap_or(ClickRefused {
            code: "callback_proposal_not_found",
            stage: "handle_callback",
        });
        self.callbacks.received += 1;
        self.callbacks.failed += 1;
        self.callbacks.ready = true;
        self.listener.ready = true;
        self.listener.failed += 1;
        self.listener.last_failure = Some(ListenerFailure {
            code: refused.code.to_owned(),
            stage: refused.stage.to_owned(),
            shape: click.shape,
        });
        self.write_listener();
        self.write_status(true)
    }

    pub(super) fn ready(&mut self, id: ConsumerId) -> Result<(), InboxError> {
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
            self.listener.ready = true;
            self.write_listener();
            return self.write_status(true);
        }
        self.manned_until = None;
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
    pub(super) fn outage(&mut self) -> Result<(), InboxError> {
        if self.outage_until.is_some() || self.stopping {
            return Ok(());
        }
        let patience = at_most_hooked(Duration::from_secs(live::OUTAGE_SECONDS));
        self.outage_until = Some(self.streams.elapsed() + patience);
        let now = self.now();
        self.count_loss(EventKey::Message, StreamCode::SourceDisconnected, now);
        self.health.ready = false;
        self.holes.disconnected(now)?;
        // A connection that comes and goes without ever bringing an event spends the same budget.
        for lane in &mut self.lanes {
            if lane.key == EventKey::Message && lane.losses > live::RETRY_BUDGET {
                lane.is_over = true;
                lane.retry_at = None;
                self.budget_spent = true;
            }
        }
        if self.budget_spent {
            self.end_members();
        }
        self.write_status(true)
    }

    pub(super) fn connected(&mut self) -> Result<(), InboxError> {
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

    pub(super) fn ended(&mut self, id: ConsumerId, end: &ConsumerEnd) -> Result<(), InboxError> {
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
        if self.lanes[index].key == EventKey::Callback {
            self.listener_ended(end.exit);
        }
        self.refresh_ready();
        self.note_manning();
        if let Some(old) = self.streams.outdated() {
            // It would be asked the same again and again.
            self.health.healthy = false;
            self.health.code = judged.loss;
            return Err(old.into());
        }
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

    pub(super) fn refresh_ready(&mut self) {
        let message_ready = self
            .lanes
            .iter()
            .any(|lane| lane.key == EventKey::Message && lane.is_ready());
        self.health.ready &= message_ready;
    }

    pub(super) fn stopped(&mut self) -> Result<(), InboxError> {
        let is_idle = self.lanes.iter().all(|lane| lane.members.is_empty());
        if self.stopping {
            // Where the configuration is gone, that is why the consumers were asked to end.
            if self.health.status != StreamStatus::ConfigurationRemoved {
                self.health.status = StreamStatus::Stopped;
            }
        } else if self.restart_pending && is_idle {
            // A dead bus would be inherited by the next consumer: it goes with the last one.
            self.streams.stop_bus();
            self.restart_pending = false;
            self.outage_until = None;
            self.health.status = StreamStatus::SourceDisconnected;
            let now = self.streams.elapsed();
            let spread = self.streams.spread();
            for lane in self.lanes.iter_mut().filter(|lane| !lane.is_over) {
                let losses = lane.losses.max(1);
                let pause = live::pause(losses, StreamStatus::SourceDisconnected, spread);
                lane.retry_at = Some(now + at_most_hooked(pause));
            }
        }
        self.write_status(true)
    }

    /// A consumer reached its own time: the end of a window, a late roll-over, or an end inside an outage.
    pub(super) fn planned_end(
        &mut self,
        index: usize,
        loss: Option<StreamCode>,
    ) -> Result<(), InboxError> {
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

    pub(super) fn lose(
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
        lane.retry_at = Some(self.streams.elapsed() + at_most_hooked(pause));
        self.write_status(true)
    }

    pub(super) fn count_loss(&mut self, key: EventKey, code: StreamCode, now: Timestamp) {
        if let Some(lane) = self.lanes.iter_mut().find(|lane| lane.key == key) {
            lane.losses += 1;
        }
        if key == EventKey::Message {
            self.health.losses += 1;
            self.health.code = Some(code);
            self.health.healthy = false;
            self.last_loss_at = Some(now);
            self.lost_at = Some(self.streams.elapsed());
        }
    }
}

/// A wait for the provider, no longer than the test hook of its deadlines says.
fn at_most_hooked(wait: Duration) -> Duration {
    let hooked = env::test_hook(env::TEST_PROVIDER_TIMEOUT_MS).and_then(|text| text.parse().ok());
    hooked.map_or(wait, |millis| wait.min(Duration::from_millis(millis)))
}
