//! Takes a prepared Todo over.

use serde_json::{Value, json};

use super::inspect::{availability, view};
use super::operation::{
    Operation, Subject, guard, intent, moved_on, replayed, revision, seal, stored,
};
use crate::contract::error::ErrorCode;
use crate::contract::event::EventDraft;
use crate::contract::handoff::Note;
use crate::contract::ids::AgentId;
use crate::contract::packet::Refusal;
use crate::contract::time::Timestamp;
use crate::contract::todo::Todo;
use crate::failpoint;
use crate::failpoint::Point;
use crate::flow::mode::Mode;
use crate::flow::open::{self, Answer, Place};
use crate::flow::ports::Ports;
use crate::flow::todo::{store_change, unknown_todo};
use crate::kernel::handoff::{self as decide, Adoption, NoteState, Seal, Watch};
use crate::kernel::todo::{self as rules, LeaseProof};
use crate::store::StoreError;
use crate::store::rows::{Receipt, Rows};
use crate::store::state::{GoalTx, Writer};

/// Who adopts, and under which lease.
#[derive(Debug, Clone)]
pub struct Target {
    /// Who is to own the Todo.
    pub agent: AgentId,
    /// The proof of a lease that is held already.
    pub proof: Option<LeaseProof>,
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
        return adopted_before((ports, &place), writer.rows(), (subject, target), &receipt);
    }
    let (before, adoption) = adopted(ports, (&place, tx.rows()), (subject, operation), target)?;
    let mut packet = view("adopt", &place, tx.rows(), (subject, &before))?;
    place.note_edits(&mut tx)?;
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
    let is_verified = holds(&todo, target, (&sealed.0, &sealed.1))
        && is_free(writer.rows(), (subject, target), ports.now)?;
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
    Ok(store_change(tx, before, after, draft)?)
}

/// The stored answer of an adoption, held against the Todo as it is now.
fn adopted_before(
    (ports, place): (&Ports, &Place),
    rows: Rows<'_>,
    (subject, target): (&Subject, &Target),
    receipt: &Receipt,
) -> Answer {
    let word = |name: &str| {
        receipt
            .result
            .get(name)
            .and_then(Value::as_str)
            .unwrap_or("")
    };
    let todo = stored(rows, subject)?;
    let watch = Watch {
        todo: &todo,
        agents: [&subject.agent, &target.agent],
    };
    let since = (&subject.goal, receipt.revision_after);
    let is_held = holds(&todo, target, (word("note_facts"), word("stable_facts")))
        && is_free(rows, (subject, target), ports.now)?
        && !rows.any_event_after(since, todo.id(), |event| watch.concerns_authority(event))?;
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

/// True when no other agent holds the Todo by a lease.
fn is_free(rows: Rows<'_>, (subject, target): (&Subject, &Target), now: Timestamp) -> Answer<bool> {
    let lease = rows.lease(&subject.goal, &subject.todo)?;
    Ok(!decide::is_leased_elsewhere(
        lease.as_ref(),
        &target.agent,
        now,
    ))
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

/// Records a hand edit of the goal's entry first, so that the refusal it causes names a revision that can be used.
fn record_edit(ports: &Ports, place: &Place, writer: &mut Writer) -> Answer<()> {
    let known = writer.rows().head(&place.goal.id)?;
    let known = known.and_then(|head| head.entry_digest);
    if known.is_some_and(|known| known != place.entry_seen(Some(&known))) {
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
        Some(known) if known != place.entry_seen(Some(known)) => {
            Err(moved_on(&head.provider_revision()))
        }
        _ => Ok(()),
    }
}
