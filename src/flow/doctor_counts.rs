//! The counts of todos `doctor` looks at: they are derived from the todos, so they are taken again from them.

use super::open::{self, Answer};
use super::ports::Ports;
use crate::contract::event::EventDraft;
use crate::contract::ids::GoalId;

/// Takes the counts of one goal again, in one transaction with the event that says so.
pub fn mend(ports: &Ports, goal: &GoalId) -> Answer<()> {
    let mut place = open::goal(ports, goal)?;
    let mut writer = place.writer(ports)?;
    let mut tx = place.begin(ports, &mut writer)?;
    // Another process may have been here since the look.
    if !tx
        .rows()
        .miscounted_goals()?
        .iter()
        .any(|id| id == goal.as_str())
    {
        return Ok(());
    }
    tx.recount_todos()?;
    let draft = EventDraft::new("store_repair", "todos counted again")
        .status("repaired")
        .detail("check", "todo_counts");
    tx.event(draft)?;
    tx.commit()?;
    writer.bring_up_exports(goal, ports.now);
    Ok(())
}
