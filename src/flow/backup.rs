//! `backup` and `restore`: everything a lost disk would take, copied while others write, and brought back.
//!
//! 1. name the folders: the runtime root, and the `.loopx` folder of the registry's project and of every
//!    goal's project  2. copy documents, inbox databases, the store last  3. write the manifest, then read
//!    every byte again. A restore proves the backup first, refuses a place that holds other state, and puts
//!    the store in place last; the registry comes back only where none is.

use std::path::{Path, PathBuf};

use super::mode::Mode;
use crate::contract::error::ErrorCode;
use crate::contract::maintenance::{BackupPacket, RestorePacket};
use crate::contract::packet::Refusal;
use crate::store::backup::{self, BackupError, Manifest, Plan, Tree};
use crate::store::document::registry::Registry;
use crate::store::state::Store;
use crate::store::{StoreError, maintenance};
use crate::workspace::Workspace;

const RUNTIME: &str = "runtime";
const PROJECT: &str = "project";

/// Writes a backup and proves it.
pub fn write(workspace: &Workspace, out: &Path) -> Result<BackupPacket, Refusal> {
    let registry = Registry::read(workspace.registry())?;
    require_store(workspace, &registry)?;
    let trees = trees(workspace, &registry)?;
    if !workspace.registry().is_file() && trees.iter().all(|tree| is_empty(&tree.folder)) {
        let text = "no registry and no state lies here, so there is nothing to back up; run it in the project, or name --registry and --runtime-root";
        return Err(Refusal::new(ErrorCode::BackupNothingFound, text));
    }
    let written = backup::write(out, &trees, Some(workspace.registry())).map_err(refuse)?;
    let manifest = backup::verify(out).map_err(refuse)?;
    Ok(packet("backup", &manifest, manifest == written))
}

/// A folder that is not there is empty too.
fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).map_or(true, |mut entries| entries.next().is_none())
}

/// Proves a backup that was written before.
pub fn verify(folder: &Path) -> Result<BackupPacket, Refusal> {
    Ok(packet("verify", &proved(folder)?, true))
}

/// Proves a backup: every byte, and the store of every goal whose rows it should hold.
fn proved(folder: &Path) -> Result<Manifest, Refusal> {
    let manifest = backup::verify(folder).map_err(refuse)?;
    let registry = Registry::read(&folder.join("registry.json"))?;
    match manifest.store_schema.is_none() && has_rows(&registry)? {
        true => Err(refuse(BackupError::Corrupt)),
        false => Ok(manifest),
    }
}

/// True when a goal of this registry, not one shown from another, has rows in a store.
fn has_rows(registry: &Registry) -> Result<bool, Refusal> {
    let goals = registry.goals()?;
    Ok(goals
        .iter()
        .any(|goal| goal.instance_id.is_some() && registry.source_of(goal).is_none()))
}

/// A backup without the store of a known goal would take the place of one that has it.
fn require_store(workspace: &Workspace, registry: &Registry) -> Result<(), Refusal> {
    let root = workspace.runtime_root(registry.common_runtime_root());
    let has_store = maintenance::has_own_store(&Store::at(&root).path())?;
    match !has_store && has_rows(registry)? {
        true => Err(StoreError::Corrupt("the rows of a known goal are gone").into()),
        false => Ok(()),
    }
}

fn packet(action: &'static str, manifest: &Manifest, verified: bool) -> BackupPacket {
    BackupPacket {
        ok: verified,
        schema_version: "loopx_backup_v0",
        action,
        files: manifest.files.len(),
        bytes: manifest.bytes(),
        manifest_sha256: manifest.sha256,
        store_schema: manifest.store_schema,
        verified,
    }
}

