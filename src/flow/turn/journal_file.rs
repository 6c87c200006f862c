//! The journal of a Turn as a row and as a file.
//!
//! The row is the arbiter: it holds the bytes and their digest, and a step's own transaction stores them. The file follows
//! after the commit, for hosts and operators. A file that is one step behind is brought up from the row; any other
//! difference stops everything and leaves the bytes where they are.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::contract::digest;
use crate::contract::error::ErrorCode;
use crate::contract::ids::{AgentId, GoalId, TurnKey};
use crate::contract::json;
use crate::contract::packet::Refusal;
use crate::contract::settlement::SettlementIdentity;
use crate::failpoint::Point;
use crate::flow::open::{Answer, Place};
use crate::flow::ports::Ports;
use crate::kernel::turn::journal::{Event, Journal, advance};
use crate::store::StoreError;
use crate::store::export::goal_dir;
use crate::store::journal::settlement::Admission;
use crate::store::journal::turn::TurnRow;
use crate::store::lock::{self, Claim, Held, Lane, Policy, TurnJournal};
use crate::store::private_file;
use crate::store::rows::Rows;
use crate::store::state::{GoalTx, Writer};

/// The file of a Turn.
pub fn path(place: &Place, key: &TurnKey) -> PathBuf {
    turns_dir(place).join(format!("{}.json", hex(key)))
}

fn turns_dir(place: &Place) -> PathBuf {
    goal_dir(place.root(), &place.goal.id).join("turns")
}

/// The digest part of a Turn key.
pub fn hex(key: &TurnKey) -> &str {
    key.as_str().strip_prefix("sha256:").unwrap_or(key.as_str())
}

/// Takes the lane of an agent, at once or not at all.
pub fn lock_lane(ports: &Ports, place: &Place, agent: &AgentId) -> Answer<Held<Lane>> {
    let id = digest::nul_joined(&[place.goal.id.as_str(), agent.as_str()]).short(12);
    let file = turns_dir(place)
        .join(".lanes")
        .join(format!("{agent}-{id}.lane"));
    let now = ports.now.to_string();
    let claim = Claim {
        lock_id: &id,
        agent_id: Some(agent.as_str()),
        operation: &ports.operation,
        policy: Policy::SingleFlight,
        now: &now,
    };
    lock::acquire(&file, &claim).map_err(|error| match error {
        StoreError::LockTimeout(holder) => {
            let text = "a Turn of this agent is in flight; wait for it, then run again";
            Refusal::new(ErrorCode::TurnLaneInFlight, text)
                .with("status", "unavailable")
                .with("reason", "turn_lane_in_flight")
                .with("remediation", json!(["wait_for_in_flight_turn"]))
                .with(
                    "in_flight",
                    json!({
                        "agent_id": holder.agent_id, "operation": holder.operation, "acquired_at": holder.acquired_at,
                        "host": holder.host, "pid": holder.pid,
                    }),
                )
        }
        other => other.into(),
    })
}

/// Takes the journal lock of a Turn below its lane.
pub fn lock_journal(
    ports: &Ports,
    place: &Place,
    lane: &Held<Lane>,
    key: &TurnKey,
) -> Answer<Held<TurnJournal>> {
    let now = ports.now.to_string();
    Ok(lane.then(
        &lock_path(place, key),
        &claim(ports, Policy::Mutation, &now),
    )?)
}

/// Waits for a writer of a journal to be done with it; takes nothing when nobody ever wrote it.
pub fn wait_for_writer(
    ports: &Ports,
    place: &Place,
    key: &TurnKey,
) -> Answer<Option<Held<TurnJournal>>> {
    let file = lock_path(place, key);
    if !file.exists() {
        return Ok(None);
    }
    let now = ports.now.to_string();
    Ok(Some(lock::acquire(
        &file,
        &claim(ports, Policy::Monitor, &now),
    )?))
}

fn lock_path(place: &Place, key: &TurnKey) -> PathBuf {
    turns_dir(place).join(format!("{}.lock", hex(key)))
}

