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
//! | `turn_start` | how far history is read at turn starts, and whose marks come next |
//! | `exports` | rebuildable files for other readers, written after the commit and never read back |
//!
//! A missing database reads as an empty inbox and is not created by reading.

mod attempts;
mod comments;
mod events;
mod export_files;
mod exports;
mod gaps;
mod marks;
mod place;
mod schema;
mod settle;
mod turn_start;

pub use attempts::{Attempt, AttemptKind, AttemptState};
pub use comments::CommentReplyRow;
pub use events::{Counts, DrainedRow, Urgent};
pub use exports::{ExportSurvey, Exporter};
pub use marks::{Mark, MarkJournal, MarkPhase};
pub use place::Inbox;
pub use settle::MaterialRow;
pub use turn_start::{SyncFile, SyncPosition, Unmarked, sync_lock_path};

use place::DAMAGED_ROW;
pub(in crate::store) use schema::INBOX as MIGRATIONS;
