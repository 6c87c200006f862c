//! Readers of a Turn: `detail`, `replan-review`, `inspect-journal`, `managed-step`. None of them writes.

use serde_json::{Map, Value, json};

use super::plan::TurnAsk;
use super::{capture, journal_file};
use crate::contract::digest;
use crate::contract::error::ErrorCode;
use crate::contract::ids::{AgentId, GoalId, TurnKey};
use crate::contract::json;
use crate::contract::packet::Refusal;
use crate::contract::turn::PHASES;
use crate::flow::open::{self, Answer, Place};
use crate::flow::ports::Ports;
use crate::flow::quota;
use crate::kernel::turn::dispatch::{admit_for_dispatch, equal};
use crate::kernel::turn::journal::{Journal, Status};
use crate::kernel::turn::plan::{self, Route};
use crate::kernel::turn::project;
use crate::kernel::turn::recover::{self, Recovery};
use crate::store::journal::turn::TurnRow;
use crate::store::lock::{Held, TurnJournal};
use crate::store::private_file;

/// The recorded action does not match its signature.
const SIGNATURE: &str = "action_signature_mismatch";

/// Whose Turn is read.
#[derive(Clone, Debug)]
pub struct Owner {
    /// The goal.
    pub goal: GoalId,
    /// The agent.
    pub agent: AgentId,
}

/// Reads the original observation of a Turn; it grants no authority and runs no guard.
pub fn detail(ports: &Ports, owner: &Owner, key: &TurnKey, pointers: &[String]) -> Answer {
    let no_effects = |refusal: Refusal| refusal.with("effects", json!([]));
    let place = open::goal(ports, &owner.goal).map_err(no_effects)?;
    let reader = place
        .reader()?
        .ok_or_else(|| no_effects(journal_file::not_found(key)))?;
    let row = match journal_file::find_row(reader.rows(), &owner.goal, &owner.agent, key)
        .map_err(no_effects)?
    {
        Some(row) => row,
        None if journal_file::path(&place, key).exists() => {
            return Err(no_effects(capture::refuse(
                ErrorCode::TurnCaptureNotRecorded,
            )));
        }
        None => return Err(no_effects(journal_file::not_found(key))),
    };
    let journal = stored_journal(&row);
    let verified =
        capture::verify(&place, reader.rows(), &row, journal.as_ref()).map_err(no_effects)?;
    let mut packet = json!({
        "ok": true,
        "schema_version": "loopx_turn_detail_v1",
        "goal_id": owner.goal,
        "agent_id": owner.agent,
        "turn_key": key,
        "capture": {
            "capture_id": verified.row.capture_id, "sha256": verified.row.sha256, "source_digest": verified.row.source_digest,
            "created_at": verified.row.created_at,
        },
        "observation": "original",
        "grants_authority": false,
        "effects": [],
        "selections": [],
    });
    packet["selections"] = Value::Array(select(&verified.source, pointers));
    if pointers.is_empty() {
        packet["source"] = verified.source;
    }
    Ok(packet)
}

fn select(source: &Value, pointers: &[String]) -> Vec<Value> {
    pointers
        .iter()
        .map(|pointer| {
            let found = source.pointer(pointer);
            let mut selection =
                json!({"pointer": pointer, "found": found.is_some(), "value": null});
            selection["value"] = found.cloned().unwrap_or(Value::Null);
            selection
        })
        .collect()
}

fn stored_journal(row: &TurnRow) -> Option<Journal> {
    json::parse_object(row.journal_json.as_bytes())
        .ok()
        .map(Journal::stored)
}

