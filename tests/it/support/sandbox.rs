//! Folders of one test, gone when it ends.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::Run;

/// The instant every sandboxed command believes in, unless a test says otherwise.
pub(crate) const NOW: &str = "2026-09-18T09:00:00Z";

/// A home, a project and a runtime root.
pub(crate) struct Sandbox {
    root: TempDir,
}

impl Sandbox {
    /// Makes the folders.
    pub(crate) fn new() -> Self {
        let root = tempfile::Builder::new()
            .prefix("loopx-it-")
            .tempdir()
            .expect("a temporary folder");
        for name in ["home", "project"] {
            fs::create_dir(root.path().join(name)).expect("a folder");
        }
        Self { root }
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn home(&self) -> PathBuf {
        self.root.path().join("home")
    }

    pub(crate) fn project(&self) -> PathBuf {
        self.root.path().join("project")
    }

    /// Writes a file below the project and returns its path.
    pub(crate) fn file(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.project().join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).expect("a folder");
        }
        fs::write(&path, content).expect("a file");
        path
    }

    /// Prepares a run of the binary in the project folder.
    pub(crate) fn loopx<S: AsRef<str>>(&self, args: impl IntoIterator<Item = S>) -> Run<'_> {
        Run::new(self, args)
    }

    /// Every file below the root with its bytes, except lock files and SQLite's `-shm`.
    pub(crate) fn tree(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let mut files = Vec::new();
        collect(self.root.path(), &mut files);
        files.sort();
        files
    }
}

fn collect(folder: &Path, files: &mut Vec<(PathBuf, Vec<u8>)>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let name = path.to_string_lossy().into_owned();
        if path.is_symlink() {
            let target = fs::read_link(&path).expect("a link");
            files.push((path, target.to_string_lossy().into_owned().into_bytes()));
        } else if path.is_dir() {
            collect(&path, files);
        } else if !name.ends_with(".lock") && !name.ends_with(".lane") && !name.ends_with("-shm") {
            let bytes = fs::read(&path).expect("a file");
            files.push((path, bytes));
        }
    }
}