fn claim<'a>(ports: &'a Ports, policy: Policy, now: &'a str) -> Claim<'a> {
    Claim {
        lock_id: "turn-journal",
        agent_id: None,
        operation: &ports.operation,
        policy,
        now,
    }
}

/// A stored Turn.
#[derive(Clone, Debug)]
pub struct Loaded {
    /// Its row.
    pub row: TurnRow,
    /// Its journal; `None` while only its capture is stored.
    pub journal: Option<Journal>,
    /// True for a journal of the historical form.
    pub is_historical: bool,
}

/// Loads a Turn for execution: its file is brought up when it is one step behind.
pub fn load(place: &Place, rows: Rows<'_>, key: &TurnKey) -> Answer<Option<Loaded>> {
    let file = path(place, key);
    let bytes = private_file::read(&file).map_err(|_| inconsistent())?;
    let Some(row) = rows.turn(key)? else {
        return bytes
            .map(|bytes| historical(place, key, &bytes))
            .transpose();
    };
    if row.journal_sha256.is_empty() {
        return if bytes.is_none() {
            Ok(Some(Loaded {
                row,
                journal: None,
                is_historical: false,
            }))
        } else {
            Err(inconsistent())
        };
    }
    let found = bytes
        .as_ref()
        .map(|bytes| digest::content_digest(bytes).hex())
        .unwrap_or_default();
    if found != row.journal_sha256 {
        if found != row.previous_sha256 {
            return Err(inconsistent());
        }
        write_file(place, key, &row)?;
    }
    let journal = parse(row.journal_json.as_bytes())?;
    let is_historical = is_v0(&journal);
    Ok(Some(Loaded {
        row,
        journal: Some(journal),
        is_historical,
    }))
}

