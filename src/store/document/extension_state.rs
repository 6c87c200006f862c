//! The record of installed extensions, `<runtime root>/extensions/state.json`.

use std::path::{Path, PathBuf};

use super::file;
use crate::contract::extension::{ExtensionState, STATE_FAMILY, STATE_SCHEMA};
use crate::store::StoreError;
use crate::store::lock::{self, Claim, Held, MachineConfiguration};

/// The record on disk.
#[derive(Clone, Debug)]
pub struct ExtensionStateFile {
    path: PathBuf,
}

impl ExtensionStateFile {
    /// The record of a runtime root.
    pub fn of_runtime(root: &Path) -> Self {
        Self::at(root.join("extensions").join("state.json"))
    }

    /// The record in a named file.
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Reads the record; a missing one is an empty record.
    pub fn read(&self) -> Result<ExtensionState, StoreError> {
        match file::read(&self.path, STATE_FAMILY, &[STATE_SCHEMA])? {
            None => Ok(ExtensionState::default()),
            Some(value) => ExtensionState::parse(&value)
                .map_err(|_| StoreError::Corrupt("the record of extensions is not valid")),
        }
    }

    /// Takes the lock of the record.
    pub fn lock(&self, claim: &Claim<'_>) -> Result<Held<MachineConfiguration>, StoreError> {
        let mut name = self.path.clone().into_os_string();
        name.push(".lock");
        lock::acquire(Path::new(&name), claim)
    }

    /// Replaces the record.
    pub fn write(
        &self,
        _held: &Held<MachineConfiguration>,
        state: &ExtensionState,
    ) -> Result<(), StoreError> {
        file::write(&self.path, &state.to_value())
    }
}
