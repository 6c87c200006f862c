//! Owner-only files: 0600 in folders of 0700.
//!
//! Every durable write goes to a temporary name in the same folder, is flushed, renamed or linked, and then the folder is
//! flushed. A failure removes the temporary file and leaves the old bytes. Reads follow no link and accept regular files
//! only: a private place that became a symbolic link is refused, never followed.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufWriter, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use nix::fcntl::OFlag;
use tempfile::NamedTempFile;

/// The prefix of temporary names; `doctor` removes leftovers of killed processes by it.
pub const TEMP_PREFIX: &str = ".tmp-";

/// No document, journal or capture is larger: a decision has at most 16 MiB and a journal holds it once.
pub const LARGEST_BYTES: u64 = 64 << 20;

/// Creates a folder and its missing parents, owner-only, and makes the new names durable.
pub fn create_dir(path: &Path) -> io::Result<()> {
    if path.is_dir() {
        return Ok(());
    }
    let first_present = path.ancestors().skip(1).find(|folder| folder.is_dir());
    DirBuilder::new().recursive(true).mode(0o700).create(path)?;
    for folder in path.ancestors().skip(1) {
        sync_dir(folder)?;
        if Some(folder) == first_present {
            break;
        }
    }
    Ok(())
}

/// Flushes a folder, so that a name made in it survives a power cut.
pub fn sync_dir(path: &Path) -> io::Result<()> {
    let path = if path.as_os_str().is_empty() {
        Path::new(".")
    } else {
        path
    };
    File::open(path)?.sync_all()
}

/// Reads a private file; a missing one is `None`. A link, anything but a regular file, and a file larger than anything
/// that is written as one are refused.
pub fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    read_up_to(path, LARGEST_BYTES)
}

/// Reads a private file of at most so many bytes; a larger one is refused before it is read.
pub fn read_up_to(path: &Path, limit: u64) -> io::Result<Option<Vec<u8>>> {
    read_flagged(path, OFlag::O_NOFOLLOW | OFlag::O_NONBLOCK, limit)
}

/// Reads a file an operator keeps, through links; a missing one is `None`, a pipe or device is refused and never waited for.
pub fn read_regular(path: &Path) -> io::Result<Option<Vec<u8>>> {
    read_flagged(path, OFlag::O_NONBLOCK, LARGEST_BYTES)
}

fn read_flagged(path: &Path, flags: OFlag, limit: u64) -> io::Result<Option<Vec<u8>>> {
    let file = OpenOptions::new()
        .read(true)
        .custom_flags(flags.bits())
        .open(path);
    let mut file = match file {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    let meta = file.metadata()?;
    if !meta.is_file() {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a regular file",
        ));
    }
    let mut bytes = Vec::new();
    // The length tells at once; a file that grows under the reader is caught by what was read.
    if meta.len() <= limit {
        Read::by_ref(&mut file)
            .take(limit + 1)
            .read_to_end(&mut bytes)?;
    }
    match meta.len().max(bytes.len() as u64) > limit {
        true => Err(io::Error::new(io::ErrorKind::FileTooLarge, "too large")),
        false => Ok(Some(bytes)),
    }
}

/// True when nobody but the owner may read or write the file.
pub fn is_owner_only(path: &Path) -> io::Result<bool> {
    let meta = fs::symlink_metadata(path)?;
    Ok(meta.mode() & 0o077 == 0)
}

/// Replaces a file durably. The mode is 0600, or the old one when `path` existed.
pub fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    replace_with(path, bytes, || {})
}

/// Replaces a file durably and calls `between` after the bytes are flushed and before they take the name.
pub fn replace_with(path: &Path, bytes: &[u8], between: impl FnOnce()) -> io::Result<()> {
    let folder = folder_of(path);
    let temp = filled(folder, bytes)?;
    if let Ok(meta) = fs::symlink_metadata(path)
        && meta.is_file()
    {
        temp.as_file()
            .set_permissions(fs::Permissions::from_mode(meta.mode() & 0o777))?;
    }
    temp.as_file().sync_all()?;
    between();
    temp.persist(path).map_err(|error| error.error)?;
    sync_dir(folder)
}

