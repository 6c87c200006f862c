//! The targets of this machine, `<runtime root>/goal-channel-targets.json`.

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};

use super::file;
use crate::contract::channel::target::{TARGETS_FAMILY, TARGETS_SCHEMA};
use crate::store::StoreError;
use crate::store::lock::{self, Claim, Held, Target};

/// The store of targets.
#[derive(Clone, Debug)]
pub struct TargetStore {
    path: PathBuf,
}

impl TargetStore {
    /// The store in a file.
    pub fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Reads the targets by name; a missing store has none.
    pub fn read(&self) -> Result<Map<String, Value>, StoreError> {
        let value = file::read(&self.path, TARGETS_FAMILY, &[TARGETS_SCHEMA])?;
        match value.as_ref().map(|value| value.get("targets")) {
            None => Ok(Map::new()),
            Some(Some(Value::Object(targets))) => Ok(targets.clone()),
            Some(_) => Err(StoreError::Corrupt("the store of targets is not valid")),
        }
    }

    /// Takes the lock of the store.
    pub fn lock(&self, claim: &Claim<'_>) -> Result<Held<Target>, StoreError> {
        let mut name = self.path.clone().into_os_string();
        name.push(".lock");
        lock::acquire(Path::new(&name), claim)
    }

    /// Replaces the targets.
    pub fn write(
        &self,
        _held: &Held<Target>,
        targets: &Map<String, Value>,
    ) -> Result<(), StoreError> {
        file::write(
            &self.path,
            &json!({"schema_version": TARGETS_SCHEMA, "targets": targets}),
        )
    }
}
