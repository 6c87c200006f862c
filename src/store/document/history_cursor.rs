//! The history position of one route, a document that its owner may move aside.

use std::io;
use std::path::{Path, PathBuf};

use crate::contract::channel::ids::RouteKey;
use crate::contract::inbox::cursor::HistoryCursor;
use crate::contract::inbox::fault::InboxFault;
use crate::contract::inbox::words;
use crate::contract::json;
use crate::failpoint;
use crate::failpoint::Point;
use crate::store::lock::{self, Claim, Cursor, Held};
use crate::store::{StoreError, private_file};

/// The position of one route on disk.
#[derive(Clone, Debug)]
pub struct HistoryCursorFile {
    path: PathBuf,
}

impl HistoryCursorFile {
    /// The position of a route of a project.
    pub fn of_route(project: &Path, route: &RouteKey) -> Self {
        Self {
            path: project
                .join(words::HISTORY_STATE)
                .join(format!("{route}.json")),
        }
    }

    /// Reads the position; a missing one is none.
    pub fn read(&self) -> Result<Option<HistoryCursor>, InboxFault> {
        let bytes = private_file::read(&self.path).map_err(|_| InboxFault::CursorInvalid)?;
        let Some(bytes) = bytes else { return Ok(None) };
        let object = json::parse_kept(&bytes).map_err(|_| InboxFault::CursorInvalid)?;
        HistoryCursor::parse(&object).map(Some)
    }

    /// Tells whether a position is stored at all.
    pub fn exists(&self) -> bool {
        self.path.symlink_metadata().is_ok()
    }

    /// Takes the lock of the position.
    pub fn lock(&self, claim: &Claim<'_>) -> Result<Held<Cursor>, StoreError> {
        let mut name = self.path.clone().into_os_string();
        name.push(".lock");
        lock::acquire(Path::new(&name), claim)
    }

    /// Replaces the position durably.
    pub fn write(&self, _held: &Held<Cursor>, cursor: &HistoryCursor) -> io::Result<()> {
        let folder = self.path.parent().unwrap_or(Path::new("."));
        private_file::create_dir(folder)?;
        let bytes = format!("{}\n", cursor.to_text());
        private_file::replace_with(&self.path, bytes.as_bytes(), || {
            failpoint!(Point::HistoryCursorTempWritten)
        })?;
        failpoint!(Point::HistoryCursorReplaced);
        Ok(())
    }
}