fn trees(workspace: &Workspace, registry: &Registry) -> Result<Vec<Tree>, Refusal> {
    let runtime = workspace.runtime_root(registry.common_runtime_root());
    let mut trees = vec![Tree {
        name: RUNTIME.to_owned(),
        folder: runtime,
    }];
    let mut add = |name: String, folder: PathBuf| {
        let is_known = trees.iter().any(|tree| tree.folder == folder);
        if folder.is_dir() && !is_known {
            trees.push(Tree { name, folder });
        }
    };
    add(PROJECT.to_owned(), own_folder(workspace));
    for goal in registry.goals()? {
        if let Some(repo) = goal.text("repo") {
            let folder = workspace.repo(repo).join(".loopx");
            add(format!("{PROJECT}-{}", goal.id), folder);
        }
    }
    Ok(trees)
}

/// The `.loopx` folder of the registry, or the project's when the registry lies elsewhere: another folder
/// that happens to hold a registry is not ours to copy.
fn own_folder(workspace: &Workspace) -> PathBuf {
    let beside = workspace.registry_dir();
    match beside.file_name().is_some_and(|name| name == ".loopx") {
        true => beside.to_path_buf(),
        false => workspace.project().join(".loopx"),
    }
}

/// Brings a backup back, or shows that it can be.
pub fn restore(workspace: &Workspace, mode: Mode, from: &Path) -> Result<RestorePacket, Refusal> {
    let manifest = proved(from)?;
    let copy = Registry::read(&from.join("registry.json"))?;
    let runtime = workspace.runtime_root(copy.common_runtime_root());
    let place = |tree: &str| match tree {
        RUNTIME => Some(runtime.clone()),
        PROJECT => Some(own_folder(workspace)),
        other => foreign_folder(workspace, &copy, other),
    };
    let plan = Plan::of(from, &manifest, place).map_err(refuse)?;
    let brings_registry = copy.is_present() && !workspace.registry().exists();
    if !mode.is_preview() {
        plan.perform().map_err(refuse)?;
        if brings_registry {
            backup::bring_registry(from, workspace.registry()).map_err(refuse)?;
        }
    }
    Ok(RestorePacket {
        ok: true,
        schema_version: "loopx_restore_v0",
        dry_run: mode.is_preview(),
        action: "restore",
        files: manifest.files.len(),
        bytes: manifest.bytes(),
        store_schema: manifest.store_schema,
        next_step: match (mode.is_preview(), brings_registry || !copy.is_present()) {
            (true, _) => "run the same command with --execute",
            (false, true) => "run `loopx doctor`",
            (false, false) => {
                "the registry here was kept; compare it with the backup's, then run `loopx doctor`"
            }
        },
    })
}

fn foreign_folder(workspace: &Workspace, registry: &Registry, tree: &str) -> Option<PathBuf> {
    let goal = tree.strip_prefix(PROJECT)?.strip_prefix('-')?;
    let goals = registry.goals().ok()?;
    let found = goals.iter().find(|known| known.id.as_str() == goal)?;
    Some(workspace.repo(found.text("repo")?).join(".loopx"))
}

fn refuse(error: BackupError) -> Refusal {
    let (code, text) = match error {
        BackupError::Store(error) => return error.into(),
        BackupError::TargetNotEmpty => (
            ErrorCode::BackupTargetNotEmpty,
            "the backup folder holds something already; name a new or empty one",
        ),
        BackupError::TargetInside => (
            ErrorCode::BackupTargetNotEmpty,
            "the backup folder lies inside the state it would copy, or inside another backup; name one outside",
        ),
        BackupError::NoBackup => (
            ErrorCode::BackupCorrupt,
            "there is no backup at that place: it has no manifest; name the folder that `loopx backup --out` wrote",
        ),
        BackupError::Corrupt => (
            ErrorCode::BackupCorrupt,
            "the backup is not what was written: a file is missing, added or changed; use another backup",
        ),
        BackupError::RestoreTargetNotEmpty => (
            ErrorCode::RestoreTargetNotEmpty,
            "the target holds a store, an inbox or a document with other content; move it aside, or name an empty --runtime-root",
        ),
    };
    Refusal::new(code, text)
}
