//! Journals of the historical form: read as they were written, by the rules of their time, and never upgraded
//! (docs/spec/kernel.md 7.5).

use serde_json::Value;

use super::journal_file::{Loaded, identity_of, inconsistent, parse, phases};
use crate::contract::digest;
use crate::contract::error::ErrorCode;
use crate::contract::ids::TurnKey;
use crate::contract::packet::Refusal;
use crate::contract::settlement::SettlementIdentity;
use crate::flow::open::{Answer, Place};
use crate::flow::ports::Ports;
use crate::kernel::turn::journal::Journal;
use crate::store::journal::settlement::Admission;
use crate::store::journal::turn::TurnRow;

/// A journal of the historical form has no row yet; one of today without a row is refused.
pub(super) fn read(place: &Place, key: &TurnKey, bytes: &[u8]) -> Answer<Loaded> {
    let journal = parse(bytes)?;
    if !is_v0(&journal) {
        return Err(inconsistent());
    }
    check_v0(place, key, &journal)?;
    let identity = v0_identity(&journal)?;
    let row = TurnRow {
        turn_key: key.to_string(),
        goal_id: identity.goal.to_string(),
        agent_id: identity.agent.to_string(),
        effect_id: identity.effect_id(),
        instance: Some(identity.instance.to_string()),
        status: journal.text("status").unwrap_or("").to_owned(),
        completed_phases: phases(&journal),
        attempts: journal.attempts(),
        journal_json: String::from_utf8(bytes.to_vec()).map_err(|_| inconsistent())?,
        journal_sha256: digest::content_digest(bytes).hex(),
        previous_sha256: String::new(),
        capture_id: None,
    };
    Ok(Loaded {
        row,
        journal: Some(journal),
        is_historical: true,
    })
}

/// The recorded rules of the historical form: its own identity, and signature hashes that are filled and equal.
fn check_v0(place: &Place, key: &TurnKey, journal: &Journal) -> Answer<()> {
    if journal.text("turn_key") != Some(key.as_str()) {
        return Err(inconsistent());
    }
    if journal.text("goal_id") != Some(place.goal.id.as_str()) {
        return Err(Refusal::new(
            ErrorCode::GoalMismatch,
            "the Turn belongs to another goal; use its goal",
        ));
    }
    if has_signature(journal) {
        return Ok(());
    }
    let text =
        "the recorded action of this Turn does not match its signature; restore the exact file";
    Err(Refusal::new(ErrorCode::TurnActionMismatch, text))
}

/// True when the recorded signature is filled and its two hashes are equal.
pub fn has_signature(journal: &Journal) -> bool {
    let signature = journal
        .plan()
        .get("turn_envelope")
        .and_then(|envelope| envelope.get("action_signature"));
    let word = |name: &str| {
        signature
            .and_then(|signature| signature.get(name))
            .and_then(Value::as_str)
            .unwrap_or("")
    };
    !word("source_hash").is_empty() && word("source_hash") == word("envelope_hash")
}

/// True for a journal of the historical form.
pub fn is_v0(journal: &Journal) -> bool {
    let schema = journal
        .plan()
        .get("turn_envelope")
        .and_then(|envelope| envelope.get("schema_version"));
    schema.and_then(Value::as_str) == Some("loopx_turn_envelope_v0")
}

fn v0_identity(journal: &Journal) -> Answer<SettlementIdentity> {
    identity_of(journal.plan()).ok_or_else(inconsistent)
}

/// Gives a historical journal its row, and its admission when there is none.
pub fn adopt_historical(ports: &Ports, place: &mut Place, loaded: &Loaded) -> Answer<()> {
    let Some(journal) = loaded.journal.as_ref().filter(|_| loaded.is_historical) else {
        return Ok(());
    };
    let identity = v0_identity(journal)?;
    let mut writer = place.writer(ports)?;
    let mut tx = place.begin(ports, &mut writer)?;
    if !tx.insert_turn(&loaded.row)? {
        return Ok(());
    }
    if tx
        .rows()
        .admission(&identity.goal, &identity.agent, &identity.instance)?
        .is_none()
    {
        crate::flow::settle::require_own_effect(&tx, &identity)?;
        let draft =
            crate::contract::event::EventDraft::new("quota_should_run", "historical Turn adopted")
                .agent(Some(identity.agent.as_str()))
                .todo(identity.binding.todo().map(|todo| todo.as_str()))
                .run(Some(identity.instance.as_str()))
                .status("turn_run_once")
                .detail("binding_kind", identity.binding.kind());
        let event = tx.event(draft)?;
        let admission = Admission {
            binding: identity.binding.clone(),
            event_id: event.event_id,
            recorded_at: event.recorded_at.to_string(),
            mode: "bounded_delivery".to_owned(),
            is_spendable: true,
            capture_id: None,
        };
        tx.put_admission(&identity, &admission, &identity.to_value())?;
    }
    tx.commit()?;
    Ok(())
}
