//! Keeping the possible holes of a live stream: opened when one can be, closed when the stream stands again.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;

use crate::contract::inbox::gap::GapRow;
use crate::contract::inbox::run_packet::SeenStatus;
use crate::contract::time::Timestamp;
use crate::flow::inbox::context::BoundCollector;
use crate::flow::inbox::damage::Damage;
use crate::flow::inbox::error::InboxError;
use crate::kernel::inbox::gaps;
use crate::store::StoreError;
use crate::store::inbox::Inbox;

/// A lost connection may go unnoticed for this long, in seconds.
const UNNOTICED: i64 = gaps::UNNOTICED;
/// A warning speaks of what was just lost, in seconds.
const WARNED: i64 = 60;
/// How often warnings are written, in seconds.
const WARNING_PACE: i64 = 5;

/// The holes of all enabled routes.
pub(super) struct Holes<'a> {
    damage: &'a Damage,
    routes: Vec<(String, Inbox)>,
    last_sign: Cell<Option<Timestamp>>,
    /// What is not written yet, because a store was busy; in order.
    waiting: RefCell<VecDeque<Change>>,
    last_warning: Cell<Option<Timestamp>>,
}

/// One change of the holes of one route.
struct Change {
    route: usize,
    what: What,
}

enum What {
    Add(GapRow),
    Close(Timestamp),
}

impl<'a> Holes<'a> {
    pub(super) fn new(collector: &BoundCollector, damage: &'a Damage) -> Result<Self, InboxError> {
        let routes = collector.enabled().map(|route| {
            let key = route
                .route_key()
                .map_or_else(String::new, |key| key.as_str().to_owned());
            Ok((key, route.store()?))
        });
        Ok(Self {
            damage,
            routes: routes.collect::<Result<_, InboxError>>()?,
            last_sign: Cell::new(None),
            waiting: RefCell::default(),
            last_warning: Cell::new(None),
        })
    }

    /// Opens a hole since the last sign of life of an earlier run. That is the instant before which everything that arrived is stored; of
    /// a run that was killed nobody knows how long its connection had been dead. Without any sign there was nothing to miss.
    pub(super) fn open_since(
        &self,
        seen: Option<&SeenStatus>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let sign = seen.and_then(|seen| {
            let updated = seen.updated_at.or(seen.drained_at)?;
            gaps::proved_by(seen.running, updated, seen.drained_at)
        });
        // A sign of life after now was written with a clock that was ahead: it proves nothing.
        let is_ahead = sign.is_some_and(|sign| sign > now);
        let sign = sign.filter(|_| !is_ahead);
        let missed = seen.map(|seen| seen.damaged.as_slice()).unwrap_or_default();
        for (route, (key, store)) in self.routes.iter().enumerate() {
            let since = match sign {
                Some(sign) => Some(sign),
                None => self.newest(key, store, now)?.filter(|since| *since < now),
            };
            let since = since.or(is_ahead.then(|| gaps::unproved(now)));
            let missed = missed.iter().find(|missed| missed.route_key == *key);
            let missed = missed.map(|missed| missed.unstored_since);
            let since = since.into_iter().chain(missed).min();
            if let Some(since) = since.filter(|since| *since < now) {
                self.add(route, (since, None), "not_running");
            }
        }
        self.flush()?;
        self.look_at_damage(now)?;
        for missed in missed {
            self.damage.resume(missed);
        }
        Ok(())
    }

