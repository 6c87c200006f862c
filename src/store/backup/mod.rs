//! A backup folder: what goes in, how it is proved, how it comes back.
//!
//! Databases are copied while others write, each checked for integrity; the state store is copied last, because an
//! older copy of anything else is repaired by replay, and the reverse would lose what was acknowledged. Then the files
//! of Turns are brought to where that copy stands, since a Turn may go on meanwhile. Locks, logs, exports and caches
//! stay out: they are rebuilt. `manifest.json` is written last, so a folder without it is no backup. It restores by staging beside the target and renaming; a file that is already there with equal bytes counts as
//! restored, which makes a killed restore repeatable.

mod copy;
mod fault;
mod manifest;
mod restore;
mod turns;

pub use copy::{Tree, write};
pub use fault::BackupError;
pub use manifest::{Entry, Manifest, verify};
pub use restore::{Plan, bring_registry};

const MANIFEST: &str = "manifest.json";
const STORE: &str = "state.sqlite3";
const INBOX: &str = ".state/inbox.sqlite3";
