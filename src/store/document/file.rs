//! Reading and writing one JSON document with a schema of its own.

use std::path::Path;

use serde_json::Value;

use crate::contract::json;
use crate::store::{StoreError, private_file};

/// Reads a document; a missing one is `None`. One of a later version of its family is refused as such, anything else as damage.
pub(super) fn read(path: &Path, family: &str, known: &[&str]) -> Result<Option<Value>, StoreError> {
    let bytes = private_file::read(path)
        .map_err(|_| StoreError::Corrupt("a document is not a readable file"))?;
    let Some(bytes) = bytes else { return Ok(None) };
    let object = json::parse_kept(&bytes)
        .map_err(|_| StoreError::Corrupt("a document is not one JSON object"))?;
    let schema = object
        .get("schema_version")
        .and_then(Value::as_str)
        .unwrap_or("");
    if known.contains(&schema) {
        return Ok(Some(Value::Object(object)));
    }
    match schema
        .strip_prefix(family)
        .and_then(|version| version.parse().ok())
    {
        Some(found) => Err(StoreError::SchemaUnsupported {
            found,
            known: known.len() as i64 - 1,
        }),
        None => Err(StoreError::Corrupt("a document has another schema")),
    }
}

/// Writes a document, indented, owner-only, durably.
pub(super) fn write(path: &Path, value: &Value) -> Result<(), StoreError> {
    if let Some(folder) = path.parent() {
        private_file::create_dir(folder).map_err(StoreError::write)?;
    }
    let text =
        json::pretty(value).map_err(|_| StoreError::Corrupt("a document cannot be written"))?;
    private_file::replace(path, text.as_bytes()).map_err(StoreError::write)
}
