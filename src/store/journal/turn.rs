//! Turn rows and capture rows: the arbiters of the journal files and of the captured decisions.

use std::path::{Path, PathBuf};

use rusqlite::{OptionalExtension, Row, params};

use crate::contract::ids::{AgentId, GoalId, TurnInstanceId, TurnKey};
use crate::store::StoreError;
use crate::store::export::goal_dir;
use crate::store::rows::Rows;
use crate::store::state::GoalTx;

/// One Turn.
#[derive(Clone, Debug, PartialEq)]
pub struct TurnRow {
    /// The Turn.
    pub turn_key: String,
    /// Its goal.
    pub goal_id: String,
    /// Its agent.
    pub agent_id: String,
    /// What it settles under.
    pub effect_id: String,
    /// Its instance, when one was named.
    pub instance: Option<String>,
    /// The journal's status.
    pub status: String,
    /// The completed phases, joined by commas.
    pub completed_phases: String,
    /// How often a host was started.
    pub attempts: i64,
    /// The journal's bytes; empty while none was written.
    pub journal_json: String,
    /// Their digest.
    pub journal_sha256: String,
    /// The digest of the bytes before.
    pub previous_sha256: String,
    /// The capture it runs on.
    pub capture_id: Option<String>,
}

/// One captured decision.
#[derive(Clone, Debug, PartialEq)]
pub struct CaptureRow {
    /// Its id.
    pub capture_id: String,
    /// Its goal.
    pub goal_id: String,
    /// Its agent.
    pub agent_id: String,
    /// The Turn, for `kind` `turn`.
    pub turn_key: Option<String>,
    /// What the Turn settles under.
    pub effect_id: Option<String>,
    /// Below the capture root.
    pub rel_path: String,
    /// The size of the file.
    pub byte_len: i64,
    /// The digest of its bytes.
    pub sha256: String,
    /// The digest of the source in it.
    pub source_digest: String,
    /// The digest of the decision in that source.
    pub source_decision_hash: String,
    /// When it was made.
    pub created_at: String,
}

const TURN: &str = "SELECT turn_key,goal_id,agent_id,effect_id,turn_instance_id,status,completed_phases,host_attempt_count,
   journal_json,journal_sha256,previous_sha256,capture_id FROM turns";
const CAPTURE: &str =
    "SELECT capture_id,goal_id,agent_id,turn_key,effect_id,rel_path,byte_len,sha256,source_digest,
   source_decision_hash,created_at FROM captures";

/// Where the journal file of a Turn lies below a runtime root.
pub fn journal_path(root: &Path, goal: &GoalId, key: &TurnKey) -> PathBuf {
    let name = key.as_str().strip_prefix("sha256:").unwrap_or(key.as_str());
    goal_dir(root, goal)
        .join("turns")
        .join(format!("{name}.json"))
}

fn turn_of(row: &Row<'_>) -> rusqlite::Result<TurnRow> {
    Ok(TurnRow {
        turn_key: row.get(0)?,
        goal_id: row.get(1)?,
        agent_id: row.get(2)?,
        effect_id: row.get(3)?,
        instance: row.get(4)?,
        status: row.get(5)?,
        completed_phases: row.get(6)?,
        attempts: row.get(7)?,
        journal_json: row.get(8)?,
        journal_sha256: row.get(9)?,
        previous_sha256: row.get(10)?,
        capture_id: row.get(11)?,
    })
}

fn capture_of(row: &Row<'_>) -> rusqlite::Result<CaptureRow> {
    Ok(CaptureRow {
        capture_id: row.get(0)?,
        goal_id: row.get(1)?,
        agent_id: row.get(2)?,
        turn_key: row.get(3)?,
        effect_id: row.get(4)?,
        rel_path: row.get(5)?,
        byte_len: row.get(6)?,
        sha256: row.get(7)?,
        source_digest: row.get(8)?,
        source_decision_hash: row.get(9)?,
        created_at: row.get(10)?,
    })
}

