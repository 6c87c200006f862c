//! What is wrong with a backup or with its place.

use std::io;

use crate::store::StoreError;

/// What is wrong with a backup or with the place it should go to.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The folder to write into holds something.
    #[error("the backup folder is not empty")]
    TargetNotEmpty,
    /// The folder to write into lies inside what is copied, or inside another backup.
    #[error("the backup folder lies inside what is copied")]
    TargetInside,
    /// There is no manifest, so there is no backup.
    #[error("there is no backup at that place")]
    NoBackup,
    /// A file is missing, added or changed, or the manifest is.
    #[error("the backup is not what was written")]
    Corrupt,
    /// The place to restore to holds a store or an inbox with other content.
    #[error("the target already holds state")]
    RestoreTargetNotEmpty,
    /// Reading or writing failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<io::Error> for BackupError {
    fn from(error: io::Error) -> Self {
        Self::Store(StoreError::write(error))
    }
}
