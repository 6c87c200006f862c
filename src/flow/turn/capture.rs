//! The captured decision of a Turn: published once before the host, verified before every use, never rebuilt
//! (docs/spec/kernel.md 8).

use serde_json::{Map, Value, json};

use super::journal_file::{self, Loaded};
use crate::contract::digest;
use crate::contract::error::ErrorCode;
use crate::contract::event::EventDraft;
use crate::contract::ids::TurnKey;
use crate::contract::json;
use crate::contract::packet::Refusal;
use crate::contract::settlement::SettlementIdentity;
use crate::failpoint::Point;
use crate::flow::open::{self, Answer, Place};
use crate::flow::ports::Ports;
use crate::kernel::turn::dispatch::equal;
use crate::kernel::turn::envelope::CaptureRef;
use crate::kernel::turn::journal::Journal;
use crate::store::StoreError;
use crate::store::document::capture::{self, Found};
use crate::store::journal::turn::{CaptureRow, TurnRow};
use crate::store::rows::Rows;
use crate::store::state::Writer;

/// A capture that was read and verified.
pub struct Verified {
    /// Its row.
    pub row: CaptureRow,
    /// The source in it.
    pub source: Value,
}

impl Verified {
    /// What an envelope is bound to.
    pub fn reference(&self, place: &Place) -> CaptureRef {
        let goal = self.row.goal_id.as_str();
        let key = self.row.turn_key.as_deref().unwrap_or("");
        let rest = [
            "turn",
            "detail",
            "--goal-id",
            goal,
            "--agent-id",
            &self.row.agent_id,
            "--turn-key",
            key,
            "--format",
            "json",
        ];
        CaptureRef {
            capture_id: self.row.capture_id.clone(),
            sha256: self.row.sha256.clone(),
            argv: place.places().argv(&rest),
        }
    }
}

/// Publishes the decision of a new Turn and opens its journal; a row that a crash left is verified and reused.
pub fn publish(
    (ports, place): (&Ports, &Place),
    writer: &mut Writer,
    plan: &Value,
    (identity, key): (&SettlementIdentity, &TurnKey),
) -> Answer<Loaded> {
    let write_failed = |_: StoreError| {
        let text = "the decision could not be captured and the host was not started; free space, then run again";
        Refusal::new(ErrorCode::TurnCaptureWriteFailed, text)
    };
    if !capture::is_private_place(place.root(), &place.goal.id) {
        return Err(exposed(ErrorCode::TurnCaptureWriteFailed));
    }
    let source = plan
        .get("turn_envelope")
        .and_then(|envelope| envelope.get("source"))
        .cloned()
        .unwrap_or(Value::Null);
    let mut capture_row = new_row((ports, place), identity, key, &source)?;
    let document = document(place, &capture_row, &source);
    let bytes = serde_json::to_vec(&document).map_err(|_| journal_file::inconsistent())?;
    let name = ports.ids.fresh().ok_or_else(open::no_randomness)?;
    capture_row.rel_path = capture::publish(
        place.root(),
        &place.goal.id,
        (journal_file::hex(key), &name),
        &bytes,
    )
    .map_err(write_failed)?;
    capture_row.byte_len = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
    capture_row.sha256 = digest::content_digest(&bytes).hex();
    crate::failpoint!(Point::CapturePublished);
    let named = plan
        .get("transaction")
        .is_some_and(|transaction| transaction.get("turn_instance_id").is_some())
        .then_some(&identity.instance);
    let mut row = journal_file::open_row(place, key, identity, named);
    row.capture_id = Some(capture_row.capture_id.clone());
    let mut tx = place.begin(ports, writer)?;
    if !tx.insert_turn(&row)? {
        let text = "another Turn has this effect already; run again to resume it";
        return Err(Refusal::new(ErrorCode::TurnJournalConflict, text));
    }
    tx.insert_capture(&capture_row, "turn")?;
    let draft = EventDraft::new("turn_capture", "decision captured")
        .agent(Some(identity.agent.as_str()))
        .todo(identity.binding.todo().map(|todo| todo.as_str()))
        .run(Some(identity.instance.as_str()))
        .status("captured")
        .detail("capture_id", capture_row.capture_id.as_str());
    tx.event(draft)?;
    tx.commit()?;
    crate::failpoint!(Point::CaptureRowCommitted);
    open_journal((ports, place), writer, plan.clone(), (key, row))
}

