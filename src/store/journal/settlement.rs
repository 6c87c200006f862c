//! The once-only anchors of a Turn: admission, writeback, spend and its correction, and the pauses of outside sinks.

use rusqlite::{OptionalExtension, params};
use serde_json::{Map, Value};

use crate::contract::ids::{AgentId, GoalId, TurnInstanceId};
use crate::contract::settlement::{Binding, SettlementIdentity};
use crate::contract::time::Timestamp;
use crate::store::StoreError;
use crate::store::rows::{Rows, micros, object, stored_text};
use crate::store::state::{EventRow, GoalTx};

/// The admission of one Turn instance.
#[derive(Clone, Debug, PartialEq)]
pub struct Admission {
    /// What it is bound to.
    pub binding: Binding,
    /// The event that recorded it first.
    pub event_id: String,
    /// When that was.
    pub recorded_at: String,
    /// The mode of the admitted decision.
    pub mode: String,
    /// True when that mode spends after validation.
    pub is_spendable: bool,
    /// The capture of a driven Turn.
    pub capture_id: Option<String>,
}

/// A committed writeback.
#[derive(Clone, Debug, PartialEq)]
pub struct Writeback {
    /// The Turn.
    pub effect_id: String,
    /// Its instance.
    pub instance: String,
    /// The run that carries it.
    pub run_generated_at: String,
    /// That run's place in the order.
    pub run_seq: i64,
    /// The event that carries it.
    pub event_id: String,
    /// How it was closed without a spend, if it was.
    pub closeout_kind: Option<String>,
    /// Digest of what was asked for.
    pub mutation_digest: String,
    /// Digest of the vision decision that was asked for.
    pub vision_digest: Option<String>,
    /// The identity and what replays need.
    pub body: Map<String, Value>,
}

/// A committed spend.
#[derive(Clone, Debug, PartialEq)]
pub struct Spend {
    /// The Turn, or `unbound:<event>`.
    pub effect_id: String,
    /// The agent.
    pub agent_id: Option<String>,
    /// How many slots.
    pub slots: i64,
    /// Who spent.
    pub source: String,
    /// The run that carries it.
    pub run_generated_at: String,
    /// The event that carries it.
    pub event_id: String,
}

/// What was spent inside a window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SpendSummary {
    /// Slots spent and not voided.
    pub slots: i64,
    /// Spends.
    pub spends: i64,
    /// Corrections of those.
    pub voids: i64,
}

/// The last word on outside delivery for one Turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalDelivery {
    /// Its place in the chain.
    pub seq: i64,
    /// `paused` or `ready`.
    pub state: String,
    /// The key that resumes it.
    pub resume_key: String,
    /// The event that recorded it.
    pub event_id: String,
}

/// How many Turns an unpaid one may lie behind and still be named.
const NEWEST_WRITEBACKS: i64 = 256;

