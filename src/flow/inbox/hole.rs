//! Keeping the possible holes of a live stream: opened when one can be, closed when the stream stands again.

use std::cell::Cell;

use crate::contract::inbox::gap::GapRow;
use crate::contract::time::Timestamp;
use crate::flow::inbox::context::BoundCollector;
use crate::flow::inbox::error::InboxError;
use crate::kernel::inbox::gaps;
use crate::store::StoreError;
use crate::store::inbox::Inbox;

/// A lost connection may go unnoticed for this long, in seconds.
const UNNOTICED: i64 = 120;
/// A warning speaks of what was just lost, in seconds.
const WARNED: i64 = 60;

/// The holes of all enabled routes.
pub(super) struct Holes {
    routes: Vec<(String, Inbox)>,
    last_sign: Cell<Option<Timestamp>>,
}

impl Holes {
    pub(super) fn new(collector: &BoundCollector) -> Result<Self, InboxError> {
        let routes = collector.enabled().map(|route| {
            let key = route
                .route_key()
                .map_or_else(String::new, |key| key.as_str().to_owned());
            Ok((key, route.store()?))
        });
        Ok(Self {
            routes: routes.collect::<Result<_, InboxError>>()?,
            last_sign: Cell::new(None),
        })
    }

    /// Opens a hole since the newest sign of life of an earlier run; without one there was nothing to miss.
    pub(super) fn open_since(
        &self,
        updated: Option<Timestamp>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        for (key, store) in &self.routes {
            let event = store
                .newest_live_millis(key)?
                .and_then(|millis| Timestamp::from_unix(millis.div_euclid(1000)));
            let Some(since) = updated.max(event).filter(|since| *since < now) else {
                continue;
            };
            self.add(key, store, (since, None), "not_running")?;
        }
        Ok(())
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
        self.open(
            now.plus_seconds(-WARNED).unwrap_or(now),
            Some(now),
            "warning",
        )
    }

    /// Closes what is open: the stream stands again.
    pub(super) fn close(&self, now: Timestamp) -> Result<(), StoreError> {
        for (key, store) in &self.routes {
            if store.gaps(key)?.iter().any(|row| row.ended_at.is_none()) {
                store.change_gaps(key, |rows| gaps::closed(rows, now))?;
            }
        }
        Ok(())
    }

    fn open(
        &self,
        since: Timestamp,
        until: Option<Timestamp>,
        reason: &str,
    ) -> Result<(), StoreError> {
        for (key, store) in &self.routes {
            self.add(key, store, (since, until), reason)?;
        }
        Ok(())
    }

    fn add(
        &self,
        key: &str,
        store: &Inbox,
        (since, until): (Timestamp, Option<Timestamp>),
        reason: &str,
    ) -> Result<(), StoreError> {
        let row = GapRow {
            route_key: key.to_owned(),
            started_at: since,
            ended_at: until,
            reason: reason.to_owned(),
        };
        store.change_gaps(key, |rows| gaps::with_row(rows, row))?;
        Ok(())
    }
}