impl Rows<'_> {
    /// Shows every Turn of a store, one after the other.
    pub(in crate::store) fn each_turn<E: From<StoreError>>(
        &self,
        look: impl FnMut(TurnRow) -> Result<(), E>,
    ) -> Result<(), E> {
        self.each(TURN, turn_of, look)
    }

    /// Shows every capture of a store, one after the other.
    pub(in crate::store) fn each_capture<E: From<StoreError>>(
        &self,
        look: impl FnMut(CaptureRow) -> Result<(), E>,
    ) -> Result<(), E> {
        self.each(CAPTURE, capture_of, look)
    }

    fn each<T, E: From<StoreError>>(
        &self,
        sql: &str,
        parse: fn(&Row<'_>) -> rusqlite::Result<T>,
        mut look: impl FnMut(T) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut statement = self.0.prepare(sql).map_err(StoreError::from)?;
        let mut rows = statement.query([]).map_err(StoreError::from)?;
        while let Some(row) = rows.next().map_err(StoreError::from)? {
            look(parse(row).map_err(StoreError::from)?)?;
        }
        Ok(())
    }

    /// A Turn by key.
    pub fn turn(&self, key: &TurnKey) -> Result<Option<TurnRow>, StoreError> {
        self.one_turn("WHERE turn_key=?1", params![key.as_str()])
    }

    /// A Turn by what it settles under.
    pub fn turn_of_effect(&self, effect_id: &str) -> Result<Option<TurnRow>, StoreError> {
        self.one_turn("WHERE effect_id=?1", params![effect_id])
    }

    /// A Turn by its instance.
    pub fn turn_of_instance(
        &self,
        goal: &GoalId,
        agent: &AgentId,
        instance: &TurnInstanceId,
    ) -> Result<Option<TurnRow>, StoreError> {
        let tail = "WHERE goal_id=?1 AND agent_id=?2 AND turn_instance_id=?3";
        self.one_turn(
            tail,
            params![goal.as_str(), agent.as_str(), instance.as_str()],
        )
    }

    /// The Turns of a goal that are not finished, the newest first. A failed one that never wrote back and was left behind owes nothing.
    pub fn unfinished_turns(&self, goal: &GoalId) -> Result<Vec<String>, StoreError> {
        let sql = "SELECT turn_key FROM turns AS own WHERE goal_id=?1 AND status NOT IN ('committed','stopped')
                   AND (status<>'failed' OR completed_phases LIKE '%durable_writeback%' OR NOT EXISTS(
                     SELECT 1 FROM turns AS later WHERE later.goal_id=?1 AND later.agent_id=own.agent_id AND later.rowid>own.rowid))
                   ORDER BY rowid DESC";
        let mut statement = self.0.prepare(sql)?;
        let keys = statement.query_map([goal.as_str()], |row| row.get(0))?;
        Ok(keys.collect::<Result<_, _>>()?)
    }

    fn one_turn(
        &self,
        tail: &str,
        with: &[&dyn rusqlite::ToSql],
    ) -> Result<Option<TurnRow>, StoreError> {
        let found = self.0.query_row(&format!("{TURN} {tail}"), with, turn_of);
        Ok(found.optional()?)
    }

    /// A capture by id.
    pub fn capture(&self, capture_id: &str) -> Result<Option<CaptureRow>, StoreError> {
        self.one_capture("WHERE capture_id=?1", params![capture_id])
    }

    /// The capture of a Turn.
    pub fn capture_of_turn(&self, key: &TurnKey) -> Result<Option<CaptureRow>, StoreError> {
        self.one_capture("WHERE turn_key=?1 AND kind='turn'", params![key.as_str()])
    }

    fn one_capture(
        &self,
        tail: &str,
        with: &[&dyn rusqlite::ToSql],
    ) -> Result<Option<CaptureRow>, StoreError> {
        let found = self
            .0
            .query_row(&format!("{CAPTURE} {tail}"), with, capture_of);
        Ok(found.optional()?)
    }
}

impl GoalTx<'_> {
    /// Adds a Turn; `false` when the key or the effect has one already.
    pub fn insert_turn(&self, turn: &TurnRow) -> Result<bool, StoreError> {
        let added = self.connection().execute(
            "INSERT OR IGNORE INTO turns(turn_key,goal_id,agent_id,effect_id,turn_instance_id,status,completed_phases,host_attempt_count,
               journal_json,journal_sha256,previous_sha256,capture_id) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)",
            params![
                turn.turn_key,
                turn.goal_id,
                turn.agent_id,
                turn.effect_id,
                turn.instance,
                turn.status,
                turn.completed_phases,
                turn.attempts,
                turn.journal_json,
                turn.journal_sha256,
                turn.previous_sha256,
                turn.capture_id
            ],
        )?;
        Ok(added == 1)
    }

    /// Replaces the journal of a Turn; `false` when it is no longer the one `turn.previous_sha256` names.
    pub fn update_turn(&self, turn: &TurnRow) -> Result<bool, StoreError> {
        let changed = self.connection().execute(
            "UPDATE turns SET status=?2, completed_phases=?3, host_attempt_count=?4, journal_json=?5, journal_sha256=?6,
               previous_sha256=?7, capture_id=?8 WHERE turn_key=?1 AND journal_sha256=?7",
            params![
                turn.turn_key,
                turn.status,
                turn.completed_phases,
                turn.attempts,
                turn.journal_json,
                turn.journal_sha256,
                turn.previous_sha256,
                turn.capture_id
            ],
        )?;
        Ok(changed == 1)
    }

    /// Adds a capture.
    pub fn insert_capture(&self, capture: &CaptureRow, kind: &str) -> Result<(), StoreError> {
        self.connection().execute(
            "INSERT INTO captures(capture_id,goal_id,agent_id,turn_key,effect_id,kind,rel_path,byte_len,sha256,source_digest,
               source_decision_hash,created_at) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)",
            params![
                capture.capture_id,
                capture.goal_id,
                capture.agent_id,
                capture.turn_key,
                capture.effect_id,
                kind,
                capture.rel_path,
                capture.byte_len,
                capture.sha256,
                capture.source_digest,
                capture.source_decision_hash,
                capture.created_at
            ],
        )?;
        Ok(())
    }
}
