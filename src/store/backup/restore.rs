//! Brings a proved backup back: staged beside the target, renamed, and never over anything that is there.

use std::path::{Path, PathBuf};

use super::manifest::{Manifest, is_equal};
use super::{BackupError, INBOX, STORE};
use crate::store::{database, private_file};

/// Where each part of a backup goes, and whether it may.
#[derive(Debug)]
pub struct Plan {
    moves: Vec<(PathBuf, PathBuf)>,
}

impl Plan {
    /// Lays out a restore. `place` names the folder of a tree, or none for a tree that stays out.
    pub fn of(
        backup: &Path,
        manifest: &Manifest,
        place: impl Fn(&str) -> Option<PathBuf>,
    ) -> Result<Self, BackupError> {
        let mut moves = Vec::new();
        for entry in &manifest.files {
            let Some((tree, relative)) = entry.path.split_once('/') else {
                continue;
            };
            let Some(folder) = place(tree) else { continue };
            moves.push((backup.join(&entry.path), folder.join(relative)));
        }
        // The store takes its place last: until then the target holds none, and a killed restore is repeated.
        moves.sort_by_key(|(_, target)| target.ends_with(STORE));
        for (source, target) in &moves {
            // Nothing that is there is ever replaced: a restore adds, or it refuses.
            let is_state = target.ends_with(STORE) || target.ends_with(INBOX);
            let differs = target.exists() && !is_equal(target, source)?;
            // A log that lies there would be played onto the restored database.
            if differs || (is_state && database::log_bytes(target) > 0) {
                return Err(BackupError::RestoreTargetNotEmpty);
            }
        }
        Ok(Self { moves })
    }

    /// Puts every file in its place, one durable rename each.
    pub fn perform(&self) -> Result<(), BackupError> {
        for (source, target) in &self.moves {
            if target.exists() && is_equal(target, source)? {
                continue;
            }
            private_file::create_dir(target.parent().unwrap_or(target))?;
            private_file::copy(source, target)?;
        }
        Ok(())
    }
}

/// Brings the registry back where none is.
pub fn bring_registry(backup: &Path, target: &Path) -> Result<(), BackupError> {
    let bytes = private_file::read(&backup.join("registry.json"))?.ok_or(BackupError::Corrupt)?;
    private_file::create_dir(target.parent().unwrap_or(target))?;
    Ok(private_file::create(target, &bytes)?)
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::store::backup::{MANIFEST, Tree, verify, write};
    use crate::store::schema;

    fn tree(root: &Path) -> Tree {
        Tree {
            name: "runtime".to_owned(),
            folder: root.to_path_buf(),
        }
    }

    fn sample(root: &Path) {
        drop(database::open_write(&root.join(STORE), schema::STATE).expect("a store"));
        for (name, text) in [
            ("goals/g/turns/a.json", "journal"),
            ("goals/g/turns/.lanes/x.lane", ""),
            ("goals/g/runs/index.jsonl", "export"),
            ("goals/g/rollout-event-log.jsonl", "export"),
            ("state.lock", ""),
        ] {
            let path = root.join(name);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
    }

    #[test]
    fn a_backup_holds_the_state_and_leaves_rebuilt_files_out() {
        let root = tempfile::tempdir().expect("a folder");
        let (live, out) = (root.path().join("live"), root.path().join("out"));
        fs::create_dir(&live).expect("a folder");
        sample(&live);
        let manifest = write(&out, &[tree(&live)], None).expect("written");
        let names: Vec<&str> = manifest
            .files
            .iter()
            .map(|entry| entry.path.as_str())
            .collect();
        assert_eq!(
            names,
            ["runtime/goals/g/turns/a.json", "runtime/state.sqlite3"]
        );
        assert_eq!(verify(&out).expect("sound"), manifest);
        assert!(matches!(
            write(&out, &[tree(&live)], None),
            Err(BackupError::TargetNotEmpty)
        ));
    }

    #[test]
    fn a_changed_added_or_missing_byte_is_found() {
        let root = tempfile::tempdir().expect("a folder");
        let (live, out) = (root.path().join("live"), root.path().join("out"));
        fs::create_dir(&live).expect("a folder");
        sample(&live);
        write(&out, &[tree(&live)], None).expect("written");
        let journal = out.join("runtime/goals/g/turns/a.json");
        fs::write(&journal, "journaL").expect("a file");
        assert!(matches!(verify(&out), Err(BackupError::Corrupt)));
        fs::write(&journal, "journal").expect("a file");
        fs::write(out.join("runtime/extra"), "").expect("a file");
        assert!(matches!(verify(&out), Err(BackupError::Corrupt)));
        fs::remove_file(out.join("runtime/extra")).expect("removed");
        verify(&out).expect("sound again");
        fs::remove_file(out.join(MANIFEST)).expect("removed");
        assert!(matches!(verify(&out), Err(BackupError::NoBackup)));
    }

    #[test]
    fn a_restore_refuses_other_state_and_repeats_on_its_own() {
        let root = tempfile::tempdir().expect("a folder");
        let (live, out) = (root.path().join("live"), root.path().join("out"));
        fs::create_dir(&live).expect("a folder");
        sample(&live);
        let manifest = write(&out, &[tree(&live)], None).expect("written");
        let target = root.path().join("back");
        let place = |name: &str| (name == "runtime").then(|| target.clone());
        let plan = Plan::of(&out, &manifest, place).expect("an empty target");
        plan.perform().expect("restored");
        let back = database::open_write(&target.join(STORE), schema::STATE).expect("opens");
        let mode: String = back
            .query_row("PRAGMA journal_mode", [], |row| row.get(0))
            .expect("a mode");
        assert_eq!(mode, "wal");
        drop(back);
        for end in ["", "-wal", "-shm"] {
            // Opening it for writing may leave all three.
            let _ = fs::remove_file(target.join(format!("{STORE}{end}")));
        }
        fs::write(target.join(format!("{STORE}-wal")), b"stale").expect("a file");
        assert!(matches!(
            Plan::of(&out, &manifest, place),
            Err(BackupError::RestoreTargetNotEmpty)
        ));
        fs::remove_file(target.join(format!("{STORE}-wal"))).expect("removed");
        Plan::of(&out, &manifest, place)
            .expect("free again")
            .perform()
            .expect("restored");
        assert_eq!(
            fs::read(target.join("goals/g/turns/a.json")).expect("there"),
            b"journal"
        );
        Plan::of(&out, &manifest, place)
            .expect("equal bytes")
            .perform()
            .expect("again");
        fs::remove_file(target.join(STORE)).expect("removed");
        drop(database::open_write(&target.join(STORE), schema::STATE).expect("a store"));
        fs::write(target.join(STORE), b"other").expect("changed");
        assert!(matches!(
            Plan::of(&out, &manifest, place),
            Err(BackupError::RestoreTargetNotEmpty)
        ));
    }
}
