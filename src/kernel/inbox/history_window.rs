//! Which window of a route's history is read next, `docs/spec/lark-inbox.md` 10.2.
//!
//! A window is frozen when it opens, because a page token belongs to it. Lower and upper coverage are separate: a later call opens one
//! forward window from the old end, and one extension to an earlier start reads only the missing part.

use crate::contract::channel::ids::{Opaque, RouteKey};
use crate::contract::digest;
use crate::contract::inbox::cursor::{HistoryCursor, WindowKind};
use crate::contract::inbox::fault::InboxFault;
use crate::contract::time::Timestamp;

/// What a call does with the stored position.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Transition {
    Initialized,
    Resumed,
    Replayed,
    EarlierWindowInitialized,
    ForwardWindowInitialized,
}

/// What a call is about.
#[derive(Clone, Debug)]
pub struct HistoryRequest<'a> {
    pub route_key: &'a RouteKey,
    pub fingerprint: &'a str,
    pub start: Timestamp,
    pub now: Timestamp,
}

/// A decided call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// Everything asked for is covered: no read.
    Replayed(HistoryCursor),
    /// One page of this window.
    Read(Transition, OpenWindow),
}

/// A window with a page to read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenWindow {
    cursor: HistoryCursor,
}

/// Decides from the stored position; a changed binding is refused before any read.
pub fn resolve(
    stored: Option<HistoryCursor>,
    request: &HistoryRequest<'_>,
) -> Result<Step, InboxFault> {
    let Some(cursor) = stored else {
        let window = window(request, WindowKind::Initial, request.start, request.now)
            .ok_or(InboxFault::StartNotPast)?;
        return Ok(Step::Read(Transition::Initialized, window));
    };
    if &cursor.route_key != request.route_key {
        return Err(InboxFault::CursorRoute);
    }
    if cursor.source_fingerprint != request.fingerprint {
        return Err(InboxFault::CursorSource);
    }
    if !cursor.is_complete {
        let is_inside = cursor.kind == WindowKind::Forward
            && (cursor.coverage_start..=cursor.window_start).contains(&request.start);
        return match request.start == cursor.window_start || is_inside {
            true => Ok(Step::Read(Transition::Resumed, OpenWindow { cursor })),
            false => Err(InboxFault::StartDiffers),
        };
    }
    if request.start >= cursor.coverage_start && request.now <= cursor.coverage_end {
        return Ok(match proved_before(&cursor, request.now) {
            None => Step::Replayed(cursor),
            Some(proved) => Step::Read(
                Transition::ForwardWindowInitialized,
                forward(
                    HistoryCursor {
                        coverage_end: proved,
                        ..cursor
                    },
                    request.now,
                ),
            ),
        });
    }
    if request.start < cursor.coverage_start {
        if cursor.earlier_start_used {
            return Err(InboxFault::EarlierUsed);
        }
        return Ok(Step::Read(
            Transition::EarlierWindowInitialized,
            earlier(cursor, request.start),
        ));
    }
    Ok(Step::Read(
        Transition::ForwardWindowInitialized,
        forward(cursor, request.now),
    ))
}

/// Coverage that ends after now was read with a clock that was ahead: what was posted since is not in it. Returns up to when it is proved.
fn proved_before(cursor: &HistoryCursor, now: Timestamp) -> Option<Timestamp> {
    let by_window = (cursor.kind == WindowKind::Forward).then_some(cursor.window_start);
    let mut proved = by_window.into_iter().chain([cursor.coverage_start]);
    proved
        .find(|proved| *proved < now)
        .filter(|_| now < cursor.coverage_end)
}

fn window(
    request: &HistoryRequest<'_>,
    kind: WindowKind,
    start: Timestamp,
    end: Timestamp,
) -> Option<OpenWindow> {
    (start < end).then(|| OpenWindow {
        cursor: HistoryCursor {
            route_key: request.route_key.clone(),
            source_fingerprint: request.fingerprint.to_owned(),
            kind,
            window_start: start,
            window_end: end,
            coverage_start: start,
            coverage_end: start,
            token: None,
            is_complete: false,
            earlier_start_used: false,
            page_count: 0,
            message_count: 0,
            last_page_digest: String::new(),
        },
    })
}

fn earlier(cursor: HistoryCursor, start: Timestamp) -> OpenWindow {
    let end = cursor.coverage_start;
    OpenWindow {
        cursor: HistoryCursor {
            kind: WindowKind::Earlier,
            window_start: start,
            window_end: end,
            earlier_start_used: true,
            ..reopened(cursor)
        },
    }
}

fn forward(cursor: HistoryCursor, now: Timestamp) -> OpenWindow {
    let start = cursor.coverage_end;
    OpenWindow {
        cursor: HistoryCursor {
            kind: WindowKind::Forward,
            window_start: start,
            window_end: now,
            ..reopened(cursor)
        },
    }
}

fn reopened(cursor: HistoryCursor) -> HistoryCursor {
    HistoryCursor {
        token: None,
        is_complete: false,
        page_count: 0,
        message_count: 0,
        ..cursor
    }
}

impl OpenWindow {
    /// Returns the first instant to read.
    pub fn start(&self) -> Timestamp {
        self.cursor.window_start
    }

    /// Returns the frozen end.
    pub fn end(&self) -> Timestamp {
        self.cursor.window_end
    }

    /// Returns the token of the page to read.
    pub fn token(&self) -> Option<&Opaque> {
        self.cursor.token.as_ref()
    }

    /// Returns how many pages and messages of the window are read.
    pub fn read_before(&self) -> (u64, u64) {
        (self.cursor.page_count, self.cursor.message_count)
    }

