//! The database of one inbox: `<inbox>/.state/inbox.sqlite3`, versioned like the state store (`docs/spec/lark-inbox.md` 4).
//!
//! | file | keeps |
//! |---|---|
//! | `events` | captured messages, their revisions, the counts of them |
//! | `settle` | what is acknowledged, and the receipts of material review |
//! | `attempts` | outgoing messages whose outcome is not yet known, or that must not be sent twice |
//! | `marks` | the journal and receipts of marks on source messages |
//! | `gaps` | instants in which the live stream may have missed messages |
//! | `comments` | the position in a document's comments and the answers given there |
//! | `exports` | rebuildable files for other readers, written after the commit and never read back |
//!
//! A missing database reads as an empty inbox and is not created by reading.

mod attempts;
mod comments;
mod events;
mod exports;
mod gaps;
mod marks;
mod schema;
mod settle;

use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::StoreError;
use super::database;
use super::lock::{self, Claim, Held, Rank};

pub use attempts::{Attempt, AttemptState};
pub use comments::CommentReplyRow;
pub use events::{Counts, DrainedRow, Urgent};
pub use exports::{ExportSurvey, Exporter};
pub use marks::{Mark, MarkJournal, MarkPhase};
pub use settle::MaterialRow;

/// The migrations of an inbox database, for maintenance.
pub(in crate::store) const MIGRATIONS: database::Migrations = schema::INBOX;

/// One inbox on disk.
#[derive(Clone, Debug)]
pub struct Inbox {
    folder: PathBuf,
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

    fn database(&self) -> PathBuf {
        self.folder.join(".state").join("inbox.sqlite3")
    }

    fn reader(&self) -> Result<Option<Connection>, StoreError> {
        database::open_read(&self.database(), schema::INBOX)
    }

    fn writer(&self) -> Result<Connection, StoreError> {
        database::open_write(&self.database(), schema::INBOX)
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

/// A row whose text is not what was written.
const DAMAGED_ROW: StoreError = StoreError::Corrupt("a row of the inbox is not readable");
