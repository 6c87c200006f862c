//! The state store: one database per runtime root, one transaction per mutation of one goal.
//!
//! A mutation appends event rows, changes the rows they are about and moves the goal's revision, all in one
//! `BEGIN IMMEDIATE` transaction; the caller's closure decides inside it and drops it to change nothing. Reads use a
//! handle that cannot write. The row functions live beside this file, one file per kind of row.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, Transaction, params};
use serde_json::{Value, json};

use super::StoreError;
use super::rows::{Head, Receipt, Rows, line_bytes, micros, stored_text};
use super::{database, export, schema};
use crate::contract::canonical;
use crate::contract::digest;
use crate::contract::event::EventDraft;
use crate::contract::ids::GoalId;
use crate::contract::time::Timestamp;

/// The state store of one runtime root.
#[derive(Clone, Debug)]
pub struct Store {
    root: PathBuf,
}

/// A read-only view of the store.
pub struct Reader {
    connection: Connection,
}

/// A handle that may write.
pub struct Writer {
    root: PathBuf,
    connection: Connection,
}

/// One appended event.
#[derive(Clone, Debug, PartialEq)]
pub struct EventRow {
    /// Its id.
    pub event_id: String,
    /// Its place in the order of events.
    pub seq: i64,
    /// Its instant, unique within the goal.
    pub recorded_at: Timestamp,
    /// The row's body.
    pub body: Value,
}

impl Store {
    /// The store below a runtime root; nothing is opened yet.
    pub fn at(root: &Path) -> Self {
        Self {
            root: root.to_path_buf(),
        }
    }

    /// The runtime root.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The database file.
    pub fn path(&self) -> PathBuf {
        self.root.join("state.sqlite3")
    }

    /// True when there is a database; one that cannot be ours is damage.
    pub fn exists(&self) -> Result<bool, StoreError> {
        database::present(&self.path())
    }

    /// Opens for reading; `None` when nothing was ever written.
    pub fn read(&self) -> Result<Option<Reader>, StoreError> {
        let Some(connection) = database::open_read(&self.path(), schema::STATE)? else {
            return Ok(None);
        };
        // One snapshot: rows that are written together are seen together, or not at all.
        connection.execute_batch("BEGIN")?;
        Ok(Some(Reader { connection }))
    }

    /// Opens for writing, making the database when there is none.
    pub fn write(&self) -> Result<Writer, StoreError> {
        let connection = database::open_write(&self.path(), schema::STATE)?;
        Ok(Writer {
            root: self.root.clone(),
            connection,
        })
    }
}

impl Reader {
    /// The rows.
    pub fn rows(&self) -> Rows<'_> {
        Rows(&self.connection)
    }
}

impl Writer {
    /// The connection, for the row files of this room.
    pub(in crate::store) fn connection_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// The rows as last committed.
    pub fn rows(&self) -> Rows<'_> {
        Rows(&self.connection)
    }

    /// Makes the head of a goal, or returns the one there is.
    pub fn ensure_head(
        &mut self,
        goal: &GoalId,
        instance_id: &str,
        entry_digest: Option<&str>,
    ) -> Result<Head, StoreError> {
        let tx = database::begin(&mut self.connection)?;
        if let Some(head) = Rows(&tx).head(goal)? {
            return Ok(head);
        }
        tx.execute(
            "INSERT INTO goal_heads(goal_id,instance_id,revision,revision_digest,registry_entry_digest) VALUES(?1,?2,0,?3,?4)",
            params![goal.as_str(), instance_id, digest::content_digest(instance_id.as_bytes()).hex(), entry_digest],
        )?;
        let head = Rows(&tx)
            .head(goal)?
            .ok_or(StoreError::Corrupt("a goal's head vanished"))?;
        tx.commit()?;
        Ok(head)
    }

    /// Starts a mutation of one goal, whose head must exist.
    pub fn begin(&mut self, goal: &GoalId, now: Timestamp) -> Result<GoalTx<'_>, StoreError> {
        let tx = database::begin(&mut self.connection)?;
        let head = Rows(&tx)
            .head(goal)?
            .ok_or(StoreError::Corrupt("the rows of a known goal are gone"))?;
        Ok(GoalTx {
            tx,
            goal: goal.clone(),
            chain: head.revision_digest.clone(),
            head,
            now,
            has_events: false,
        })
    }

    /// Brings the exports of a goal up to its rows. A failure is not one of the command: the rows stand, and the next
    /// write or `doctor` completes the exports.
    pub fn bring_up_exports(&self, goal: &GoalId, now: Timestamp) {
        if export::bring_up(&self.root, self.rows(), goal, now).is_err() {
            tracing::warn!(
                "an export could not be written; the rows stand, `loopx doctor --execute` completes it"
            );
        }
        crate::failpoint!(crate::failpoint::Point::ExportWritten);
    }
}

