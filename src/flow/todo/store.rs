//! One changed todo in one transaction: the record, its event, the decision it records and the lease it ends.

use serde_json::{Map, Value, json};

use crate::contract::error::ErrorCode;
use crate::contract::event::EventDraft;
use crate::contract::ids::TodoId;
use crate::contract::packet::Refusal;
use crate::contract::todo::{Status, Todo};
use crate::flow::mode::Mode;
use crate::flow::open::{Answer, Place};
use crate::flow::ports::Ports;
use crate::kernel::lease;
use crate::store::StoreError;
use crate::store::journal::gate::GateDecision;
use crate::store::rows::{Head, Rows};
use crate::store::state::GoalTx;

/// A changed todo with its event, and the decision it records.
pub(super) type Step = Option<(Todo, EventDraft, Option<GateDecision>)>;

/// Changes one todo by a pure transition, inside one transaction.
pub(super) fn change(
    (ports, mode): (&Ports, Mode),
    place: &mut Place,
    (id, schema): (&TodoId, &str),
    step: &dyn Fn(&Todo, Rows<'_>) -> Answer<Step>,
) -> Answer {
    let goal = place.goal.id.clone();
    if mode.is_preview() {
        let reader = place.reader()?.ok_or_else(|| unknown_todo(id))?;
        let before = reader
            .rows()
            .todo(&goal, id)?
            .ok_or_else(|| unknown_todo(id))?
            .todo;
        let changed = step(&before, reader.rows())?.map(|(after, ..)| after);
        let head = reader.rows().head(&goal)?;
        return Ok(packet(
            (schema, mode),
            changed.as_ref().unwrap_or(&before),
            changed.is_some(),
            &revision_text(head.as_ref()),
        ));
    }
    let mut writer = place.writer(ports)?;
    let mut tx = place.begin(ports, &mut writer)?;
    let before = tx
        .rows()
        .todo(&goal, id)?
        .ok_or_else(|| unknown_todo(id))?
        .todo;
    let Some((after, draft, decision)) = step(&before, tx.rows())? else {
        let head = tx.head().clone();
        drop(tx);
        writer.bring_up_exports(&goal, ports.now);
        return Ok(packet(
            (schema, mode),
            &before,
            false,
            &head.provider_revision(),
        ));
    };
    store_change(&mut tx, &before, &after, draft)?;
    if let Some(decision) = decision {
        tx.decide_gate(&decision)?;
    }
    let head = tx.commit()?;
    writer.bring_up_exports(&goal, ports.now);
    Ok(packet(
        (schema, mode),
        &after,
        true,
        &head.provider_revision(),
    ))
}

/// Stores one changed todo with its event; a completion is filed under the event's own instant.
pub fn store_change(
    tx: &mut GoalTx<'_>,
    before: &Todo,
    after: &Todo,
    draft: EventDraft,
) -> Result<(), StoreError> {
    let is_superseded = after.get("superseded_by").is_some();
    let is_completed =
        before.status() != Status::Done && after.status() == Status::Done && !is_superseded;
    let event = tx.event(draft.todo(Some(after.id().as_str())))?;
    tx.update_todo(before, after, is_completed.then_some(&event))?;
    if after.status() == Status::Done || after.is_archived() {
        end_lease(tx, after)?;
    }
    Ok(())
}

/// A finished todo holds nothing: its lease ends with it.
pub(super) fn end_lease(tx: &mut GoalTx<'_>, todo: &Todo) -> Result<(), StoreError> {
    let lease = tx.rows().lease(tx.goal(), todo.id())?;
    let Some(ended) = lease.and_then(|lease| lease::ended(&lease, tx.now())) else {
        return Ok(());
    };
    tx.put_lease(&ended)?;
    let draft = EventDraft::new("lease", "lease ended with its todo")
        .agent(Some(ended.owner.as_str()))
        .todo(Some(todo.id().as_str()))
        .status("release")
        .detail("lease_epoch", ended.lease_epoch)
        .detail("version", ended.version);
    tx.event(draft)?;
    Ok(())
}

/// The refusal of a todo that does not exist.
pub fn unknown_todo(id: &TodoId) -> Refusal {
    Refusal::new(
        ErrorCode::TodoNotFound,
        "this goal has no such todo; `loopx todo list` shows what it has",
    )
    .with("todo_id", id.as_str())
}

/// The revision of a goal that may have no rows yet.
pub fn revision_text(head: Option<&Head>) -> String {
    head.map_or_else(|| "rev-0:000000000000".to_owned(), Head::provider_revision)
}

/// What a change of one todo answers.
pub(super) fn packet(
    (schema, mode): (&str, Mode),
    todo: &Todo,
    is_changed: bool,
    revision: &str,
) -> Value {
    let mut packet = Map::new();
    packet.insert("ok".to_owned(), json!(true));
    packet.insert("schema_version".to_owned(), json!(schema));
    packet.insert("dry_run".to_owned(), json!(mode.is_preview()));
    packet.insert("todo_id".to_owned(), json!(todo.id()));
    packet.insert("changed".to_owned(), json!(is_changed));
    packet.insert("todo".to_owned(), todo.to_value());
    packet.insert("provider_revision".to_owned(), json!(revision));
    Value::Object(packet)
}
