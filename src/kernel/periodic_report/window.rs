//! The window of a report: a name, local dates or instants, and how a reader calls it.

use crate::contract::time::{Timestamp, Window};
use crate::kernel::zone::{LocalDay, Zone};

/// What was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowRequest {
    /// Monday to now.
    ThisWeek,
    /// The last completed ISO week.
    LastWeek,
    /// Seven times 24 hours.
    LastSevenDays,
    /// The week of the newest fact.
    Latest,
    /// Midnight to now.
    Today,
    /// The day before.
    Yesterday,
    /// From one edge to the other.
    Between(Edge, Edge),
}

/// One edge of a window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Edge {
    /// An instant.
    At(Timestamp),
    /// The first instant of a local day.
    Day(LocalDay),
}

/// Why there is no window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WindowFault {
    /// Nothing that names a window.
    #[error(
        "is none of this-week, last-week, last-7-days, latest, today, yesterday or START/END with local dates or instants with an offset"
    )]
    Unreadable,
    /// The end is not after the start.
    #[error("has no length: its end must be later than its start")]
    Empty,
    /// The end lies in the future.
    #[error("ends after the report is generated; choose an end that has passed")]
    InFuture,
    /// Outside the calendar.
    #[error("lies outside the calendar")]
    OutOfRange,
}

impl WindowRequest {
    /// Reads what was asked for.
    pub fn parse(text: &str) -> Result<Self, WindowFault> {
        match text {
            "this-week" => Ok(Self::ThisWeek),
            "last-week" => Ok(Self::LastWeek),
            "last-7-days" => Ok(Self::LastSevenDays),
            "latest" => Ok(Self::Latest),
            "today" => Ok(Self::Today),
            "yesterday" => Ok(Self::Yesterday),
            _ => {
                let (start, end) = text.split_once('/').ok_or(WindowFault::Unreadable)?;
                Ok(Self::Between(Edge::parse(start)?, Edge::parse(end)?))
            }
        }
    }

    /// Resolves the window. `newest` is the newest fact not later than `now`, for `latest` alone.
    pub fn resolve(
        self,
        zone: &Zone,
        now: Timestamp,
        newest: Option<Timestamp>,
    ) -> Result<Window, WindowFault> {
        let (start, end) = self
            .edges(zone, now, newest)
            .ok_or(WindowFault::OutOfRange)?;
        if end > now {
            return Err(WindowFault::InFuture);
        }
        Window::new(start, end).ok_or(WindowFault::Empty)
    }

    fn edges(
        self,
        zone: &Zone,
        now: Timestamp,
        newest: Option<Timestamp>,
    ) -> Option<(Timestamp, Timestamp)> {
        let today = zone.day_of(now)?;
        let start_of = |day: LocalDay| zone.start_of(day);
        match self {
            Self::ThisWeek => Some((start_of(today.monday()?)?, now)),
            Self::LastWeek => {
                let monday = today.monday()?;
                Some((start_of(monday.plus(-7)?)?, start_of(monday)?))
            }
            Self::LastSevenDays => Some((now.plus_seconds(-7 * 24 * 60 * 60)?, now)),
            Self::Latest => {
                let monday = zone.day_of(newest.unwrap_or(now))?.monday()?;
                let next = start_of(monday.plus(7)?)?;
                Some((start_of(monday)?, next.min(now)))
            }
            Self::Today => Some((start_of(today)?, now)),
            Self::Yesterday => Some((start_of(today.plus(-1)?)?, start_of(today)?)),
            Self::Between(start, end) => Some((start.instant(zone)?, end.instant(zone)?)),
        }
    }
}

impl Edge {
    fn parse(text: &str) -> Result<Self, WindowFault> {
        let day = LocalDay::parse(text).map(Self::Day);
        day.or_else(|| Timestamp::parse(text).map(Self::At))
            .ok_or(WindowFault::Unreadable)
    }

    fn instant(self, zone: &Zone) -> Option<Timestamp> {
        match self {
            Self::At(instant) => Some(instant),
            Self::Day(day) => zone.start_of(day),
        }
    }
}