/// Creates a file durably under a name that must be free; `AlreadyExists` otherwise.
pub fn create(path: &Path, bytes: &[u8]) -> io::Result<()> {
    create_with(path, bytes, || {})
}

/// Creates a file durably and calls `between` after the bytes are flushed and before they take the name.
pub fn create_with(path: &Path, bytes: &[u8], between: impl FnOnce()) -> io::Result<()> {
    let folder = folder_of(path);
    let temp = filled(folder, bytes)?;
    temp.as_file().sync_all()?;
    between();
    temp.persist_noclobber(path).map_err(|error| error.error)?;
    sync_dir(folder)
}

/// Copies a file durably to a name that must be free, owner-only and piece by piece.
pub fn copy(source: &Path, target: &Path) -> io::Result<()> {
    let folder = folder_of(target);
    let mut temp = filled(folder, &[])?;
    io::copy(&mut fs::File::open(source)?, temp.as_file_mut())?;
    temp.as_file().sync_all()?;
    temp.persist_noclobber(target)
        .map_err(|error| error.error)?;
    sync_dir(folder)
}

/// Writes a rebuildable export: whole or not at all, but without waiting for the disk.
pub fn export(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temp = filled(folder_of(path), bytes)?;
    temp.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Writes a rebuildable export piece by piece: whole or not at all, but without waiting for the disk.
pub fn export_with(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let temp = filled(folder_of(path), &[])?;
    let mut file = BufWriter::new(temp.as_file());
    fill(&mut file)?;
    file.flush()?;
    drop(file);
    temp.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Appends to a rebuildable export piece by piece.
pub fn append_with(
    path: &Path,
    fill: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let file = OpenOptions::new()
        .append(true)
        .custom_flags(OFlag::O_NOFOLLOW.bits())
        .open(path)?;
    let mut file = BufWriter::new(file);
    fill(&mut file)?;
    file.flush()
}

fn filled(folder: &Path, bytes: &[u8]) -> io::Result<NamedTempFile> {
    let mut temp = tempfile::Builder::new()
        .prefix(TEMP_PREFIX)
        .permissions(fs::Permissions::from_mode(0o600))
        .tempfile_in(folder)?;
    temp.write_all(bytes)?;
    Ok(temp)
}

fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_file_is_private_and_a_replaced_one_keeps_its_mode() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.json");
        replace(&path, b"1").unwrap();
        assert!(is_owner_only(&path).unwrap());
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).unwrap();
        replace(&path, b"2").unwrap();
        assert_eq!(fs::metadata(&path).unwrap().mode() & 0o777, 0o640);
        assert_eq!(read(&path).unwrap().unwrap(), b"2");
    }

    #[test]
    fn a_taken_name_is_never_replaced_by_create() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        create(&path, b"first").unwrap();
        assert_eq!(
            create(&path, b"second").unwrap_err().kind(),
            io::ErrorKind::AlreadyExists
        );
        assert_eq!(read(&path).unwrap().unwrap(), b"first");
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1);
    }

    #[test]
    fn a_file_larger_than_anything_written_is_refused_unread() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a");
        File::create(&path)
            .and_then(|file| file.set_len(LARGEST_BYTES + 1))
            .unwrap();
        for refused in [read(&path), read_regular(&path)] {
            assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::FileTooLarge);
        }
        fs::write(&path, "four").unwrap();
        assert!(read_up_to(&path, 3).is_err());
        assert_eq!(read_up_to(&path, 4).unwrap().unwrap(), b"four");
    }

    #[test]
    fn a_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("link");
        std::os::unix::fs::symlink("/etc/hostname", &path).unwrap();
        assert!(read(&path).is_err());
    }

    #[test]
    fn created_folders_are_owner_only_at_every_level() {
        let folder = tempfile::tempdir().unwrap();
        create_dir(&folder.path().join("a/b")).unwrap();
        assert_eq!(
            fs::metadata(folder.path().join("a")).unwrap().mode() & 0o777,
            0o700
        );
        assert_eq!(
            fs::metadata(folder.path().join("a/b")).unwrap().mode() & 0o777,
            0o700
        );
    }
}
