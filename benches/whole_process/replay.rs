//! Recording the git calls of a command, and running them again alone.
//!
//! A link named `git` to this program stands first on the search path: it writes down arguments,
//! folder and input of every call and then becomes the real program.

use std::ffi::OsString;
use std::io::Read as _;
use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use super::table::time;

const REAL_GIT: &str = "/usr/bin/git";

/// One recorded call.
pub(crate) struct Call {
    args: Vec<OsString>,
    folder: PathBuf,
    input: Vec<u8>,
}

/// Tells whether this program was started as `git`.
pub(crate) fn is_recorder() -> bool {
    let name = std::env::args_os().next().unwrap_or_default();
    Path::new(&name)
        .file_name()
        .is_some_and(|name| name == "git")
}

/// Writes the call down beside the link and becomes git.
pub(crate) fn record() {
    let args: Vec<OsString> = std::env::args_os().skip(1).collect();
    let mut input = Vec::new();
    // A call without input gives an empty one.
    let _ = std::io::stdin().read_to_end(&mut input);
    let link = PathBuf::from(std::env::args_os().next().unwrap_or_default());
    let link = if link.is_absolute() {
        link
    } else {
        search(&link)
    };
    let folder = link.parent().expect("a link lies in a folder");
    let number = std::fs::read_dir(folder).map_or(0, Iterator::count);
    let mut record: Vec<Vec<u8>> = vec![
        std::env::current_dir()
            .unwrap_or_default()
            .into_os_string()
            .into_vec(),
    ];
    record.extend(args.iter().map(|arg| arg.as_bytes().to_vec()));
    std::fs::write(folder.join(format!("{number:03}.args")), record.join(&0))
        .expect("the record can be written");
    let input_file = folder.join(format!("{number:03}.input"));
    std::fs::write(&input_file, input).expect("the record can be written");
    let input = std::fs::File::open(&input_file).expect("it was just written");
    let fault = Command::new(REAL_GIT)
        .args(args)
        .stdin(Stdio::from(input))
        .exec();
    panic!("git could not be started: {fault}");
}

fn search(name: &Path) -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path)
        .map(|folder| folder.join(name))
        .find(|file| file.exists());
    found.expect("the link was found by this way")
}

/// Makes the folder with the recording link.
pub(crate) fn recorder(folder: &Path) {
    let me = std::env::current_exe().expect("a running program has a path");
    std::fs::create_dir_all(folder).expect("a temporary folder can be filled");
    std::os::unix::fs::symlink(me, folder.join("git")).expect("a link can be made");
}

/// Reads what was recorded.
pub(crate) fn calls(folder: &Path) -> Vec<Call> {
    let mut names: Vec<PathBuf> = std::fs::read_dir(folder)
        .expect("the folder was made")
        .filter_map(Result::ok)
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|kind| kind == "args"))
        .collect();
    names.sort();
    names
        .into_iter()
        .map(|file| {
            let bytes = std::fs::read(&file).expect("a record can be read");
            let mut parts = bytes
                .split(|byte| *byte == 0)
                .map(|part| OsString::from_vec(part.to_vec()));
            Call {
                folder: parts.next().map(PathBuf::from).unwrap_or_default(),
                args: parts.collect(),
                input: std::fs::read(file.with_extension("input")).unwrap_or_default(),
            }
        })
        .collect()
}

/// Runs all calls again, one after the other, and returns their time.
pub(crate) fn again(calls: &[Call]) -> Duration {
    let run = |call: &Call| {
        let mut git = Command::new(REAL_GIT);
        git.args(&call.args)
            .current_dir(&call.folder)
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_NO_LAZY_FETCH", "1");
        time(&mut git, &call.input)
    };
    calls.iter().map(run).sum()
}
