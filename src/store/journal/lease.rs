//! Lease rows: one per todo, with every key ever used, so that an old key is never taken again.

use rusqlite::{OptionalExtension, params};
use serde_json::{Value, json};

use crate::contract::ids::{GoalId, TodoId};
use crate::contract::lease::Lease;
use crate::contract::time::Timestamp;
use crate::store::StoreError;
use crate::store::rows::{Rows, object, stored_text};
use crate::store::state::GoalTx;

impl Rows<'_> {
    /// The lease of a todo, live or not.
    pub fn lease(&self, goal: &GoalId, todo: &TodoId) -> Result<Option<Lease>, StoreError> {
        let sql = "SELECT body_json FROM leases WHERE goal_id=?1 AND todo_id=?2";
        let text = self
            .0
            .query_row(sql, params![goal.as_str(), todo.as_str()], |row| {
                row.get::<_, String>(0)
            });
        let Some(text) = text.optional()? else {
            return Ok(None);
        };
        Ok(Some(parse(&text)?))
    }

    /// The leases of a goal that were not released and have not run out.
    pub fn active_leases(&self, goal: &GoalId, now: Timestamp) -> Result<Vec<Lease>, StoreError> {
        // Instants order as text up to the second; what ran out within this one is told apart by the caller.
        let now = now.to_string();
        let second = now.get(..19).unwrap_or_default();
        let sql =
            "SELECT body_json FROM leases WHERE goal_id=?1 AND status='active' AND expires_at>=?2";
        let mut statement = self.0.prepare(sql)?;
        let rows = statement.query_map(params![goal.as_str(), second], |row| {
            row.get::<_, String>(0)
        })?;
        rows.map(|text| parse(&text?)).collect()
    }

    /// The generation in which a key was used for a todo.
    pub fn lease_key_epoch(
        &self,
        goal: &GoalId,
        todo: &TodoId,
        key: &str,
    ) -> Result<Option<i64>, StoreError> {
        let sql = "SELECT lease_epoch FROM lease_keys WHERE goal_id=?1 AND todo_id=?2 AND idempotency_key=?3";
        Ok(self
            .0
            .query_row(sql, params![goal.as_str(), todo.as_str(), key], |row| {
                row.get(0)
            })
            .optional()?)
    }
}

impl GoalTx<'_> {
    /// Stores a lease and remembers its key.
    pub fn put_lease(&self, lease: &Lease) -> Result<(), StoreError> {
        let (text, _) = stored_text(&json!(lease))?;
        let (goal, todo) = (self.goal().as_str(), lease.todo_id.as_str());
        self.connection().execute(
            "INSERT OR REPLACE INTO leases(goal_id,todo_id,owner,idempotency_key,version,lease_epoch,status,expires_at,body_json)
             VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9)",
            params![
                goal,
                todo,
                lease.owner.as_str(),
                lease.idempotency_key,
                lease.version,
                lease.lease_epoch,
                lease.status,
                lease.expires_at.to_string(),
                text
            ],
        )?;
        self.connection().execute(
            "INSERT OR IGNORE INTO lease_keys(goal_id,todo_id,idempotency_key,lease_epoch) VALUES(?1,?2,?3,?4)",
            params![goal, todo, lease.idempotency_key, lease.lease_epoch],
        )?;
        Ok(())
    }
}

fn parse(text: &str) -> Result<Lease, StoreError> {
    Lease::parse(&Value::Object(object(text)?))
        .ok_or(StoreError::Corrupt("a lease row holds no lease"))
}
