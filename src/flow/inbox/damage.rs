//! Routes whose inbox cannot be used while the others go on: what arrived for them is counted and lies in a hole that starts at a known
//! instant, kept in the status file because the damaged database cannot keep it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::contract::inbox::run_packet::DamagedRoute;
use crate::contract::time::Timestamp;
use crate::store::StoreError;

/// The damaged routes of a run, shared with the worker that stores.
#[derive(Default)]
pub(super) struct Damage(Mutex<BTreeMap<String, DamagedRoute>>);

impl Damage {
    fn routes(&self) -> MutexGuard<'_, BTreeMap<String, DamagedRoute>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what a failing store means: damage of one route stays with it, any other failure is given back.
    pub(super) fn note(
        &self,
        route: &str,
        since: Timestamp,
        error: StoreError,
    ) -> Result<(), StoreError> {
        let Some(code) = code(&error) else {
            return Err(error);
        };
        let mut routes = self.routes();
        let found = routes.entry(route.to_owned()).or_insert(DamagedRoute {
            route_key: route.to_owned(),
            error_code: code.to_owned(),
            unstored_since: since,
            unstored_event_count: 0,
        });
        found.error_code = code.to_owned();
        found.unstored_since = found.unstored_since.min(since);
        Ok(())
    }

    /// Counts an event that a damaged route could not take.
    pub(super) fn count(&self, route: &str) {
        if let Some(found) = self.routes().get_mut(route) {
            found.unstored_event_count += 1;
        }
    }

    /// Goes on counting where an earlier run ended.
    pub(super) fn resume(&self, earlier: &DamagedRoute) {
        if let Some(found) = self.routes().get_mut(&earlier.route_key) {
            found.unstored_since = found.unstored_since.min(earlier.unstored_since);
            found.unstored_event_count += earlier.unstored_event_count;
        }
    }

    /// Forgets a route that can be used again.
    pub(super) fn heal(&self, route: &str) {
        self.routes().remove(route);
    }

    /// The damaged routes, by key.
    pub(super) fn list(&self) -> Vec<DamagedRoute> {
        self.routes().values().cloned().collect()
    }
}

/// The code of an error that belongs to one inbox alone; a full disk or a busy store belongs to none.
pub(super) fn code(error: &StoreError) -> Option<&'static str> {
    match error {
        StoreError::Corrupt(_) | StoreError::Sql(_) => Some("store_corrupt"),
        StoreError::SchemaUnsupported { .. } => Some("schema_unsupported"),
        StoreError::Busy | StoreError::WriteFailed(_) | StoreError::LockTimeout(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix(1_789_000_000 + seconds).expect("an instant")
    }

    #[test]
    fn the_earliest_instant_and_every_event_are_kept() {
        let damage = Damage::default();
        let corrupt = || StoreError::Corrupt("x");
        assert!(damage.note("a", at(5), corrupt()).is_ok());
        assert!(damage.note("a", at(9), corrupt()).is_ok());
        damage.count("a");
        damage.count("b");
        let earlier = DamagedRoute {
            unstored_since: at(1),
            unstored_event_count: 2,
            ..damage.list()[0].clone()
        };
        damage.resume(&earlier);
        let found = &damage.list()[0];
        assert_eq!(
            (found.unstored_since, found.unstored_event_count),
            (at(1), 3)
        );
        assert_eq!(damage.list().len(), 1);
    }

    #[test]
    fn a_busy_store_is_no_damage() {
        let damage = Damage::default();
        assert!(damage.note("a", at(0), StoreError::Busy).is_err());
        assert!(damage.list().is_empty());
    }
}