/// Compares the pinned source behind an opaque reference with the admitted contract, and shows what the replan is about.
pub fn replan_review(
    ports: &Ports,
    owner: &Owner,
    reader_ref: &str,
    admitted: Option<&Map<String, Value>>,
) -> Answer {
    let no_effects = |refusal: Refusal| refusal.with("effects", json!([]));
    let place = open::goal(ports, &owner.goal).map_err(no_effects)?;
    let missing = || no_effects(capture::refuse(ErrorCode::TurnCaptureMissing));
    let reader = place.reader()?.ok_or_else(missing)?;
    let id = reader_ref.strip_prefix("turn-capture:").unwrap_or("");
    let row = reader.rows().capture(id)?.ok_or_else(missing)?;
    let key = row
        .turn_key
        .clone()
        .and_then(TurnKey::new)
        .ok_or_else(missing)?;
    let turn = journal_file::find_row(reader.rows(), &owner.goal, &owner.agent, &key)
        .map_err(no_effects)?
        .ok_or_else(missing)?;
    let journal = stored_journal(&turn);
    let verified = capture::verify(&place, reader.rows(), &turn, None).map_err(no_effects)?;
    let planned = journal
        .as_ref()
        .and_then(|journal| journal.plan().get("turn_envelope"))
        .and_then(|envelope| envelope.get("source"))
        .cloned();
    let contract = admitted.map(source_in).or(planned);
    if contract
        .as_ref()
        .is_none_or(|contract| !equal(contract, &verified.source))
    {
        let text = "the admitted contract is not the captured source; use the captured one";
        return Err(no_effects(Refusal::new(
            ErrorCode::TurnReplanSourceMismatch,
            text,
        )));
    }
    Ok(review_packet(owner, &key, &verified))
}

/// The source inside an admitted contract: an envelope around it, or itself.
fn source_in(given: &Map<String, Value>) -> Value {
    given
        .get("turn_envelope")
        .and_then(|envelope| envelope.get("source"))
        .or(given.get("source"))
        .cloned()
        .unwrap_or_else(|| Value::Object(given.clone()))
}

/// What the captured decision says a replan is about.
fn review_packet(owner: &Owner, key: &TurnKey, verified: &capture::Verified) -> Value {
    let packet = verified
        .source
        .pointer("/decision/replan_action_packet")
        .filter(|packet| !packet.is_null());
    let get = |name: &str| {
        packet
            .and_then(|packet| packet.get(name))
            .cloned()
            .unwrap_or(Value::Null)
    };
    json!({
        "ok": true,
        "schema_version": "loopx_turn_replan_review_v1",
        "goal_id": owner.goal,
        "agent_id": owner.agent,
        "turn_key": key,
        "obligation_id": get("obligation_id"),
        "uncovered_frontier": get("uncovered_frontier"),
        "required_outcome": get("required_outcome"),
        "allowed_terminal": get("allowed_terminal"),
        "bounded_frontier": get("bounded_frontier"),
        "source_revision": verified.row.source_digest,
        "grants_authority": false,
        "effects": [],
    })
}

/// Waits for the writer of a journal; where nothing may be written there is none to wait for.
fn writer_gone(ports: &Ports, place: &Place, key: &TurnKey) -> Answer<Option<Held<TurnJournal>>> {
    match journal_file::wait_for_writer(ports, place, key) {
        Err(refusal) if refusal.code == ErrorCode::StoreWriteFailed => Ok(None),
        held => held,
    }
}

/// Looks at a journal as it lies there; what is wrong with it is a finding.
pub fn inspect(ports: &Ports, owner: &Owner, key: &TurnKey, retry: bool) -> Answer {
    let place = open::goal(ports, &owner.goal)?;
    let _held = writer_gone(ports, &place, key)?;
    let reader = place.reader()?;
    let row = match &reader {
        Some(reader) => reader.rows().turn(key)?,
        None => None,
    };
    let bytes = private_file::read(&journal_file::path(&place, key))
        .ok()
        .flatten();
    if row.is_none() && bytes.is_none() {
        return Err(journal_file::not_found(key));
    }
    let file = bytes
        .as_deref()
        .and_then(|bytes| json::parse_object(bytes).ok())
        .map(Journal::stored);
    let mut found = violations(owner, key, row.as_ref(), file.as_ref());
    let is_equal = match (&row, &bytes) {
        (Some(row), Some(bytes)) => digest::content_digest(bytes).hex() == row.journal_sha256,
        (Some(row), None) => row.journal_sha256.is_empty(),
        (None, _) => file.as_ref().is_some_and(journal_file::is_v0),
    };
    if !is_equal {
        found.push("journal_digest_mismatch");
    }
    let verified = reader.as_ref().zip(row.as_ref()).map(|(reader, row)| {
        let verified = capture::verify(&place, reader.rows(), row, file.as_ref());
        (row.capture_id.as_ref(), verified)
    });
    let lost = match &verified {
        Some((_, verified)) => verified.as_ref().err().map(|refusal| refusal.code),
        None => Some(ErrorCode::TurnCaptureNotRecorded),
    };
    let recovery = recovery(file.as_ref(), (&found, is_equal), retry);
    let recovery = unless_refused(recovery, file.as_ref(), lost);
    let mut packet = findings((owner, key), file.as_ref(), (&found, is_equal));
    packet["recovery_decision"] = recovery.to_value(retry);
    packet["decision_capture"] = json!(verified.map(|(id, verified)| {
        json!({"present": id.is_some(), "valid": verified.is_ok(), "capture_id": id})
    }));
    Ok(packet)
}

