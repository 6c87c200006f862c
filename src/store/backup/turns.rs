//! Brings the files of Turns in a backup to where its copied store stands.
//!
//! A Turn goes on while files are copied: its journal moves several steps, and a new Turn has a row whose files the
//! listing never saw. The row holds the bytes of its journal, and a captured decision lies whole in its place before its
//! row does and never changes, so everything a copied row needs can still be had after the store was copied.

use std::path::Path;

use super::BackupError;
use crate::contract::digest;
use crate::contract::ids::{GoalId, TurnKey};
use crate::store::document::capture::{self, Found};
use crate::store::journal::turn::journal_path;
use crate::store::rows::Rows;
use crate::store::{StoreError, database, private_file};

/// Writes the journals the copied store holds, and takes the captures along that came after the listing.
pub(super) fn bring_up(store: &Path, live: &Path, copy: &Path) -> Result<(), BackupError> {
    let connection = database::open_as_it_is(store)?;
    let rows = Rows(&connection);
    rows.each_turn(|row| {
        let place = (GoalId::new(row.goal_id), TurnKey::new(row.turn_key));
        let (Some(goal), Some(key)) = place else {
            return Ok(());
        };
        let text = row.journal_json.as_bytes();
        // A Turn without a journal has an empty digest, and a damaged row proves nothing.
        match digest::content_digest(text).hex() == row.journal_sha256 {
            true => put(&journal_path(copy, &goal, &key), text),
            false => Ok(()),
        }
    })?;
    rows.each_capture(|row| {
        let Some(goal) = GoalId::new(row.goal_id.as_str()) else {
            return Ok(());
        };
        let Some(target) = capture::path(copy, &goal, &row).filter(|path| !path.exists()) else {
            return Ok(());
        };
        match capture::read(live, &goal, &row)? {
            Found::Bytes(bytes) => put(&target, &bytes),
            // What is lost or damaged here is so in the backup: its Turn refuses there as it does here.
            _ => Ok(()),
        }
    })
}

fn put(path: &Path, bytes: &[u8]) -> Result<(), BackupError> {
    // Nearly all journals were copied as their rows have them.
    let there = private_file::read_up_to(path, bytes.len() as u64);
    if there.ok().flatten().as_deref() == Some(bytes) {
        return Ok(());
    }
    private_file::create_dir(path.parent().unwrap_or(path)).map_err(StoreError::write)?;
    Ok(private_file::replace(path, bytes)?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use rusqlite::params;

    use super::*;
    use crate::store::schema;

    const KEY: &str = "sha256:00000000000000000000000000000000000000000000000000000000000000aa";

    fn store(root: &Path, journal: &str, capture: &str) -> std::path::PathBuf {
        let path = root.join("state.sqlite3");
        let connection = database::open_write(&path, schema::STATE).unwrap();
        let sha = digest::content_digest(journal.as_bytes()).hex();
        connection
            .execute(
                "INSERT INTO turns VALUES(?1,'g','a','e',NULL,'in_progress','',0,?2,?3,'','c')",
                params![KEY, journal, sha],
            )
            .unwrap();
        let sha = digest::content_digest(capture.as_bytes()).hex();
        connection
            .execute(
                "INSERT INTO captures VALUES('c','g','a',?1,'e','turn','aa/new',?2,?3,'','','')",
                params![KEY, capture.len() as i64, sha],
            )
            .unwrap();
        path
    }

    #[test]
    fn a_copied_row_finds_its_journal_and_its_capture() {
        let root = tempfile::tempdir().unwrap();
        let (live, copy) = (root.path().join("live"), root.path().join("copy"));
        for folder in [&live, &copy] {
            private_file::create_dir(folder).unwrap();
        }
        let captures = live.join("goals/g/turn-captures/aa");
        private_file::create_dir(&captures).unwrap();
        private_file::create(&captures.join("new"), b"decision").unwrap();
        let journal = copy
            .join("goals/g/turns")
            .join(format!("{}.json", &KEY[7..]));
        private_file::create_dir(journal.parent().unwrap()).unwrap();
        private_file::create(&journal, b"several steps before").unwrap();
        let path = store(&copy, "{\"status\":\"in_progress\"}", "decision");
        bring_up(&path, &live, &copy).unwrap();
        assert_eq!(
            fs::read_to_string(&journal).unwrap(),
            "{\"status\":\"in_progress\"}"
        );
        let brought = copy.join("goals/g/turn-captures/aa/new");
        assert_eq!(fs::read(&brought).unwrap(), b"decision");
        fs::remove_file(&brought).unwrap();
        fs::write(captures.join("new"), "decisioN").unwrap();
        bring_up(&path, &live, &copy).unwrap();
        assert!(!brought.exists(), "other bytes are not taken for it");
    }
}
