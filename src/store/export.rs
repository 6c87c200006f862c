//! The readable exports of one goal: its events as JSON lines, its runs as an index and one file each.
//!
//! They are written after the commit, can be rebuilt and are never read back. The rows know how long the complete files are,
//! and the length of a file says where it goes on; one that ends inside a row is replaced by a fresh file. So a kill in
//! between costs nothing: the next write, replay or `doctor` completes them.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use rusqlite::params;
use serde_json::Value;

use super::StoreError;
use super::lock::{self, Claim, Export, Policy};
use super::private_file;
use super::rows::{Rows, line_bytes};
use crate::contract::digest;
use crate::contract::ids::GoalId;
use crate::contract::json;
use crate::contract::time::Timestamp;

/// The folder of one goal below the runtime root.
pub fn goal_dir(root: &Path, goal: &GoalId) -> PathBuf {
    root.join("goals").join(goal.as_str())
}

/// Completes the exports of a goal.
pub fn bring_up(
    root: &Path,
    rows: Rows<'_>,
    goal: &GoalId,
    now: Timestamp,
) -> Result<(), StoreError> {
    let folder = goal_dir(root, goal);
    private_file::create_dir(&folder).map_err(StoreError::write)?;
    let instant = now.to_string();
    let lock_id = digest::nul_joined(&["export", goal.as_str()]).short(16);
    let claim = Claim {
        lock_id: &lock_id,
        agent_id: None,
        operation: "export",
        policy: Policy::Mutation,
        now: &instant,
    };
    let _held = lock::acquire::<Export>(&folder.join(".export.lock"), &claim)?;
    // One look at the rows: what others commit meanwhile is theirs to export.
    let look = rows.0.unchecked_transaction()?;
    let rows = Rows(&look);
    let head = rows
        .head(goal)?
        .ok_or(StoreError::Corrupt("the rows of a known goal are gone"))?;
    let events = Lines {
        path: folder.join("rollout-event-log.jsonl"),
        rows,
        goal,
        select: EVENTS,
        total: head.events_bytes,
    };
    events.bring_up(&|_, _| Ok(()))?;
    let folder = folder.join("runs");
    if head.runs_bytes == 0 {
        return Ok(());
    }
    private_file::create_dir(&folder).map_err(StoreError::write)?;
    let runs = Lines {
        path: folder.join("index.jsonl"),
        rows,
        goal,
        select: RUNS,
        total: head.runs_bytes,
    };
    runs.bring_up(&|body, at| write_run(&folder, at.unwrap_or_default(), body))
}

/// True when the exports of a goal are as long as its rows make them.
pub fn is_complete(root: &Path, rows: Rows<'_>, goal: &GoalId) -> Result<bool, StoreError> {
    let folder = goal_dir(root, goal);
    let Some(head) = rows.head(goal)? else {
        return Ok(true);
    };
    let events = length(&folder.join("rollout-event-log.jsonl"))?;
    let runs = length(&folder.join("runs").join("index.jsonl"))?;
    Ok(events == head.events_bytes && runs == head.runs_bytes)
}

const EVENTS: &str = "SELECT seq,body_json,NULL FROM events WHERE goal_id=?1";
const RUNS: &str = "SELECT seq,body_json,generated_at FROM runs WHERE goal_id=?1";

/// One export that is being brought up.
struct Lines<'a> {
    path: PathBuf,
    rows: Rows<'a>,
    goal: &'a GoalId,
    select: &'static str,
    total: i64,
}

/// What one row is exported as.
type Each<'a> = &'a dyn Fn(&str, Option<&str>) -> io::Result<()>;

impl Lines<'_> {
    /// Appends what is missing; a file that is not a beginning of the rows is written anew.
    fn bring_up(&self, each: Each<'_>) -> Result<(), StoreError> {
        let length = length(&self.path)?;
        if length == self.total {
            return Ok(());
        }
        let written = match self.first_missing(length)? {
            Some(seq) => private_file::append_with(&self.path, |file| self.fill(file, seq, each)),
            None => private_file::export_with(&self.path, |file| self.fill(file, 0, each)),
        };
        written.map_err(StoreError::write)
    }

    /// The first row after a file of this length; `None` when no row ends there.
    fn first_missing(&self, length: i64) -> Result<Option<i64>, StoreError> {
        let mut missing = self.total - length;
        if length == 0 || missing < 0 {
            return Ok(None);
        }
        let sql = format!("{} ORDER BY seq DESC", self.select);
        let mut statement = self.rows.0.prepare(&sql)?;
        let mut found = statement.query([self.goal.as_str()])?;
        while let Some(row) = found.next()? {
            missing -= line_bytes(&row.get::<_, String>(1)?);
            match missing {
                0 => return Ok(Some(row.get(0)?)),
                ..0 => return Ok(None),
                _ => {}
            }
        }
        Ok(None)
    }

    fn fill(&self, file: &mut dyn Write, first: i64, each: Each<'_>) -> io::Result<()> {
        let sql = format!("{} AND seq>=?2 ORDER BY seq", self.select);
        let mut statement = self.rows.0.prepare(&sql).map_err(io::Error::other)?;
        let asked = params![self.goal.as_str(), first];
        let mut found = statement.query(asked).map_err(io::Error::other)?;
        while let Some(row) = found.next().map_err(io::Error::other)? {
            let body: String = row.get(1).map_err(io::Error::other)?;
            let at: Option<String> = row.get(2).map_err(io::Error::other)?;
            each(&body, at.as_deref())?;
            file.write_all(body.as_bytes())?;
            file.write_all(b"\n")?;
        }
        Ok(())
    }
}

