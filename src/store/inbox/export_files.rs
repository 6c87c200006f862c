//! What each exported file of an inbox is called and what it holds, made from the rows alone.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, params};
use serde_json::{Map, Value, json};

use super::DAMAGED_ROW;
use super::marks::Mark;
use super::turn_start::READS_FILE;
use crate::contract::inbox::words;
use crate::contract::{digest, json};
use crate::store::StoreError;

pub(super) const MATERIAL_FILE: &str = "material-review/receipts.json";
pub(super) const MARKS_FILE: &str = "reactions/receipts.json";
pub(super) const COMMENT_CURSOR_FILE: &str = ".state/document-comments.json";
pub(super) const COMMENT_REPLIES_FILE: &str = "document-comment-replies.json";
pub(super) const JOURNAL_FOLDERS: [&str; 3] = [
    "outbound",
    "reactions/received-operations",
    "reactions/processing-operations",
];
pub(super) const FOLDERS: [&str; 7] = [
    "",
    "revisions",
    "material-review",
    "reactions",
    JOURNAL_FOLDERS[0],
    JOURNAL_FOLDERS[1],
    JOURNAL_FOLDERS[2],
];

pub(super) fn attempt_path(key: &str) -> PathBuf {
    PathBuf::from(format!("outbound/{key}.json"))
}

pub(super) fn journal_path(message_id: &str, mark: Mark) -> PathBuf {
    let name = digest::content_digest(message_id.as_bytes()).hex();
    PathBuf::from(format!(
        "reactions/{}-operations/{name}.json",
        mark.as_str()
    ))
}

pub(super) fn json_files(inbox: &Path, folder: &str) -> Vec<PathBuf> {
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

pub(super) fn for_each_file(
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

pub(super) fn revision_file(
    connection: &Connection,
    message_id: &str,
) -> Result<Option<Vec<u8>>, StoreError> {
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

pub(super) fn processed_file(connection: &Connection) -> Result<Option<Vec<u8>>, StoreError> {
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

pub(super) fn material_file(connection: &Connection) -> Result<Option<Vec<u8>>, StoreError> {
    let sql = "SELECT message_id, body_json FROM material_receipts ORDER BY message_id";
    keyed_file(connection, sql, words::MATERIAL_LEDGER, "receipts")
}

pub(super) fn comment_replies_file(connection: &Connection) -> Result<Option<Vec<u8>>, StoreError> {
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

pub(super) fn comment_cursor_file(connection: &Connection) -> Result<Option<Vec<u8>>, StoreError> {
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

pub(super) fn mark_file(connection: &Connection) -> Result<Option<Vec<u8>>, StoreError> {
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

pub(super) fn indented(text: &str) -> Result<Vec<u8>, StoreError> {
    pretty(&object(text)?)
}

fn pretty(value: &Value) -> Result<Vec<u8>, StoreError> {
    json::pretty(value)
        .map(String::into_bytes)
        .map_err(|_| DAMAGED_ROW)
}
