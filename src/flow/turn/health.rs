//! Whether a Turn that is not finished can go on: its row against its journal file and its capture, as `turn run-once`
//! would look at them (docs/spec/kernel.md 5.2, 10.3). Nothing is taken, brought up or written for a look.

use super::{capture, journal_file, journal_lock};
use crate::contract::ids::TurnKey;
use crate::contract::packet::Refusal;
use crate::flow::open::{Answer, Place};
use crate::kernel::turn::recover::{self, OnFailed, Recovery};
use crate::store::journal::turn::TurnRow;
use crate::store::lock;
use crate::store::rows::Rows;

/// How often a Turn is looked at that seems stuck: its row and its file may move between two looks.
const LOOKS: usize = 3;

/// The newest Turn of a goal that cannot go on, and the refusal it would meet.
pub fn stuck(place: &Place, rows: Rows<'_>) -> Answer<Option<(TurnKey, Refusal)>> {
    for key in rows.unfinished_turns(&place.goal.id)? {
        let key = TurnKey::new(key).ok_or_else(journal_file::inconsistent)?;
        if let Some(refusal) = refusal_of(place, rows, &key)? {
            return Ok(Some((key, refusal)));
        }
    }
    Ok(None)
}

fn refusal_of(place: &Place, rows: Rows<'_>, key: &TurnKey) -> Answer<Option<Refusal>> {
    let mut last = None;
    for _ in 0..LOOKS {
        let Some(row) = rows.turn(key)? else {
            return Ok(None);
        };
        let holder = lock::holder(&journal_lock::lock_path(place, key));
        if holder.is_some_and(|holder| holder.operation.as_deref() == Some("turn run-once")) {
            return Ok(None);
        }
        match look(place, rows, (key, &row)) {
            Ok(()) => return Ok(None),
            Err(refusal) => last = Some(refusal),
        }
    }
    Ok(last)
}

fn look(place: &Place, rows: Rows<'_>, (key, row): (&TurnKey, &TurnRow)) -> Answer<()> {
    journal_file::check_file(place, key, row)?;
    // A kill may have left the row with its capture alone.
    let journal = match row.journal_json.is_empty() {
        true => None,
        false => Some(journal_file::parse(row.journal_json.as_bytes())?),
    };
    let runs_a_host = match journal
        .as_ref()
        .map(|journal| recover::assess(journal, OnFailed::Retry))
    {
        None => true,
        Some(Recovery::Continue { reinvokes_host, .. }) => reinvokes_host,
        Some(Recovery::ReturnExisting(_) | Recovery::Blocked(_)) => false,
    };
    // An old Turn without a capture is no damage: it is answered by a new one.
    if runs_a_host && row.capture_id.is_some() {
        capture::verify(place, rows, row, journal.as_ref())?;
    }
    Ok(())
}
