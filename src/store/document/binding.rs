//! The goal channel bindings of a project, `<project>/.loopx/goal-channel.json`; read here, written by the channel commands.

use std::path::Path;

use serde_json::json;

use super::file;
use crate::contract::channel::binding::{
    BINDINGS_FAMILY, BINDINGS_SCHEMA, Connection, read_bindings,
};
use crate::store::StoreError;

/// Reads every connection of a project; a missing file has none.
pub fn connections(project: &Path) -> Result<Vec<Connection>, StoreError> {
    let path = project.join(".loopx/goal-channel.json");
    let value = file::read(&path, BINDINGS_FAMILY, &[BINDINGS_SCHEMA])?;
    let value = value.unwrap_or_else(|| json!({"schema_version": BINDINGS_SCHEMA, "bindings": {}}));
    read_bindings(&value)
        .map_err(|_| StoreError::Corrupt("the bindings of the project are not valid"))
}
