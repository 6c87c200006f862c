//! The calls of git: plumbing that reads, hardened against the configuration of the repository.
//!
//! Plumbing does not look at most settings, and the few it does are fixed here. Every variable named `GIT_*` is
//! cleared and a few are set; no pager, prompt, signature check, mailmap, external diff, text conversion or
//! file-system monitor runs, and nothing is fetched. What git says on standard error only tells the classes of
//! failure apart; it is never shown.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::walk::WALK_FORMAT;
use crate::process::{Ending, Environment, Finished, Invocation, Outcome, SpawnError};

const DEADLINE: Duration = Duration::from_secs(30);
const MAX_OUTPUT: usize = 256 << 20;

/// What a repository's own configuration may not decide: programs that would run, numbers that would differ.
pub(super) const SETTINGS: [&str; 6] = [
    "core.fsmonitor=false",
    "core.pager=cat",
    "core.attributesFile=/dev/null",
    "core.bigFileThreshold=512m",
    "diff.orderFile=/dev/null",
    "protocol.allow=never",
];

/// Why git gave no answer, or not all of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    NotARepository,
    ExecutableMissing,
    NotTrusted,
    Deadline,
    Failed,
}

/// What one call printed, and why it may not be all.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) bytes: Vec<u8>,
    pub(super) gap: Option<Fault>,
}

/// How far back a walk goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Reach {
    /// Every commit not older than these seconds.
    Since(i64),
    /// This many of the newest.
    Newest(usize),
    /// The newest one that is not later than these seconds.
    LastNotAfter(i64),
}

/// One repository, named by a folder inside it.
#[derive(Debug, Clone)]
pub(super) struct Git {
    folder: PathBuf,
}

impl Git {
    pub(super) fn at(folder: &Path) -> Self {
        Self {
            folder: folder.to_path_buf(),
        }
    }

    /// Walks from HEAD in commit-date order; empty when there is no commit yet. A walk that failed says nothing.
    pub(super) fn walk(&self, reach: Reach) -> Result<Answer, Fault> {
        let mut args: Vec<String> = [
            "rev-list",
            "--no-commit-header",
            "--encoding=UTF-8",
            WALK_FORMAT,
        ]
        .map(str::to_owned)
        .to_vec();
        match reach {
            Reach::Since(seconds) => args.push(format!("--max-age={}", seconds.max(0))),
            Reach::Newest(count) => args.push(format!("--max-count={count}")),
            Reach::LastNotAfter(seconds) => {
                args.push(format!("--min-age={}", seconds.max(0)));
                args.push("--max-count=1".to_owned());
            }
        }
        args.extend(["HEAD", "--"].map(str::to_owned));
        let (answer, said) = self.call(&args, Vec::new())?;
        match answer.gap {
            None => Ok(answer),
            Some(Fault::Deadline) if !answer.bytes.is_empty() => Ok(answer),
            Some(_) if said.contains("bad revision 'HEAD'") && self.is_unborn() => {
                Ok(Answer::default())
            }
            Some(fault) => Err(fault),
        }
    }

    /// Tells whether HEAD names a branch that does not exist yet; a branch that cannot be read does exist.
    fn is_unborn(&self) -> bool {
        let asked = |words: &[&str]| {
            let args: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
            let (answer, said) = self.call(&args, Vec::new()).ok()?;
            let text = String::from_utf8(answer.bytes).ok()?;
            answer
                .gap
                .is_none()
                .then(|| (text.trim_end().to_owned(), said))
        };
        let Some((branch, _)) = asked(&["symbolic-ref", "--quiet", "HEAD"]) else {
            return false;
        };
        asked(&["for-each-ref", "--format=%(refname)", &branch])
            .is_some_and(|(found, said)| found.is_empty() && !said.contains("broken"))
    }

