//! Sidecar receipts of post-writeback hooks: stored apart from the primary transaction, one per dispatch.

use rusqlite::{OptionalExtension, params};
use serde_json::Value;

use crate::contract::ids::{AgentId, GoalId};
use crate::store::StoreError;
use crate::store::database;
use crate::store::rows::{Rows, object, stored_text};
use crate::store::state::Writer;

/// One receipt.
#[derive(Clone, Debug, PartialEq)]
pub struct HookReceipt {
    /// The dispatch.
    pub dispatch_id: String,
    /// The hook.
    pub hook_id: String,
    /// The capability it belongs to.
    pub capability_id: String,
    /// The primary writeback it followed.
    pub source_receipt_id: String,
    /// `retryable_failure`, `not_applicable` or `intent_recorded`.
    pub status: String,
    /// The intent, for `intent_recorded`.
    pub intent: Option<Value>,
    /// The failure, for `retryable_failure`.
    pub error_code: Option<String>,
    /// How often the producer ran.
    pub attempt_count: i64,
    /// When the primary writeback was committed.
    pub recorded_at: String,
}

impl Rows<'_> {
    /// The receipt of a dispatch.
    pub fn hook_receipt(
        &self,
        goal: &GoalId,
        dispatch_id: &str,
    ) -> Result<Option<HookReceipt>, StoreError> {
        let tail = "WHERE goal_id=?1 AND dispatch_id=?2";
        Ok(self
            .hook_receipts(tail, params![goal.as_str(), dispatch_id])?
            .pop())
    }

    /// The recorded intents of an agent in dispatch order.
    pub fn recorded_intents(
        &self,
        goal: &GoalId,
        agent: &AgentId,
    ) -> Result<Vec<HookReceipt>, StoreError> {
        let tail =
            "WHERE goal_id=?1 AND agent_id=?2 AND status='intent_recorded' ORDER BY dispatch_id";
        self.hook_receipts(tail, params![goal.as_str(), agent.as_str()])
    }

    fn hook_receipts(
        &self,
        tail: &str,
        with: &[&dyn rusqlite::ToSql],
    ) -> Result<Vec<HookReceipt>, StoreError> {
        let sql = format!(
            "SELECT dispatch_id,hook_id,capability_id,source_receipt_id,status,error_code,attempt_count,recorded_at,body_json
             FROM hook_receipt {tail}"
        );
        let mut statement = self.0.prepare(&sql)?;
        let rows = statement.query_map(with, |row| {
            let body: String = row.get(8)?;
            Ok((
                HookReceipt {
                    dispatch_id: row.get(0)?,
                    hook_id: row.get(1)?,
                    capability_id: row.get(2)?,
                    source_receipt_id: row.get(3)?,
                    status: row.get(4)?,
                    intent: None,
                    error_code: row.get(5)?,
                    attempt_count: row.get(6)?,
                    recorded_at: row.get(7)?,
                },
                body,
            ))
        })?;
        rows.map(|row| {
            let (mut receipt, body) = row?;
            receipt.intent = object(&body)?
                .shift_remove("intent")
                .filter(|intent| !intent.is_null());
            Ok(receipt)
        })
        .collect()
    }
}

impl Writer {
    /// Stores a receipt: a new one, or the next attempt of a failed one. `false` when another process was faster.
    pub fn put_hook_receipt(
        &mut self,
        goal: &GoalId,
        agent: &AgentId,
        receipt: &HookReceipt,
    ) -> Result<bool, StoreError> {
        let intent_key = receipt
            .intent
            .as_ref()
            .and_then(|intent| intent.get("idempotency_key"))
            .and_then(Value::as_str);
        let (body, _) = stored_text(&serde_json::json!({"intent": receipt.intent}))?;
        let tx = database::begin(self.connection_mut())?;
        let stored: Option<i64> = tx
            .query_row(
                "SELECT attempt_count FROM hook_receipt WHERE goal_id=?1 AND dispatch_id=?2 AND status='retryable_failure'",
                params![goal.as_str(), receipt.dispatch_id],
                |row| row.get(0),
            )
            .optional()?;
        if let Some(attempts) = stored {
            if attempts + 1 != receipt.attempt_count {
                return Ok(false);
            }
            tx.execute(
                "DELETE FROM hook_receipt WHERE goal_id=?1 AND dispatch_id=?2",
                params![goal.as_str(), receipt.dispatch_id],
            )?;
        }
        let added = tx.execute(
            "INSERT OR IGNORE INTO hook_receipt(goal_id,dispatch_id,hook_id,capability_id,agent_id,source_receipt_id,status,intent_key,
               error_code,attempt_count,recorded_at,body_json) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)",
            params![
                goal.as_str(),
                receipt.dispatch_id,
                receipt.hook_id,
                receipt.capability_id,
                agent.as_str(),
                receipt.source_receipt_id,
                receipt.status,
                intent_key,
                receipt.error_code,
                receipt.attempt_count,
                receipt.recorded_at,
                body
            ],
        )?;
        tx.commit()?;
        Ok(added == 1)
    }
}
