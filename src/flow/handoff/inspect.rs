//! Looks at a Todo's continuation.

use serde_json::{Value, json};

use super::operation::{Subject, revision, stored};
use crate::contract::error::ErrorCode;
use crate::contract::handoff::{self, Note};
use crate::contract::todo::Todo;
use crate::flow::open::{self, Answer, Place};
use crate::flow::ports::Ports;
use crate::flow::todo::unknown_todo;
use crate::kernel::handoff::{self as decide, NoteState};
use crate::store::rows::Rows;
use crate::workspace::contained;

/// Looks at a Todo's continuation; writes nothing. `with_digest` adds the digests a caller may pin.
pub fn inspect(ports: &Ports, subject: &Subject, with_digest: bool) -> Answer {
    let place = open::goal(ports, &subject.goal)?;
    place.require_actor(&subject.agent, ErrorCode::ActorNotRegistered)?;
    let reader = place.reader()?.ok_or_else(|| unknown_todo(&subject.todo))?;
    let todo = stored(reader.rows(), subject)?;
    let mut packet = view("inspect", &place, reader.rows(), (subject, &todo))?;
    if with_digest {
        let note = Note::of(&todo);
        packet["digest"] = json!({
            "todo_facts": handoff::facts(&todo),
            "note_facts": note.map(|note| note.facts()),
        });
        packet["execution_authority"] = json!("none");
    }
    Ok(packet)
}

/// The public view of a continuation.
pub(super) fn view(action: &str, place: &Place, rows: Rows<'_>, at: (&Subject, &Todo)) -> Answer {
    let (subject, todo) = at;
    let note = Note::of(todo);
    let state = NoteState::of(note.as_ref(), todo);
    let (availability, is_ready) = availability(place, subject);
    let note = note.as_ref();
    Ok(json!({
        "ok": true,
        "schema_version": "loopx_handoff_v0",
        "action": action,
        "goal_id": subject.goal,
        "todo_id": subject.todo,
        "provider_revision": revision(rows, &subject.goal)?,
        "todo_status": todo.status().as_str(),
        "claimed_by": todo.claimed_by(),
        "note_state": state.as_str(),
        "availability": availability,
        "decision_rationale": note.and_then(Note::rationale),
        "evidence_refs": note.map(Note::evidence_refs).unwrap_or_default(),
        "next_step": note.and_then(Note::next_step),
        "can_adopt": decide::may_continue(state, note, (&subject.session, is_ready)),
    }))
}

pub(super) fn availability(place: &Place, subject: &Subject) -> (Value, bool) {
    let folder = subject.workspace.clone().unwrap_or_else(|| place.project());
    let has_workspace = folder.is_dir();
    let found: Vec<(&String, bool)> = subject
        .artifacts
        .iter()
        .map(|name| (name, has_workspace && contained::holds(&folder, name)))
        .collect();
    let is_ready = has_workspace && found.iter().all(|(_, is_there)| *is_there);
    let artifacts: Vec<Value> = found
        .iter()
        .map(|(name, there)| json!({"ref": name, "available": there}))
        .collect();
    let packet = json!({
        "workspace_available": has_workspace, "artifacts": artifacts, "ready": is_ready,
    });
    (packet, is_ready)
}
