//! Visions, their checkpoints and the accepted acknowledgements of replan obligations.

use rusqlite::{OptionalExtension, params};
use serde_json::Value;

use crate::contract::ids::{AgentId, GoalId, ReplanObligationId};
use crate::contract::vision::Vision;
use crate::store::StoreError;
use crate::store::rows::{Rows, object, stored_text};
use crate::store::state::GoalTx;

impl Rows<'_> {
    /// The newest vision of an agent.
    pub fn vision(&self, goal: &GoalId, agent: &AgentId) -> Result<Option<Vision>, StoreError> {
        let sql = "SELECT body_json FROM visions WHERE goal_id=?1 AND agent_id=?2 ORDER BY revision DESC LIMIT 1";
        self.one_vision(sql, params![goal.as_str(), agent.as_str()])
    }

    /// The vision a run wrote.
    pub fn vision_of_run(
        &self,
        goal: &GoalId,
        agent: &AgentId,
        generated_at: &str,
    ) -> Result<Option<Vision>, StoreError> {
        let sql =
            "SELECT body_json FROM visions WHERE goal_id=?1 AND agent_id=?2 AND generated_at=?3";
        self.one_vision(sql, params![goal.as_str(), agent.as_str(), generated_at])
    }

    /// The newest open vision of an agent.
    pub fn open_vision(
        &self,
        goal: &GoalId,
        agent: &AgentId,
    ) -> Result<Option<Vision>, StoreError> {
        let sql = "SELECT body_json FROM visions WHERE goal_id=?1 AND agent_id=?2 AND state NOT IN
                     ('vision_closed','retired','retired_or_superseded','superseded','no_followup') ORDER BY revision DESC LIMIT 1";
        self.one_vision(sql, params![goal.as_str(), agent.as_str()])
    }

    /// The newest open vision an agent had before a run.
    pub fn open_vision_before(
        &self,
        goal: &GoalId,
        agent: &AgentId,
        generated_at: &str,
    ) -> Result<Option<Vision>, StoreError> {
        let sql = "SELECT body_json FROM visions WHERE goal_id=?1 AND agent_id=?2 AND state NOT IN
                     ('vision_closed','retired','retired_or_superseded','superseded','no_followup')
                     AND revision < COALESCE((SELECT revision FROM visions WHERE goal_id=?1 AND agent_id=?2 AND generated_at=?3),
                       (SELECT COALESCE(MAX(revision),0)+1 FROM visions WHERE goal_id=?1 AND agent_id=?2))
                     ORDER BY revision DESC LIMIT 1";
        self.one_vision(sql, params![goal.as_str(), agent.as_str(), generated_at])
    }

    /// The newest vision an agent had before a run, open or not. Order is that of appending, never of time.
    pub fn vision_before(
        &self,
        goal: &GoalId,
        agent: &AgentId,
        run_seq: i64,
    ) -> Result<Option<Vision>, StoreError> {
        let sql = "SELECT visions.body_json FROM visions JOIN runs ON runs.goal_id=visions.goal_id AND runs.generated_at=visions.generated_at
                     WHERE visions.goal_id=?1 AND visions.agent_id=?2 AND runs.seq<?3 ORDER BY visions.revision DESC LIMIT 1";
        self.one_vision(sql, params![goal.as_str(), agent.as_str(), run_seq])
    }

    /// True when an agent wrote a vision after a run. Order is that of appending, never of time.
    pub fn has_vision_after(
        &self,
        goal: &GoalId,
        agent: &AgentId,
        run_seq: i64,
    ) -> Result<bool, StoreError> {
        let sql = "SELECT COALESCE(MAX(runs.seq),0)>?3 FROM runs JOIN
                     (SELECT generated_at FROM visions WHERE goal_id=?1 AND agent_id=?2 ORDER BY revision DESC LIMIT 1) latest
                     ON runs.generated_at=latest.generated_at WHERE runs.goal_id=?1";
        let with = params![goal.as_str(), agent.as_str(), run_seq];
        Ok(self.0.query_row(sql, with, |row| row.get(0))?)
    }

    /// True when the current vision of any agent is open.
    pub fn has_open_vision(&self, goal: &GoalId) -> Result<bool, StoreError> {
        let sql = "SELECT body_json,MAX(revision) FROM visions WHERE goal_id=?1 GROUP BY agent_id";
        let mut statement = self.0.prepare(sql)?;
        let rows = statement.query_map([goal.as_str()], |row| row.get::<_, String>(0))?;
        for text in rows {
            if Vision::stored(object(&text?)?).is_open() {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// True when an agent ever wrote a vision.
    pub fn has_vision(&self, goal: &GoalId, agent: &AgentId) -> Result<bool, StoreError> {
        Ok(self.vision(goal, agent)?.is_some())
    }

    /// The place of the run that wrote an agent's current vision.
    pub fn vision_seq(&self, goal: &GoalId, agent: &AgentId) -> Result<Option<i64>, StoreError> {
        let sql = "SELECT runs.seq FROM runs JOIN
                     (SELECT generated_at FROM visions WHERE goal_id=?1 AND agent_id=?2 ORDER BY revision DESC LIMIT 1) latest
                     ON runs.generated_at=latest.generated_at WHERE runs.goal_id=?1";
        let with = params![goal.as_str(), agent.as_str()];
        Ok(self.0.query_row(sql, with, |row| row.get(0)).optional()?)
    }

    /// The newest required checkpoint of an agent, and the place of its run.
    pub fn checkpoint(
        &self,
        goal: &GoalId,
        agent: &AgentId,
    ) -> Result<Option<(Value, i64)>, StoreError> {
        let sql = "SELECT body_json,run_seq FROM vision_checkpoints WHERE goal_id=?1 AND agent_id=?2 ORDER BY run_seq DESC LIMIT 1";
        let found = self
            .0
            .query_row(sql, params![goal.as_str(), agent.as_str()], |row| {
                Ok((row.get::<_, String>(0)?, row.get(1)?))
            });
        found
            .optional()?
            .map(|(text, seq)| Ok((Value::Object(object(&text)?), seq)))
            .transpose()
    }

    /// The obligation of an agent's latest accepted acknowledgement, and the place of its run.
    pub fn last_ack(
        &self,
        goal: &GoalId,
        agent: &AgentId,
    ) -> Result<Option<(ReplanObligationId, i64)>, StoreError> {
        let sql = "SELECT obligation_id,ack_seq FROM replan_acks WHERE goal_id=?1 AND agent_id=?2 ORDER BY ack_seq DESC LIMIT 1";
        let found = self
            .0
            .query_row(sql, params![goal.as_str(), agent.as_str()], |row| {
                Ok((row.get::<_, String>(0)?, row.get(1)?))
            });
        Ok(found
            .optional()?
            .and_then(|(id, seq)| Some((ReplanObligationId::new(id)?, seq))))
    }

    /// True when an obligation was acknowledged.
    pub fn is_acknowledged(
        &self,
        goal: &GoalId,
        obligation: &ReplanObligationId,
    ) -> Result<bool, StoreError> {
        let sql = "SELECT 1 FROM replan_acks WHERE goal_id=?1 AND obligation_id=?2";
        let found = self
            .0
            .query_row(sql, params![goal.as_str(), obligation.as_str()], |_| Ok(()))
            .optional()?;
        Ok(found.is_some())
    }

    fn one_vision(
        &self,
        sql: &str,
        with: &[&dyn rusqlite::ToSql],
    ) -> Result<Option<Vision>, StoreError> {
        let text = self
            .0
            .query_row(sql, with, |row| row.get::<_, String>(0))
            .optional()?;
        text.map(|text| Ok(Vision::stored(object(&text)?)))
            .transpose()
    }
}

/// A checkpoint as it is stored: required ones only.
pub struct StoredCheckpoint<'a> {
    /// The run that carries it.
    pub run_seq: i64,
    /// Its decision word.
    pub decision: &'a str,
    /// The Turn it belongs to.
    pub effect_id: Option<&'a str>,
    /// The packet.
    pub body: &'a Value,
}

impl GoalTx<'_> {
    /// Appends a vision.
    pub fn put_vision(&self, agent: &AgentId, vision: &Vision) -> Result<(), StoreError> {
        let (text, _) = stored_text(&vision.to_value())?;
        self.connection().execute(
            "INSERT INTO visions(goal_id,agent_id,revision,state,generated_at,body_json) VALUES(?1,?2,
               (SELECT COALESCE(MAX(revision),0)+1 FROM visions WHERE goal_id=?1 AND agent_id=?2),?3,?4,?5)",
            params![self.goal().as_str(), agent.as_str(), vision.state(), vision.generated_at().unwrap_or(""), text],
        )?;
        Ok(())
    }

    /// Stores a required checkpoint.
    pub fn put_checkpoint(
        &self,
        agent: &AgentId,
        checkpoint: &StoredCheckpoint<'_>,
    ) -> Result<(), StoreError> {
        let (text, _) = stored_text(checkpoint.body)?;
        self.connection().execute(
            "INSERT OR REPLACE INTO vision_checkpoints(goal_id,agent_id,run_seq,decision,effect_id,body_json) VALUES(?1,?2,?3,?4,?5,?6)",
            params![self.goal().as_str(), agent.as_str(), checkpoint.run_seq, checkpoint.decision, checkpoint.effect_id, text],
        )?;
        Ok(())
    }

    /// Stores an accepted acknowledgement.
    pub fn put_ack(
        &self,
        (agent, obligation): (&AgentId, &ReplanObligationId),
        run: (&str, i64),
        ack: &Value,
    ) -> Result<(), StoreError> {
        let (text, _) = stored_text(ack)?;
        self.connection().execute(
            "INSERT INTO replan_acks(goal_id,obligation_id,agent_id,run_generated_at,ack_seq,body_json) VALUES(?1,?2,?3,?4,?5,?6)",
            params![self.goal().as_str(), obligation.as_str(), agent.as_str(), run.0, run.1, text],
        )?;
        Ok(())
    }
}