fn length(path: &Path) -> Result<i64, StoreError> {
    match std::fs::symlink_metadata(path) {
        Ok(meta) if meta.is_file() => Ok(i64::try_from(meta.len()).unwrap_or(i64::MAX)),
        Ok(_) => Ok(-1),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
        Err(error) => Err(StoreError::write(error)),
    }
}

fn write_run(folder: &Path, at: &str, body: &str) -> io::Result<()> {
    let name = at.replace(':', "-");
    let value = json::parse_kept_value(body.as_bytes()).unwrap_or(Value::Null);
    let pretty = json::pretty(&value).unwrap_or_default();
    private_file::export(&folder.join(format!("{name}.json")), pretty.as_bytes())?;
    private_file::export(
        &folder.join(format!("{name}.md")),
        markdown(&value).as_bytes(),
    )
}

fn markdown(run: &Value) -> String {
    let word = |name: &str| run.get(name).and_then(Value::as_str).unwrap_or("-");
    format!(
        "# {}\n\n- Goal: {}\n- Agent: {}\n- At: {}\n- Next: {}\n",
        word("classification"),
        word("goal_id"),
        word("agent_id"),
        word("generated_at"),
        word("recommended_action")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::event::EventDraft;
    use crate::store::state::Store;

    #[test]
    fn a_torn_or_lost_export_is_completed_from_the_rows() {
        let folder = tempfile::tempdir().unwrap();
        let goal = GoalId::new("g").unwrap();
        let now = Timestamp::parse("2026-01-01T00:00:00Z").unwrap();
        let mut writer = Store::at(folder.path()).write().unwrap();
        writer.ensure_head(&goal, "i", None).unwrap();
        for _ in 0..3 {
            let mut tx = writer.begin(&goal, now).unwrap();
            tx.event(EventDraft::new("a", "x")).unwrap();
            tx.commit().unwrap();
            bring_up(folder.path(), writer.rows(), &goal, now).unwrap();
        }
        let path = goal_dir(folder.path(), &goal).join("rollout-event-log.jsonl");
        let whole = std::fs::read(&path).unwrap();
        assert_eq!(whole.iter().filter(|byte| **byte == b'\n').count(), 3);
        for broken in [&whole[..whole.len() - 5], &[][..]] {
            std::fs::write(&path, broken).unwrap();
            assert!(!is_complete(folder.path(), writer.rows(), &goal).unwrap());
            bring_up(folder.path(), writer.rows(), &goal, now).unwrap();
            assert_eq!(std::fs::read(&path).unwrap(), whole);
        }
    }

    #[test]
    fn a_row_longer_than_any_buffer_is_appended_to_once() {
        let folder = tempfile::tempdir().unwrap();
        let goal = GoalId::new("g").unwrap();
        let now = Timestamp::parse("2026-01-01T00:00:00Z").unwrap();
        let mut writer = Store::at(folder.path()).write().unwrap();
        writer.ensure_head(&goal, "i", None).unwrap();
        let mut add = |words: &str| {
            let mut tx = writer.begin(&goal, now).unwrap();
            tx.event(EventDraft::new("a", "x").detail("words", words))
                .unwrap();
            tx.commit().unwrap();
            bring_up(folder.path(), writer.rows(), &goal, now).unwrap();
            assert!(is_complete(folder.path(), writer.rows(), &goal).unwrap());
            let path = goal_dir(folder.path(), &goal).join("rollout-event-log.jsonl");
            std::os::unix::fs::MetadataExt::ino(&std::fs::metadata(path).unwrap())
        };
        let first = add(&"w".repeat(300_000));
        assert_eq!(add("short"), first, "nothing was written anew");
        assert_eq!(add(&"w".repeat(70_000)), first);
    }
}
