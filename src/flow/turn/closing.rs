//! What follows the spend of a Turn: the terminal closeout of its todo, and what the scheduler is told.

use serde_json::{Value, json};

use super::journal_file::{self, Loaded};
use crate::contract::settlement::SettlementIdentity;
use crate::contract::todo::Todo;
use crate::flow::open::{Answer, Place};
use crate::flow::ports::Ports;
use crate::kernel::todo;
use crate::kernel::turn::journal::{Event, Journal};
use crate::store::StoreError;
use crate::store::state::{GoalTx, Writer};

/// Closes a completed todo for good, after its spend.
pub(super) fn close_out(
    (ports, place): (&Ports, &Place),
    writer: &mut Writer,
    loaded: &mut Loaded,
    identity: &SettlementIdentity,
) -> Answer<()> {
    let now = loaded.journal()?;
    let is_owed = now
        .get("writeback")
        .and_then(|writeback| writeback.get("terminal_closeout_owed"))
        == Some(&json!(true));
    if !is_owed || now.get("terminal_closeout").is_some() {
        return Ok(());
    }
    let Some(todo_id) = identity.binding.todo() else {
        return Ok(());
    };
    let instant = ports.now;
    let make = |tx: &mut GoalTx<'_>| -> Answer<Vec<Event>> {
        let stored = tx
            .rows()
            .todo(&identity.goal, todo_id)?
            .ok_or(StoreError::Corrupt("a completed todo is gone"))?
            .todo;
        if stored.text("completion_continuation") == Some("active_goal") {
            let lease = tx.rows().lease(&identity.goal, todo_id)?;
            todo::require_unleased(lease.as_ref(), Some(&identity.agent), instant)?;
            let closed: Todo = todo::closed_out(&stored, instant);
            let draft = crate::flow::todo::completion_event(
                &closed,
                &identity.agent,
                Some(&identity.instance),
            );
            crate::flow::todo::store_change(tx, &stored, &closed, draft)?;
        }
        tx.put_step(&identity.effect_id(), "terminal_closeout", None)?;
        Ok(vec![Event::ClosedOut(
            json!({"todo_id": todo_id, "continuation": "no_followup"}),
        )])
    };
    journal_file::step((ports, place), writer, loaded, (make, None))?.file()
}

pub(super) fn scheduler_owner(journal: &Journal) -> String {
    let host = journal.plan().get("host");
    host.and_then(|host| host.get("scheduler_owner"))
        .and_then(Value::as_str)
        .unwrap_or("none")
        .to_owned()
}

pub(super) fn scheduler_receipt(owner: &str) -> Value {
    let step = if owner == "host_automation" {
        "acknowledged"
    } else {
        "not_required"
    };
    json!({"owner": owner, "action": "none", "required": false, "scheduler_apply": step, "scheduler_ack": step})
}
