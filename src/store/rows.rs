//! The rows of the state store, as one open handle or transaction sees them, and the forms they share.

use chrono::DateTime;
use rusqlite::{Connection, OptionalExtension, params};
use serde_json::{Map, Value};

use super::StoreError;
use crate::contract::digest::{self, Digest};
use crate::contract::ids::{GoalId, TodoId};
use crate::contract::json;
use crate::contract::time::Timestamp;

/// The rows, as one open handle or transaction sees them.
#[derive(Clone, Copy)]
pub struct Rows<'a>(pub(in crate::store) &'a Connection);

/// The revision of one goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// Ties the rows to the registry entry.
    pub instance_id: String,
    /// Counts committed mutations.
    pub revision: i64,
    /// Digest over all of them.
    pub revision_digest: String,
    /// Canonical hash of the registry entry last seen.
    pub entry_digest: Option<String>,
    /// The last number of the append sequence of todos.
    pub(in crate::store) todo_seq: i64,
    /// Length of the complete export of the events.
    pub(in crate::store) events_bytes: i64,
    /// Length of the complete index of the runs.
    pub(in crate::store) runs_bytes: i64,
}

impl Head {
    /// The opaque revision callers compare.
    pub fn provider_revision(&self) -> String {
        provider_revision(self.revision, &self.revision_digest)
    }
}

/// The opaque form of a revision.
pub fn provider_revision(revision: i64, digest: &str) -> String {
    format!("rev-{revision}:{}", digest.get(..12).unwrap_or(digest))
}

/// What a row of this text takes in an export.
pub(in crate::store) fn line_bytes(text: &str) -> i64 {
    i64::try_from(text.len() + 1).unwrap_or(i64::MAX)
}

impl Rows<'_> {
    /// The head of a goal.
    pub fn head(&self, goal: &GoalId) -> Result<Option<Head>, StoreError> {
        let sql = "SELECT instance_id,revision,revision_digest,registry_entry_digest,todo_seq,events_bytes,runs_bytes FROM goal_heads WHERE goal_id=?1";
        let head = self.0.query_row(sql, [goal.as_str()], |row| {
            Ok(Head {
                instance_id: row.get(0)?,
                revision: row.get(1)?,
                revision_digest: row.get(2)?,
                entry_digest: row.get(3)?,
                todo_seq: row.get(4)?,
                events_bytes: row.get(5)?,
                runs_bytes: row.get(6)?,
            })
        });
        Ok(head.optional()?)
    }

    /// True when this goal once had that revision; `rev-0` of a fresh head included.
    pub fn had_revision(&self, goal: &GoalId, revision: &str) -> Result<Option<i64>, StoreError> {
        if let Some(head) = self.head(goal)?
            && head.provider_revision() == revision
        {
            return Ok(Some(head.revision));
        }
        let number = revision
            .strip_prefix("rev-")
            .and_then(|rest| rest.split(':').next())
            .and_then(|text| text.parse::<i64>().ok());
        let Some(number) = number else {
            return Ok(None);
        };
        let sql = "SELECT revision_digest FROM events WHERE goal_id=?1 AND goal_revision=?2 ORDER BY seq DESC LIMIT 1";
        let digest: Option<String> = self
            .0
            .query_row(sql, params![goal.as_str(), number], |row| row.get(0))
            .optional()?;
        Ok(digest
            .filter(|digest| provider_revision(number, digest) == revision)
            .map(|_| number))
    }

    /// The first event of a goal after a revision that is about a todo, its gates or the roster and that is looked for.
    /// Events are read one by one: after an old revision of a busy goal there are many.
    pub fn any_event_after(
        &self,
        (goal, revision): (&GoalId, i64),
        todo: &TodoId,
        is_looked_for: impl Fn(&Value) -> bool,
    ) -> Result<bool, StoreError> {
        let sql = "SELECT body_json,body_sha FROM events WHERE goal_id=?1 AND goal_revision>?2
                   AND (todo_id=?3 OR event_kind IN ('gate_decision','agent_register','goal_config')) ORDER BY goal_revision, seq";
        let mut statement = self.0.prepare_cached(sql)?;
        let mut rows = statement.query(params![goal.as_str(), revision, todo.as_str()])?;
        while let Some(row) = rows.next()? {
            let (text, sha): (String, String) = (row.get(0)?, row.get(1)?);
            if is_looked_for(&checked(&text, &sha)?) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// One event by id.
    pub fn event(&self, event_id: &str) -> Result<Option<Value>, StoreError> {
        let sql = "SELECT body_json,body_sha FROM events WHERE event_id=?1";
        Ok(self.event_bodies(sql, params![event_id])?.pop())
    }

    pub(in crate::store) fn event_bodies(
        &self,
        sql: &str,
        with: &[&dyn rusqlite::ToSql],
    ) -> Result<Vec<Value>, StoreError> {
        let mut statement = self.0.prepare(sql)?;
        let rows = statement.query_map(with, |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
        })?;
        rows.map(|row| {
            let (text, sha) = row?;
            checked(&text, &sha)
        })
        .collect()
    }

    /// The first instant from `now` on that no event of the goal has.
    pub(in crate::store) fn free_event_instant(
        &self,
        goal: &GoalId,
        now: Timestamp,
    ) -> Result<Timestamp, StoreError> {
        let sql = "SELECT MAX(recorded_us) FROM events WHERE goal_id=?1 AND recorded_us>=?2 AND recorded_us<?2+?3";
        self.free_instant(sql, goal, now)
    }

    /// The first instant from `now` on that the query finds free. A second that is taken to its last microsecond leads
    /// to the next one; an instant further ahead, left by a clock that was set back, is not followed.
    pub(in crate::store) fn free_instant(
        &self,
        sql: &str,
        goal: &GoalId,
        now: Timestamp,
    ) -> Result<Timestamp, StoreError> {
        let mut statement = self.0.prepare_cached(sql)?;
        let mut from = micros(now);
        let free = loop {
            let with = params![goal.as_str(), from, SECOND];
            let latest: Option<i64> = statement.query_row(with, |row| row.get(0))?;
            match latest {
                None => break from,
                Some(latest) if latest + 1 < from + SECOND => break latest + 1,
                Some(_) => from += SECOND,
            }
        };
        from_micros(free).ok_or(StoreError::Corrupt("the clock is outside the calendar"))
    }
}

