//! The state of a collector below its project: status file, run lock, working folder of its consumers.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::file;
use crate::contract::inbox::run_packet::{
    SOURCE_STATUS, SOURCE_STATUS_FAMILY, SeenStatus, SourceStatus,
};
use crate::contract::inbox::words;
use crate::failpoint;
use crate::failpoint::Point;
use crate::store::lock::{self, Claim, Collector, Held};
use crate::store::{StoreError, private_file};

/// The collector state of one project.
#[derive(Clone, Debug)]
pub struct CollectorState {
    folder: PathBuf,
}

impl CollectorState {
    /// The state of a project's collector.
    pub fn of_project(project: &Path) -> Self {
        Self {
            folder: project.join(words::COLLECTOR_STATE),
        }
    }

    /// Takes the lock that one run holds.
    pub fn lock_run(&self, claim: &Claim<'_>) -> Result<Held<Collector>, StoreError> {
        lock::acquire(&self.folder.join("collector-run.lock"), claim)
    }

    /// Makes the working folder of consumers.
    pub fn working_folder(&self) -> io::Result<PathBuf> {
        let folder = self.folder.join("cwd");
        private_file::create_dir(&folder)?;
        Ok(folder)
    }

    /// Returns where the service writes what it prints.
    pub fn log(&self, name: &str) -> PathBuf {
        self.folder.join(format!("collector.{name}.log"))
    }

    /// Makes the folder of the state.
    pub fn prepare(&self) -> io::Result<()> {
        private_file::create_dir(&self.folder)
    }

    fn status_path(&self) -> PathBuf {
        self.folder.join("collector-status.json")
    }

    /// Reads the status file; a missing one is none.
    pub fn read_status(&self) -> Result<Option<SeenStatus>, StoreError> {
        let value = file::read(&self.status_path(), SOURCE_STATUS_FAMILY, &[SOURCE_STATUS])?;
        Ok(value.as_ref().map(SeenStatus::read))
    }

    /// Replaces the status file.
    pub fn write_status(&self, status: &SourceStatus) -> Result<(), StoreError> {
        file::write(&self.status_path(), &status.to_value())?;
        failpoint!(Point::CollectorStatusWritten);
        Ok(())
    }

    /// Reads the status of the callback listener; a missing one is none.
    pub fn read_listener(&self) -> Result<Option<Value>, StoreError> {
        file::read(
            &self.listener_path(),
            words::LISTENER_FAMILY,
            &[words::LISTENER_STATUS],
        )
    }

    /// Replaces the status of the callback listener.
    pub fn write_listener(&self, status: &Value) -> Result<(), StoreError> {
        file::write(&self.listener_path(), status)
    }

    fn listener_path(&self) -> PathBuf {
        self.folder.join("operation-callback-status.json")
    }
}