    fn newest(
        &self,
        key: &str,
        store: &Inbox,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, StoreError> {
        match store.newest_live_millis(key) {
            Ok(millis) => {
                Ok(millis.and_then(|millis| Timestamp::from_unix(millis.div_euclid(1000))))
            }
            Err(error) => self.damage.note(key, now, error).map(|()| None),
        }
    }

    /// Says whether no route at all can be used.
    pub(super) fn is_all_damaged(&self) -> bool {
        self.damage.list().len() == self.routes.len()
    }

    /// Finds routes that broke, and lets those go on that were repaired: what they missed becomes a hole of theirs.
    pub(super) fn look_at_damage(&self, now: Timestamp) -> Result<(), StoreError> {
        let damaged = self.damage.list();
        for (key, store) in &self.routes {
            let found = damaged.iter().find(|found| found.route_key == *key);
            let Err(error) = store.check().and_then(|()| store.gaps(key).map(drop)) else {
                let Some(found) = found else { continue };
                let row = GapRow {
                    route_key: key.clone(),
                    started_at: found.unstored_since,
                    ended_at: Some(now),
                    reason: "store_damaged".to_owned(),
                };
                if store
                    .change_gaps(key, |rows| gaps::with_row(rows, row))
                    .is_ok()
                {
                    self.damage.heal(key);
                }
                continue;
            };
            match error {
                StoreError::Busy => {}
                error => self.damage.note(key, now, error)?,
            }
        }
        Ok(())
    }

    /// Opens a hole for what arrived and is not stored: the run ends without it. A message may be posted some time before it arrives.
    pub(super) fn unstored(&self, since: Timestamp) -> Result<(), StoreError> {
        self.open(gaps::proved_until(Some(since), since), None, "not_running")
    }

    /// Remembers that the stream showed a sign of life.
    pub(super) fn alive(&self, now: Timestamp) {
        self.last_sign.set(Some(now));
    }

    pub(super) fn disconnected(&self, now: Timestamp) -> Result<(), StoreError> {
        self.open(
            now.plus_seconds(-UNNOTICED).unwrap_or(now),
            None,
            "disconnected",
        )
    }

    pub(super) fn consumer_lost(&self, now: Timestamp) -> Result<(), StoreError> {
        let earliest = now.plus_seconds(-UNNOTICED).unwrap_or(now);
        let since = self
            .last_sign
            .get()
            .map_or(earliest, |sign| sign.max(earliest))
            .min(now);
        self.open(since, None, "consumer_lost")
    }

    pub(super) fn warned(&self, now: Timestamp) -> Result<(), StoreError> {
        // A flood of warnings is one hole: only the first and one every few seconds are written.
        if let Some(last) = self.last_warning.get()
            && now.seconds_since(last) < WARNING_PACE
        {
            return Ok(());
        }
        self.last_warning.set(Some(now));
        self.open(
            now.plus_seconds(-WARNED).unwrap_or(now),
            now.plus_seconds(WARNING_PACE).or(Some(now)),
            "warning",
        )
    }

    /// Closes what is open: the stream stands again.
    pub(super) fn close(&self, now: Timestamp) -> Result<(), StoreError> {
        for route in 0..self.routes.len() {
            let what = What::Close(now);
            self.waiting.borrow_mut().push_back(Change { route, what });
        }
        self.flush()
    }

    /// Tells whether something is still to be written.
    pub(super) fn is_waiting(&self) -> bool {
        !self.waiting.borrow().is_empty()
    }

    /// Writes what waits; a busy store leaves the rest for the next time.
    pub(super) fn flush(&self) -> Result<(), StoreError> {
        let mut waiting = self.waiting.borrow_mut();
        while let Some(change) = waiting.front() {
            let (key, store) = &self.routes[change.route];
            let done = match &change.what {
                What::Add(row) => store
                    .change_gaps(key, |rows| gaps::with_row(rows, row.clone()))
                    .map(drop),
                What::Close(at) => close(store, key, *at),
            };
            match done {
                Ok(()) => waiting.pop_front(),
                Err(StoreError::Busy) => return Ok(()),
                Err(error) => {
                    let since = match &change.what {
                        What::Add(row) => row.started_at,
                        What::Close(at) => *at,
                    };
                    self.damage.note(key, since, error)?;
                    waiting.pop_front()
                }
            };
        }
        Ok(())
    }

    fn open(
        &self,
        since: Timestamp,
        until: Option<Timestamp>,
        reason: &str,
    ) -> Result<(), StoreError> {
        for route in 0..self.routes.len() {
            self.add(route, (since, until), reason);
        }
        self.flush()
    }

    fn add(&self, route: usize, (since, until): (Timestamp, Option<Timestamp>), reason: &str) {
        let row = GapRow {
            route_key: self.routes[route].0.clone(),
            started_at: since,
            ended_at: until,
            reason: reason.to_owned(),
        };
        let what = What::Add(row);
        self.waiting.borrow_mut().push_back(Change { route, what });
    }
}

fn close(store: &Inbox, key: &str, at: Timestamp) -> Result<(), StoreError> {
    if store.gaps(key)?.iter().any(|row| row.ended_at.is_none()) {
        store.change_gaps(key, |rows| gaps::closed(rows, at))?;
    }
    Ok(())
}
