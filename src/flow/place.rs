//! Where one command works: the project, the registry, the runtime root.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::contract::ids::GoalId;
use crate::store::document::registry::{Registry, RegistryError};
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
    let registry = Registry::read(registry).ok()?;
    registry.common_runtime_root().map(str::to_owned)
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

impl From<RegistryError> for RegistryUnreadable {
    fn from(_: RegistryError) -> Self {
        RegistryUnreadable
    }
}

impl Place {
    /// Finds a goal; an entry that points to another registry is followed once.
    pub fn goal_entry(&self, goal: &str) -> Result<Option<GoalEntry>, RegistryUnreadable> {
        let Some(id) = GoalId::new(goal) else {
            return Ok(None);
        };
        let mut registry = Registry::read(self.workspace.registry())?;
        let mut found = registry.goal(&id)?;
        if let Some(source) = found.as_ref().and_then(|goal| registry.source_of(goal)) {
            registry = Registry::read(&source)?;
            found = registry.goal(&id)?;
        }
        let Some(goal) = found else {
            return Ok(None);
        };
        let beside = project_beside(registry.path());
        let project = goal
            .text("repo")
            .map_or_else(|| beside.to_path_buf(), |repo| beside.join(repo));
        let value = Value::Object(goal.entry().clone());
        Ok(Some(GoalEntry { value, project }))
    }
}
