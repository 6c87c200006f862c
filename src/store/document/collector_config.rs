//! Replacing a collector configuration: sorted, indented, in the old mode, durably, and back again when the readback differs.

use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use crate::contract::json;
use crate::failpoint;
use crate::failpoint::Point;
use crate::store::lock::{self, Claim, Held, MachineConfiguration};
use crate::store::{StoreError, private_file};

/// A collector configuration on disk.
#[derive(Clone, Debug)]
pub struct CollectorConfigFile {
    path: PathBuf,
}

impl CollectorConfigFile {
    /// The configuration at a resolved path.
    pub fn at(path: &Path) -> Self {
        Self {
            path: path.to_path_buf(),
        }
    }

    /// Takes the lock of the configuration.
    pub fn lock(&self, claim: &Claim<'_>) -> Result<Held<MachineConfiguration>, StoreError> {
        let mut name = self.path.clone().into_os_string();
        name.push(".lock");
        lock::acquire(Path::new(&name), claim)
    }

    /// Reads the bytes.
    pub fn bytes(&self) -> io::Result<Vec<u8>> {
        let bytes = private_file::read_regular(&self.path)?;
        bytes.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Replaces the configuration by a document.
    pub fn replace(&self, _held: &Held<MachineConfiguration>, document: &Value) -> io::Result<()> {
        let text = json::pretty(&sorted(document)).map_err(io::Error::other)?;
        private_file::replace(&self.path, text.as_bytes())?;
        failpoint!(Point::ReconcileConfigReplaced);
        Ok(())
    }

    /// Puts bytes back and says whether they are there.
    pub fn restore(&self, _held: &Held<MachineConfiguration>, bytes: &[u8]) -> bool {
        private_file::replace(&self.path, bytes).is_ok()
            && self.bytes().is_ok_and(|read| read == bytes)
    }
}

fn sorted(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            let entries: Map<String, Value> = keys
                .into_iter()
                .map(|key| (key.clone(), sorted(&map[key])))
                .collect();
            Value::Object(entries)
        }
        Value::Array(items) => Value::Array(items.iter().map(sorted).collect()),
        other => other.clone(),
    }
}
