//! Where one command works: the project, the registry, the runtime root.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::contract::json;
use crate::workspace::Workspace;

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
    let bytes = std::fs::read(registry).ok()?;
    let document = json::parse_object(&bytes).ok()?;
    let root = document.get("common_runtime_root").and_then(Value::as_str);
    root.filter(|root| !root.is_empty()).map(str::to_owned)
}
