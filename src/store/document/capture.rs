//! Captured decisions: one private file each, written once and never changed (docs/spec/kernel.md 8).
//!
//! The row in the store is the arbiter: this file only writes bytes and gives back bytes that are exactly those of the row.

use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Component, Path, PathBuf};

use crate::contract::digest;
use crate::contract::ids::GoalId;
use crate::failpoint::Point;
use crate::store::StoreError;
use crate::store::export::goal_dir;
use crate::store::journal::turn::CaptureRow;
use crate::store::private_file;

/// What reading a capture gives.
#[derive(Debug, PartialEq, Eq)]
pub enum Found {
    /// The exact bytes of the row.
    Bytes(Vec<u8>),
    /// There is no such file.
    Missing,
    /// A private file with other bytes.
    Other(Vec<u8>),
    /// There is something else: a link, a file others may read.
    Damaged,
    /// A folder on the way is open to others, or somebody else's.
    Exposed,
}

/// Publishes a capture under a fresh name; returns its place below the goal's capture root.
pub fn publish(
    root: &Path,
    goal: &GoalId,
    (turn_hex, name): (&str, &str),
    bytes: &[u8],
) -> Result<String, StoreError> {
    let rel_path = format!("{turn_hex}/{name}");
    let path = capture_root(root, goal).join(&rel_path);
    if let Some(folder) = path.parent() {
        private_file::create_dir(folder).map_err(StoreError::write)?;
    }
    private_file::create_with(&path, bytes, || {
        crate::failpoint!(Point::CaptureTempWritten)
    })
    .map_err(StoreError::write)?;
    Ok(rel_path)
}

/// Where the capture of a row lies; none for a place that leads out of the capture root.
pub fn path(root: &Path, goal: &GoalId, row: &CaptureRow) -> Option<PathBuf> {
    let rel = Path::new(&row.rel_path);
    let is_below = rel
        .components()
        .all(|part| matches!(part, Component::Normal(_)));
    is_below.then(|| capture_root(root, goal).join(rel))
}

/// Reads the capture of a row.
pub fn read(root: &Path, goal: &GoalId, row: &CaptureRow) -> Result<Found, StoreError> {
    let Some(path) = path(root, goal, row) else {
        return Ok(Found::Damaged);
    };
    let capture_root = capture_root(root, goal);
    // A folder that became a link would lead out of the capture root.
    for folder in path
        .ancestors()
        .skip(1)
        .take_while(|folder| folder.starts_with(&capture_root))
    {
        match std::fs::symlink_metadata(folder) {
            Ok(meta) if meta.is_dir() && is_own(&meta) => {}
            Ok(meta) if meta.is_dir() => return Ok(Found::Exposed),
            Ok(_) => return Ok(Found::Damaged),
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Found::Missing),
            Err(error) => return Err(StoreError::write(error)),
        }
    }
    let Ok(meta) = std::fs::symlink_metadata(&path) else {
        return Ok(Found::Missing);
    };
    if !(meta.is_file() && is_own(&meta)) {
        return Ok(Found::Damaged);
    }
    let Ok(Some(bytes)) = private_file::read(&path) else {
        return Ok(Found::Damaged);
    };
    let is_exact =
        bytes.len() as i64 == row.byte_len && digest::content_digest(&bytes).hex() == row.sha256;
    Ok(if is_exact {
        Found::Bytes(bytes)
    } else {
        Found::Other(bytes)
    })
}

/// True when a capture can be published where nobody else reads it; a folder that is not there yet is made so.
pub fn is_private_place(root: &Path, goal: &GoalId) -> bool {
    std::fs::symlink_metadata(capture_root(root, goal)).map_or_else(
        |error| error.kind() == io::ErrorKind::NotFound,
        |meta| meta.is_dir() && is_own(&meta),
    )
}

/// True for what belongs to this user and nobody else may open.
fn is_own(meta: &std::fs::Metadata) -> bool {
    meta.mode() & 0o077 == 0 && meta.uid() == nix::unistd::geteuid().as_raw()
}

/// Writes an asked-for copy of a decision into a folder of the caller: a new one, or a new `decision-*` below it.
pub fn write_decision(target: &Target<'_>, bytes: &[u8]) -> Result<(), StoreError> {
    let folder = target.make().map_err(StoreError::write)?;
    private_file::create(&folder.join("decision.json"), bytes).map_err(StoreError::write)
}

/// Where an asked-for copy of a decision goes.
#[derive(Clone, Copy, Debug)]
pub enum Target<'a> {
    /// This folder, which must not exist yet.
    Dir(&'a Path),
    /// A fresh folder of that name below this one, which must exist.
    Root(&'a Path, &'a str),
}

impl Target<'_> {
    /// True when the place can take a decision.
    pub fn is_free(&self) -> bool {
        match self {
            Target::Dir(path) => {
                !path.exists()
                    && path.symlink_metadata().is_err()
                    && path.parent().is_some_and(Path::is_dir)
            }
            Target::Root(path, _) => path.is_dir(),
        }
    }

    fn make(&self) -> io::Result<PathBuf> {
        let folder = match self {
            Target::Dir(path) => path.to_path_buf(),
            Target::Root(path, name) => path.join(name),
        };
        let mut builder = std::fs::DirBuilder::new();
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        builder.create(&folder)?;
        if let Some(parent) = folder.parent() {
            private_file::sync_dir(parent)?;
        }
        Ok(folder)
    }
}

fn capture_root(root: &Path, goal: &GoalId) -> PathBuf {
    goal_dir(root, goal).join("turn-captures")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(bytes: &[u8], rel_path: &str) -> CaptureRow {
        CaptureRow {
            capture_id: "c".into(),
            goal_id: "g".into(),
            agent_id: "a".into(),
            turn_key: None,
            effect_id: None,
            rel_path: rel_path.into(),
            byte_len: bytes.len() as i64,
            sha256: digest::content_digest(bytes).hex(),
            source_digest: String::new(),
            source_decision_hash: String::new(),
            created_at: String::new(),
        }
    }

    #[test]
    fn only_the_exact_private_bytes_below_the_root_are_given_back() {
        let folder = tempfile::tempdir().unwrap();
        let goal = GoalId::new("g").unwrap();
        let rel = publish(folder.path(), &goal, ("ab", "cd"), b"{}").unwrap();
        let row_of = |rel: &str| row(b"{}", rel);
        assert_eq!(
            read(folder.path(), &goal, &row_of(&rel)).unwrap(),
            Found::Bytes(b"{}".to_vec())
        );
        assert_eq!(
            read(folder.path(), &goal, &row_of("../../x")).unwrap(),
            Found::Damaged
        );
        assert_eq!(
            read(folder.path(), &goal, &row_of("ab/other")).unwrap(),
            Found::Missing
        );
        let path = goal_dir(folder.path(), &goal)
            .join("turn-captures")
            .join(&rel);
        std::fs::write(&path, b"[]").unwrap();
        assert_eq!(
            read(folder.path(), &goal, &row_of(&rel)).unwrap(),
            Found::Other(b"[]".to_vec())
        );
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
        assert_eq!(
            read(folder.path(), &goal, &row_of(&rel)).unwrap(),
            Found::Damaged
        );
    }
}
