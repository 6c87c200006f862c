//! Rebuildable files beside the database, for other readers. They are written after the commit, without waiting for the disk, and never
//! read back; a file that cannot be written leaves the command's result as it is and is named by `export_pending`.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};
use serde_json::{Map, Value, json};

use super::marks::Mark;
use super::turn_start::READS_FILE;
use super::{DAMAGED_ROW, Inbox};
use crate::contract::inbox::words;
use crate::contract::{digest, json};
use crate::failpoint;
use crate::failpoint::Point;
use crate::store::{StoreError, private_file};

/// Writes the exports of one command.
#[derive(Debug, Default)]
pub struct Exporter {
    has_written: bool,
    has_failed: bool,
}

/// How the files of an inbox compare with its rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ExportSurvey {
    pub expected: u64,
    pub stale: u64,
    pub removable: u64,
    pub orphans: u64,
}

impl Exporter {
    /// Tells whether a file is missing although its row is there.
    pub fn is_pending(&self) -> bool {
        self.has_failed
    }

    pub(super) fn write(&mut self, path: &Path, bytes: &[u8]) {
        let folder = path.parent().unwrap_or(Path::new("."));
        if is_led_away(folder) {
            self.has_failed = true;
            return;
        }
        let written = match private_file::export(path, bytes) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                private_file::create_dir(folder).and_then(|()| private_file::export(path, bytes))
            }
            other => other,
        };
        match written {
            Ok(()) => self.done(),
            Err(_) => self.has_failed = true,
        }
    }

    fn remove(&mut self, path: &Path) {
        if path.parent().is_some_and(is_led_away) {
            self.has_failed = true;
            return;
        }
        match std::fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => self.has_failed = true,
            _ => self.done(),
        }
    }

    /// Notes that a file is as its row says.
    fn done(&mut self) {
        if !self.has_written {
            self.has_written = true;
            failpoint!(Point::InboxExportWritten);
        }
    }
}

/// Tells whether a link stands on the way to a folder. The folder of an inbox is resolved, so every link is one below it.
fn is_led_away(folder: &Path) -> bool {
    let present = folder
        .ancestors()
        .find(|path| path.symlink_metadata().is_ok());
    present.is_some_and(|present| std::fs::canonicalize(present).ok().as_deref() != Some(present))
}

impl Inbox {
    /// Writes the files of events by their row texts.
    pub fn export_events<'a>(
        &self,
        out: &mut Exporter,
        rows: impl IntoIterator<Item = (&'a str, String)>,
    ) {
        for (id, mut text) in rows {
            text.push('\n');
            out.write(&self.event_path(id), text.as_bytes());
        }
    }

    /// Writes the files of the revisions of these messages.
    pub fn export_revisions(&self, out: &mut Exporter, ids: &[&str]) -> Result<(), StoreError> {
        let Some(connection) = self.reader()? else {
            return Ok(());
        };
        for id in ids {
            if let Some(bytes) = revision_file(&connection, id)? {
                out.write(
                    &self.folder.join("revisions").join(format!("{id}.json")),
                    &bytes,
                );
            }
        }
        Ok(())
    }

    /// Writes the file of processed ids.
    pub fn export_processed(&self, out: &mut Exporter) -> Result<(), StoreError> {
        self.export_one(out, "processed.json", processed_file)
    }

    /// Writes the file of material receipts.
    pub fn export_material(&self, out: &mut Exporter) -> Result<(), StoreError> {
        self.export_one(out, MATERIAL_FILE, material_file)
    }

    /// Writes the file of mark receipts.
    pub fn export_mark_receipts(&self, out: &mut Exporter) -> Result<(), StoreError> {
        self.export_one(out, MARKS_FILE, mark_file)
    }

    /// Writes or removes the file of one attempt.
    pub fn export_attempt(&self, out: &mut Exporter, key: &str) -> Result<(), StoreError> {
        let sql = "SELECT body_json FROM outbound_attempts WHERE attempt_key = ?1";
        self.export_row(out, &attempt_path(key), (sql, &[key]))
    }