    /// Reads the sizes of commits, each with its first parent; one without is compared with nothing.
    pub(super) fn sizes(&self, commits: &[CommitRef<'_>]) -> Result<Answer, Fault> {
        self.of_commits(&["-z", "--numstat"], commits)
    }

    /// Reads the patches of commits.
    pub(super) fn patches(&self, commits: &[CommitRef<'_>]) -> Result<Answer, Fault> {
        self.of_commits(&["--patch", "--unified=3", "--full-index"], commits)
    }

    fn of_commits(&self, what: &[&str], commits: &[CommitRef<'_>]) -> Result<Answer, Fault> {
        let fixed = [
            "--stdin",
            "--always",
            "--root",
            "-r",
            "--no-renames",
            "--no-relative",
            "--no-ext-diff",
            "--no-textconv",
            "--no-color",
            "--diff-algorithm=myers",
            "--ignore-submodules=none",
            "--submodule=short",
        ];
        let words = ["diff-tree"].iter().chain(what).chain(&fixed);
        let args: Vec<String> = words.map(|word| (*word).to_owned()).collect();
        let mut input = String::new();
        for (id, parent) in commits {
            input.push_str(id);
            if let Some(parent) = parent {
                input.push(' ');
                input.push_str(parent);
            }
            input.push('\n');
        }
        Ok(self.call(&args, input.into_bytes())?.0)
    }

    /// Reads objects by name, in the order asked for.
    pub(super) fn objects(&self, names: &[Vec<u8>]) -> Result<Answer, Fault> {
        let mut input = names.join(&b'\n');
        input.push(b'\n');
        let args = ["cat-file", "--batch"].map(str::to_owned);
        Ok(self.call(&args, input)?.0)
    }

    /// Runs git; what it said on standard error comes along for the class of a failure.
    fn call(&self, args: &[String], input: Vec<u8>) -> Result<(Answer, String), Fault> {
        let mut argv: Vec<OsString> = vec!["--no-pager".into(), "--no-replace-objects".into()];
        for setting in SETTINGS {
            argv.extend(["-c".into(), setting.into()]);
        }
        argv.extend(["-C".into(), self.folder.clone().into_os_string()]);
        argv.extend(args.iter().map(OsString::from));
        let invocation = Invocation::new("git", argv)
            .env(environment())
            .stdin(input)
            .deadline(DEADLINE)
            .max_output(MAX_OUTPUT);
        match crate::process::observe(&invocation) {
            Ok(Outcome::Finished(finished)) => Ok(judge(finished)),
            Ok(Outcome::TimedOut { stdout }) => {
                let gap = Some(Fault::Deadline);
                Ok((Answer { bytes: stdout, gap }, String::new()))
            }
            Err(SpawnError::SpawnFailed(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                Err(Fault::ExecutableMissing)
            }
            Err(_) => Err(Fault::Failed),
        }
    }
}

/// A commit and the parent it is compared with.
pub(super) type CommitRef<'a> = (&'a str, Option<&'a str>);

/// The environment of every call: what is git's own is cleared, what is wanted is set.
pub(super) fn environment() -> Environment {
    let is_git = |name: &OsStr| name.as_bytes().starts_with(b"GIT_");
    let with = [
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        // An empty list allows no transport, whatever the repository allows.
        ("GIT_ALLOW_PROTOCOL", ""),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_ATTR_NOSYSTEM", "1"),
        ("LC_ALL", "C"),
        ("LANGUAGE", "C"),
    ];
    Environment {
        without: crate::workspace::env::names()
            .into_iter()
            .filter(|name| is_git(name))
            .collect(),
        with: with
            .map(|(name, value)| (name.into(), value.into()))
            .to_vec(),
    }
}

fn judge(finished: Finished) -> (Answer, String) {
    let said = String::from_utf8_lossy(&finished.stderr).into_owned();
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let gap = match finished.ending {
        Ending::Exit(0) if !finished.overflowed => None,
        Ending::Exit(0) => Some(Fault::Failed),
        _ if says(&["dubious ownership", "unsafe repository"]) => Some(Fault::NotTrusted),
        _ if says(&["not a git repository", "cannot change to"]) => Some(Fault::NotARepository),
        _ => Some(Fault::Failed),
    };
    let bytes = finished.stdout;
    (Answer { bytes, gap }, said)
}
