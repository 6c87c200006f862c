//! One inbox on disk: its folder, its database, its locks.

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::schema;
use crate::store::StoreError;
use crate::store::database;
use crate::store::lock::{self, Claim, Held, Rank};

/// A row whose text is not what was written.
pub(super) const DAMAGED_ROW: StoreError =
    StoreError::Corrupt("a row of the inbox is not readable");

/// Longer than the log of many small batches, shorter than one that slows an open.
const LONG_LOG_BYTES: u64 = 4 << 20;

/// One inbox on disk.
#[derive(Clone, Debug)]
pub struct Inbox {
    pub(super) folder: PathBuf,
}

impl Inbox {
    /// Names an inbox by its folder; nothing is opened.
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
        }
    }

    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Where the database lies below the folder.
    pub const DATABASE: &'static str = ".state/inbox.sqlite3";

    /// What is written below the folder: the database, and the folders of locks and exports.
    pub const INNER: [&'static str; 7] = [
        Self::DATABASE,
        "material-review",
        "outbound",
        "reactions",
        "reactions/processing-operations",
        "reactions/received-operations",
        "revisions",
    ];

    fn database(&self) -> PathBuf {
        self.folder.join(Self::DATABASE)
    }

    pub(super) fn reader(&self) -> Result<Option<Connection>, StoreError> {
        let opened = database::open_read(&self.database(), schema::INBOX)?;
        if let Some(connection) = &opened {
            check_tables(connection)?;
        }
        Ok(opened)
    }

    pub(super) fn writer(&self) -> Result<Connection, StoreError> {
        let connection = database::open_write(&self.database(), schema::INBOX)?;
        check_tables(&connection)?;
        Ok(connection)
    }

    /// Moves a long log into the database: every later open would read all of it. One that others still read stays for the next time.
    pub(super) fn shorten_log(&self, connection: &Connection) {
        if database::log_bytes(&self.database()) > LONG_LOG_BYTES {
            let _ = database::checkpoint(connection);
        }
    }

    /// Tells whether the database is readable by this program, without creating it.
    pub fn check(&self) -> Result<(), StoreError> {
        self.reader().map(drop)
    }

    /// Tells whether the inbox has a database.
    pub fn is_present(&self) -> bool {
        self.database().exists()
    }

    /// Takes the lock around settlements.
    pub fn settlement_lock<R: Rank>(&self, claim: &Claim<'_>) -> Result<Held<R>, StoreError> {
        lock::acquire(&self.settlement_lock_path(), claim)
    }

    /// Returns the file of the lock around settlements.
    pub fn settlement_lock_path(&self) -> PathBuf {
        self.folder.join(".state").join("settlement.lock")
    }
}

/// A command that needs one table only must not go on in a database that has lost another.
fn check_tables(connection: &Connection) -> Result<(), StoreError> {
    let mut rows = connection.prepare(
        "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT GLOB 'sqlite_*'",
    )?;
    let names = rows.query_map([], |row| row.get::<_, String>(0))?;
    let known = names
        .filter_map(Result::ok)
        .filter(|name| schema::TABLES.contains(&name.as_str()))
        .count();
    match known == schema::TABLES.len() {
        true => Ok(()),
        false => Err(StoreError::Corrupt("a table of the inbox is missing")),
    }
}