/// One mutation in progress.
pub struct GoalTx<'c> {
    tx: Transaction<'c>,
    goal: GoalId,
    head: Head,
    chain: String,
    now: Timestamp,
    has_events: bool,
}

impl GoalTx<'_> {
    /// The rows, this mutation's own changes included.
    pub fn rows(&self) -> Rows<'_> {
        Rows(&self.tx)
    }

    /// The connection, for the row files of this room.
    pub(in crate::store) fn connection(&self) -> &Connection {
        &self.tx
    }

    /// The goal.
    pub fn goal(&self) -> &GoalId {
        &self.goal
    }

    /// The head as this mutation found it.
    pub fn head(&self) -> &Head {
        &self.head
    }

    /// The clock's instant for this mutation.
    pub fn now(&self) -> Timestamp {
        self.now
    }

    /// The revision this mutation commits.
    pub fn revision_after(&self) -> i64 {
        self.head.revision + 1
    }

    /// Notes the registry entry this command saw; another one than last time is recorded as an edit.
    pub fn note_entry(&mut self, entry_digest: &str) -> Result<(), StoreError> {
        let known = self.head.entry_digest.replace(entry_digest.to_owned());
        match known {
            Some(known) if known != entry_digest => {
                let draft = EventDraft::new(
                    "goal_config",
                    "the goal entry was changed outside a command",
                )
                .status("edited")
                .detail("entry_digest_before", known)
                .detail("entry_digest_after", entry_digest);
                self.event(draft).map(|_| ())
            }
            _ => Ok(()),
        }
    }

    /// Notes the registry entry this command itself wrote.
    pub fn set_entry(&mut self, entry_digest: &str) {
        self.head.entry_digest = Some(entry_digest.to_owned());
    }

    /// The next number of the append sequence of todos.
    pub(in crate::store) fn next_todo_seq(&mut self) -> i64 {
        self.head.todo_seq += 1;
        self.head.todo_seq
    }

    /// Appends one event.
    pub fn event(&mut self, draft: EventDraft) -> Result<EventRow, StoreError> {
        let recorded_at = self.rows().free_event_instant(&self.goal, self.now)?;
        self.event_at(draft, recorded_at)
    }

    /// Appends one event at an instant of its own: a lost one is put back as it was.
    pub fn event_at(
        &mut self,
        draft: EventDraft,
        recorded_at: Timestamp,
    ) -> Result<EventRow, StoreError> {
        let (event_id, body) = draft
            .body(&self.goal, recorded_at)
            .ok_or(StoreError::Corrupt("an event has no canonical form"))?;
        let text = canonical::spaced_ascii(&body)
            .map_err(|_| StoreError::Corrupt("an event has no canonical form"))?;
        let sha = digest::content_digest(text.as_bytes());
        self.chain =
            digest::content_digest(format!("{}{}", self.chain, sha.hex()).as_bytes()).hex();
        self.has_events = true;
        self.tx.execute(
            "INSERT INTO events(event_id,goal_id,goal_revision,revision_digest,event_kind,agent_id,todo_id,run_id,status,
               recorded_at,recorded_us,idem_key,body_json,body_sha) VALUES(?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11,?12,?13,?14)",
            params![
                event_id,
                self.goal.as_str(),
                self.revision_after(),
                self.chain,
                draft.kind,
                draft.agent_id,
                draft.todo_id,
                draft.run_id,
                draft.status,
                recorded_at.to_string(),
                micros(recorded_at),
                draft.idem_key,
                text,
                sha.hex(),
            ],
        )?;
        self.head.events_bytes += line_bytes(&text);
        Ok(EventRow {
            event_id,
            seq: self.tx.last_insert_rowid(),
            recorded_at,
            body,
        })
    }

    /// Notes that a run of this text was appended.
    pub(in crate::store) fn note_run(&mut self, text: &str) {
        self.head.runs_bytes += line_bytes(text);
    }

    /// Makes the mutation durable and returns the new head.
    pub fn commit(mut self) -> Result<Head, StoreError> {
        if self.has_events {
            self.head.revision += 1;
            self.head.revision_digest = self.chain.clone();
        }
        self.tx.execute(
            "UPDATE goal_heads SET revision=?2, revision_digest=?3, registry_entry_digest=?4, todo_seq=?5, events_bytes=?6,
               runs_bytes=?7 WHERE goal_id=?1",
            params![
                self.goal.as_str(),
                self.head.revision,
                self.head.revision_digest,
                self.head.entry_digest,
                self.head.todo_seq,
                self.head.events_bytes,
                self.head.runs_bytes,
            ],
        )?;
        self.tx.commit()?;
        Ok(self.head)
    }
}