/// How the journal as it lies there would go on.
fn recovery(
    file: Option<&Journal>,
    (violations, is_equal): (&[&str], bool),
    retry: bool,
) -> Recovery {
    let is_foreign = violations.iter().any(|violation| {
        matches!(
            *violation,
            "goal_mismatch" | "owner_mismatch" | "turn_key_mismatch"
        )
    });
    match file {
        Some(_) if is_equal && !is_foreign && violations.contains(&SIGNATURE) => {
            Recovery::Blocked(ErrorCode::TurnActionMismatch)
        }
        Some(journal) if is_equal && !is_foreign => recover::assess(journal, retry),
        _ => Recovery::Blocked(ErrorCode::JournalInconsistent),
    }
}

/// A host would run again only with its capture and over a plan that agrees with itself.
fn unless_refused(recovery: Recovery, file: Option<&Journal>, lost: Option<ErrorCode>) -> Recovery {
    let needs_host = matches!(
        recovery,
        Recovery::Continue {
            reinvokes_host: true,
            ..
        }
    );
    if !needs_host {
        return recovery;
    }
    let disagrees = || {
        let journal = file.filter(|journal| !journal_file::is_v0(journal))?;
        let refusal = admit_for_dispatch(journal.plan()).err()?;
        Some(refusal.code)
    };
    match lost.or_else(disagrees) {
        Some(code) => Recovery::Blocked(code),
        None => recovery,
    }
}

fn findings(
    (owner, key): (&Owner, &TurnKey),
    file: Option<&Journal>,
    (violations, is_equal): (&[&str], bool),
) -> Value {
    let is_terminal = file
        .and_then(Journal::status)
        .is_some_and(|status| matches!(status, Status::Committed | Status::Stopped));
    let is_legal = violations.is_empty() && is_terminal;
    let phases = file
        .and_then(|journal| journal.body().get("completed_phases").cloned())
        .unwrap_or(Value::Null);
    json!({
        "ok": true,
        "schema_version": "loopx_turn_journal_inspection_v1",
        "goal_id": owner.goal,
        "agent_id": owner.agent,
        "turn_key": key,
        "decision": if is_legal { "replay_legal" } else { "replay_blocked" },
        "journal_status": file.and_then(|journal| journal.text("status")),
        "replay_legal": is_legal,
        "goal_matches": !violations.contains(&"goal_mismatch"),
        "owner_matches": !violations.contains(&"owner_mismatch"),
        "turn_key_matches": !violations.contains(&"turn_key_mismatch"),
        "phases_form_ordered_prefix": file.is_some_and(|journal| journal.phases().is_some()),
        "completed_phases": known_phases(&phases),
        "tombstone_retained": is_terminal,
        "violations": violations,
        "journal_consistent": is_equal && file.is_some(),
        "recovery_decision": null,
        "last_recovery": null,
        "decision_capture": null,
        "effects": [],
    })
}

/// Only words of the order are printed, whatever the file holds.
fn known_phases(phases: &Value) -> Vec<&'static str> {
    let words = phases
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str);
    words
        .filter_map(|word| PHASES.into_iter().find(|phase| *phase == word))
        .collect()
}

fn violations(
    owner: &Owner,
    key: &TurnKey,
    row: Option<&TurnRow>,
    file: Option<&Journal>,
) -> Vec<&'static str> {
    let mut found = Vec::new();
    let Some(journal) = file else {
        return vec!["completed_phases_invalid"];
    };
    match journal.text("goal_id") {
        None => found.push("goal_identity_missing"),
        Some(goal) if goal != owner.goal.as_str() => found.push("goal_mismatch"),
        Some(_) => {}
    }
    let identity = journal_file::identity_of(journal.plan());
    let agent = identity
        .as_ref()
        .map(|identity| identity.agent.as_str())
        .or(row.map(|row| row.agent_id.as_str()));
    match agent {
        None => found.push("owner_identity_missing"),
        Some(agent) if agent != owner.agent.as_str() => found.push("owner_mismatch"),
        Some(_) => {}
    }
    match journal.text("turn_key") {
        None => found.push("turn_key_identity_missing"),
        Some(stored) if stored != key.as_str() => found.push("turn_key_mismatch"),
        Some(_) => {}
    }
    match journal
        .body()
        .get("completed_phases")
        .and_then(Value::as_array)
    {
        None => found.push("completed_phases_invalid"),
        Some(_) if journal.phases().is_none() => found.push("completed_phases_not_ordered_prefix"),
        Some(_) => {}
    }
    match journal.status() {
        None => found.push("journal_status_unsupported"),
        Some(Status::Committed | Status::Stopped) => {}
        Some(_) => found.push("journal_not_terminal"),
    }
    if !journal_file::has_signature(journal) {
        found.push(SIGNATURE);
    }
    found
}

