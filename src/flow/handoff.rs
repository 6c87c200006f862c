//! `handoff prepare|inspect|adopt`: a Todo passes from one session or agent to the next.
//!
//! prepare: 1. replay by operation id  2. actor, Todo, owner  3. revision guard  4. note, event and receipt in
//! one transaction  5. read the note back. adopt: 1. replay by operation id, then look at the present state
//! 2. agents, Todo  3. revision guard  4. note, session, artifacts  5. owner, event and receipt in one
//! transaction  6. read the Todo back. The grant of a transfer is made here and never taken from a caller.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::mode::Mode;
use super::open::{self, Answer, Place, entry_digest};
use super::ports::Ports;
use super::todo::unknown_todo;
use crate::contract::digest;
use crate::contract::error::ErrorCode;
use crate::contract::event::EventDraft;
use crate::contract::handoff::{self, Context, Note};
use crate::contract::ids::{AgentId, GoalId, TodoId};
use crate::contract::packet::Refusal;
use crate::contract::todo::Todo;
use crate::failpoint;
use crate::failpoint::Point;
use crate::kernel::handoff::{self as decide, Adoption, NoteState, Seal, Watch};
use crate::kernel::todo::{self as rules, LeaseProof};
use crate::store::StoreError;
use crate::store::rows::{Receipt, Rows};
use crate::store::state::{GoalTx, Writer};
use crate::workspace::contained;

/// Which Todo, who acts and in which session.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The goal.
    pub goal: GoalId,
    /// The Todo.
    pub todo: TodoId,
    /// The acting agent.
    pub agent: AgentId,
    /// The acting session.
    pub session: String,
    /// The folder artifacts are looked for in.
    pub workspace: Option<PathBuf>,
    /// Relative paths that have to be there.
    pub artifacts: Vec<String>,
}

/// A change, made once.
#[derive(Debug, Clone)]
pub struct Operation {
    /// Names the change for replays.
    pub id: String,
    /// The revision it rests on.
    pub expected_revision: String,
}

/// Who adopts, and under which lease.
#[derive(Debug, Clone)]
pub struct Target {
    /// Who is to own the Todo.
    pub agent: AgentId,
    /// The proof of a lease that is held already.
    pub proof: Option<LeaseProof>,
}

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

fn stored(rows: Rows<'_>, subject: &Subject) -> Answer<Todo> {
    let found = rows.todo(&subject.goal, &subject.todo)?;
    found
        .map(|stored| stored.todo)
        .ok_or_else(|| unknown_todo(&subject.todo))
}

fn revision(rows: Rows<'_>, goal: &GoalId) -> Answer<String> {
    let head = rows
        .head(goal)?
        .ok_or(StoreError::Corrupt("the rows of a known goal are gone"))?;
    Ok(head.provider_revision())
}

