//! What the sync at turn start keeps: its position, committed with the page it covers, and whose marks come next.

use std::path::{Path, PathBuf};

use rusqlite::{OptionalExtension, Transaction, params};

use super::events::insert_batch;
use super::{DAMAGED_ROW, Exporter, Inbox};
use crate::contract::inbox::event::StoredEvent;
use crate::contract::inbox::turn_start::{DispatchCursor, READS, SyncCursor};
use crate::contract::inbox::words;
use crate::contract::json as strict;
use crate::store::{StoreError, database, private_file};

/// Where the messages whose marks were tried are exported, below the inbox.
pub(super) const READS_FILE: &str = "reactions/turn-start-reads.json";

/// A message that waits and has no mark yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unmarked {
    pub create_time: String,
    pub message_id: String,
}

/// The position of one route on its way into the database.
#[derive(Clone, Debug)]
pub struct SyncPosition<'a> {
    /// 24 hex of what the position is bound to.
    pub binding: &'a str,
    pub cursor: &'a SyncCursor,
}

impl Inbox {
    /// Stores a page and the position behind it in one transaction; says for each event whether it is new.
    pub fn store_page(
        &self,
        events: &[StoredEvent],
        revisions: &[(String, u64, String)],
        position: &SyncPosition<'_>,
    ) -> Result<Vec<bool>, StoreError> {
        let mut connection = self.writer()?;
        let step = database::begin(&mut connection)?;
        let news = insert_batch(&step, events, revisions)?;
        put(&step, ("sync", position.binding), &position.cursor.to_row())?;
        step.commit()?;
        self.shorten_log(&connection);
        Ok(news)
    }

    /// Reads the position of a binding.
    pub fn sync_position(&self, binding: &str) -> Result<Option<SyncCursor>, StoreError> {
        let row = self.turn_start_row("sync", binding)?;
        row.map(|text| SyncCursor::from_row(&text).ok_or(DAMAGED_ROW))
            .transpose()
    }

    /// Reads which marks were given last.
    pub fn dispatch_cursor(&self) -> Result<DispatchCursor, StoreError> {
        match self.turn_start_row("dispatch", "")? {
            None => Ok(DispatchCursor::default()),
            Some(text) => DispatchCursor::from_row(&text).ok_or(DAMAGED_ROW),
        }
    }

    /// Keeps which marks were given last, and of which waiting messages they were tried.
    pub fn put_dispatch(&self, cursor: &DispatchCursor, tried: &str) -> Result<(), StoreError> {
        let mut connection = self.writer()?;
        let step = database::begin(&mut connection)?;
        put(&step, ("dispatch", ""), &cursor.to_row())?;
        let known = read(&step, "reads", "")?;
        let known: Vec<String> = known.map_or(Ok(Vec::new()), |text| ids_of(&text))?;
        let mut pending =
            step.prepare_cached("SELECT 1 FROM events WHERE message_id = ?1 AND pending = 1")?;
        let mut kept = Vec::with_capacity(known.len() + 1);
        for id in known.into_iter().chain([tried.to_owned()]) {
            if pending.exists([&id])? {
                kept.push(id);
            }
        }
        drop(pending);
        kept.sort();
        kept.dedup();
        let body = serde_json::json!({"schema_version": READS, "message_ids": kept});
        put(&step, ("reads", ""), &body.to_string())?;
        step.commit()?;
        Ok(())
    }

    /// The next waiting message in drain order that has no mark and none under way; after the last one the first comes again.
    pub fn next_unmarked(&self, after: &(String, String)) -> Result<Option<Unmarked>, StoreError> {
        let Some(connection) = self.reader()? else {
            return Ok(None);
        };
        let mut find = connection.prepare_cached(
            "SELECT create_time, message_id FROM events WHERE pending = 1 AND (create_time, message_id) > (?1, ?2) \
             AND NOT EXISTS(SELECT 1 FROM reaction_receipts AS done WHERE done.message_id = events.message_id) \
             AND NOT EXISTS(SELECT 1 FROM reaction_operations AS open WHERE open.message_id = events.message_id AND open.phase = 'prepared') \
             ORDER BY create_time, message_id LIMIT 1",
        )?;
        for (time, id) in [(after.0.as_str(), after.1.as_str()), ("", "")] {
            let row = find.query_row([time, id], |row| {
                Ok(Unmarked {
                    create_time: row.get(0)?,
                    message_id: row.get(1)?,
                })
            });
            if let Some(found) = row.optional()? {
                return Ok(Some(found));
            }
        }
        Ok(None)
    }

    /// Writes the file of the tried marks.
    pub fn export_reads(&self, out: &mut Exporter) -> Result<(), StoreError> {
        self.export_text(out, READS_FILE, self.turn_start_row("reads", "")?)
    }

    /// Writes the file of a position, which lies beside the inboxes of the project.
    pub fn export_sync(&self, out: &mut Exporter, place: &SyncFile<'_>) -> Result<(), StoreError> {
        if let Some(text) = self.turn_start_row("sync", place.binding)? {
            out.write(&place.path(), format!("{text}\n").as_bytes());
        }
        Ok(())
    }

    /// Compares the file of a position with its row; none when there is no row.
    pub fn is_sync_export_sound(&self, place: &SyncFile<'_>) -> Result<Option<bool>, StoreError> {
        let row = self.turn_start_row("sync", place.binding)?;
        let there = || private_file::read(&place.path()).ok().flatten();
        Ok(row.map(|text| there() == Some(format!("{text}\n").into_bytes())))
    }

    fn turn_start_row(&self, kind: &str, binding: &str) -> Result<Option<String>, StoreError> {
        match self.reader()? {
            None => Ok(None),
            Some(connection) => Ok(read(&connection, kind, binding)?),
        }
    }
}

/// The file of one position.
#[derive(Clone, Copy, Debug)]
pub struct SyncFile<'a> {
    pub project: &'a Path,
    pub route: &'a str,
    pub binding: &'a str,
}

impl SyncFile<'_> {
    fn path(&self) -> PathBuf {
        let folder = self.project.join(words::TURN_START_STATE).join(self.route);
        folder.join(format!("{}.json", self.binding))
    }
}

/// The lock that lets one turn at a time read a project's routes.
pub fn sync_lock_path(project: &Path) -> PathBuf {
    project.join(words::TURN_START_STATE).join("sync.lock")
}

fn put(
    step: &Transaction<'_>,
    (kind, binding): (&str, &str),
    body: &str,
) -> Result<(), StoreError> {
    step.execute(
        "INSERT INTO turn_start(kind, binding, body_json) VALUES(?1, ?2, ?3) \
         ON CONFLICT(kind, binding) DO UPDATE SET body_json = excluded.body_json",
        params![kind, binding, body],
    )?;
    Ok(())
}

fn read(
    connection: &rusqlite::Connection,
    kind: &str,
    binding: &str,
) -> Result<Option<String>, rusqlite::Error> {
    let sql = "SELECT body_json FROM turn_start WHERE kind = ?1 AND binding = ?2";
    connection
        .query_row(sql, [kind, binding], |row| row.get(0))
        .optional()
}

fn ids_of(text: &str) -> Result<Vec<String>, StoreError> {
    let body = strict::parse_object(text.as_bytes()).map_err(|_| DAMAGED_ROW)?;
    let ids = body.get("message_ids").and_then(|ids| ids.as_array());
    let ids = ids.ok_or(DAMAGED_ROW)?.iter();
    ids.map(|id| id.as_str().map(str::to_owned).ok_or(DAMAGED_ROW))
        .collect()
}
