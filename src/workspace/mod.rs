//! Where things are: the project, the registry, the runtime root, the environment.

pub mod env;
mod locate;

use std::path::{Path, PathBuf};

pub use locate::{Workspace, find_project};

/// Replaces a leading `~` by the home folder; a path stays as it is when HOME is not set.
pub fn expand_home(path: &Path) -> PathBuf {
    match (path.strip_prefix("~"), env::path(env::HOME)) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => path.to_path_buf(),
    }
}
