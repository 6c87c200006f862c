//! The settlement receipts `doctor` looks at: rows that lost their event are repaired, the other half is only reported.

use super::open::{self, Answer, Place};
use super::ports::Ports;
use super::{quota, receipt_repair};
use crate::contract::ids::GoalId;
use crate::contract::settlement::SettlementIdentity;
use crate::store::StoreError;
use crate::store::rows::Rows;

/// What was found in the settlement rows of all goals.
#[derive(Default)]
pub struct Receipts {
    /// Goals with rows that lost their event.
    pub mendable: Vec<GoalId>,
    /// True when an event has lost its row: whether it happened is unknown.
    pub has_stray: bool,
}

impl Receipts {
    /// Looks at one goal.
    pub fn look(&mut self, rows: Rows<'_>, goal: &GoalId) -> Result<(), StoreError> {
        if !lost(rows, goal)?.is_empty() {
            self.mendable.push(goal.clone());
        }
        self.has_stray |= rows.settlement_events_without_row(goal)? > 0;
        Ok(())
    }
}

/// The Turns of a goal with a row that lost its event.
fn lost(rows: Rows<'_>, goal: &GoalId) -> Result<Vec<SettlementIdentity>, StoreError> {
    let mut found = rows.writebacks_without_event(goal)?;
    found.extend(rows.spends_without_event(goal)?);
    let identities = found
        .iter()
        .filter_map(|writeback| writeback.body.get("identity"))
        .filter_map(SettlementIdentity::parse);
    Ok(identities.collect())
}

/// Puts back the events of one goal's settlement rows.
pub fn mend(ports: &Ports, goal: &GoalId) -> Answer<()> {
    let mut place: Place = open::goal(ports, goal)?;
    let mut writer = place.writer(ports)?;
    for identity in lost(writer.rows(), goal)? {
        let question = quota::standing(ports, &place, Some(&identity.agent));
        let mut tx = place.begin(ports, &mut writer)?;
        receipt_repair::writeback(&mut tx, (&place, &question), &identity)?;
        receipt_repair::spend(&mut tx, &identity)?;
        tx.commit()?;
    }
    writer.bring_up_exports(goal, ports.now);
    Ok(())
}
