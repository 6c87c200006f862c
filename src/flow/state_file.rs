//! Where the state file of a refresh may be: inside the project, or exactly the registered one.
//!
//! Links and `..` are resolved before the target is opened; a refusal names no path.

use std::path::{Component, Path, PathBuf};

use super::open::{Answer, Place};
use crate::contract::error::ErrorCode;
use crate::contract::packet::Refusal;

/// The state file has to resolve inside the project, or be the registered one, before it is opened.
pub fn check(place: &Place, project: Option<&Path>, file: Option<&Path>) -> Answer<()> {
    let Some(file) = file else {
        return Ok(());
    };
    let refuse = || {
        let text = "the state file leads out of the project; name one inside it";
        Err(Refusal::new(ErrorCode::StateFileOutsideProject, text))
    };
    let project = project.map_or_else(|| place.project(), Path::to_path_buf);
    let project = std::path::absolute(&project).unwrap_or(project);
    let project = project.canonicalize().unwrap_or(project);
    if file.as_os_str().is_empty() || file.starts_with("~") {
        return refuse();
    }
    let target = resolve(&project.join(file));
    let registered = place
        .goal
        .text("state_file")
        .map(|file| resolve(&place.workspace.registry_dir().join(file)));
    if target.starts_with(&project) && target != project || registered.as_ref() == Some(&target) {
        return Ok(());
    }
    refuse()
}

/// Resolves links and `..` of a path whose last parts may not exist yet.
fn resolve(path: &Path) -> PathBuf {
    let mut resolved = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                resolved.pop();
            }
            Component::CurDir => {}
            other => resolved.push(other),
        }
        if let Ok(real) = resolved.canonicalize() {
            resolved = real;
        } else if let Ok(target) = std::fs::read_link(&resolved) {
            resolved = resolved
                .parent()
                .map(|folder| folder.join(&target))
                .unwrap_or(target);
        }
    }
    resolved
}