/// Microseconds of a second.
const SECOND: i64 = 1_000_000;

/// Microseconds since the epoch.
pub fn micros(instant: Timestamp) -> i64 {
    instant.utc().timestamp_micros()
}

/// The instant of a number of microseconds.
pub fn from_micros(micros: i64) -> Option<Timestamp> {
    DateTime::from_timestamp_micros(micros).map(Timestamp::from_utc)
}

/// Reads a stored body and checks it against its digest.
pub(in crate::store) fn checked(text: &str, sha: &str) -> Result<Value, StoreError> {
    if digest::content_digest(text.as_bytes()).hex() != sha {
        return Err(StoreError::Corrupt("a row does not match its digest"));
    }
    object(text).map(Value::Object)
}

/// Reads a stored object.
pub(in crate::store) fn object(text: &str) -> Result<Map<String, Value>, StoreError> {
    json::parse_kept(text.as_bytes()).map_err(|_| StoreError::Corrupt("a row holds no object"))
}

/// The text an object is stored as, every number in its own spelling, and the digest of that text.
pub(in crate::store) fn stored_text(value: &Value) -> Result<(String, Digest), StoreError> {
    let text = serde_json::to_string(value)
        .map_err(|_| StoreError::Corrupt("an object cannot be written"))?;
    let sha = digest::content_digest(text.as_bytes());
    Ok((text, sha))
}

/// A receipt of an operation, for replays.
#[derive(Clone, Debug, PartialEq)]
pub struct Receipt {
    /// Digest of the request it answered.
    pub request_sha256: String,
    /// The answer.
    pub result: Value,
    /// The revision its change committed.
    pub revision_after: i64,
}

impl Rows<'_> {
    /// The receipt of an operation.
    pub fn receipt(&self, goal: &GoalId, operation: &str) -> Result<Option<Receipt>, StoreError> {
        let sql = "SELECT request_sha256,result_json,COALESCE(revision_after,0) FROM receipts WHERE goal_id=?1 AND operation_id=?2";
        let found = self
            .0
            .query_row(sql, params![goal.as_str(), operation], |row| {
                Ok((
                    row.get::<_, String>(0)?,
                    row.get::<_, String>(1)?,
                    row.get(2)?,
                ))
            });
        let Some((request_sha256, text, revision_after)) = found.optional()? else {
            return Ok(None);
        };
        Ok(Some(Receipt {
            request_sha256,
            result: Value::Object(object(&text)?),
            revision_after,
        }))
    }
}
