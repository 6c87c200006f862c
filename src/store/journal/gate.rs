//! Gate decisions: append only, all outcomes kept, the latest of one scope rules.

use rusqlite::{OptionalExtension, params};
use serde_json::{Map, Value};

use crate::contract::ids::GoalId;
use crate::store::StoreError;
use crate::store::rows::{Rows, object, stored_text};
use crate::store::state::GoalTx;

/// One decision as it is written.
#[derive(Clone, Debug)]
pub struct GateDecision {
    /// The gate: a todo id, or the name of an operator gate.
    pub gate_id: String,
    /// `approve`, `reject`, `cancel` or `defer`.
    pub outcome: String,
    /// The scope it decides.
    pub scope: Option<String>,
    /// Who recorded it.
    pub agent_id: Option<String>,
    /// Everything about it.
    pub body: Map<String, Value>,
}

/// A gate that was turned down.
#[derive(Clone, Debug)]
pub struct Refused {
    /// The gate.
    pub gate_id: String,
    /// How it was decided.
    pub outcome: String,
    /// The scope it decides.
    pub scope: Option<String>,
    /// Nothing was decided about its scope later.
    pub is_latest_of_scope: bool,
    /// It was not decided again itself.
    pub is_latest_of_gate: bool,
    /// Everything about the decision.
    pub body: Map<String, Value>,
}

impl Rows<'_> {
    /// The refusals that a later decision has not replaced, at least in part.
    pub fn refusals(&self, goal: &GoalId) -> Result<Vec<Refused>, StoreError> {
        let sql = "SELECT gate_id,outcome,decision_scope,of_scope,of_gate,body_json FROM (
                     SELECT *, decided_seq=MAX(decided_seq) OVER (PARTITION BY COALESCE(decision_scope,gate_id)) AS of_scope,
                               decided_seq=MAX(decided_seq) OVER (PARTITION BY gate_id) AS of_gate
                     FROM gate_decisions WHERE goal_id=?1 AND gate_id LIKE 'todo\\_%' ESCAPE '\\')
                   WHERE outcome<>'approve' AND (of_scope OR of_gate) ORDER BY decided_seq";
        let mut statement = self.0.prepare(sql)?;
        let rows = statement.query_map([goal.as_str()], |row| {
            let refused = Refused {
                gate_id: row.get(0)?,
                outcome: row.get(1)?,
                scope: row.get(2)?,
                is_latest_of_scope: row.get(3)?,
                is_latest_of_gate: row.get(4)?,
                body: Map::new(),
            };
            Ok((refused, row.get::<_, String>(5)?))
        })?;
        let mut refused = Vec::new();
        for row in rows {
            let (mut one, text) = row?;
            one.body = object(&text)?;
            refused.push(one);
        }
        Ok(refused)
    }

    /// The latest outcome recorded for one gate.
    pub fn gate_outcome(&self, goal: &GoalId, gate_id: &str) -> Result<Option<String>, StoreError> {
        let sql = "SELECT outcome FROM gate_decisions WHERE goal_id=?1 AND gate_id=?2 ORDER BY decided_seq DESC LIMIT 1";
        Ok(self
            .0
            .query_row(sql, params![goal.as_str(), gate_id], |row| row.get(0))
            .optional()?)
    }
}

impl Rows<'_> {
    /// True when the goal's configuration was changed by a command after the latest decision of this gate.
    pub fn configured_after_gate(&self, goal: &GoalId, gate_id: &str) -> Result<bool, StoreError> {
        let sql = "SELECT EXISTS(SELECT 1 FROM events WHERE goal_id=?1 AND event_kind='goal_config' AND seq>COALESCE(
                     (SELECT MAX(seq) FROM events WHERE goal_id=?1 AND event_kind='gate_decision'
                        AND json_extract(body_json,'$.gate_id')=?2),0))";
        let found = self
            .0
            .query_row(sql, params![goal.as_str(), gate_id], |row| row.get(0))?;
        Ok(found)
    }
}

impl GoalTx<'_> {
    /// Appends one decision.
    pub fn decide_gate(&self, decision: &GateDecision) -> Result<(), StoreError> {
        let sql = "SELECT COALESCE(MAX(decided_seq),0)+1 FROM gate_decisions WHERE goal_id=?1";
        let seq: i64 = self
            .connection()
            .query_row(sql, [self.goal().as_str()], |row| row.get(0))?;
        let (text, _) = stored_text(&Value::Object(decision.body.clone()))?;
        self.connection().execute(
            "INSERT INTO gate_decisions(goal_id,gate_id,decided_seq,outcome,decision_scope,agent_id,body_json)
             VALUES(?1,?2,?3,?4,?5,?6,?7)",
            params![self.goal().as_str(), decision.gate_id, seq, decision.outcome, decision.scope, decision.agent_id, text],
        )?;
        Ok(())
    }
}