/// A journal of the historical form has no row yet; one of today without a row is refused.
fn historical(place: &Place, key: &TurnKey, bytes: &[u8]) -> Answer<Loaded> {
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

/// Refuses a journal file that is neither what its row says nor what it was one step before.
pub fn check_file(place: &Place, key: &TurnKey, row: &TurnRow) -> Answer<()> {
    let bytes = private_file::read(&path(place, key)).map_err(|_| inconsistent())?;
    let found = bytes
        .map(|bytes| digest::content_digest(&bytes).hex())
        .unwrap_or_default();
    match found == row.journal_sha256 || found == row.previous_sha256 {
        true => Ok(()),
        false => Err(inconsistent()),
    }
}

/// Refuses a journal file that is not byte for byte what the last step wrote.
fn check_unchanged(place: &Place, key: &TurnKey, row: &TurnRow) -> Answer<()> {
    let bytes = private_file::read(&path(place, key)).map_err(|_| inconsistent())?;
    let found = bytes
        .map(|bytes| digest::content_digest(&bytes).hex())
        .unwrap_or_default();
    match found == row.journal_sha256 {
        true => Ok(()),
        false => Err(inconsistent()),
    }
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

/// The identity a stored plan settles under.
pub fn identity_of(plan: &Value) -> Option<SettlementIdentity> {
    plan.get("transaction")?
        .get("settlement_plan")?
        .get("identity")
        .and_then(SettlementIdentity::parse)
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

/// Records one event: the caller's own rows and the journal in one transaction, then the file.
pub fn step(
    (ports, place): (&Ports, &Place),
    writer: &mut Writer,
    loaded: &mut Loaded,
    (make, between): (
        impl FnOnce(&mut GoalTx<'_>) -> Answer<Vec<Event>>,
        Option<Point>,
    ),
) -> Answer<()> {
    let key = TurnKey::new(loaded.row.turn_key.clone()).ok_or_else(inconsistent)?;
    // A host runs for long: what it did to the file meanwhile is not written over.
    check_unchanged(place, &key, &loaded.row)?;
    let mut tx = place.begin(ports, writer)?;
    let events = make(&mut tx)?;
    let mut journal = loaded.journal.clone().ok_or_else(inconsistent)?;
    for event in events {
        journal = advance(journal, event).map_err(|_| inconsistent())?;
    }
    let next = row_of(&loaded.row, &journal)?;
    if !tx.update_turn(&next)? {
        let text = "another process changed this Turn; run again";
        return Err(Refusal::new(ErrorCode::TurnJournalConflict, text));
    }
    tx.commit()?;
    if let Some(point) = between {
        crate::failpoint!(point);
    }
    write_file(place, &key, &next)?;
    loaded.row = next;
    loaded.journal = Some(journal);
    Ok(())
}

/// The row of a Turn that has only its capture, or the row with a first journal.
pub fn open_row(
    place: &Place,
    key: &TurnKey,
    identity: &SettlementIdentity,
    named: bool,
) -> TurnRow {
    TurnRow {
        turn_key: key.to_string(),
        goal_id: place.goal.id.to_string(),
        agent_id: identity.agent.to_string(),
        effect_id: identity.effect_id(),
        instance: named.then(|| identity.instance.to_string()),
        status: "in_progress".to_owned(),
        completed_phases: String::new(),
        attempts: 0,
        journal_json: String::new(),
        journal_sha256: String::new(),
        previous_sha256: String::new(),
        capture_id: None,
    }
}

fn row_of(before: &TurnRow, journal: &Journal) -> Answer<TurnRow> {
    let text = serde_json::to_string(journal.body()).map_err(|_| inconsistent())?;
    Ok(TurnRow {
        status: journal.text("status").unwrap_or("").to_owned(),
        completed_phases: phases(journal),
        attempts: journal.attempts(),
        journal_sha256: digest::content_digest(text.as_bytes()).hex(),
        journal_json: text,
        previous_sha256: before.journal_sha256.clone(),
        ..before.clone()
    })
}

fn phases(journal: &Journal) -> String {
    let phases = journal
        .body()
        .get("completed_phases")
        .and_then(Value::as_array);
    let words: Vec<&str> = phases
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    words.join(",")
}

fn write_file(place: &Place, key: &TurnKey, row: &TurnRow) -> Answer<()> {
    let file = path(place, key);
    if let Some(folder) = file.parent() {
        private_file::create_dir(folder).map_err(StoreError::write)?;
    }
    private_file::replace(&file, row.journal_json.as_bytes()).map_err(StoreError::write)?;
    Ok(())
}

fn parse(bytes: &[u8]) -> Answer<Journal> {
    json::parse_object(bytes)
        .map(Journal::stored)
        .map_err(|_| inconsistent())
}

/// The refusal of a journal that does not match its row.
pub fn inconsistent() -> Refusal {
    let text =
        "the journal file does not match its row and was left as it is; restore the exact file";
    Refusal::new(ErrorCode::JournalInconsistent, text)
}

/// Finds the Turn a call is about: by its key, its instance, or what it settles under.
pub fn find_row(
    rows: Rows<'_>,
    goal: &GoalId,
    agent: &AgentId,
    key: &TurnKey,
) -> Answer<Option<TurnRow>> {
    let Some(row) = rows.turn(key)? else {
        return Ok(None);
    };
    check_owner(&row, goal, agent)?;
    Ok(Some(row))
}

/// Refuses a Turn of another goal or agent, even a finished one.
pub fn check_owner(row: &TurnRow, goal: &GoalId, agent: &AgentId) -> Answer<()> {
    if row.goal_id != goal.as_str() {
        return Err(Refusal::new(
            ErrorCode::GoalMismatch,
            "the Turn belongs to another goal; use its goal",
        ));
    }
    if row.agent_id != agent.as_str() {
        return Err(Refusal::new(
            ErrorCode::OwnerMismatch,
            "the Turn belongs to another agent; use its agent",
        ));
    }
    Ok(())
}

/// The refusal of a Turn nobody stored.
pub fn not_found(key: &TurnKey) -> Refusal {
    let text = "no Turn of this key is stored for this goal and agent; check the key";
    Refusal::new(ErrorCode::TurnNotFound, text).with("turn_key", key.as_str())
}
