//! Which window a turn start reads of one route, and where the position stands after a page (`docs/spec/lark-inbox.md` 11).

use crate::contract::channel::ids::Opaque;
use crate::contract::inbox::collector::TurnStartSync;
use crate::contract::inbox::turn_start::SyncCursor;
use crate::contract::time::Timestamp;

/// Returns the window to read, as a position before its page; none when nothing can be new.
pub fn window(
    stored: Option<&SyncCursor>,
    sync: &TurnStartSync,
    now: Timestamp,
) -> Option<SyncCursor> {
    let Some(stored) = stored else {
        let start = now.plus_seconds(-sync.initial_lookback_seconds)?;
        return Some(open(None, start, now));
    };
    if stored.token.is_some() {
        return Some(stored.clone());
    }
    // A window that was given up before its end is read again from its start.
    let (last_end, start) = match stored.last_end {
        Some(end) if end >= now => return None,
        Some(end) => (Some(end), end.plus_seconds(-sync.overlap_seconds)?),
        None => (None, stored.window_start),
    };
    (start < now).then(|| open(last_end, start, now))
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
        let first = window(None, &SYNC, at(0)).expect("a window");
        assert_eq!((first.window_start, first.window_end), (at(-900), at(0)));
        let stored = after_page(&first, None);
        assert_eq!(stored.last_end, Some(at(0)));
        assert_eq!(window(Some(&stored), &SYNC, at(0)), None);
        let next = window(Some(&stored), &SYNC, at(60)).expect("a window");
        assert_eq!((next.window_start, next.window_end), (at(-5), at(60)));
    }

    #[test]
    fn a_cut_window_goes_on_with_its_own_end() {
        let first = window(None, &SYNC, at(0)).expect("a window");
        let cut = after_page(&first, Some(Opaque::new("t")));
        let resumed = window(Some(&cut), &SYNC, at(60)).expect("a window");
        assert_eq!(resumed, cut);
        assert_eq!(after_page(&resumed, None).last_end, Some(at(0)));
    }

    #[test]
    fn a_window_without_its_next_page_is_read_again_whole() {
        let first = window(None, &SYNC, at(0)).expect("a window");
        let lost = without_token(&after_page(&first, Some(Opaque::new("t"))));
        let again = window(Some(&lost), &SYNC, at(60)).expect("a window");
        assert_eq!((again.window_start, again.window_end), (at(-900), at(60)));
        let later = SyncCursor {
            last_end: Some(at(-100)),
            ..lost
        };
        let again = window(Some(&later), &SYNC, at(60)).expect("a window");
        assert_eq!(again.window_start, at(-105));
    }
}
