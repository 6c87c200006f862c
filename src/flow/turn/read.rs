//! Readers of an observation: `turn detail` and `turn replan-review`. Neither of them writes.

use serde_json::{Map, Value, json};

use super::{capture, journal_file};
use crate::contract::error::ErrorCode;
use crate::contract::ids::{AgentId, GoalId, TurnKey};
use crate::contract::json;
use crate::contract::packet::Refusal;
use crate::flow::open::{self, Answer};
use crate::flow::ports::Ports;
use crate::kernel::turn::dispatch::equal;
use crate::kernel::turn::journal::Journal;
use crate::store::journal::turn::TurnRow;

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

pub(super) fn stored_journal(row: &TurnRow) -> Option<Journal> {
    json::parse_kept(row.journal_json.as_bytes())
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
