//! Where the live stream may have holes, `docs/spec/lark-inbox.md` 8.7.
//!
//! Rows that overlap or touch become one with the earliest start and its reason. An open row has no end and swallows what follows it.

use crate::contract::inbox::cursor::{HistoryCursor, WindowKind};
use crate::contract::inbox::gap::GapRow;
use crate::contract::time::Timestamp;

/// Returns the rows with one more, merged.
pub fn with_row(mut rows: Vec<GapRow>, added: GapRow) -> Vec<GapRow> {
    rows.push(added);
    merged(rows)
}

/// Closes the open row.
pub fn closed(rows: Vec<GapRow>, at: Timestamp) -> Vec<GapRow> {
    let close = |mut row: GapRow| {
        if row.ended_at.is_none() {
            if row.started_at > at {
                row.started_at = unproved(at);
            }
            row.ended_at = Some(at);
        }
        row
    };
    merged(rows.into_iter().map(close).collect())
}

/// Drops closed rows that lie inside the covered interval.
pub fn without_covered(rows: Vec<GapRow>, start: Timestamp, end: Timestamp) -> Vec<GapRow> {
    let is_covered =
        |row: &GapRow| row.started_at >= start && row.ended_at.is_some_and(|ended| ended <= end);
    rows.into_iter().filter(|row| !is_covered(row)).collect()
}

/// The start that a catch-up accepts for a hole; none when the position would have to be moved aside first.
pub fn catch_up_start(
    cursor: Option<&HistoryCursor>,
    since: Timestamp,
    now: Timestamp,
) -> Option<Timestamp> {
    // A hole that begins after now was written with a clock that was ahead.
    let is_ahead = since >= now;
    let since = whole_seconds(match is_ahead {
        true => unproved(now),
        false => since,
    });
    let Some(cursor) = cursor else {
        return (since < now).then_some(since);
    };
    match (cursor.is_complete, cursor.kind) {
        (false, WindowKind::Initial | WindowKind::Earlier) => Some(cursor.window_start),
        (false, WindowKind::Forward) => {
            Some(since.clamp(cursor.coverage_start, cursor.window_start))
        }
        (true, _) if is_ahead && since < cursor.coverage_start => Some(cursor.coverage_start),
        (true, _) if since < cursor.coverage_start && cursor.earlier_start_used => None,
        (true, _) => Some(since),
    }
}

/// Where a hole begins whose begin is not known.
pub fn unproved(now: Timestamp) -> Timestamp {
    now.plus_seconds(-UNPROVED).unwrap_or(now)
}

fn whole_seconds(instant: Timestamp) -> Timestamp {
    Timestamp::from_unix(instant.unix_seconds()).unwrap_or(instant)
}

fn merged(mut rows: Vec<GapRow>) -> Vec<GapRow> {
    rows.sort_by_key(|row| row.started_at);
    let mut merged: Vec<GapRow> = Vec::new();
    for row in rows {
        match merged.last_mut() {
            Some(last) if last.ended_at.is_none_or(|ended| row.started_at <= ended) => {
                last.ended_at = match (last.ended_at, row.ended_at) {
                    (Some(one), Some(other)) => Some(one.max(other)),
                    _ => None,
                };
            }
            _ => merged.push(row),
        }
    }
    merged
}

/// A lost connection may go unnoticed for this long, and a message may be posted this long before it arrives, in seconds.
pub const UNNOTICED: i64 = 120;

/// How far a hole reaches back when the clock that would say it was ahead, in seconds.
const UNPROVED: i64 = 86_400;

/// Until when everything is proved to be stored: up to the sign of life, but no further than what the oldest unstored event allows. It may
/// have been posted some time before it arrived.
pub fn proved_until(oldest_unstored: Option<Timestamp>, sign: Timestamp) -> Timestamp {
    let posted = oldest_unstored.and_then(|arrived| arrived.plus_seconds(-UNNOTICED));
    posted.map_or(sign, |posted| posted.min(sign))
}

/// Until when the last status of a run proves that everything is stored. A run that wrote no end may have lost its connection unnoticed;
/// what it left unstored has its own margin already ([`proved_until`]), so the two margins never add up.
pub fn proved_by(
    running: bool,
    updated: Timestamp,
    drained: Option<Timestamp>,
) -> Option<Timestamp> {
    let sign = match running {
        true => updated.plus_seconds(-UNNOTICED)?,
        false => updated,
    };
    Some(drained.map_or(sign, |drained| drained.min(sign)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_unix(1_785_000_000 + seconds).expect("instant")
    }

    fn row(start: i64, end: Option<i64>, reason: &str) -> GapRow {
        GapRow {
            route_key: "a".to_owned(),
            started_at: at(start),
            ended_at: end.map(at),
            reason: reason.to_owned(),
        }
    }

    #[test]
    fn touching_rows_become_one_with_the_first_reason() {
        let rows = with_row(
            vec![row(0, Some(10), "not_running")],
            row(10, Some(20), "warning"),
        );
        assert_eq!(rows, vec![row(0, Some(20), "not_running")]);
        assert_eq!(with_row(rows, row(30, None, "disconnected")).len(), 2);
    }

    #[test]
    fn an_open_row_takes_in_what_follows() {
        let rows = with_row(
            vec![row(0, None, "disconnected")],
            row(50, Some(60), "warning"),
        );
        assert_eq!(rows, vec![row(0, None, "disconnected")]);
        assert_eq!(closed(rows, at(70)), vec![row(0, Some(70), "disconnected")]);
    }

    #[test]
    fn a_hole_that_begins_after_now_is_read_from_a_day_before() {
        let closed = closed(vec![row(5_000_000, None, "disconnected")], at(0));
        assert_eq!(closed, vec![row(-86_400, Some(0), "disconnected")]);
        assert_eq!(catch_up_start(None, at(9), at(0)), Some(at(-86_400)));
    }

    #[test]
    fn only_a_closed_and_covered_row_goes_away() {
        let rows = vec![
            row(0, Some(10), "a"),
            row(20, Some(40), "b"),
            row(50, None, "c"),
        ];
        let left = without_covered(rows, at(0), at(30));
        assert_eq!(left, vec![row(20, Some(40), "b"), row(50, None, "c")]);
    }

    proptest! {
        #[test]
        fn rows_never_overlap_and_at_most_the_last_is_open(parts in proptest::collection::vec((0_i64..100, proptest::option::of(0_i64..30)), 1..12)) {
            let mut rows = Vec::new();
            for (start, length) in parts {
                rows = with_row(rows, row(start, length.map(|length| start + length), "x"));
            }
            for pair in rows.windows(2) {
                prop_assert!(pair[0].ended_at.is_some_and(|ended| ended < pair[1].started_at));
            }
        }
    }

    #[test]
    fn what_was_not_stored_pulls_the_proof_back_before_it_was_posted() {
        let at = |seconds: i64| Timestamp::from_unix(1_789_000_000 + seconds).expect("an instant");
        assert_eq!(proved_until(None, at(0)), at(0));
        assert_eq!(proved_until(Some(at(-4)), at(0)), at(-124));
        assert_eq!(proved_until(Some(at(500)), at(0)), at(0));
        assert_eq!(proved_by(false, at(0), Some(at(-124))), Some(at(-124)));
        assert_eq!(proved_by(true, at(0), None), Some(at(-120)));
        assert_eq!(proved_by(false, at(0), Some(at(9))), Some(at(0)));
    }
}