    /// Writes or removes the file of one mark journal.
    pub fn export_mark_journal(
        &self,
        out: &mut Exporter,
        message_id: &str,
        mark: Mark,
    ) -> Result<(), StoreError> {
        let sql = "SELECT body_json FROM reaction_operations WHERE message_id = ?1 AND mark = ?2";
        self.export_row(
            out,
            &journal_path(message_id, mark),
            (sql, &[message_id, mark.as_str()]),
        )
    }

    /// Writes the files of a document's position and answers.
    pub fn export_comments(&self, out: &mut Exporter) -> Result<(), StoreError> {
        self.export_one(out, COMMENT_CURSOR_FILE, comment_cursor_file)?;
        self.export_one(out, COMMENT_REPLIES_FILE, comment_replies_file)
    }

    fn export_one(
        &self,
        out: &mut Exporter,
        name: &str,
        make: fn(&Connection) -> Result<Option<Vec<u8>>, StoreError>,
    ) -> Result<(), StoreError> {
        let Some(connection) = self.reader()? else {
            return Ok(());
        };
        match make(&connection)? {
            Some(bytes) => out.write(&self.folder.join(name), &bytes),
            None => out.remove(&self.folder.join(name)),
        }
        Ok(())
    }

    fn export_row(
        &self,
        out: &mut Exporter,
        name: &Path,
        (sql, key): (&str, &[&str]),
    ) -> Result<(), StoreError> {
        let Some(connection) = self.reader()? else {
            return Ok(());
        };
        let mut find = connection.prepare_cached(sql)?;
        let mut rows = find.query(rusqlite::params_from_iter(key))?;
        match rows.next()? {
            Some(row) => out.write(
                &self.folder.join(name),
                &indented(&row.get::<_, String>(0)?)?,
            ),
            None => out.remove(&self.folder.join(name)),
        }
        Ok(())
    }

    /// Writes a file by the row text it has, or removes it.
    pub(super) fn export_text(
        &self,
        out: &mut Exporter,
        name: &str,
        row: Option<String>,
    ) -> Result<(), StoreError> {
        match row {
            Some(text) => out.write(&self.folder.join(name), &indented(&text)?),
            None => out.remove(&self.folder.join(name)),
        }
        Ok(())
    }

    fn event_path(&self, id: &str) -> PathBuf {
        self.folder.join(format!("{id}.json"))
    }

    /// Compares every file with its row, and with `repair` writes what differs and removes journals without a row.
    pub fn reconcile_exports(
        &self,
        repair: Option<&mut Exporter>,
    ) -> Result<ExportSurvey, StoreError> {
        let Some(connection) = self.reader()? else {
            return Ok(ExportSurvey::default());
        };
        let mut out = repair;
        let mut survey = ExportSurvey::default();
        let mut known: BTreeMap<PathBuf, ()> = BTreeMap::new();
        for_each_file(&connection, |name, bytes| {
            survey.expected += 1;
            let path = self.folder.join(&name);
            known.insert(name, ());
            if std::fs::read(&path).ok().as_deref() == Some(bytes) {
                return;
            }
            survey.stale += 1;
            if let Some(out) = out.as_deref_mut() {
                out.write(&path, bytes);
            }
        })?;
        for folder in FOLDERS {
            for name in json_files(&self.folder, folder) {
                if known.contains_key(&name) {
                    continue;
                }
                if JOURNAL_FOLDERS.contains(&folder) {
                    survey.removable += 1;
                    if let Some(out) = out.as_deref_mut() {
                        out.remove(&self.folder.join(&name));
                    }
                } else {
                    survey.orphans += 1;
                }
            }
        }
        Ok(survey)
    }
}

const MATERIAL_FILE: &str = "material-review/receipts.json";
const MARKS_FILE: &str = "reactions/receipts.json";
const COMMENT_CURSOR_FILE: &str = ".state/document-comments.json";
const COMMENT_REPLIES_FILE: &str = "document-comment-replies.json";
const JOURNAL_FOLDERS: [&str; 3] = [
    "outbound",
    "reactions/received-operations",
    "reactions/processing-operations",
];
const FOLDERS: [&str; 7] = [
    "",
    "revisions",
    "material-review",
    "reactions",
    JOURNAL_FOLDERS[0],
    JOURNAL_FOLDERS[1],
    JOURNAL_FOLDERS[2],
];

