//! The journal of a Turn as a row and as a file.
//!
//! The row is the arbiter: it holds the bytes and their digest, and a step's own transaction stores them. The file follows
//! after the commit, for hosts and operators. A file that is one step behind is brought up from the row; any other
//! difference stops everything and leaves the bytes where they are.

use std::path::PathBuf;

use serde_json::Value;

use crate::contract::digest;
use crate::contract::error::ErrorCode;
use crate::contract::ids::{AgentId, GoalId, TurnInstanceId, TurnKey};
use crate::contract::json;
use crate::contract::packet::Refusal;
use crate::contract::settlement::SettlementIdentity;
use crate::failpoint::Point;
use crate::flow::open::{Answer, Place};
use crate::flow::ports::Ports;
use crate::kernel::turn::journal::{Event, Journal, advance};
use crate::store::StoreError;
use crate::store::export::goal_dir;
use crate::store::journal::turn::{TurnRow, journal_path};
use crate::store::private_file;
use crate::store::rows::Rows;
use crate::store::state::{GoalTx, Writer};

/// The file of a Turn.
pub fn path(place: &Place, key: &TurnKey) -> PathBuf {
    journal_path(place.root(), &place.goal.id, key)
}

pub(super) fn turns_dir(place: &Place) -> PathBuf {
    goal_dir(place.root(), &place.goal.id).join("turns")
}

/// The digest part of a Turn key.
pub fn hex(key: &TurnKey) -> &str {
    key.as_str().strip_prefix("sha256:").unwrap_or(key.as_str())
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

impl Loaded {
    /// The journal, where there has to be one.
    pub fn journal(&self) -> Answer<&Journal> {
        self.journal.as_ref().ok_or_else(inconsistent)
    }
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

/// The identity a stored plan settles under.
pub fn identity_of(plan: &Value) -> Option<SettlementIdentity> {
    plan.get("transaction")?
        .get("settlement_plan")?
        .get("identity")
        .and_then(SettlementIdentity::parse)
}

/// A step that is committed: whether its file followed.
#[must_use]
pub struct Stored(Answer<()>);

impl Stored {
    /// Refuses to go on over a file that could not be written; the step itself stands.
    pub fn file(self) -> Answer<()> {
        self.0.map_err(|_| {
            let text = "the step is stored and its journal file could not be written; free space or check permissions, then run again: the file is brought up and the Turn goes on";
            Refusal::new(ErrorCode::StoreWriteFailed, text).with("journal_file", "pending")
        })
    }
}

/// Records one event: the caller's own rows and the journal in one transaction, then the file. An error says that nothing
/// was stored.
pub fn step(
    (ports, place): (&Ports, &Place),
    writer: &mut Writer,
    loaded: &mut Loaded,
    (make, between): (
        impl FnOnce(&mut GoalTx<'_>) -> Answer<Vec<Event>>,
        Option<Point>,
    ),
) -> Answer<Stored> {
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
    let file = write_file(place, &key, &next);
    loaded.row = next;
    loaded.journal = Some(journal);
    Ok(Stored(file))
}

/// The row of a Turn that has only its capture, or the row with a first journal.
pub fn open_row(
    place: &Place,
    key: &TurnKey,
    identity: &SettlementIdentity,
    named: Option<&TurnInstanceId>,
) -> TurnRow {
    TurnRow {
        turn_key: key.to_string(),
        goal_id: place.goal.id.to_string(),
        agent_id: identity.agent.to_string(),
        effect_id: identity.effect_id(),
        instance: named.map(TurnInstanceId::to_string),
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

pub(super) fn phases(journal: &Journal) -> String {
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

pub(super) fn write_file(place: &Place, key: &TurnKey, row: &TurnRow) -> Answer<()> {
    let file = path(place, key);
    if let Some(folder) = file.parent() {
        private_file::create_dir(folder).map_err(StoreError::write)?;
    }
    private_file::replace(&file, row.journal_json.as_bytes()).map_err(StoreError::write)?;
    Ok(())
}

pub(super) fn parse(bytes: &[u8]) -> Answer<Journal> {
    json::parse_kept(bytes)
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
