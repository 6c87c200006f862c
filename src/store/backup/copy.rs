//! Takes everything along that cannot be rebuilt, while others write.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::manifest::{Manifest, publish_manifest};
use super::{BackupError, INBOX, MANIFEST, STORE, turns};
use crate::store::{StoreError, database, private_file, schema};

/// A folder that is part of a backup, under a name of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The folder's name inside the backup.
    pub name: String,
    /// Where it lies on this machine.
    pub folder: PathBuf,
}

/// How a file is taken along.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Kind {
    Document,
    Inbox,
    Store,
}

/// Writes a backup of the trees and the registry file into a new or empty folder.
pub fn write(out: &Path, trees: &[Tree], registry: Option<&Path>) -> Result<Manifest, BackupError> {
    if out.exists() && (!out.is_dir() || fs::read_dir(out)?.next().is_some()) {
        return Err(BackupError::TargetNotEmpty);
    }
    let place = std::path::absolute(out)?;
    let is_inside = |folder: &Path| place.starts_with(folder);
    let is_in_backup = place
        .ancestors()
        .skip(1)
        .any(|folder| folder.join(MANIFEST).is_file());
    if is_in_backup || trees.iter().any(|tree| is_inside(&tree.folder)) {
        return Err(BackupError::TargetInside);
    }
    private_file::create_dir(out)?;
    let mut sources = Vec::new();
    if let Some(file) = registry.filter(|file| file.exists()) {
        sources.push((
            Kind::Document,
            "registry.json".to_owned(),
            file.to_path_buf(),
        ));
    }
    for tree in trees {
        let skipped: Vec<&Path> = trees.iter().map(|other| other.folder.as_path()).collect();
        collect(
            tree,
            &tree.folder,
            &mut sources,
            &Skip {
                out,
                trees: &skipped,
                registry,
            },
        )?;
    }
    // The store last: Kind orders documents, inboxes, store.
    sources.sort();
    let mut store_schema = None;
    for (kind, name, source) in &sources {
        let target = out.join(name);
        copy(*kind, source, &target)?;
        if *kind == Kind::Store {
            store_schema = database::version(&target)?;
            let root = |path: &Path| path.parent().unwrap_or(path).to_path_buf();
            turns::bring_up(&target, &root(source), &root(&target))?;
        }
    }
    for folder in folders_of(&sources) {
        private_file::sync_dir(&out.join(folder))?;
    }
    publish_manifest(out, store_schema)
}

fn folders_of(sources: &[(Kind, String, PathBuf)]) -> Vec<String> {
    let mut all: Vec<String> = sources
        .iter()
        .filter_map(|(_, name, _)| name.rsplit_once('/').map(|(folder, _)| folder.to_owned()))
        .collect();
    all.sort();
    all.dedup();
    all
}

struct Skip<'a> {
    out: &'a Path,
    trees: &'a [&'a Path],
    registry: Option<&'a Path>,
}

impl Skip<'_> {
    fn holds(&self, path: &Path, tree: &Path) -> bool {
        path == self.out
            || Some(path) == self.registry
            || (path != tree && self.trees.contains(&path))
    }
}

fn collect(
    tree: &Tree,
    folder: &Path,
    into: &mut Vec<(Kind, String, PathBuf)>,
    skip: &Skip<'_>,
) -> Result<(), BackupError> {
    if !folder.is_dir() {
        return Ok(());
    }
    // The files of an inbox beside its database are exports of its rows.
    let is_inbox = folder.join(INBOX).exists();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let kind = path.symlink_metadata()?;
        if skip.holds(&path, &tree.folder) || kind.file_type().is_symlink() {
            continue;
        }
        let relative = path.strip_prefix(&tree.folder).unwrap_or(&path);
        if kind.is_dir() {
            let is_state = path.ends_with(".state");
            if !is_export_folder(relative) && (!is_inbox || is_state) {
                collect(tree, &path, into, skip)?;
            }
        } else if kind.is_file() && !is_inbox && !is_rebuilt(relative) {
            let name = format!("{}/{}", tree.name, relative.to_string_lossy());
            into.push((kind_of(relative), name, path));
        }
    }
    Ok(())
}

fn kind_of(relative: &Path) -> Kind {
    match relative {
        path if path == Path::new(STORE) => Kind::Store,
        path if path.ends_with(INBOX) => Kind::Inbox,
        _ => Kind::Document,
    }
}

fn is_export_folder(relative: &Path) -> bool {
    let parts: Vec<_> = relative.iter().map(|part| part.to_string_lossy()).collect();
    let parts: Vec<&str> = parts.iter().map(AsRef::as_ref).collect();
    matches!(parts.as_slice(), ["goals", _, "runs"] | [.., "cwd"])
}

fn is_rebuilt(relative: &Path) -> bool {
    let name = relative
        .file_name()
        .map(|name| name.to_string_lossy())
        .unwrap_or_default();
    const ENDS: [&str; 7] = [".lock", ".lane", "-wal", "-shm", "-journal", ".log", ".tmp"];
    name.starts_with(private_file::TEMP_PREFIX)
        || name == "rollout-event-log.jsonl"
        || ENDS.iter().any(|end| name.ends_with(end))
}

fn copy(kind: Kind, source: &Path, target: &Path) -> Result<(), BackupError> {
    private_file::create_dir(target.parent().unwrap_or(target))?;
    if kind == Kind::Document {
        // A document may go between the listing and now; then there is nothing to keep.
        return match private_file::copy(source, target) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error.into()),
        };
    }
    if kind == Kind::Store {
        // A store of a newer version is refused before it is copied.
        drop(database::open_read_only(source, schema::STATE)?);
    }
    database::copy_into(&database::open_as_it_is(source)?, target)?;
    match database::is_sound(&database::open_as_it_is(target)?)? {
        true => Ok(()),
        false => Err(StoreError::Corrupt("a copied database is not sound").into()),
    }
}
