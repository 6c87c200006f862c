//! What can be wrong with stored files without any row being wrong, and how it is put right.
//!
//! Modes that let others read, temporary files of killed processes, a write-ahead log that grew. Only
//! folders the product owns are looked at; links are neither followed nor changed.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use super::{StoreError, database, private_file, schema, soundness};
use crate::contract::time::Timestamp;

/// A write-ahead log larger than this is worth moving into its database.
pub const LARGE_LOG_BYTES: u64 = 64 << 20;
const DAY_SECONDS: i64 = 24 * 60 * 60;
const ANYONE_ELSE: u32 = 0o077;

/// How a database is, without a row being believed.
#[derive(Debug)]
pub enum Health {
    /// There is none.
    Absent,
    /// Sound, with this number.
    Sound(i64),
    /// It cannot be used.
    Unusable(StoreError),
}

/// Looks at the state store below a runtime root.
pub fn store_health(path: &Path) -> Health {
    health(path, schema::STATE)
}

/// Looks at the database of one inbox.
pub fn inbox_health(path: &Path) -> Health {
    health(path, super::inbox::MIGRATIONS)
}

fn health(path: &Path, migrations: database::Migrations) -> Health {
    let look = || -> Result<Option<i64>, StoreError> {
        let number = database::version(path)?;
        let Some(connection) = database::open_read_only(path, migrations)? else {
            return Ok(None);
        };
        // An older one is sound with the tables it had.
        let own = number.map_or(migrations, |number| migrations.up_to(number));
        soundness::check(&connection, own)?;
        Ok(number)
    };
    match look() {
        Ok(None) => Health::Absent,
        Ok(Some(number)) => Health::Sound(number),
        Err(error) => Health::Unusable(error),
    }
}

/// True when there is a store that lies where it is named: what a link points to is copied by nobody.
pub fn has_own_store(path: &Path) -> Result<bool, StoreError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    if fs::metadata(folder).is_ok_and(|meta| !meta.is_dir()) {
        return Err(StoreError::Corrupt("the runtime root is not a folder"));
    }
    match fs::symlink_metadata(path) {
        Ok(meta) if !meta.is_file() => Err(StoreError::Corrupt("the database is not a file")),
        _ => database::present(path),
    }
}

/// Moves the write-ahead log of the state store into it; true when nobody was in the way.
pub fn checkpoint_store(path: &Path) -> Result<bool, StoreError> {
    database::checkpoint(&database::open_write(path, schema::STATE)?)
}

/// Lists files and folders below a private root that others may read or change.
pub fn loose(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    each(root, &mut |path, metadata| {
        if metadata.mode() & ANYONE_ELSE != 0 {
            found.push(path.to_path_buf());
        }
    })?;
    Ok(found)
}

/// Takes the rights of everybody else away.
pub fn tighten(path: &Path) -> io::Result<()> {
    let mode = fs::symlink_metadata(path)?.mode() & !ANYONE_ELSE;
    fs::set_permissions(path, fs::Permissions::from_mode(mode & 0o7777))
}

/// Lists temporary files that a process left more than a day before `now`.
pub fn leftovers(root: &Path, now: Timestamp) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    each(root, &mut |path, metadata| {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let is_old = metadata.mtime() < now.unix_seconds() - DAY_SECONDS;
        if metadata.is_file() && name.starts_with(private_file::TEMP_PREFIX) && is_old {
            found.push(path.to_path_buf());
        }
    })?;
    Ok(found)
}

/// Removes a leftover.
pub fn remove(path: &Path) -> io::Result<()> {
    fs::remove_file(path)
}

/// Lists the databases of the inboxes below a folder.
pub fn inboxes(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut found = Vec::new();
    each(root, &mut |path, metadata| {
        if metadata.is_file() && path.ends_with(".state/inbox.sqlite3") {
            found.push(path.to_path_buf());
        }
    })?;
    Ok(found)
}

fn each(root: &Path, look: &mut impl FnMut(&Path, &fs::Metadata)) -> io::Result<()> {
    let metadata = match fs::symlink_metadata(root) {
        Ok(metadata) => metadata,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    let mut queue = vec![(root.to_path_buf(), metadata)];
    while let Some((path, metadata)) = queue.pop() {
        if metadata.is_symlink() {
            continue;
        }
        look(&path, &metadata);
        if metadata.is_dir() {
            let mut names: Vec<PathBuf> = fs::read_dir(&path)?
                .map(|entry| entry.map(|entry| entry.path()))
                .collect::<Result<_, _>>()?;
            names.sort();
            for name in names.into_iter().rev() {
                // A file may go while the folder is read.
                if let Ok(metadata) = fs::symlink_metadata(&name) {
                    queue.push((name, metadata));
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).expect("valid")
    }

    #[test]
    fn loose_modes_are_found_and_tightened() {
        let root = tempfile::tempdir().expect("a folder");
        fs::set_permissions(root.path(), fs::Permissions::from_mode(0o700)).expect("a mode");
        let file = root.path().join("a");
        fs::write(&file, "x").expect("a file");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o640)).expect("a mode");
        assert_eq!(
            loose(root.path()).expect("read"),
            std::slice::from_ref(&file)
        );
        tighten(&file).expect("changed");
        assert!(loose(root.path()).expect("read").is_empty());
        assert_eq!(fs::metadata(&file).expect("there").mode() & 0o777, 0o600);
    }

    #[test]
    fn only_old_temporary_files_are_leftovers() {
        let root = tempfile::tempdir().expect("a folder");
        let file = root.path().join(format!("{}x", private_file::TEMP_PREFIX));
        fs::write(&file, "x").expect("a file");
        assert!(
            leftovers(root.path(), at("2000-01-01T00:00:00Z"))
                .expect("read")
                .is_empty()
        );
        assert_eq!(
            leftovers(root.path(), at("2999-01-01T00:00:00Z")).expect("read"),
            [file]
        );
    }

    #[test]
    fn a_damaged_store_is_unusable_and_its_bytes_stay() {
        let root = tempfile::tempdir().expect("a folder");
        let path = root.path().join("state.sqlite3");
        assert!(matches!(store_health(&path), Health::Absent));
        fs::write(&path, vec![7_u8; 8192]).expect("a file");
        assert!(matches!(store_health(&path), Health::Unusable(_)));
        assert_eq!(fs::read(&path).expect("there"), vec![7_u8; 8192]);
    }
}
