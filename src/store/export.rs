//! The readable exports of one goal: its events as JSON lines, its runs as an index and one file each.
//!
//! They are written after the commit, can be rebuilt and are never read back as facts. What the last complete line names is
//! where the next export goes on; a torn or foreign tail is replaced by a fresh file. So a kill in between costs nothing:
//! the next write, replay or `doctor` completes them.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use rusqlite::{OptionalExtension, params};
use serde_json::Value;

use super::StoreError;
use super::lock::{self, Claim, Export, Policy};
use super::private_file;
use super::state::Rows;
use crate::contract::digest;
use crate::contract::ids::GoalId;
use crate::contract::json;
use crate::contract::time::Timestamp;

const TAIL: u64 = 65_536;

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
    events(&folder, rows, goal)?;
    runs(&folder, rows, goal)
}

/// True when the exports of a goal end where its rows end.
pub fn is_complete(root: &Path, rows: Rows<'_>, goal: &GoalId) -> Result<bool, StoreError> {
    let folder = goal_dir(root, goal);
    let event = match after_tail(&folder.join("rollout-event-log.jsonl"), "event_id")? {
        Tail::After(id) => event_seq(rows, goal, &id)?,
        Tail::Nothing | Tail::Torn => None,
    };
    let run = match after_tail(&folder.join("runs").join("index.jsonl"), "generated_at")? {
        Tail::After(at) => run_seq(rows, goal, &at)?,
        Tail::Nothing | Tail::Torn => None,
    };
    let last_event: i64 = rows.0.query_row(
        "SELECT COALESCE(MAX(seq),0) FROM events WHERE goal_id=?1",
        [goal.as_str()],
        |row| row.get(0),
    )?;
    let last_run: i64 = rows.0.query_row(
        "SELECT COALESCE(MAX(seq),0) FROM runs WHERE goal_id=?1",
        [goal.as_str()],
        |row| row.get(0),
    )?;
    Ok(event.unwrap_or(0) == last_event && run.unwrap_or(0) == last_run)
}

fn events(folder: &Path, rows: Rows<'_>, goal: &GoalId) -> Result<(), StoreError> {
    let path = folder.join("rollout-event-log.jsonl");
    let after = match after_tail(&path, "event_id")? {
        Tail::After(id) => event_seq(rows, goal, &id)?,
        Tail::Nothing => Some(0),
        Tail::Torn => None,
    };
    let lines = event_lines(rows, goal, after.unwrap_or(0))?;
    write_lines(&path, after.is_some(), &lines)
}

fn runs(folder: &Path, rows: Rows<'_>, goal: &GoalId) -> Result<(), StoreError> {
    let folder = folder.join("runs");
    let path = folder.join("index.jsonl");
    let after = match after_tail(&path, "generated_at")? {
        Tail::After(at) => run_seq(rows, goal, &at)?,
        Tail::Nothing => Some(0),
        Tail::Torn => None,
    };
    let mut statement = rows.0.prepare(
        "SELECT generated_at,body_json FROM runs WHERE goal_id=?1 AND seq>?2 ORDER BY seq",
    )?;
    let found = statement.query_map(params![goal.as_str(), after.unwrap_or(0)], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
    })?;
    let mut lines = String::new();
    for row in found {
        let (at, body) = row?;
        if lines.is_empty() {
            private_file::create_dir(&folder).map_err(StoreError::write)?;
        }
        write_run(&folder, &at, &body).map_err(StoreError::write)?;
        lines.push_str(&body);
        lines.push('\n');
    }
    write_lines(&path, after.is_some(), &lines)
}

fn write_run(folder: &Path, at: &str, body: &str) -> io::Result<()> {
    let name = at.replace(':', "-");
    let value = json::parse(body.as_bytes()).unwrap_or(Value::Null);
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

fn event_lines(rows: Rows<'_>, goal: &GoalId, after: i64) -> Result<String, StoreError> {
    let mut statement = rows
        .0
        .prepare("SELECT body_json FROM events WHERE goal_id=?1 AND seq>?2 ORDER BY seq")?;
    let found =
        statement.query_map(params![goal.as_str(), after], |row| row.get::<_, String>(0))?;
    let mut lines = String::new();
    for body in found {
        lines.push_str(&body?);
        lines.push('\n');
    }
    Ok(lines)
}

fn write_lines(path: &Path, is_sound: bool, lines: &str) -> Result<(), StoreError> {
    let written = match (is_sound, lines.is_empty()) {
        (true, true) => Ok(()),
        (true, false) => private_file::append_export(path, lines.as_bytes()),
        (false, _) => private_file::export(path, lines.as_bytes()),
    };
    written.map_err(StoreError::write)
}

enum Tail {
    Nothing,
    After(String),
    Torn,
}

/// What the last complete line of an export names.
fn after_tail(path: &Path, member: &str) -> Result<Tail, StoreError> {
    let mut file = match File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Tail::Nothing),
        Err(error) => return Err(StoreError::write(error)),
    };
    let read = |file: &mut File, length: u64| -> io::Result<Vec<u8>> {
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let length = file.metadata().map_err(StoreError::write)?.len();
    if length == 0 {
        return Ok(Tail::Nothing);
    }
    let bytes = read(&mut file, length).map_err(StoreError::write)?;
    let Some((b'\n', whole)) = bytes.split_last() else {
        return Ok(Tail::Torn);
    };
    let line = whole
        .rsplit(|byte| *byte == b'\n')
        .next()
        .unwrap_or_default();
    let name = json::parse_object(line)
        .ok()
        .and_then(|line| line.get(member).and_then(Value::as_str).map(str::to_owned));
    Ok(name.map_or(Tail::Torn, Tail::After))
}

fn event_seq(rows: Rows<'_>, goal: &GoalId, id: &str) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT seq FROM events WHERE event_id=?1 AND goal_id=?2";
    Ok(rows
        .0
        .query_row(sql, params![id, goal.as_str()], |row| row.get(0))
        .optional()?)
}

fn run_seq(rows: Rows<'_>, goal: &GoalId, at: &str) -> Result<Option<i64>, StoreError> {
    let sql = "SELECT seq FROM runs WHERE goal_id=?1 AND generated_at=?2";
    Ok(rows
        .0
        .query_row(sql, params![goal.as_str(), at], |row| row.get(0))
        .optional()?)
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
}