fn attempt_path(key: &str) -> PathBuf {
    PathBuf::from(format!("outbound/{key}.json"))
}

fn journal_path(message_id: &str, mark: Mark) -> PathBuf {
    let name = digest::content_digest(message_id.as_bytes()).hex();
    PathBuf::from(format!(
        "reactions/{}-operations/{name}.json",
        mark.as_str()
    ))
}

fn json_files(inbox: &Path, folder: &str) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(inbox.join(folder)) else {
        return Vec::new();
    };
    let mut names: Vec<PathBuf> = entries
        .filter_map(Result::ok)
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_file()))
        .map(|entry| PathBuf::from(folder).join(entry.file_name()))
        .filter(|name| {
            name.extension()
                .is_some_and(|extension| extension == "json")
        })
        .collect();
    names.sort();
    names
}

type Emit<'a> = &'a mut dyn FnMut(PathBuf, &[u8]);

fn for_each_file(
    connection: &Connection,
    mut emit: impl FnMut(PathBuf, &[u8]),
) -> Result<(), StoreError> {
    let emit: Emit<'_> = &mut emit;
    each_row(
        connection,
        "SELECT message_id, body_json FROM events ORDER BY seq",
        emit,
        |id, body| {
            check(&body)?;
            Ok((
                PathBuf::from(format!("{id}.json")),
                format!("{body}\n").into_bytes(),
            ))
        },
    )?;
    let mut ids =
        connection.prepare("SELECT DISTINCT message_id FROM revisions ORDER BY message_id")?;
    let ids: Vec<String> = ids
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for id in ids {
        if let Some(bytes) = revision_file(connection, &id)? {
            emit(PathBuf::from(format!("revisions/{id}.json")), &bytes);
        }
    }
    each_row(
        connection,
        "SELECT attempt_key, body_json FROM outbound_attempts ORDER BY attempt_key",
        emit,
        |key, body| Ok((attempt_path(&key), indented(&body)?)),
    )?;
    for mark in [Mark::Received, Mark::Processing] {
        let sql = match mark {
            Mark::Received => {
                "SELECT message_id, body_json FROM reaction_operations WHERE mark = 'received'"
            }
            Mark::Processing => {
                "SELECT message_id, body_json FROM reaction_operations WHERE mark = 'processing'"
            }
        };
        each_row(connection, sql, emit, |id, body| {
            Ok((journal_path(&id, mark), indented(&body)?))
        })?;
    }
    for_each_document(connection, emit)
}

/// The files that hold all rows of a kind.
fn for_each_document(connection: &Connection, emit: Emit<'_>) -> Result<(), StoreError> {
    type Make = fn(&Connection) -> Result<Option<Vec<u8>>, StoreError>;
    let single: [(&str, Make); 6] = [
        ("processed.json", processed_file),
        (MATERIAL_FILE, material_file),
        (MARKS_FILE, mark_file),
        (READS_FILE, reads_file),
        (COMMENT_CURSOR_FILE, comment_cursor_file),
        (COMMENT_REPLIES_FILE, comment_replies_file),
    ];
    for (name, make) in single {
        if let Some(bytes) = make(connection)? {
            emit(PathBuf::from(name), &bytes);
        }
    }
    Ok(())
}

fn each_row(
    connection: &Connection,
    sql: &str,
    emit: Emit<'_>,
    file: impl Fn(String, String) -> Result<(PathBuf, Vec<u8>), StoreError>,
) -> Result<(), StoreError> {
    let mut rows = connection.prepare(sql)?;
    let mut rows = rows.query([])?;
    while let Some(row) = rows.next()? {
        let (name, bytes) = file(row.get(0)?, row.get(1)?)?;
        emit(name, &bytes);
    }
    Ok(())
}

fn revision_file(connection: &Connection, message_id: &str) -> Result<Option<Vec<u8>>, StoreError> {
    let rows = super::events::read_revisions(connection, message_id)?;
    if rows.is_empty() {
        return Ok(None);
    }
    let revisions = rows
        .iter()
        .map(|row| object(row))
        .collect::<Result<Vec<_>, _>>()?;
    let file = json!({"schema_version": words::REVISIONS, "message_id": message_id, "revisions": revisions});
    Ok(Some(format!("{file}\n").into_bytes()))
}

