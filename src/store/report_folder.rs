//! Report folders: three files that appear together or not at all.
//!
//! A report is built in a folder with a temporary name beside its place, flushed, and moved there
//! in one step that never replaces anything. `latest` is a relative link, exchanged atomically. A
//! place that became a link is refused, never followed.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use super::private_file;
use crate::failpoint::Point;

/// One file of a report.
#[derive(Debug, Clone, Copy)]
pub struct ReportFile<'a> {
    /// Its name in the folder.
    pub name: &'a str,
    /// Its bytes.
    pub bytes: &'a [u8],
}

/// What publishing found or did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// The folder is new.
    Created,
    /// The same report was there.
    AlreadyThere,
    /// Something else is there; it was left as it is.
    Conflict,
}

/// Publishes a report at `place`; what is there already is compared, never replaced.
pub fn publish(place: &Path, files: &[ReportFile<'_>]) -> io::Result<Published> {
    if let Some(found) = compare(place, files)? {
        return Ok(found);
    }
    let parent = parent_of(place)?;
    private_file::create_dir(parent)?;
    let built = tempfile::Builder::new()
        .prefix(private_file::TEMP_PREFIX)
        .permissions(fs::Permissions::from_mode(0o700))
        .tempdir_in(parent)?;
    for file in files {
        write(&built.path().join(file.name), file.bytes)?;
    }
    private_file::sync_dir(built.path())?;
    crate::failpoint!(Point::ReportFolderBuilt);
    match rename_new(built.path(), place) {
        Ok(()) => {
            // The folder is in its place: its temporary name must not be removed any more.
            let _ = built.keep();
            private_file::sync_dir(parent)?;
            crate::failpoint!(Point::ReportPublished);
            Ok(Published::Created)
        }
        // Another process was quicker: its report is compared like any other.
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            Ok(compare(place, files)?.unwrap_or(Published::Conflict))
        }
        Err(error) => Err(error),
    }
}

/// Tells what is at a place: nothing, the same report, or something else.
pub fn compare(place: &Path, files: &[ReportFile<'_>]) -> io::Result<Option<Published>> {
    let found = match fs::symlink_metadata(place) {
        Ok(found) => found,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
    };
    if !found.is_dir() || fs::read_dir(place)?.count() != files.len() {
        return Ok(Some(Published::Conflict));
    }
    for file in files {
        let same = match private_file::read_up_to(&place.join(file.name), file.bytes.len() as u64) {
            Ok(Some(bytes)) => bytes == file.bytes,
            Ok(None) | Err(_) => false,
        };
        if !same {
            return Ok(Some(Published::Conflict));
        }
    }
    Ok(Some(Published::AlreadyThere))
}

/// What became of the link `latest`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Latest {
    /// It points at another report now.
    Moved,
    /// It points where it pointed.
    Unchanged,
}

/// Points the link `latest` of a folder at one of its reports.
pub fn point_latest(folder: &Path, name: &str) -> io::Result<Latest> {
    let link = folder.join("latest");
    match fs::read_link(&link) {
        Ok(target) if target == Path::new(name) => return Ok(Latest::Unchanged),
        Ok(_) => {}
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error),
    }
    let scratch = tempfile::Builder::new()
        .prefix(private_file::TEMP_PREFIX)
        .make_in(folder, |path| symlink(name, path))?;
    let path = scratch.into_temp_path();
    fs::rename(&path, &link)?;
    // The temporary name is gone with the rename.
    let _ = path.keep();
    private_file::sync_dir(folder)?;
    Ok(Latest::Moved)
}

/// The reports of a project, held by one process at a time.
#[derive(Debug)]
pub struct Reports {
    folder: PathBuf,
    /// The lock is on the folder itself and ends with this handle.
    _held: File,
}

impl Reports {
    /// Returns the folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }
}

/// Makes `.loopx/reports` below a project with a `.gitignore` for all of it; links are refused.
///
/// Whoever holds the folder removes what killed processes left half-built.
pub fn hold_default(project: &Path) -> io::Result<Reports> {
    let folder = prepare_default(project)?;
    let held = File::open(&folder)?;
    held.lock()?;
    for entry in fs::read_dir(&folder)? {
        let path = entry?.path();
        let is_left = path.file_name().is_some_and(|name| {
            name.to_string_lossy()
                .starts_with(private_file::TEMP_PREFIX)
        });
        if is_left {
            // What cannot be removed does no harm where it is.
            let _ = fs::remove_dir_all(&path).or_else(|_| fs::remove_file(&path));
        }
    }
    Ok(Reports {
        folder,
        _held: held,
    })
}

