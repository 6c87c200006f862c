//! Live events on their way into the store, beside the run: a slow lookup holds up no ready marker, no outage, no end and no stop.
//!
//! An event stays here until it is stored. The arrival of the oldest one is part of the sign of life: what is still here when a run dies
//! lies inside the hole that the next run opens.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::contract::inbox::live_event::LiveMessage;
use crate::contract::time::Timestamp;
use crate::flow::inbox::capture::Capture;
use crate::flow::inbox::error::InboxError;
use crate::store::StoreError;

/// The most events that wait; more are a known hole.
const MAX_WAITING: usize = 10_000;
/// How long a busy store is left alone before it is tried again.
const BUSY_PAUSE: Duration = Duration::from_millis(500);

/// When an event came: as written, and by monotonic time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Arrival {
    pub(super) at: Timestamp,
    pub(super) elapsed: Duration,
}

/// The events that are not stored yet.
#[derive(Default)]
pub(super) struct Backlog {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    waiting: VecDeque<(Arrival, LiveMessage)>,
    /// The one being stored.
    current: Option<Arrival>,
    /// The newest one that spoke to a route of ours, until it is asked for.
    heard: Option<Arrival>,
    failed: Option<InboxError>,
    captured: u64,
    /// Nothing comes any more; the worker ends after the last.
    is_closed: bool,
    /// What waits is left to history.
    is_abandoned: bool,
}

impl Backlog {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes an event; false when too many wait.
    pub(super) fn put(&self, arrival: Arrival, event: LiveMessage) -> bool {
        let mut state = self.state();
        if state.waiting.len() >= MAX_WAITING {
            return false;
        }
        state.waiting.push_back((arrival, event));
        self.changed.notify_all();
        true
    }

    /// The arrival of the oldest event that is not stored.
    pub(super) fn oldest(&self) -> Option<Arrival> {
        let state = self.state();
        let first = state.waiting.front().map(|(arrival, _)| *arrival);
        state.current.or(first)
    }

    /// The newest event since the last question that spoke to us.
    pub(super) fn heard(&self) -> Option<Arrival> {
        self.state().heard.take()
    }

    /// How many new messages are stored.
    pub(super) fn captured(&self) -> u64 {
        self.state().captured
    }

    /// Why nothing is stored any more.
    pub(super) fn failure(&self) -> Option<InboxError> {
        self.state().failed.take()
    }

    /// Says that nothing comes any more.
    pub(super) fn close(&self, abandon: bool) {
        let mut state = self.state();
        state.is_closed = true;
        state.is_abandoned |= abandon;
        self.changed.notify_all();
    }

    /// Stores until the end, and gives back what counted.
    pub(super) fn work<'a>(&self, mut capture: Capture<'a>) -> Capture<'a> {
        let pause = |duration| self.pause(duration);
        while let Some((arrival, event)) = self.next() {
            loop {
                match capture.take((event.clone(), arrival.at), &pause) {
                    Ok(spoke) => {
                        self.state().captured = capture.counts().captured_count;
                        self.stored(spoke);
                        break;
                    }
                    Err(InboxError::Store(StoreError::Busy)) if !self.state().is_abandoned => {
                        self.pause(BUSY_PAUSE);
                    }
                    Err(error) => {
                        self.state().failed = Some(error);
                        return capture;
                    }
                }
            }
        }
        capture
    }

    fn next(&self) -> Option<(Arrival, LiveMessage)> {
        let mut state = self.state();
        loop {
            if state.is_abandoned {
                return None;
            }
            if let Some((arrival, event)) = state.waiting.pop_front() {
                state.current = Some(arrival);
                return Some((arrival, event));
            }
            if state.is_closed {
                return None;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn stored(&self, spoke: bool) {
        let mut state = self.state();
        let arrival = state.current.take();
        if spoke {
            state.heard = arrival.or(state.heard);
        }
    }

    /// Waits, unless everything is abandoned.
    fn pause(&self, duration: Duration) {
        let state = self.state();
        let is_waiting = |state: &mut State| !state.is_abandoned;
        drop(
            self.changed
                .wait_timeout_while(state, duration, is_waiting)
                .unwrap_or_else(PoisonError::into_inner),
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::channel::ids::ChatId;

    fn said() -> LiveMessage {
        LiveMessage::of(ChatId::new("oc_1").expect("a chat"))
    }

    fn arrival(seconds: u64) -> Arrival {
        Arrival {
            at: Timestamp::from_unix(1_789_000_000 + seconds.cast_signed()).expect("an instant"),
            elapsed: Duration::from_secs(seconds),
        }
    }

    #[test]
    fn an_event_counts_as_unstored_until_it_is_stored() {
        let backlog = Backlog::default();
        assert!(backlog.put(arrival(1), said()) && backlog.put(arrival(2), said()));
        assert_eq!(backlog.next(), Some((arrival(1), said())));
        assert_eq!(backlog.oldest(), Some(arrival(1)));
        backlog.stored(true);
        assert_eq!(backlog.oldest(), Some(arrival(2)));
        assert_eq!((backlog.heard(), backlog.heard()), (Some(arrival(1)), None));
    }

    #[test]
    fn closing_lets_the_rest_be_stored_and_abandoning_does_not() {
        let backlog = Backlog::default();
        backlog.put(arrival(1), said());
        backlog.close(false);
        assert_eq!(backlog.next(), Some((arrival(1), said())));
        backlog.stored(false);
        assert_eq!(
            (backlog.next(), backlog.oldest(), backlog.heard()),
            (None, None, None)
        );
        let backlog = Backlog::default();
        backlog.put(arrival(1), said());
        backlog.close(true);
        assert_eq!((backlog.next(), backlog.oldest()), (None, Some(arrival(1))));
    }

    #[test]
    fn too_many_are_refused_and_not_dropped_in_silence() {
        let backlog = Backlog::default();
        assert!((0..MAX_WAITING).all(|_| backlog.put(arrival(1), said())));
        assert!(!backlog.put(arrival(2), said()));
    }
}
