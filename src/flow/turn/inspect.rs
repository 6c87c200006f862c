//! `turn inspect-journal`: looks at a journal as it lies there; what is wrong with it is a finding, not a failure.

use serde_json::{Value, json};

use super::read::Owner;
use super::{capture, journal_file};
use super::{historical, journal_lock};
use crate::contract::digest;
use crate::contract::error::ErrorCode;
use crate::contract::ids::TurnKey;
use crate::contract::json;
use crate::contract::turn::PHASES;
use crate::flow::open::{self, Answer, Place};
use crate::flow::ports::Ports;
use crate::kernel::turn::dispatch::admit_for_dispatch;
use crate::kernel::turn::journal::{Journal, Status};
use crate::kernel::turn::recover::{self, OnFailed, Recovery};
use crate::store::journal::turn::TurnRow;
use crate::store::lock::{Held, TurnJournal};
use crate::store::private_file;

/// The recorded action does not match its signature.
const SIGNATURE: &str = "action_signature_mismatch";

/// Waits for the writer of a journal; where nothing may be written there is none to wait for.
fn writer_gone(ports: &Ports, place: &Place, key: &TurnKey) -> Answer<Option<Held<TurnJournal>>> {
    match journal_lock::wait_for_writer(ports, place, key) {
        Err(refusal) if refusal.code == ErrorCode::StoreWriteFailed => Ok(None),
        held => held,
    }
}

/// Looks at a journal as it lies there; what is wrong with it is a finding.
pub fn inspect(ports: &Ports, owner: &Owner, key: &TurnKey, on_failed: OnFailed) -> Answer {
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
        .and_then(|bytes| json::parse_kept(bytes).ok())
        .map(Journal::stored);
    let mut found = violations(owner, key, row.as_ref(), file.as_ref());
    let is_equal = match (&row, &bytes) {
        (Some(row), Some(bytes)) => digest::content_digest(bytes).hex() == row.journal_sha256,
        (Some(row), None) => row.journal_sha256.is_empty(),
        (None, _) => file.as_ref().is_some_and(historical::is_v0),
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
    let recovery = recovery(file.as_ref(), (&found, is_equal), on_failed);
    let recovery = unless_refused(recovery, file.as_ref(), lost);
    let mut packet = findings((owner, key), file.as_ref(), (&found, is_equal));
    packet["recovery_decision"] = recovery.to_value(on_failed);
    packet["decision_capture"] = json!(verified.map(|(id, verified)| {
        json!({"present": id.is_some(), "valid": verified.is_ok(), "capture_id": id})
    }));
    Ok(packet)
}

/// How the journal as it lies there would go on.
fn recovery(
    file: Option<&Journal>,
    (violations, is_equal): (&[&str], bool),
    on_failed: OnFailed,
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
        Some(journal) if is_equal && !is_foreign => recover::assess(journal, on_failed),
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
        let journal = file.filter(|journal| !historical::is_v0(journal))?;
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
    if !historical::has_signature(journal) {
        found.push(SIGNATURE);
    }
    found
}