/// Writes the first journal of a Turn whose capture is stored.
pub fn open_journal(
    (ports, place): (&Ports, &Place),
    writer: &mut Writer,
    plan: Value,
    (key, row): (&TurnKey, TurnRow),
) -> Answer<Loaded> {
    let capture = match &row.capture_id {
        Some(id) => writer.rows().capture(id)?,
        None => None,
    };
    let capture = capture.ok_or_else(|| refuse(ErrorCode::TurnCaptureNotRecorded))?;
    let host = plan
        .get("host")
        .and_then(|host| host.get("kind"))
        .and_then(Value::as_str)
        .unwrap_or("")
        .to_owned();
    let journal = Journal::open(
        key,
        (&place.goal.id, &host),
        plan,
        reference_value(&capture),
    );
    let mut loaded = Loaded {
        row,
        journal: Some(journal),
        is_historical: false,
    };
    let stored = journal_file::step(
        (ports, place),
        writer,
        &mut loaded,
        (|_| Ok(Vec::new()), None),
    )?;
    stored.file()?;
    crate::failpoint!(Point::JournalOpened);
    Ok(loaded)
}

fn new_row(
    (ports, place): (&Ports, &Place),
    identity: &SettlementIdentity,
    key: &TurnKey,
    source: &Value,
) -> Answer<CaptureRow> {
    let hash = |value: &Value| {
        digest::digest(value)
            .map(|digest| digest.to_string())
            .map_err(|_| journal_file::inconsistent())
    };
    Ok(CaptureRow {
        capture_id: ports.ids.fresh().ok_or_else(open::no_randomness)?,
        goal_id: place.goal.id.to_string(),
        agent_id: identity.agent.to_string(),
        turn_key: Some(key.to_string()),
        effect_id: Some(identity.effect_id()),
        rel_path: String::new(),
        byte_len: 0,
        sha256: String::new(),
        source_digest: hash(source)?,
        source_decision_hash: hash(source.get("decision").unwrap_or(&Value::Null))?,
        created_at: ports.now.to_string(),
    })
}

fn document(place: &Place, row: &CaptureRow, source: &Value) -> Value {
    let mut document = json!({
        "schema_version": "loopx_turn_decision_capture_v1",
        "capture_id": row.capture_id,
        "goal_id": row.goal_id,
        "goal_instance_id": place.goal.instance_id,
        "agent_id": row.agent_id,
        "turn_key": row.turn_key,
        "effect_id": row.effect_id,
        "created_at": row.created_at,
        "source_digest": row.source_digest,
        "source_decision_hash": row.source_decision_hash,
    });
    document["source"] = source.clone();
    document
}

fn reference_value(row: &CaptureRow) -> Value {
    json!({
        "schema_version": "loopx_turn_capture_ref_v1",
        "capture_id": row.capture_id,
        "rel_path": row.rel_path,
        "byte_len": row.byte_len,
        "sha256": row.sha256,
        "source_digest": row.source_digest,
        "source_decision_hash": row.source_decision_hash,
        "turn_key": row.turn_key,
    })
}

/// Reads the capture of a Turn and checks everything about it; a difference refuses and changes nothing.
pub fn verify(
    place: &Place,
    rows: Rows<'_>,
    turn: &TurnRow,
    journal: Option<&Journal>,
) -> Answer<Verified> {
    let id = turn
        .capture_id
        .as_deref()
        .ok_or_else(|| refuse(ErrorCode::TurnCaptureNotRecorded))?;
    let row = rows
        .capture(id)?
        .ok_or_else(|| refuse(ErrorCode::TurnCaptureMissing))?;
    check_row(&row, turn)?;
    if let Some(journal) = journal {
        let recorded = journal
            .get("decision_capture")
            .ok_or_else(|| refuse(ErrorCode::TurnCaptureNotRecorded))?;
        if *recorded != reference_value(&row) {
            return Err(refuse(ErrorCode::TurnCaptureIdentityMismatch));
        }
    }
    let source = read_source(place, &row)?;
    let planned = journal
        .and_then(|journal| journal.plan().get("turn_envelope"))
        .and_then(|envelope| envelope.get("source"));
    if planned.is_some_and(|planned| !equal(planned, &source)) {
        return Err(refuse(ErrorCode::TurnCaptureIdentityMismatch));
    }
    Ok(Verified { row, source })
}