fn prepare_default(project: &Path) -> io::Result<PathBuf> {
    let root = project.join(".loopx");
    let reports = root.join("reports");
    let ignore = root.join(".gitignore");
    for path in [&root, &reports, &ignore] {
        refuse_link(path)?;
    }
    let latest = reports.join("latest");
    if fs::symlink_metadata(&latest).is_ok_and(|found| !found.is_symlink()) {
        return Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "latest is not a link",
        ));
    }
    private_file::create_dir(&reports)?;
    if ignore.exists() {
        return Ok(reports);
    }
    match private_file::create(&ignore, b"*\n") {
        Err(error) if error.kind() != io::ErrorKind::AlreadyExists => Err(error),
        _ => Ok(reports),
    }
}

fn refuse_link(path: &Path) -> io::Result<()> {
    match fs::symlink_metadata(path) {
        Ok(found) if found.is_symlink() => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "a link stands where a folder or file belongs",
        )),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn parent_of(place: &Path) -> io::Result<&Path> {
    match place.parent() {
        Some(parent) if parent.as_os_str().is_empty() => Ok(Path::new(".")),
        Some(parent) => Ok(parent),
        None => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            "not a place for a folder",
        )),
    }
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut file: File = fs::OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(path)?;
    file.write_all(bytes)?;
    file.sync_all()
}

/// Moves a folder to a name that must be free.
#[cfg(target_os = "linux")]
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    use nix::fcntl::{AT_FDCWD, RenameFlags, renameat2};
    let result = renameat2(AT_FDCWD, from, AT_FDCWD, to, RenameFlags::RENAME_NOREPLACE);
    match result.map_err(io::Error::from) {
        // A file system without that flag: the check just before is the best there is.
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => rename_checked(from, to),
        other => other,
    }
}

/// Moves a folder to a name that must be free, where no call does both.
#[cfg(not(target_os = "linux"))]
fn rename_new(from: &Path, to: &Path) -> io::Result<()> {
    rename_checked(from, to)
}

fn rename_checked(from: &Path, to: &Path) -> io::Result<()> {
    match fs::symlink_metadata(to) {
        Ok(_) => Err(io::ErrorKind::AlreadyExists.into()),
        Err(_) => fs::rename(from, to),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILES: [ReportFile<'_>; 2] = [
        ReportFile {
            name: "a.md",
            bytes: b"one",
        },
        ReportFile {
            name: "b.json",
            bytes: b"two",
        },
    ];

    #[test]
    fn a_report_appears_whole_and_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("deep/report");
        assert_eq!(
            publish(&place, &FILES).expect("published"),
            Published::Created
        );
        assert_eq!(fs::read(place.join("a.md")).expect("there"), b"one");
        assert_eq!(
            publish(&place, &FILES).expect("published"),
            Published::AlreadyThere
        );
        let left = fs::read_dir(folder.path().join("deep"))
            .expect("there")
            .count();
        assert_eq!(left, 1, "a temporary folder was left");
    }

    #[test]
    fn anything_else_at_the_place_is_left_as_it_is() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = folder.path().join("report");
        for change in ["empty", "damaged", "more", "file", "link"] {
            let _ = fs::remove_dir_all(&place);
            let _ = fs::remove_file(&place);
            match change {
                "empty" => fs::create_dir(&place).expect("made"),
                "file" => fs::write(&place, b"x").expect("made"),
                "link" => symlink("elsewhere", &place).expect("made"),
                _ => {
                    publish(&place, &FILES).expect("published");
                    let name = if change == "more" { "c" } else { "a.md" };
                    fs::write(place.join(name), b"other").expect("written");
                }
            }
            assert_eq!(
                publish(&place, &FILES).expect("judged"),
                Published::Conflict,
                "{change}"
            );
        }
    }

    #[test]
    fn latest_moves_on_and_a_link_in_place_of_a_folder_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let held = hold_default(folder.path()).expect("held");
        let reports = held.folder();
        assert_eq!(point_latest(reports, "one").expect("linked"), Latest::Moved);
        assert_eq!(
            point_latest(reports, "one").expect("linked"),
            Latest::Unchanged
        );
        assert_eq!(point_latest(reports, "two").expect("linked"), Latest::Moved);
        assert_eq!(
            fs::read_link(reports.join("latest")).expect("a link"),
            Path::new("two")
        );
        let other = tempfile::tempdir().expect("a folder");
        symlink(folder.path(), other.path().join(".loopx")).expect("made");
        assert!(hold_default(other.path()).is_err());
    }

    #[test]
    fn what_a_killed_process_left_is_removed_and_reports_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let held = hold_default(folder.path()).expect("held");
        let left = held.folder().join(".tmp-left");
        fs::create_dir(&left).expect("made");
        fs::write(left.join("a.md"), "half").expect("written");
        publish(&held.folder().join("report"), &FILES).expect("published");
        drop(held);
        let held = hold_default(folder.path()).expect("held");
        assert!(!left.exists() && held.folder().join("report").exists());
    }
}