/// How a reader calls a window: its first and last local day, and the week when it is exactly one.
pub fn label(window: &Window, zone: &Zone) -> Option<String> {
    let first = zone.day_of(window.start_at())?;
    let last = zone.last_day_before(window.end_at())?;
    if first == last {
        return Some(first.to_string());
    }
    let is_week = first.is_monday()
        && zone.start_of(first)? == window.start_at()
        && zone.start_of(first.plus(7)?)? == window.end_at();
    Some(match is_week {
        true => format!("{first} – {last} (W{:02})", first.week()),
        false => format!("{first} – {last}"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const NOW: &str = "2026-11-19T12:00:00Z";

    fn resolve(
        text: &str,
        zone: &str,
        newest: Option<&str>,
    ) -> Result<(String, String), WindowFault> {
        let zone = Zone::named(zone).expect("a zone");
        let instant = |text| Timestamp::parse(text).expect("an instant");
        let window =
            WindowRequest::parse(text)?.resolve(&zone, instant(NOW), newest.map(instant))?;
        Ok((window.start_at().to_string(), window.end_at().to_string()))
    }

    fn expect(start: &str, end: &str) -> Result<(String, String), WindowFault> {
        Ok((start.to_owned(), end.to_owned()))
    }

    #[test]
    fn named_windows_begin_at_local_midnight() {
        assert_eq!(
            resolve("this-week", "UTC", None),
            expect("2026-11-16T00:00:00Z", NOW)
        );
        assert_eq!(
            resolve("last-week", "Asia/Shanghai", None),
            expect("2026-11-08T16:00:00Z", "2026-11-15T16:00:00Z")
        );
        assert_eq!(
            resolve("yesterday", "America/New_York", None),
            expect("2026-11-18T05:00:00Z", "2026-11-19T05:00:00Z")
        );
        assert_eq!(
            resolve("last-7-days", "UTC", None),
            expect("2026-11-12T12:00:00Z", NOW)
        );
    }

    #[test]
    fn latest_is_the_week_of_the_newest_fact_cut_at_now() {
        assert_eq!(
            resolve("latest", "UTC", Some("2026-10-07T08:00:00Z")),
            expect("2026-10-05T00:00:00Z", "2026-10-12T00:00:00Z")
        );
        assert_eq!(
            resolve("latest", "UTC", None),
            resolve("this-week", "UTC", None)
        );
    }

    #[test]
    fn a_window_without_length_or_in_the_future_is_refused() {
        let fault = |text| resolve(text, "UTC", None);
        assert_eq!(fault("2026-11-18/2026-11-16"), Err(WindowFault::Empty));
        assert_eq!(fault("2026-11-16/2026-11-16"), Err(WindowFault::Empty));
        assert_eq!(fault("2026-11-16/2026-11-20"), Err(WindowFault::InFuture));
        assert_eq!(
            fault("2026-11-16T00:00:00/2026-11-17T00:00:00"),
            Err(WindowFault::Unreadable)
        );
        assert_eq!(
            fault("2026-11-16/2026-11-17/2026-11-18"),
            Err(WindowFault::Unreadable)
        );
        assert_eq!(
            resolve("2011-12-30/2011-12-31", "Pacific/Apia", None),
            Err(WindowFault::Empty)
        );
    }

    #[test]
    fn the_label_names_the_week_only_for_a_whole_one() {
        let labelled = |text| {
            let zone = Zone::named("Asia/Shanghai").expect("a zone");
            let now = Timestamp::parse(NOW).expect("an instant");
            let window =
                WindowRequest::parse(text).and_then(|asked| asked.resolve(&zone, now, None));
            label(&window.expect("a window"), &zone)
        };
        let expected = |text: &str| Some(text.to_owned());
        assert_eq!(
            labelled("last-week"),
            expected("2026-11-09 – 2026-11-15 (W46)")
        );
        assert_eq!(labelled("this-week"), expected("2026-11-16 – 2026-11-19"));
        assert_eq!(labelled("yesterday"), expected("2026-11-18"));
    }

    proptest! {
        #[test]
        fn any_text_is_a_window_or_a_fault(text in "\\PC{0,40}") {
            let _ = resolve(&text, "America/Havana", None);
        }

        #[test]
        fn every_named_window_ends_by_now(seconds in 946_684_800_i64..2_000_000_000, index in 0_usize..5) {
            let now = Timestamp::from_unix(seconds).expect("in range");
            let name = ["last-week", "last-7-days", "yesterday", "this-week", "today"][index];
            let zone = Zone::named("Australia/Lord_Howe").expect("a zone");
            if let Ok(window) = WindowRequest::parse(name).and_then(|asked| asked.resolve(&zone, now, None)) {
                prop_assert!(window.start_at() < window.end_at() && window.end_at() <= now);
            }
        }
    }
}
