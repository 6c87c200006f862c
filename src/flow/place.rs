//! Where one command works: the project, the registry, the runtime root.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::contract::json;
use crate::store::private_file;
use crate::workspace::{Workspace, project_beside};

/// The places of one command, with the registry's own choice of a runtime root applied.
#[derive(Clone, Debug)]
pub struct Place {
    pub workspace: Workspace,
    pub runtime_root: PathBuf,
    /// The root was named on the command line or in the registry, not guessed from the current folder.
    pub is_runtime_pinned: bool,
}

impl Place {
    /// Finds the places.
    pub fn locate(registry: Option<&Path>, runtime_root: Option<&Path>) -> std::io::Result<Self> {
        let workspace = Workspace::locate(registry, runtime_root)?;
        let common = common_root(workspace.registry());
        let runtime = workspace.runtime_root(common.as_deref());
        Ok(Self {
            is_runtime_pinned: workspace.requested_runtime_root().is_some() || common.is_some(),
            runtime_root: runtime,
            workspace,
        })
    }
}

fn common_root(registry: &Path) -> Option<String> {
    let bytes = private_file::read_regular(registry).ok()??;
    let document = json::parse_object(&bytes).ok()?;
    let root = document.get("common_runtime_root").and_then(Value::as_str);
    root.filter(|root| !root.is_empty()).map(str::to_owned)
}

/// The entry of one goal as the registry has it, and the project it names.
#[derive(Clone, Debug)]
pub struct GoalEntry {
    pub value: Value,
    pub project: PathBuf,
}

/// The registry cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegistryUnreadable;

impl Place {
    /// Finds a goal; an entry that points to another registry is followed once.
    pub fn goal_entry(&self, goal: &str) -> Result<Option<GoalEntry>, RegistryUnreadable> {
        let registry = self.workspace.registry().to_path_buf();
        let Some(value) = entry_in(&registry, goal)? else {
            return Ok(None);
        };
        let source = value
            .get("source_registry")
            .and_then(Value::as_str)
            .map(|path| folder_of(&registry).join(path));
        let (registry, value) = match source {
            Some(source) => match entry_in(&source, goal)? {
                Some(value) => (source, value),
                None => return Ok(None),
            },
            None => (registry, value),
        };
        let beside = project_beside(&registry);
        let project = value
            .get("repo")
            .and_then(Value::as_str)
            .map_or_else(|| beside.to_path_buf(), |repo| beside.join(repo));
        Ok(Some(GoalEntry { value, project }))
    }
}

fn folder_of(file: &Path) -> &Path {
    file.parent().unwrap_or(Path::new("/"))
}

fn entry_in(registry: &Path, goal: &str) -> Result<Option<Value>, RegistryUnreadable> {
    let bytes = private_file::read_regular(registry).map_err(|_| RegistryUnreadable)?;
    let Some(bytes) = bytes else {
        return Ok(None);
    };
    let document = json::parse_object(&bytes).map_err(|_| RegistryUnreadable)?;
    let goals = document.get("goals").and_then(Value::as_array);
    let entry = goals
        .into_iter()
        .flatten()
        .find(|entry| entry["id"].as_str() == Some(goal));
    Ok(entry.cloned())
}