    /// Returns the position after a page with these messages; `next` is the token of the page behind it.
    pub fn after_page(&self, ids: &[&str], next: Option<Opaque>) -> HistoryCursor {
        let mut parts = ids.to_vec();
        let end = next.as_ref().map_or("complete", |token| token.as_str());
        parts.push(end);
        let last_page_digest = digest::nul_joined(&parts).short(16);
        let is_complete = next.is_none();
        let mut cursor = HistoryCursor {
            token: next,
            is_complete,
            page_count: self.cursor.page_count + 1,
            message_count: self.cursor.message_count + ids.len() as u64,
            last_page_digest,
            ..self.cursor.clone()
        };
        match (is_complete, cursor.kind) {
            (true, WindowKind::Earlier) => cursor.coverage_start = cursor.window_start,
            (true, _) => cursor.coverage_end = cursor.window_end,
            (false, _) => {}
        }
        cursor
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_unix(1_785_000_000 + minutes * 60).expect("instant")
    }

    fn step(stored: Option<HistoryCursor>, start: i64, now: i64) -> Result<Step, InboxFault> {
        let key = RouteKey::new("a").expect("key");
        resolve(
            stored,
            &HistoryRequest {
                route_key: &key,
                fingerprint: "f",
                start: at(start),
                now: at(now),
            },
        )
    }

    fn read(stored: Option<HistoryCursor>, start: i64, now: i64, more: bool) -> HistoryCursor {
        match step(stored, start, now).expect("read") {
            Step::Read(_, window) => window.after_page(&["om_1"], more.then(|| Opaque::new("t"))),
            Step::Replayed(_) => panic!("a read was expected"),
        }
    }

    #[test]
    fn the_first_window_needs_a_start_in_the_past() {
        assert_eq!(step(None, 5, 5), Err(InboxFault::StartNotPast));
        assert!(matches!(
            step(None, 4, 5),
            Ok(Step::Read(Transition::Initialized, _))
        ));
    }

    #[test]
    fn an_open_window_is_continued_by_its_own_start() {
        let open = read(None, 0, 10, true);
        assert!(matches!(
            step(Some(open.clone()), 0, 99),
            Ok(Step::Read(Transition::Resumed, _))
        ));
        assert_eq!(step(Some(open), 1, 99), Err(InboxFault::StartDiffers));
    }

    #[test]
    fn a_complete_window_replays_while_current_and_then_moves_forward() {
        let done = read(None, 0, 10, false);
        assert!(matches!(
            step(Some(done.clone()), 3, 10),
            Ok(Step::Replayed(_))
        ));
        let forward = read(Some(done), 3, 20, true);
        assert_eq!(
            (
                forward.window_start,
                forward.window_end,
                forward.coverage_end
            ),
            (at(10), at(20), at(10))
        );
        assert!(matches!(
            step(Some(forward.clone()), 7, 99),
            Ok(Step::Read(Transition::Resumed, _))
        ));
        assert_eq!(step(Some(forward), 11, 99), Err(InboxFault::StartDiffers));
    }

    #[test]
    fn coverage_ahead_of_the_clock_is_read_again_from_its_last_proof() {
        let done = read(None, 0, 10, false);
        let ahead = read(Some(done), 0, 900, false);
        let again = read(Some(ahead), 0, 60, false);
        assert_eq!(
            (again.window_start, again.window_end, again.coverage_end),
            (at(10), at(60), at(60))
        );
        assert_eq!(again.coverage_start, at(0));
        let twice = read(Some(read(None, 0, 900, false)), 0, 60, true);
        assert_eq!((twice.window_start, twice.coverage_end), (at(0), at(0)));
    }

    #[test]
    fn one_earlier_window_reads_the_missing_part_only() {
        let done = read(None, 5, 10, false);
        let earlier = read(Some(done), 0, 20, false);
        assert_eq!(
            (
                earlier.window_end,
                earlier.coverage_start,
                earlier.coverage_end
            ),
            (at(5), at(0), at(10))
        );
        assert_eq!(
            step(Some(earlier.clone()), -5, 20),
            Err(InboxFault::EarlierUsed)
        );
        let forward = read(Some(earlier), 0, 20, false);
        assert_eq!(
            (
                forward.window_start,
                forward.coverage_start,
                forward.coverage_end
            ),
            (at(10), at(0), at(20))
        );
    }

    #[test]
    fn a_changed_binding_is_refused_first() {
        let mut foreign = read(None, 0, 10, false);
        foreign.source_fingerprint = "other".to_owned();
        assert_eq!(step(Some(foreign), 0, 5), Err(InboxFault::CursorSource));
    }

    proptest! {
        #[test]
        fn every_position_holds_its_invariants_and_never_loses_coverage(
            calls in proptest::collection::vec((0_i64..40, 0_i64..10, any::<bool>()), 1..12)
        ) {
            let (mut stored, mut now): (Option<HistoryCursor>, i64) = (None, 50);
            for (start, later, more) in calls {
                now += later;
                if let Ok(Step::Read(_, window)) = step(stored.clone(), start, now) {
                    let next = window.after_page(&[], more.then(|| Opaque::new("t")));
                    let text = crate::contract::json::parse_object(next.to_text().as_bytes()).expect("json");
                    prop_assert_eq!(HistoryCursor::parse(&text), Ok(next.clone()));
                    if let Some(before) = &stored {
                        prop_assert!(next.coverage_start <= before.coverage_start && next.coverage_end >= before.coverage_end);
                    }
                    stored = Some(next);
                }
            }
        }
    }
}