impl GoalTx<'_> {
    /// Stores the receipt of an operation.
    pub fn put_receipt(&self, operation: &str, receipt: &Receipt) -> Result<(), StoreError> {
        let (text, _) = stored_text(&json!(receipt.result))?;
        self.connection().execute(
            "INSERT INTO receipts(goal_id,operation_id,request_sha256,revision_after,result_json) VALUES(?1,?2,?3,?4,?5)",
            params![self.goal().as_str(), operation, receipt.request_sha256, self.revision_after(), text],
        )?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn goal() -> GoalId {
        GoalId::new("g").unwrap()
    }

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap()
    }

    #[test]
    fn a_dropped_mutation_changes_nothing_and_a_committed_one_moves_the_revision() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let mut writer = store.write().unwrap();
        let fresh = writer.ensure_head(&goal(), "inst", None).unwrap();
        let mut tx = writer.begin(&goal(), at("2026-01-01T00:00:00Z")).unwrap();
        tx.event(EventDraft::new("todo_add", "x")).unwrap();
        drop(tx);
        assert_eq!(writer.rows().head(&goal()).unwrap(), Some(fresh.clone()));
        let mut tx = writer.begin(&goal(), at("2026-01-01T00:00:00Z")).unwrap();
        tx.event(EventDraft::new("todo_add", "x")).unwrap();
        let head = tx.commit().unwrap();
        assert_eq!(head.revision, 1);
        assert_eq!(
            writer
                .rows()
                .had_revision(&goal(), &head.provider_revision())
                .unwrap(),
            Some(1)
        );
        assert_eq!(
            writer
                .rows()
                .had_revision(&goal(), "rev-1:000000000000")
                .unwrap(),
            None
        );
    }

    #[test]
    fn a_reader_sees_one_instant_of_the_store_however_often_it_looks() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::at(folder.path());
        let mut writer = store.write().unwrap();
        writer.ensure_head(&goal(), "inst", None).unwrap();
        let reader = store.read().unwrap().unwrap();
        let revision = |reader: &Reader| reader.rows().head(&goal()).unwrap().unwrap().revision;
        let seen = revision(&reader);
        let mut tx = writer.begin(&goal(), at("2026-01-01T00:00:00Z")).unwrap();
        tx.event(EventDraft::new("todo_add", "x")).unwrap();
        tx.commit().unwrap();
        assert_eq!(revision(&reader), seen);
        assert_eq!(revision(&store.read().unwrap().unwrap()), seen + 1);
    }

    #[test]
    fn a_taken_instant_moves_to_the_next_microsecond() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Store::at(folder.path()).write().unwrap();
        writer.ensure_head(&goal(), "inst", None).unwrap();
        let mut tx = writer.begin(&goal(), at("2026-01-01T00:00:00Z")).unwrap();
        let first = tx.event(EventDraft::new("a", "x")).unwrap();
        let second = tx.event(EventDraft::new("a", "x")).unwrap();
        assert_eq!(first.recorded_at.to_string(), "2026-01-01T00:00:00Z");
        assert_eq!(
            second.recorded_at.to_string(),
            "2026-01-01T00:00:00.000001Z"
        );
        tx.commit().unwrap();
    }

    #[test]
    fn a_second_taken_to_its_end_leads_to_the_next_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Store::at(folder.path()).write().unwrap();
        writer.ensure_head(&goal(), "inst", None).unwrap();
        let mut tx = writer.begin(&goal(), at("2026-01-01T00:00:00Z")).unwrap();
        let last = at("2026-01-01T00:00:00.999999Z");
        tx.event_at(EventDraft::new("a", "x"), last).unwrap();
        let next = tx.event(EventDraft::new("a", "x")).unwrap();
        assert_eq!(next.recorded_at.to_string(), "2026-01-01T00:00:01Z");
        let after = tx.event(EventDraft::new("a", "x")).unwrap();
        assert_eq!(after.recorded_at.to_string(), "2026-01-01T00:00:01.000001Z");
    }

    #[test]
    fn a_changed_body_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let mut writer = Store::at(folder.path()).write().unwrap();
        writer.ensure_head(&goal(), "inst", None).unwrap();
        let mut tx = writer.begin(&goal(), at("2026-01-01T00:00:00Z")).unwrap();
        let event = tx.event(EventDraft::new("a", "x")).unwrap();
        tx.connection()
            .execute("UPDATE events SET body_json='{}'", [])
            .unwrap();
        tx.commit().unwrap();
        assert!(matches!(
            writer.rows().event(&event.event_id),
            Err(StoreError::Corrupt(_))
        ));
    }
}
