//! The list that proves a backup, written last and compared byte for byte.

use std::fs;
use std::io;
use std::path::Path;

use serde_json::{Value, json};

use super::{BackupError, MANIFEST};
use crate::contract::digest::{self, Digest};
use crate::contract::json as strict;
use crate::store::{StoreError, private_file, schema};

/// Room for more than a million files.
const LARGEST_BYTES: u64 = 256 << 20;
const SCHEMA: &str = "loopx_backup_manifest_v0";

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

/// Lists what was copied and proves it, last of all.
pub(super) fn publish_manifest(
    out: &Path,
    store_schema: Option<i64>,
) -> Result<Manifest, BackupError> {
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

/// True when two files hold the same bytes.
pub(super) fn is_equal(left: &Path, right: &Path) -> io::Result<bool> {
    Ok(fs::metadata(left)?.len() == fs::metadata(right)?.len()
        && digest_of(left)? == digest_of(right)?)
}

/// Opening a copied database for its check may leave these; they hold no rows.
fn is_side_file(relative: &str) -> bool {
    relative.ends_with(".sqlite3-wal") || relative.ends_with(".sqlite3-shm")
}

/// Reads a backup and proves every byte of it against its manifest.
pub fn verify(folder: &Path) -> Result<Manifest, BackupError> {
    if fs::metadata(folder).is_ok_and(|meta| !meta.is_dir()) {
        return Err(BackupError::NoBackup);
    }
    let text = private_file::read_up_to(&folder.join(MANIFEST), LARGEST_BYTES)?
        .ok_or(BackupError::NoBackup)?;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_manifest_that_points_outside_is_refused() {
        let row =
            json!({"path": "../x", "bytes": 1, "sha256": digest::content_digest(b"").to_string()});
        assert_eq!(parse_entry(&row), None);
    }
}