fn check_row(row: &CaptureRow, turn: &TurnRow) -> Answer<()> {
    let is_own = row.goal_id == turn.goal_id
        && row.agent_id == turn.agent_id
        && row.turn_key.as_deref() == Some(turn.turn_key.as_str())
        && row.effect_id.as_deref() == Some(turn.effect_id.as_str());
    if is_own {
        Ok(())
    } else {
        Err(refuse(ErrorCode::TurnCaptureIdentityMismatch))
    }
}

/// Reads the file of a row and gives back its source, when every byte and every identity fits.
pub fn read_source(place: &Place, row: &CaptureRow) -> Answer<Value> {
    let bytes = match capture::read(place.root(), &place.goal.id, row)? {
        Found::Bytes(bytes) => bytes,
        Found::Missing => return Err(refuse(ErrorCode::TurnCaptureMissing)),
        Found::Other(bytes) => return Err(refuse(code_of_other(&bytes, row))),
        Found::Damaged => return Err(refuse(ErrorCode::TurnCaptureCorrupt)),
        Found::Exposed => return Err(exposed(ErrorCode::TurnCaptureCorrupt)),
    };
    let document: Map<String, Value> =
        json::parse_kept(&bytes).map_err(|_| refuse(ErrorCode::TurnCaptureCorrupt))?;
    let word = |name: &str| document.get(name).and_then(Value::as_str);
    let is_own = word("capture_id") == Some(row.capture_id.as_str())
        && word("goal_id") == Some(row.goal_id.as_str())
        && word("agent_id") == Some(row.agent_id.as_str())
        && word("turn_key") == row.turn_key.as_deref()
        && word("effect_id") == row.effect_id.as_deref();
    if !is_own {
        return Err(refuse(ErrorCode::TurnCaptureIdentityMismatch));
    }
    let source = document.get("source").cloned().unwrap_or(Value::Null);
    let hash = |value: &Value| digest::digest(value).map(|digest| digest.to_string()).ok();
    let decision = source.get("decision").and_then(hash);
    if hash(&source).as_deref() != Some(row.source_digest.as_str())
        || decision.as_deref() != Some(row.source_decision_hash.as_str())
    {
        return Err(refuse(ErrorCode::TurnCaptureCorrupt));
    }
    Ok(source)
}

/// Tells the whole capture of another Turn from a damaged one: damage at one place never changes both of its names.
fn code_of_other(bytes: &[u8], row: &CaptureRow) -> ErrorCode {
    let document: Map<String, Value> = json::parse_kept(bytes).unwrap_or_default();
    let differs = |name: &str, own: Option<&str>| {
        let word = document.get(name).and_then(Value::as_str);
        word.is_some() && word != own
    };
    let is_foreign = differs("capture_id", Some(&row.capture_id))
        && differs("turn_key", row.turn_key.as_deref());
    if is_foreign {
        ErrorCode::TurnCaptureIdentityMismatch
    } else {
        ErrorCode::TurnCaptureCorrupt
    }
}

/// The refusal of a folder that others may open: what lies in it is private.
fn exposed(code: ErrorCode) -> Refusal {
    let text = "others may open the folder of the captured decisions and no host was started; give it `chmod 700`, or run \
                `loopx doctor --execute`, then run again";
    Refusal::new(code, text)
}

/// The refusal of a capture.
pub fn refuse(code: ErrorCode) -> Refusal {
    let text = match code {
        ErrorCode::TurnCaptureMissing => {
            "the captured decision is gone; restore the exact file, nothing else helps"
        }
        ErrorCode::TurnCaptureCorrupt => {
            "the captured decision has other bytes, another mode or is a link; restore the exact file"
        }
        ErrorCode::TurnCaptureIdentityMismatch => {
            "the captured decision belongs to another Turn; restore the exact file"
        }
        _ => {
            "this Turn has no captured decision and would need its host again; recover its pending effects, then start a new Turn"
        }
    };
    Refusal::new(code, text)
}
