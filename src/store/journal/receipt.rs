//! Settlement rows against their events and runs: which half of an effect is there, and the repair of a lost event.

use rusqlite::params;

use super::settlement::Writeback;
use crate::contract::ids::GoalId;
use crate::store::StoreError;
use crate::store::rows::Rows;
use crate::store::state::GoalTx;

impl Rows<'_> {
    /// True when an event of a kind is stored for an effect.
    pub fn has_event_of(
        &self,
        goal: &GoalId,
        kind: &str,
        effect_id: &str,
    ) -> Result<bool, StoreError> {
        let sql = "SELECT EXISTS(SELECT 1 FROM events WHERE goal_id=?1 AND event_kind=?2 AND idem_key=?3)";
        let with = params![goal.as_str(), kind, effect_id];
        Ok(self.0.query_row(sql, with, |row| row.get(0))?)
    }

    /// Whether runs are stored for an effect: one that writes back, and one that spends.
    pub fn runs_of_effect(&self, effect_id: &str) -> Result<(bool, bool), StoreError> {
        let sql = "SELECT COALESCE(MAX(classification<>'quota_slot_spent'),0),COALESCE(MAX(classification='quota_slot_spent'),0)
                   FROM runs WHERE effect_id=?1";
        Ok(self
            .0
            .query_row(sql, [effect_id], |row| Ok((row.get(0)?, row.get(1)?)))?)
    }

    /// The writebacks of a goal whose event is gone.
    pub fn writebacks_without_event(&self, goal: &GoalId) -> Result<Vec<Writeback>, StoreError> {
        let sql = "SELECT effect_id FROM writebacks w WHERE goal_id=?1
                   AND NOT EXISTS(SELECT 1 FROM events e WHERE e.event_id=w.event_id)";
        let effects = self.effects(sql, goal)?;
        let found = effects.iter().map(|effect| self.writeback(effect));
        Ok(found
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .flatten()
            .collect())
    }

    /// The Turns of a goal whose debit has lost its event.
    pub fn spends_without_event(&self, goal: &GoalId) -> Result<Vec<Writeback>, StoreError> {
        let sql =
            "SELECT effect_id FROM spends s WHERE goal_id=?1 AND effect_id NOT LIKE 'unbound:%'
                   AND NOT EXISTS(SELECT 1 FROM events e WHERE e.event_id=s.event_id)";
        let effects = self.effects(sql, goal)?;
        let found = effects.iter().map(|effect| self.writeback(effect));
        Ok(found
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .flatten()
            .collect())
    }

    /// How many settlement events of a goal have lost their row.
    pub fn settlement_events_without_row(&self, goal: &GoalId) -> Result<i64, StoreError> {
        let sql = "SELECT (SELECT COUNT(*) FROM events WHERE goal_id=?1 AND event_kind='refresh_state' AND idem_key IS NOT NULL
                     AND NOT EXISTS(SELECT 1 FROM writebacks WHERE effect_id=idem_key))
                   + (SELECT COUNT(*) FROM events WHERE goal_id=?1 AND event_kind='quota_spend' AND idem_key IS NOT NULL
                     AND NOT EXISTS(SELECT 1 FROM spends WHERE effect_id=idem_key))";
        Ok(self.0.query_row(sql, [goal.as_str()], |row| row.get(0))?)
    }

    fn effects(&self, sql: &str, goal: &GoalId) -> Result<Vec<String>, StoreError> {
        let mut statement = self.0.prepare(sql)?;
        let rows = statement.query_map([goal.as_str()], |row| row.get(0))?;
        Ok(rows.collect::<Result<_, _>>()?)
    }
}

impl GoalTx<'_> {
    /// Gives a writeback without its receipt the event that proves it.
    pub fn repair_writeback_event(
        &self,
        effect_id: &str,
        event_id: &str,
    ) -> Result<(), StoreError> {
        self.connection().execute(
            "UPDATE writebacks SET event_id=?2 WHERE effect_id=?1",
            params![effect_id, event_id],
        )?;
        Ok(())
    }

    /// Gives a debit without its receipt the event that proves it.
    pub fn repair_spend_event(&self, effect_id: &str, event_id: &str) -> Result<(), StoreError> {
        self.connection().execute(
            "UPDATE spends SET event_id=?2 WHERE effect_id=?1",
            params![effect_id, event_id],
        )?;
        Ok(())
    }
}