/// Says how a loop goes on after one Turn: a pure look at its receipt and a fresh decision.
pub fn managed_step(ports: &Ports, ask: &TurnAsk, key: Option<&TurnKey>) -> Answer {
    let live = quota::decide(ports, &ask.question)?;
    let agent = live.question.agent.clone().ok_or_else(|| {
        Refusal::new(
            ErrorCode::InvalidArguments,
            "name the agent with --agent-id",
        )
    })?;
    let projected = project::project(&live.decision.packet);
    let fresh = disposition_of(plan::route(&projected), &live.decision.packet);
    let (disposition, reason) = match key {
        None => fresh,
        Some(key) => {
            let reader = live
                .place
                .reader()?
                .ok_or_else(|| journal_file::not_found(key))?;
            let row = journal_file::find_row(reader.rows(), &ask.question.goal, &agent, key)?
                .ok_or_else(|| journal_file::not_found(key))?;
            journal_file::check_file(&live.place, key, &row)?;
            let journal = stored_journal(&row).ok_or_else(journal_file::inconsistent)?;
            after_turn(&journal, fresh)?
        }
    };
    Ok(json!({
        "ok": true,
        "schema_version": "loop_turn_loop_disposition_v0",
        "goal_id": ask.question.goal,
        "agent_id": agent,
        "predecessor_turn_key": key,
        "disposition": disposition,
        "reason": reason,
        "spends_quota": false,
        "launches_host": false,
        "writes_state": false,
    }))
}

fn disposition_of(route: Route, decision: &Map<String, Value>) -> (&'static str, &'static str) {
    if decision.get("effective_action").and_then(Value::as_str) == Some("terminal_no_followup") {
        return ("stop", "terminal_frontier");
    }
    match route {
        Route::ReadyForHost => ("run_now", "fresh_decision_runs"),
        Route::RepairRequired => ("repair", "fresh_decision_repairs"),
        Route::ReplanRequired => ("replan", "fresh_decision_replans"),
        Route::CapabilityActionRequired => {
            ("capability_action_required", "capability_intent_pending")
        }
        Route::UserActionRequired => ("user_action_required", "user_has_to_act"),
        Route::Wait => ("wait", "nothing_to_run"),
        Route::Blocked | Route::ContractError => ("stop", "fresh_decision_blocks"),
    }
}

fn after_turn(
    journal: &Journal,
    fresh: (&'static str, &'static str),
) -> Answer<(&'static str, &'static str)> {
    let kind = journal.text("result_kind").unwrap_or("");
    Ok(match (journal.status(), kind) {
        (Some(Status::Failed), "host_failure") => {
            let is_retryable = journal
                .get("host_failure")
                .and_then(|failure| failure.get("retryable"))
                == Some(&json!(true));
            if is_retryable {
                ("wait", "retry_continuation")
            } else {
                ("repair", "host_failure")
            }
        }
        (Some(Status::Failed), _) => ("repair", "failed_turn"),
        (Some(Status::Committed), "repair_required") => ("repair", "repair_required"),
        (Some(Status::Committed), "replan_required") => ("replan", "replan_required"),
        (Some(Status::Committed), "validated_completion") if fresh.1 == "terminal_frontier" => {
            ("terminal", "validated_terminal_completion")
        }
        (Some(Status::Committed), _) => fresh,
        (Some(Status::Stopped), "user_action_required") => {
            ("user_action_required", "host_asked_for_the_user")
        }
        (Some(Status::Stopped), _) => ("wait", "host_waits"),
        _ => {
            return Err(Refusal::new(
                ErrorCode::JournalInconsistent,
                "the Turn is not finished; run it again first",
            ));
        }
    })
}
