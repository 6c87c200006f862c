//! Asks git whether a configuration file is ignored and untracked.

use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use super::call::{SETTINGS, environment};
use crate::port::placement::{ConfigPlacement, Placement, ProbeFailed};
use crate::process::{self, Ending, Invocation};

/// The git program on the search path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct GitPlacement;

const DEADLINE: Duration = Duration::from_secs(10);

impl ConfigPlacement for GitPlacement {
    fn look(&self, file: &Path) -> Result<Placement, ProbeFailed> {
        let folder = file.parent().ok_or(ProbeFailed)?;
        // Without an entry in any parent there is no work tree, and nothing to ask.
        if !folder
            .ancestors()
            .any(|parent| parent.join(".git").symlink_metadata().is_ok())
        {
            return Ok(Placement::NoWorkTree);
        }
        if git(folder, &["rev-parse", "--show-toplevel"], None)? != 0 {
            return Err(ProbeFailed);
        }
        let tracked = git(folder, &["ls-files", "--error-unmatch", "--"], Some(file))?;
        let ignored = git(folder, &["check-ignore", "--quiet", "--"], Some(file))?;
        match (tracked, ignored) {
            (0, _) => Ok(Placement::Exposed),
            (1, 0) => Ok(Placement::Ignored),
            (1, 1) => Ok(Placement::Exposed),
            _ => Err(ProbeFailed),
        }
    }
}

fn git(folder: &Path, words: &[&str], file: Option<&Path>) -> Result<i32, ProbeFailed> {
    let mut args: Vec<OsString> = vec!["--no-pager".into()];
    for setting in SETTINGS {
        args.extend(["-c".into(), setting.into()]);
    }
    args.extend(["-C".into(), folder.into()]);
    args.extend(words.iter().map(OsString::from));
    args.extend(file.map(OsString::from));
    let call = Invocation::new("git", args)
        .env(environment())
        .deadline(DEADLINE)
        .max_output(1 << 20);
    match process::run(&call).map_err(|_| ProbeFailed)?.ending {
        Ending::Exit(code) => Ok(code),
        Ending::Signal(_) => Err(ProbeFailed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn repository() -> tempfile::TempDir {
        let folder = tempfile::tempdir().expect("folder");
        assert_eq!(git(folder.path(), &["init", "--quiet"], None), Ok(0));
        folder
    }

    #[test]
    fn an_ignored_file_is_private_and_a_plain_one_is_exposed() {
        let folder = repository();
        let file = folder.path().join("a.json");
        std::fs::write(&file, "{}").expect("written");
        assert_eq!(GitPlacement.look(&file), Ok(Placement::Exposed));
        std::fs::write(folder.path().join(".gitignore"), "a.json\n").expect("written");
        assert_eq!(GitPlacement.look(&file), Ok(Placement::Ignored));
        assert_eq!(git(folder.path(), &["add", "-f"], Some(&file)), Ok(0));
        assert_eq!(GitPlacement.look(&file), Ok(Placement::Exposed));
    }

    #[test]
    fn a_broken_repository_is_an_error_and_not_the_absence_of_one() {
        let folder = tempfile::tempdir().expect("folder");
        std::fs::write(folder.path().join(".git"), "gitdir: /nonexistent\n").expect("written");
        let file = folder.path().join("a.json");
        std::fs::write(&file, "{}").expect("written");
        assert_eq!(GitPlacement.look(&file), Err(ProbeFailed));
    }
}
