//! Leaves a note for the next session or agent.

use serde_json::{Value, json};

use super::operation::{Operation, Subject, guard, intent, replayed, revision, seal, stored};
use crate::contract::error::ErrorCode;
use crate::contract::event::EventDraft;
use crate::contract::handoff::{Context, Note};
use crate::contract::todo::Todo;
use crate::failpoint;
use crate::failpoint::Point;
use crate::flow::mode::Mode;
use crate::flow::open::{self, Answer};
use crate::flow::ports::Ports;
use crate::flow::todo::{store_change, unknown_todo};
use crate::kernel::handoff::{self as decide, NoteState};
use crate::kernel::todo as rules;
use crate::store::rows::Rows;
use crate::store::state::GoalTx;

/// Leaves a note for the next session or agent.
pub fn prepare(
    ports: &Ports,
    mode: Mode,
    (subject, operation): (&Subject, &Operation),
    context: &Context,
) -> Answer {
    let mut place = open::goal(ports, &subject.goal)?;
    place.require_actor(&subject.agent, ErrorCode::ActorNotRegistered)?;
    let intent = intent(
        "prepare",
        subject,
        operation,
        &json!({"context": context.to_value()}),
    )?;
    if mode.is_preview() {
        let reader = place.reader()?.ok_or_else(|| unknown_todo(&subject.todo))?;
        let (todo, _) = noted(ports, reader.rows(), (subject, operation), context)?;
        return prepared(
            mode,
            "preview_only",
            (subject, &todo),
            &revision(reader.rows(), &subject.goal)?,
        );
    }
    let mut writer = place.writer(ports)?;
    let mut tx = writer.begin(&subject.goal, ports.now)?;
    // Inside the transaction: of two equal requests at once the second finds the first one's receipt.
    let replay = replayed(tx.rows(), subject, operation, &intent)?;
    if replay.is_none() {
        // The guard looks at what was there before this command records anything itself.
        let (after, before) = noted(ports, tx.rows(), (subject, operation), context)?;
        place.note_edits(&mut tx)?;
        store_note(&mut tx, subject, (&before, &after))?;
        seal(&tx, operation, (&intent, &after, &subject.agent))?;
        tx.commit()?;
        failpoint!(Point::HandoffCommitted);
    } else {
        drop(tx);
    }
    writer.bring_up_exports(&subject.goal, ports.now);
    let todo = stored(writer.rows(), subject)?;
    let result = if replay.is_some() {
        "replayed"
    } else {
        "applied"
    };
    let revision = revision(writer.rows(), &subject.goal)?;
    let mut packet = prepared(mode, result, (subject, &todo), &revision)?;
    if let Some(receipt) = replay {
        let sealed = receipt.result.get("note_facts").and_then(Value::as_str);
        let is_there = Note::of(&todo).is_some_and(|note| Some(note.facts().as_str()) == sealed);
        packet["ok"] = json!(is_there);
        packet["note_readback_verified"] = json!(is_there);
    }
    Ok(packet)
}

fn store_note(tx: &mut GoalTx<'_>, subject: &Subject, at: (&Todo, &Todo)) -> Answer<()> {
    let draft = EventDraft::new("todo_update", "continuation prepared")
        .agent(Some(subject.agent.as_str()))
        .status("continuation_prepared");
    Ok(store_change(tx, at.0, at.1, draft)?)
}

/// The Todo with its new note, and as it was.
fn noted(
    ports: &Ports,
    rows: Rows<'_>,
    (subject, operation): (&Subject, &Operation),
    context: &Context,
) -> Answer<(Todo, Todo)> {
    let before = stored(rows, subject)?;
    decide::require_open(&before)?;
    decide::require_owner(&before, &subject.agent)?;
    guard(rows, (subject, &before), operation, &subject.agent)?;
    let note = Note::new(&subject.session, &before, context.clone());
    let mut after = before.clone();
    after.set("note", json!(note.to_value().to_string()));
    rules::touch(&mut after, Some(&subject.agent), ports.now);
    Ok((after, before))
}

fn prepared(mode: Mode, result: &str, at: (&Subject, &Todo), revision: &str) -> Answer {
    let (subject, todo) = at;
    let is_there = NoteState::of(Note::of(todo).as_ref(), todo) == NoteState::Current;
    Ok(json!({
        "ok": is_there, "schema_version": "loopx_handoff_v0", "action": "prepare", "dry_run": mode.is_preview(),
        "result": result, "note_readback_verified": is_there && !mode.is_preview(),
        "goal_id": subject.goal, "todo_id": subject.todo, "provider_revision": revision,
    }))
}
