//! A backup folder: what goes in, how it is proved, how it comes back.
//!
//! Databases are copied while others write, each checked for integrity; the state store is copied last, because an
//! older copy of anything else is repaired by replay, and the reverse would lose what was acknowledged. Locks, logs,
//! exports and caches stay out: they are rebuilt. `manifest.json` is written last, so a folder without it is no backup.
//! It restores by staging beside the target and renaming; a file that is already there with equal bytes counts as
//! restored, which makes a killed restore repeatable.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{StoreError, database, private_file, schema};
use crate::contract::digest::{self, Digest};
use crate::contract::json as strict;

const MANIFEST: &str = "manifest.json";
const SCHEMA: &str = "loopx_backup_manifest_v0";
const STORE: &str = "state.sqlite3";
const INBOX: &str = ".state/inbox.sqlite3";

/// A folder that is part of a backup, under a name of its own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tree {
    /// The folder's name inside the backup.
    pub name: String,
    /// Where it lies on this machine.
    pub folder: PathBuf,
}

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

/// One file of a backup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The path inside the backup folder, with `/`.
    pub path: String,
    /// Its length.
    pub bytes: u64,
    /// The digest of its bytes.
    pub sha256: Digest,
}

/// The list of a backup's files, and the schema of its store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Manifest {
    /// In the order of their paths.
    pub files: Vec<Entry>,
    /// The number of the store, none when there was no store.
    pub store_schema: Option<i64>,
    /// The digest of `manifest.json`.
    pub sha256: Digest,
}

impl Manifest {
    /// The sum of all lengths.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|entry| entry.bytes).sum()
    }
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
    if out.exists() && fs::read_dir(out)?.next().is_some() {
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
        return match fs::read(source) {
            Ok(bytes) => Ok(private_file::create(target, &bytes)?),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(error) => Err(error.into()),
        };
    }
    if kind == Kind::Store {
        // A store of a newer version is refused before it is copied.
        drop(database::open_read(source, schema::STATE)?);
    }
    database::copy_into(&database::open_as_it_is(source)?, target)?;
    match database::is_sound(&database::open_as_it_is(target)?)? {
        true => Ok(()),
        false => Err(StoreError::Corrupt("a copied database is not sound").into()),
    }
}

fn publish_manifest(out: &Path, store_schema: Option<i64>) -> Result<Manifest, BackupError> {
    let files = list(out)?;
    let rows: Vec<Value> = files
        .iter()
        .map(|entry| json!({"path": entry.path, "bytes": entry.bytes, "sha256": entry.sha256}))
        .collect();
    let document = json!({"schema_version": SCHEMA, "store_schema": store_schema, "files": rows});
    let text = strict::pretty(&document).map_err(|_| BackupError::Corrupt)?;
    private_file::create(&out.join(MANIFEST), text.as_bytes())?;
    let sha256 = digest::content_digest(text.as_bytes());
    Ok(Manifest {
        files,
        store_schema,
        sha256,
    })
}

/// Lists every file of a backup folder but the manifest.
fn list(out: &Path) -> Result<Vec<Entry>, BackupError> {
    let mut found = Vec::new();
    let mut queue = vec![out.to_path_buf()];
    while let Some(folder) = queue.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            let kind = path.symlink_metadata()?;
            if kind.is_dir() {
                queue.push(path);
                continue;
            }
            let relative = path
                .strip_prefix(out)
                .unwrap_or(&path)
                .to_string_lossy()
                .into_owned();
            if relative == MANIFEST || is_side_file(&relative) {
                continue;
            }
            if !kind.is_file() {
                return Err(BackupError::Corrupt);
            }
            let (bytes, sha256) = digest_of(&path)?;
            found.push(Entry {
                path: relative,
                bytes,
                sha256,
            });
        }
    }
    found.sort_by(|left, right| left.path.cmp(&right.path));
    Ok(found)
}

/// Length and digest of a file, read piece by piece: a store may be larger than memory.
fn digest_of(path: &Path) -> io::Result<(u64, Digest)> {
    let mut running = digest::Running::default();
    let bytes = io::copy(&mut fs::File::open(path)?, &mut running)?;
    Ok((bytes, running.finish()))
}

fn is_equal(left: &Path, right: &Path) -> io::Result<bool> {
    Ok(fs::metadata(left)?.len() == fs::metadata(right)?.len()
        && digest_of(left)? == digest_of(right)?)
}

/// Opening a copied database for its check may leave these; they hold no rows.
fn is_side_file(relative: &str) -> bool {
    relative.ends_with(".sqlite3-wal") || relative.ends_with(".sqlite3-shm")
}

/// Reads a backup and proves every byte of it against its manifest.
pub fn verify(folder: &Path) -> Result<Manifest, BackupError> {
    let text = private_file::read(&folder.join(MANIFEST))?.ok_or(BackupError::NoBackup)?;
    let manifest = parse(&text).ok_or(BackupError::Corrupt)?;
    if let Some(found) = manifest.store_schema
        && found > schema::STATE.latest()
    {
        let known = schema::STATE.latest();
        return Err(StoreError::SchemaUnsupported { found, known }.into());
    }
    if list(folder)? != manifest.files {
        return Err(BackupError::Corrupt);
    }
    Ok(manifest)
}

fn parse(text: &[u8]) -> Option<Manifest> {
    let document = strict::parse_object(text).ok()?;
    if document.get("schema_version")?.as_str()? != SCHEMA {
        return None;
    }
    let rows = document.get("files")?.as_array()?;
    let files = rows.iter().map(parse_entry).collect::<Option<Vec<_>>>()?;
    let store_schema = match document.get("store_schema")? {
        Value::Null => None,
        number => Some(number.as_i64()?),
    };
    Some(Manifest {
        files,
        store_schema,
        sha256: digest::content_digest(text),
    })
}

fn parse_entry(row: &Value) -> Option<Entry> {
    let path = row.get("path")?.as_str()?;
    let is_inside = Path::new(path)
        .components()
        .all(|part| matches!(part, std::path::Component::Normal(_)));
    let sha256 = Digest::parse(row.get("sha256")?.as_str()?)?;
    is_inside.then(|| {
        Some(Entry {
            path: path.to_owned(),
            bytes: row.get("bytes")?.as_u64()?,
            sha256,
        })
    })?
}

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
    use super::*;

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

    #[test]
    fn a_manifest_that_points_outside_is_refused() {
        let row =
            json!({"path": "../x", "bytes": 1, "sha256": digest::content_digest(b"").to_string()});
        assert_eq!(parse_entry(&row), None);
    }
}