/// The public view of a continuation.
fn view(action: &str, place: &Place, rows: Rows<'_>, at: (&Subject, &Todo)) -> Answer {
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

fn availability(place: &Place, subject: &Subject) -> (Value, bool) {
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
        tx.note_entry(&entry_digest(&place.goal))?;
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
        let sealed = receipt.get("note_facts").and_then(Value::as_str);
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
    Ok(super::todo::store_change(tx, at.0, at.1, draft)?)
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

/// Takes a prepared Todo over.
pub fn adopt(
    ports: &Ports,
    mode: Mode,
    (subject, operation): (&Subject, &Operation),
    target: &Target,
) -> Answer {
    let mut place = open::goal(ports, &subject.goal)?;
    place.require_actor(&subject.agent, ErrorCode::ActorNotRegistered)?;
    place.require_actor(&target.agent, ErrorCode::TargetAgentNotRegistered)?;
    let intent = intent(
        "adopt",
        subject,
        operation,
        &json!({"target_agent_id": target.agent}),
    )?;
    if mode.is_preview() {
        let reader = place.reader()?.ok_or_else(|| unknown_todo(&subject.todo))?;
        let (todo, adoption) =
            adopted(ports, (&place, reader.rows()), (subject, operation), target)?;
        let packet = view("adopt", &place, reader.rows(), (subject, &todo))?;
        return Ok(claimed(
            packet,
            ("preview_only", adoption.as_str()),
            target,
            false,
        ));
    }
    let mut writer = place.writer(ports)?;
    record_edit(ports, &place, &mut writer)?;
    let mut tx = writer.begin(&subject.goal, ports.now)?;
    if let Some(receipt) = replayed(tx.rows(), subject, operation, &intent)? {
        drop(tx);
        writer.bring_up_exports(&subject.goal, ports.now);
        return adopted_before(&place, writer.rows(), (subject, target), &receipt);
    }
    let (before, adoption) = adopted(ports, (&place, tx.rows()), (subject, operation), target)?;
    let mut packet = view("adopt", &place, tx.rows(), (subject, &before))?;
    tx.note_entry(&entry_digest(&place.goal))?;
    if let Adoption::Transfer(after) = &adoption {
        store_transfer(&mut tx, (subject, target), (&before, after))?;
    }
    let sealed = seal(&tx, operation, (&intent, &before, &target.agent))?;
    tx.commit()?;
    failpoint!(Point::HandoffCommitted);
    writer.bring_up_exports(&subject.goal, ports.now);
    let todo = stored(writer.rows(), subject)?;
    packet["provider_revision"] = json!(revision(writer.rows(), &subject.goal)?);
    packet["claimed_by"] = json!(todo.claimed_by());
    let is_verified = holds(&todo, target, (&sealed.0, &sealed.1));
    Ok(claimed(
        packet,
        ("applied", adoption.as_str()),
        target,
        is_verified,
    ))
}

fn store_transfer(
    tx: &mut GoalTx<'_>,
    (subject, target): (&Subject, &Target),
    (before, after): (&Todo, &Todo),
) -> Answer<()> {
    let draft = EventDraft::new("todo_claim", "todo handed over")
        .agent(Some(subject.agent.as_str()))
        .status("transferred")
        .detail("source_agent_id", json!(before.claimed_by()))
        .detail("target_agent_id", target.agent.as_str());
    Ok(super::todo::store_change(tx, before, after, draft)?)
}

/// The stored answer of an adoption, held against the Todo as it is now.
fn adopted_before(
    place: &Place,
    rows: Rows<'_>,
    (subject, target): (&Subject, &Target),
    receipt: &Value,
) -> Answer {
    let word = |name: &str| receipt.get(name).and_then(Value::as_str).unwrap_or("");
    let todo = stored(rows, subject)?;
    let is_held = holds(&todo, target, (word("note_facts"), word("stable_facts")));
    let packet = view("adopt", place, rows, (subject, &todo))?;
    Ok(claimed(
        packet,
        ("replayed", word("claim")),
        target,
        is_held,
    ))
}

fn holds(todo: &Todo, target: &Target, (note_facts, stable_facts): (&str, &str)) -> bool {
    Seal {
        target: &target.agent,
        note_facts,
        stable_facts,
    }
    .holds(todo)
}

fn adopted(
    ports: &Ports,
    (place, rows): (&Place, Rows<'_>),
    (subject, operation): (&Subject, &Operation),
    target: &Target,
) -> Answer<(Todo, Adoption)> {
    let before = stored(rows, subject)?;
    decide::require_open(&before)?;
    guard(rows, (subject, &before), operation, &target.agent)?;
    require_known_entry(place, rows)?;
    let lease = rows.lease(&subject.goal, &subject.todo)?;
    let adoption = decide::adopt(
        &before,
        lease.as_ref(),
        (&subject.agent, &target.agent),
        ports.now,
    )?;
    if target.proof.is_some() {
        rules::check_lease(
            lease.as_ref(),
            target.proof.as_ref(),
            &target.agent,
            ports.now,
        )?;
    }
    let note = Note::of(&before);
    let state = NoteState::of(note.as_ref(), &before);
    let (_, is_ready) = availability(place, subject);
    if !decide::may_continue(state, note.as_ref(), (&subject.session, is_ready)) {
        let text = "the continuation is not ready: it needs a current note of another session and its artifacts; `loopx handoff inspect` shows what is missing";
        let refusal = Refusal::new(ErrorCode::ContinuationNotReady, text);
        return Err(refusal.with("note_state", state.as_str()));
    }
    Ok((before, adoption))
}

fn claimed(mut packet: Value, words: (&str, &str), target: &Target, is_verified: bool) -> Value {
    let (result, claim) = words;
    packet["ok"] = json!(is_verified || result == "preview_only");
    packet["dry_run"] = json!(result == "preview_only");
    packet["result"] = json!(result);
    packet["claim"] = json!(claim);
    packet["current_authority_verified"] = json!(is_verified);
    packet["target_agent_id"] = json!(target.agent);
    packet
}

/// Refuses when anything the transfer rests on changed after the named revision.
fn guard(
    rows: Rows<'_>,
    (subject, todo): (&Subject, &Todo),
    operation: &Operation,
    target: &AgentId,
) -> Answer<()> {
    let current = revision(rows, &subject.goal)?;
    let Some(seen) = rows.had_revision(&subject.goal, &operation.expected_revision)? else {
        return Err(moved_on(&current));
    };
    let watch = Watch {
        todo,
        agents: [&subject.agent, target],
    };
    match rows
        .events_after(&subject.goal, seen)?
        .iter()
        .any(|event| watch.concerns(event))
    {
        true => Err(moved_on(&current)),
        false => Ok(()),
    }
}

/// Records a hand edit of the goal's entry first, so that the refusal it causes names a revision that can be used.
fn record_edit(ports: &Ports, place: &Place, writer: &mut Writer) -> Answer<()> {
    let known = writer.rows().head(&place.goal.id)?;
    let known = known.and_then(|head| head.entry_digest);
    if known.is_some_and(|known| known != entry_digest(&place.goal)) {
        place.begin(ports, writer)?.commit()?;
    }
    Ok(())
}

/// A hand edit of the goal's entry after the last recorded change may have touched its roster.
fn require_known_entry(place: &Place, rows: Rows<'_>) -> Answer<()> {
    let head = rows
        .head(&place.goal.id)?
        .ok_or(StoreError::Corrupt("the rows of a known goal are gone"))?;
    match head.entry_digest.as_deref() {
        Some(known) if known != entry_digest(&place.goal) => {
            Err(moved_on(&head.provider_revision()))
        }
        _ => Ok(()),
    }
}

fn moved_on(current: &str) -> Refusal {
    let text = "the todo, its lease, its gates or its agents changed since that revision; inspect it again and use the revision shown";
    Refusal::new(ErrorCode::ProviderRevisionMismatch, text).with("provider_revision", current)
}

/// The request as it is compared on a replay.
fn intent(action: &str, subject: &Subject, operation: &Operation, more: &Value) -> Answer<String> {
    let mut intent: Map<String, Value> = more.as_object().cloned().unwrap_or_default();
    for (name, value) in [
        ("action", action),
        ("goal_id", subject.goal.as_str()),
        ("todo_id", subject.todo.as_str()),
        ("agent_id", subject.agent.as_str()),
        ("session_id", &subject.session),
        ("operation_id", &operation.id),
        ("expected_revision", &operation.expected_revision),
    ] {
        intent.insert(name.to_owned(), json!(value));
    }
    intent.insert("artifacts".to_owned(), json!(subject.artifacts));
    let digest = digest::digest_hex(&Value::Object(intent));
    digest.map_err(|_| StoreError::Corrupt("an intent has no canonical form").into())
}

/// The stored answer of the same request; another request under this operation id is refused.
fn replayed(
    rows: Rows<'_>,
    subject: &Subject,
    operation: &Operation,
    intent: &str,
) -> Answer<Option<Value>> {
    match rows.receipt(&subject.goal, &operation.id)? {
        None => Ok(None),
        Some(receipt) if receipt.request_sha256 == intent => Ok(Some(receipt.result)),
        Some(_) => {
            let text = "this operation id was used for another request; choose a new one";
            Err(Refusal::new(ErrorCode::OperationIdConflict, text))
        }
    }
}

/// Keeps what was sealed: digests of the note and of the Todo without its owner.
fn seal(
    tx: &GoalTx<'_>,
    operation: &Operation,
    (intent, todo, target): (&str, &Todo, &AgentId),
) -> Answer<(String, String)> {
    let note_facts = Note::of(todo).map(|note| note.facts()).unwrap_or_default();
    let stable_facts = handoff::stable_facts(todo);
    let claim = match todo.claimed_by() == Some(target.as_str()) {
        true => Adoption::ReceiptOnly.as_str(),
        false => "transferred",
    };
    let result = json!({
        "schema_version": "loopx_continuation_adoption_receipt_v0", "claim": claim, "target_agent_id": target,
        "note_facts": note_facts, "stable_facts": stable_facts,
    });
    tx.put_receipt(
        &operation.id,
        &Receipt {
            request_sha256: intent.to_owned(),
            result,
        },
    )?;
    Ok((note_facts, stable_facts))
}