fn processed_file(connection: &Connection) -> Result<Option<Vec<u8>>, StoreError> {
    let mut rows = connection.prepare("SELECT message_id FROM processed ORDER BY message_id")?;
    let ids: Vec<String> = rows
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    if ids.is_empty() {
        return Ok(None);
    }
    let last: String =
        connection.query_row("SELECT MAX(processed_at) FROM processed", [], |row| {
            row.get(0)
        })?;
    let file =
        json!({"schema_version": words::PROCESSED, "message_ids": ids, "last_processed_at": last});
    pretty(&file).map(Some)
}

fn material_file(connection: &Connection) -> Result<Option<Vec<u8>>, StoreError> {
    let sql = "SELECT message_id, body_json FROM material_receipts ORDER BY message_id";
    keyed_file(connection, sql, words::MATERIAL_LEDGER, "receipts")
}

fn comment_replies_file(connection: &Connection) -> Result<Option<Vec<u8>>, StoreError> {
    let sql = "SELECT reply_key, body_json FROM comment_replies ORDER BY reply_key";
    keyed_file(connection, sql, words::COMMENT_REPLY_STORE, "entries")
}

fn reads_file(connection: &Connection) -> Result<Option<Vec<u8>>, StoreError> {
    let mut rows = connection.prepare("SELECT body_json FROM turn_start WHERE kind = 'reads'")?;
    let mut rows = rows.query([])?;
    match rows.next()? {
        Some(row) => indented(&row.get::<_, String>(0)?).map(Some),
        None => Ok(None),
    }
}

fn comment_cursor_file(connection: &Connection) -> Result<Option<Vec<u8>>, StoreError> {
    let mut rows =
        connection.prepare("SELECT body_json FROM comment_cursor ORDER BY source_ref LIMIT 1")?;
    let mut rows = rows.query([])?;
    match rows.next()? {
        Some(row) => indented(&row.get::<_, String>(0)?).map(Some),
        None => Ok(None),
    }
}

fn keyed_file(
    connection: &Connection,
    sql: &str,
    schema: &str,
    name: &str,
) -> Result<Option<Vec<u8>>, StoreError> {
    let mut rows = connection.prepare(sql)?;
    let mut rows = rows.query(params![])?;
    let mut entries = Map::new();
    while let Some(row) = rows.next()? {
        entries.insert(row.get(0)?, object(&row.get::<_, String>(1)?)?);
    }
    if entries.is_empty() {
        return Ok(None);
    }
    pretty(&json!({"schema_version": schema, name: entries})).map(Some)
}

fn mark_file(connection: &Connection) -> Result<Option<Vec<u8>>, StoreError> {
    let mut rows = connection.prepare(
        "SELECT message_id, mark, body_json FROM reaction_receipts ORDER BY message_id, mark",
    )?;
    let mut rows = rows.query([])?;
    let mut receipts = Map::new();
    while let Some(row) = rows.next()? {
        let (id, mark): (String, String) = (row.get(0)?, row.get(1)?);
        let entry = receipts
            .entry(id)
            .or_insert_with(|| Value::Object(Map::new()));
        entry[mark] = object(&row.get::<_, String>(2)?)?;
    }
    if receipts.is_empty() {
        return Ok(None);
    }
    pretty(&json!({"schema_version": words::MARK_RECEIPTS, "receipts": receipts})).map(Some)
}

fn check(text: &str) -> Result<(), StoreError> {
    object(text).map(drop)
}

fn object(text: &str) -> Result<Value, StoreError> {
    json::parse_kept(text.as_bytes())
        .map(Value::Object)
        .map_err(|_| DAMAGED_ROW)
}

fn indented(text: &str) -> Result<Vec<u8>, StoreError> {
    pretty(&object(text)?)
}

fn pretty(value: &Value) -> Result<Vec<u8>, StoreError> {
    json::pretty(value)
        .map(String::into_bytes)
        .map_err(|_| DAMAGED_ROW)
}
