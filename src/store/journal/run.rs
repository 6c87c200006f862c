//! Run rows: what a refresh, a spend or an operator's decision left behind, in append order.

use rusqlite::{OptionalExtension, params};
use serde_json::{Map, Value, json};

use crate::contract::ids::{AgentId, GoalId};
use crate::contract::time::Timestamp;
use crate::store::StoreError;
use crate::store::rows::{Rows, checked, micros, stored_text};
use crate::store::state::GoalTx;

/// One stored run.
#[derive(Clone, Debug, PartialEq)]
pub struct RunRow {
    /// Its place in the append order.
    pub seq: i64,
    /// Its instant, unique within the goal.
    pub generated_at: Timestamp,
    /// The record.
    pub body: Value,
}

/// What a run is filed under.
#[derive(Clone, Copy, Debug)]
pub struct RunKey<'a> {
    /// The acting agent.
    pub agent_id: Option<&'a str>,
    /// The class of the run.
    pub classification: &'a str,
    /// The Turn it belongs to.
    pub effect_id: Option<&'a str>,
}

impl Rows<'_> {
    /// The newest run that says what to do next.
    pub fn latest_recommendation(&self, goal: &GoalId) -> Result<Option<String>, StoreError> {
        let sql = "SELECT body_json,body_sha FROM runs WHERE goal_id=?1 ORDER BY seq DESC LIMIT 1";
        let body = self.event_bodies(sql, params![goal.as_str()])?.pop();
        Ok(body.and_then(|body| {
            body.get("recommended_action")
                .and_then(Value::as_str)
                .map(str::to_owned)
        }))
    }

    /// The durable next action an agent wrote last.
    pub fn last_next_action(
        &self,
        goal: &GoalId,
        agent: &AgentId,
    ) -> Result<Option<String>, StoreError> {
        let sql = "SELECT json_extract(body_json,'$.next_action') FROM runs INDEXED BY runs_next_action WHERE goal_id=?1 AND agent_id=?2
                   AND json_extract(body_json,'$.next_action') IS NOT NULL ORDER BY seq DESC LIMIT 1";
        Ok(self
            .0
            .query_row(sql, params![goal.as_str(), agent.as_str()], |row| {
                row.get(0)
            })
            .optional()?)
    }

    /// One run by its instant.
    pub fn run(&self, goal: &GoalId, generated_at: &str) -> Result<Option<RunRow>, StoreError> {
        let sql = "SELECT seq,body_json,body_sha,generated_at FROM runs WHERE goal_id=?1 AND generated_at=?2";
        let found = self
            .0
            .query_row(sql, params![goal.as_str(), generated_at], |row| {
                Ok((
                    row.get::<_, i64>(0)?,
                    row.get::<_, String>(1)?,
                    row.get::<_, String>(2)?,
                    row.get::<_, String>(3)?,
                ))
            });
        let Some((seq, text, sha, at)) = found.optional()? else {
            return Ok(None);
        };
        let generated_at =
            Timestamp::parse(&at).ok_or(StoreError::Corrupt("a run has no instant"))?;
        Ok(Some(RunRow {
            seq,
            generated_at,
            body: checked(&text, &sha)?,
        }))
    }

    /// The next instant a run of this goal may have.
    pub fn free_run_instant(&self, goal: &GoalId, now: Timestamp) -> Result<Timestamp, StoreError> {
        let sql = "SELECT MAX(generated_us) FROM runs WHERE goal_id=?1 AND generated_us>=?2 AND generated_us<?2+?3";
        self.free_instant(sql, goal, now)
    }

    /// The number the next run of this goal gets.
    pub fn next_run_seq(&self, goal: &GoalId) -> Result<i64, StoreError> {
        let sql = "SELECT COALESCE(MAX(seq),0)+1 FROM runs WHERE goal_id=?1";
        Ok(self.0.query_row(sql, [goal.as_str()], |row| row.get(0))?)
    }
}

impl GoalTx<'_> {
    /// Appends a run at an instant taken from `Rows::free_run_instant`.
    pub fn put_run(
        &mut self,
        key: RunKey<'_>,
        generated_at: Timestamp,
        record: Map<String, Value>,
    ) -> Result<RunRow, StoreError> {
        let seq = self.rows().next_run_seq(self.goal())?;
        let mut body = Map::new();
        body.insert("schema_version".to_owned(), json!("loopx_run_record_v0"));
        body.insert("goal_id".to_owned(), json!(self.goal()));
        body.insert("agent_id".to_owned(), json!(key.agent_id));
        body.insert("generated_at".to_owned(), json!(generated_at));
        body.insert("classification".to_owned(), json!(key.classification));
        body.extend(record);
        let body = Value::Object(body);
        let (text, sha) = stored_text(&body)?;
        self.connection().execute(
            "INSERT INTO runs(goal_id,generated_at,generated_us,seq,agent_id,classification,effect_id,body_json,body_sha)
             VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)",
            params![
                self.goal().as_str(),
                generated_at.to_string(),
                micros(generated_at),
                seq,
                key.agent_id,
                key.classification,
                key.effect_id,
                text,
                sha.hex()
            ],
        )?;
        self.note_run(&text);
        Ok(RunRow {
            seq,
            generated_at,
            body,
        })
    }
}
