//! Rebuildable files beside the database, for other readers. They are written after the commit, without waiting for the disk, and never
//! read back; a file that cannot be written leaves the command's result as it is and is named by `export_pending`.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use super::Inbox;
use super::export_files::{
    COMMENT_CURSOR_FILE, COMMENT_REPLIES_FILE, FOLDERS, JOURNAL_FOLDERS, MARKS_FILE, MATERIAL_FILE,
    attempt_path, comment_cursor_file, comment_replies_file, for_each_file, indented, journal_path,
    json_files, mark_file, material_file, processed_file, revision_file,
};
use super::marks::Mark;
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
            let there = private_file::read_up_to(&path, bytes.len() as u64);
            if there.ok().flatten().as_deref() == Some(bytes) {
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