impl Rows<'_> {
    /// The admission of a Turn instance.
    pub fn admission(
        &self,
        goal: &GoalId,
        agent: &AgentId,
        instance: &TurnInstanceId,
    ) -> Result<Option<Admission>, StoreError> {
        let sql = "SELECT binding_kind,binding_id,event_id,recorded_at,mode,spendable,capture_id FROM admissions
                   WHERE goal_id=?1 AND agent_id=?2 AND turn_instance_id=?3";
        let row = self.0.query_row(
            sql,
            params![goal.as_str(), agent.as_str(), instance.as_str()],
            |row| {
                let kind: String = row.get(0)?;
                let id: String = row.get(1)?;
                Ok((
                    Binding::parse(&kind, &id),
                    row.get(2)?,
                    row.get(3)?,
                    row.get(4)?,
                    row.get(5)?,
                    row.get(6)?,
                ))
            },
        );
        let Some((binding, event_id, recorded_at, mode, is_spendable, capture_id)) =
            row.optional()?
        else {
            return Ok(None);
        };
        let binding = binding.ok_or(StoreError::Corrupt("an admission names no binding"))?;
        Ok(Some(Admission {
            binding,
            event_id,
            recorded_at,
            mode,
            is_spendable,
            capture_id,
        }))
    }

    /// The committed writeback of a Turn.
    pub fn writeback(&self, effect_id: &str) -> Result<Option<Writeback>, StoreError> {
        self.one_writeback("WHERE effect_id=?1", params![effect_id])
    }

    /// The newest committed writeback of an agent.
    pub fn latest_writeback(
        &self,
        goal: &GoalId,
        agent: &AgentId,
    ) -> Result<Option<Writeback>, StoreError> {
        let tail = "WHERE goal_id=?1 AND agent_id=?2 ORDER BY run_seq DESC LIMIT 1";
        self.one_writeback(tail, params![goal.as_str(), agent.as_str()])
    }

    /// The newest writeback of an agent that is neither paid nor closed for nothing, leaving out one Turn instance and any
    /// whose run is gone. Looked for among the newest of them only, since every decision asks.
    pub fn latest_owed_writeback(
        &self,
        goal: &GoalId,
        agent: &AgentId,
        but: Option<&str>,
    ) -> Result<Option<Writeback>, StoreError> {
        let tail = "AS own WHERE effect_id IN (SELECT effect_id FROM writebacks WHERE goal_id=?1 AND agent_id=?2
                      ORDER BY run_seq DESC LIMIT ?4)
                    AND turn_instance_id<>?3 AND closeout_kind IS NULL
                    AND NOT EXISTS(SELECT 1 FROM spends WHERE spends.effect_id=own.effect_id)
                    AND EXISTS(SELECT 1 FROM runs WHERE runs.goal_id=?1 AND runs.generated_at=own.run_generated_at)
                    ORDER BY run_seq DESC LIMIT 1";
        let but = but.unwrap_or("");
        self.one_writeback(
            tail,
            params![goal.as_str(), agent.as_str(), but, NEWEST_WRITEBACKS],
        )
    }

    fn one_writeback(
        &self,
        tail: &str,
        with: &[&dyn rusqlite::ToSql],
    ) -> Result<Option<Writeback>, StoreError> {
        let sql = format!(
            "SELECT effect_id,turn_instance_id,run_generated_at,run_seq,event_id,closeout_kind,mutation_digest,vision_request_digest,body_json
             FROM writebacks {tail}"
        );
        let found = self.0.query_row(&sql, with, |row| {
            let body: String = row.get(8)?;
            Ok((
                Writeback {
                    effect_id: row.get(0)?,
                    instance: row.get(1)?,
                    run_generated_at: row.get(2)?,
                    run_seq: row.get(3)?,
                    event_id: row.get(4)?,
                    closeout_kind: row.get(5)?,
                    mutation_digest: row.get(6)?,
                    vision_digest: row.get(7)?,
                    body: Map::new(),
                },
                body,
            ))
        });
        let Some((mut writeback, text)) = found.optional()? else {
            return Ok(None);
        };
        writeback.body = object(&text)?;
        Ok(Some(writeback))
    }

    /// The spend of a Turn.
    pub fn spend(&self, effect_id: &str) -> Result<Option<Spend>, StoreError> {
        self.one_spend("WHERE effect_id=?1", params![effect_id])
    }

    /// The spend a run carries.
    pub fn spend_of_run(
        &self,
        goal: &GoalId,
        generated_at: &str,
    ) -> Result<Option<Spend>, StoreError> {
        self.one_spend(
            "WHERE goal_id=?1 AND run_generated_at=?2",
            params![goal.as_str(), generated_at],
        )
    }

    fn one_spend(
        &self,
        tail: &str,
        with: &[&dyn rusqlite::ToSql],
    ) -> Result<Option<Spend>, StoreError> {
        let sql = format!(
            "SELECT effect_id,agent_id,slots,source,run_generated_at,event_id FROM spends {tail}"
        );
        let found = self.0.query_row(&sql, with, |row| {
            Ok(Spend {
                effect_id: row.get(0)?,
                agent_id: row.get(1)?,
                slots: row.get(2)?,
                source: row.get(3)?,
                run_generated_at: row.get(4)?,
                event_id: row.get(5)?,
            })
        });
        Ok(found.optional()?)
    }

    /// True when the spend of a run was corrected.
    pub fn is_voided(&self, goal: &GoalId, generated_at: &str) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM spend_voids WHERE goal_id=?1 AND run_generated_at=?2";
        Ok(self
            .0
            .query_row(sql, params![goal.as_str(), generated_at], |_| Ok(()))
            .optional()?
            .is_some())
    }

    /// What was spent at or after an instant.
    pub fn spent_since(
        &self,
        goal: &GoalId,
        since_micros: i64,
    ) -> Result<SpendSummary, StoreError> {
        let sql = "SELECT (SELECT COALESCE(SUM(slots),0) FROM spends WHERE goal_id=?1 AND spent_us>=?2),
                          (SELECT COUNT(*) FROM spends WHERE goal_id=?1 AND spent_us>=?2),
                          (SELECT COALESCE(SUM(slots),0) FROM spend_voids WHERE goal_id=?1 AND spent_us>=?2),
                          (SELECT COUNT(*) FROM spend_voids WHERE goal_id=?1 AND spent_us>=?2)";
        let sums: (i64, i64, i64, i64) =
            self.0
                .query_row(sql, params![goal.as_str(), since_micros], |row| {
                    Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
                })?;
        Ok(SpendSummary {
            slots: sums.0 - sums.2,
            spends: sums.1,
            voids: sums.3,
        })
    }

    /// The last word on outside delivery for a Turn.
    pub fn external_delivery(&self, effect_id: &str) -> Result<Vec<ExternalDelivery>, StoreError> {
        let sql = "SELECT seq,state,resume_key,event_id FROM external_deliveries WHERE effect_id=?1 ORDER BY seq";
        let mut statement = self.0.prepare(sql)?;
        let rows = statement.query_map([effect_id], |row| {
            Ok(ExternalDelivery {
                seq: row.get(0)?,
                state: row.get(1)?,
                resume_key: row.get(2)?,
                event_id: row.get(3)?,
            })
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }

    /// The stored receipts of a Turn's steps, as `(step, status, source)`.
    pub fn settlement_steps(
        &self,
        effect_id: &str,
    ) -> Result<Vec<(String, String, Option<String>)>, StoreError> {
        let sql = "SELECT step_kind,status,source_ref FROM settlement_steps WHERE effect_id=?1 ORDER BY rowid";
        let mut statement = self.0.prepare(sql)?;
        let rows = statement.query_map([effect_id], |row| {
            Ok((row.get(0)?, row.get(1)?, row.get(2)?))
        })?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl GoalTx<'_> {
    /// True when the effect id of this Turn is in use for another goal or agent, whose names only join to the same text.
    pub fn is_foreign_effect(&self, identity: &SettlementIdentity) -> Result<bool, StoreError> {
        let sql = "SELECT EXISTS(SELECT 1 FROM admissions WHERE effect_id=?1 AND NOT (goal_id=?2 AND agent_id=?3))";
        let (goal, agent) = (identity.goal.as_str(), identity.agent.as_str());
        let found = self.connection().query_row(
            sql,
            params![identity.effect_id(), goal, agent],
            |row| row.get(0),
        )?;
        Ok(found)
    }

    /// Records an admission, or upgrades an unbound one to its binding; the first event stays its anchor.
    pub fn put_admission(
        &self,
        identity: &SettlementIdentity,
        admission: &Admission,
        body: &Value,
    ) -> Result<(), StoreError> {
        let (text, _) = stored_text(body)?;
        let effect = match identity.binding {
            Binding::Unbound => None,
            _ => Some(identity.effect_id()),
        };
        let changed = self.connection().execute(
            "INSERT INTO admissions(goal_id,agent_id,turn_instance_id,binding_kind,binding_id,effect_id,event_id,recorded_at,mode,
               spendable,capture_id,body_json) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12)
             ON CONFLICT(goal_id,agent_id,turn_instance_id) DO UPDATE SET binding_kind=excluded.binding_kind,
               binding_id=excluded.binding_id, effect_id=excluded.effect_id, mode=excluded.mode, spendable=excluded.spendable,
               capture_id=excluded.capture_id, body_json=excluded.body_json WHERE admissions.binding_kind='unbound'",
            params![
                identity.goal.as_str(),
                identity.agent.as_str(),
                identity.instance.as_str(),
                identity.binding.kind(),
                identity.binding.id(),
                effect,
                admission.event_id,
                admission.recorded_at,
                admission.mode,
                admission.is_spendable,
                admission.capture_id,
                text
            ],
        )?;
        match changed {
            1 => Ok(()),
            _ => Err(StoreError::Corrupt("a bound admission was about to change")),
        }
    }

    /// Records a writeback.
    pub fn put_writeback(&self, agent: &AgentId, writeback: &Writeback) -> Result<(), StoreError> {
        let (text, _) = stored_text(&Value::Object(writeback.body.clone()))?;
        self.connection().execute(
            "INSERT INTO writebacks(effect_id,goal_id,agent_id,turn_instance_id,run_generated_at,run_seq,event_id,closeout_kind,
               mutation_digest,vision_request_digest,body_json) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)",
            params![
                writeback.effect_id,
                self.goal().as_str(),
                agent.as_str(),
                writeback.instance,
                writeback.run_generated_at,
                writeback.run_seq,
                writeback.event_id,
                writeback.closeout_kind,
                writeback.mutation_digest,
                writeback.vision_digest,
                text
            ],
        )?;
        Ok(())
    }

    /// Notes the vision decision that supplemented a committed writeback, and the run that carries it.
    pub fn supplement_writeback(
        &self,
        effect_id: &str,
        vision_digest: &str,
        run: Timestamp,
    ) -> Result<(), StoreError> {
        self.connection().execute(
            "UPDATE writebacks SET vision_request_digest=?2, body_json=json_set(body_json,'$.supplement_generated_at',?3)
             WHERE effect_id=?1",
            params![effect_id, vision_digest, run.to_string()],
        )?;
        Ok(())
    }

    /// Records a spend at an instant of the run order.
    pub fn put_spend(&self, spend: &Spend, at: Timestamp) -> Result<(), StoreError> {
        self.connection().execute(
            "INSERT INTO spends(effect_id,goal_id,agent_id,slots,source,run_generated_at,spent_us,event_id,body_json)
             VALUES(?1,?2,?3,?4,?5,?6,?7,?8,'{}')",
            params![
                spend.effect_id,
                self.goal().as_str(),
                spend.agent_id,
                spend.slots,
                spend.source,
                spend.run_generated_at,
                micros(at),
                spend.event_id
            ],
        )?;
        Ok(())
    }

    /// Records the correction of a spend.
    pub fn put_void(
        &self,
        spend: &Spend,
        event: &EventRow,
        reason: &str,
    ) -> Result<(), StoreError> {
        self.connection().execute(
            "INSERT INTO spend_voids(void_event_id,goal_id,run_generated_at,slots,reason,spent_us)
             VALUES(?1,?2,?3,?4,?5,(SELECT spent_us FROM spends WHERE goal_id=?2 AND run_generated_at=?3))",
            params![event.event_id, self.goal().as_str(), spend.run_generated_at, spend.slots, reason],
        )?;
        Ok(())
    }

    /// Records the receipt of one settlement step; a stored one stays.
    pub fn put_step(
        &self,
        effect_id: &str,
        step: &str,
        source: Option<&str>,
    ) -> Result<(), StoreError> {
        self.connection().execute(
            "INSERT OR IGNORE INTO settlement_steps(effect_id,step_kind,status,source_ref) VALUES(?1,?2,'committed',?3)",
            params![effect_id, step, source],
        )?;
        Ok(())
    }

    /// Appends one link to the chain of outside delivery.
    pub fn put_external_delivery(
        &self,
        effect_id: &str,
        link: &ExternalDelivery,
    ) -> Result<(), StoreError> {
        self.connection().execute(
            "INSERT INTO external_deliveries(effect_id,seq,goal_id,state,resume_key,event_id) VALUES(?1,?2,?3,?4,?5,?6)",
            params![effect_id, link.seq, self.goal().as_str(), link.state, link.resume_key, link.event_id],
        )?;
        Ok(())
    }
}
