//! Which window a turn start reads of one route, and where the position stands after a page (`docs/spec/lark-inbox.md` 11).

use crate::contract::channel::ids::Opaque;
use crate::contract::inbox::collector::TurnStartSync;
use crate::contract::inbox::turn_start::SyncCursor;
use crate::contract::time::Timestamp;

/// Returns the window to read, as a position before its page; none when nothing can be new.
///
/// `newest` is the newest message stored of the route. A position ahead of the clock proves nothing up to now: whoever wrote it had a
/// clock that was ahead, and what was posted since lies before it.
pub fn window(
    stored: Option<&SyncCursor>,
    newest: Option<Timestamp>,
    sync: &TurnStartSync,
    now: Timestamp,
) -> Option<SyncCursor> {
    let looked_back = now.plus_seconds(-sync.initial_lookback_seconds);
    let Some(stored) = stored else {
        return Some(open(None, looked_back?, now));
    };
    if is_ahead(stored, sync, now) {
        let overlapped = newest.and_then(|newest| newest.plus_seconds(-sync.overlap_seconds));
        let proved = [Some(stored.window_start), overlapped, looked_back];
        let start = proved.into_iter().flatten().min()?;
        return Some(open(None, start, now)).filter(|_| start < now);
    }
    if stored.token.is_some() {
        return Some(stored.clone());
    }
    // A window that was given up before its end is read again from its start.
    let (last_end, start) = match stored.last_end {
        Some(end) if end >= now => return None,
        Some(end) => (Some(end), end.plus_seconds(-sync.overlap_seconds)?),
        None => (None, stored.window_start),
    };
    Some(open(last_end, start, now))
}

/// Tells whether a position lies ahead of the clock by more than the next window overlaps it.
pub fn is_ahead(stored: &SyncCursor, sync: &TurnStartSync, now: Timestamp) -> bool {
    let reached = match (&stored.token, stored.last_end) {
        (Some(_), _) => Some(stored.window_end),
        (None, Some(end)) => end.plus_seconds(-sync.overlap_seconds),
        (None, None) => Some(stored.window_start),
    };
    reached.is_some_and(|reached| reached > now)
}

/// Returns an instant that is not later than the newest of these times: milliseconds since the epoch, or a day and a time of an unnamed
/// zone, which is taken for the easternmost one.
pub fn newest<T: AsRef<str>>(times: &[T]) -> Option<Timestamp> {
    const EASTERNMOST: i64 = 14 * 3600;
    let instant = |time: &str| match time.len() {
        13 => Timestamp::from_unix(time.parse::<i64>().ok()?.div_euclid(1000)),
        16 => Timestamp::parse(&format!("{time}:00Z"))?.plus_seconds(-EASTERNMOST),
        _ => None,
    };
    times.iter().filter_map(|time| instant(time.as_ref())).max()
}

fn open(last_end: Option<Timestamp>, start: Timestamp, now: Timestamp) -> SyncCursor {
    SyncCursor {
        last_end,
        window_start: start,
        window_end: now,
        token: None,
    }
}

/// Returns the position after a page of a window.
pub fn after_page(window: &SyncCursor, next: Option<Opaque>) -> SyncCursor {
    SyncCursor {
        last_end: match next {
            Some(_) => window.last_end,
            None => Some(window.window_end),
        },
        token: next,
        ..window.clone()
    }
}

/// Returns the position when the next page of a window cannot be had any more: the window is read again from its start.
pub fn without_token(window: &SyncCursor) -> SyncCursor {
    SyncCursor {
        token: None,
        ..window.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SYNC: TurnStartSync = TurnStartSync {
        initial_lookback_seconds: 900,
        overlap_seconds: 5,
        page_size: 50,
    };

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix(1_789_000_000 + seconds).expect("an instant")
    }

    #[test]
    fn the_first_window_looks_back_and_the_next_overlaps_it() {
        let first = window(None, None, &SYNC, at(0)).expect("a window");
        assert_eq!((first.window_start, first.window_end), (at(-900), at(0)));
        let stored = after_page(&first, None);
        assert_eq!(stored.last_end, Some(at(0)));
        assert_eq!(window(Some(&stored), None, &SYNC, at(0)), None);
        let next = window(Some(&stored), None, &SYNC, at(60)).expect("a window");
        assert_eq!((next.window_start, next.window_end), (at(-5), at(60)));
    }

    #[test]
    fn a_cut_window_goes_on_with_its_own_end() {
        let first = window(None, None, &SYNC, at(0)).expect("a window");
        let cut = after_page(&first, Some(Opaque::new("t")));
        let resumed = window(Some(&cut), None, &SYNC, at(60)).expect("a window");
        assert_eq!(resumed, cut);
        assert_eq!(after_page(&resumed, None).last_end, Some(at(0)));
    }

    #[test]
    fn a_window_without_its_next_page_is_read_again_whole() {
        let first = window(None, None, &SYNC, at(0)).expect("a window");
        let lost = without_token(&after_page(&first, Some(Opaque::new("t"))));
        let again = window(Some(&lost), None, &SYNC, at(60)).expect("a window");
        assert_eq!((again.window_start, again.window_end), (at(-900), at(60)));
        let later = SyncCursor {
            last_end: Some(at(-100)),
            ..lost
        };
        let again = window(Some(&later), None, &SYNC, at(60)).expect("a window");
        assert_eq!(again.window_start, at(-105));
    }

    #[test]
    fn a_position_ahead_of_the_clock_is_read_again_from_the_oldest_proof() {
        const DAY: i64 = 86_400;
        let ahead = SyncCursor {
            last_end: Some(at(DAY)),
            ..open(None, at(-5), at(DAY))
        };
        let again = window(Some(&ahead), None, &SYNC, at(3600)).expect("a window");
        assert_eq!(
            (again.last_end, again.window_start, again.window_end),
            (None, at(-5), at(3600))
        );
        let twice = SyncCursor {
            last_end: Some(at(2 * DAY)),
            ..open(None, at(DAY - 5), at(2 * DAY))
        };
        let again = window(Some(&twice), None, &SYNC, at(3600)).expect("a window");
        assert_eq!(again.window_start, at(2700));
        let again = window(Some(&twice), Some(at(-60)), &SYNC, at(3600)).expect("a window");
        assert_eq!(again.window_start, at(-65));
    }

    #[test]
    fn an_open_or_given_up_window_ahead_of_the_clock_is_opened_anew() {
        let cut = after_page(&open(None, at(500), at(900)), Some(Opaque::new("t")));
        for stored in [without_token(&cut), cut] {
            let again = window(Some(&stored), None, &SYNC, at(100)).expect("a window");
            assert_eq!((again.window_start, again.window_end), (at(-800), at(100)));
            assert!(again.token.is_none());
        }
    }

    #[test]
    fn the_newest_time_is_never_later_than_it_was() {
        assert_eq!(
            newest(&["1789000007000", "1789000003999", "x"]),
            Some(at(7))
        );
        let local = Timestamp::parse("2026-09-09T10:00:00Z");
        assert_eq!(newest(&["2026-09-10 00:00"]), local);
        assert_eq!(newest::<&str>(&[]), None);
    }

    #[test]
    fn a_position_that_the_next_window_overlaps_is_not_read_twice() {
        let first = window(None, None, &SYNC, at(0)).expect("a window");
        let stored = after_page(&first, None);
        assert_eq!(window(Some(&stored), None, &SYNC, at(-5)), None);
        assert!(window(Some(&stored), None, &SYNC, at(-6)).is_some());
    }
}
