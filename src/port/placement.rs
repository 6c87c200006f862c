//! Whether a private configuration file is private to version control too.

use std::path::Path;

/// Where a configuration file lies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// No work tree around it.
    NoWorkTree,
    /// In a work tree, ignored and not tracked.
    Ignored,
    /// In a work tree, tracked or not ignored.
    Exposed,
}

/// The version control around a file could not be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("version control could not be asked")]
pub struct ProbeFailed;

/// Looks at the version control around a file.
pub trait ConfigPlacement {
    /// Says where the file lies.
    fn look(&self, file: &Path) -> Result<Placement, ProbeFailed>;
}
