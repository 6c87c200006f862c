//! The calls of git: reading commands only, hardened against the configuration of the repository.
//!
//! Every variable named `GIT_*` is cleared and two are set; no pager, prompt, signature check, mailmap,
//! external diff, text conversion or file-system monitor runs, and nothing is fetched. What git says on
//! standard error only tells the classes of failure apart; it is never shown.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::walk::{HEAD_FORMAT, WALK_FORMAT};
use crate::process::{Ending, Environment, Finished, Invocation, Outcome, SpawnError};

const DEADLINE: Duration = Duration::from_secs(30);
const MAX_OUTPUT: usize = 256 << 20;

/// Why git gave no answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    NotARepository,
    ExecutableMissing,
    NotTrusted,
    Deadline,
    Failed,
}

/// What one call printed, and whether all of it is there.
#[derive(Debug, Default)]
pub(super) struct Answer {
    pub(super) bytes: Vec<u8>,
    pub(super) is_cut: bool,
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

    /// Walks from HEAD in commit-date order; none when there is no commit yet.
    pub(super) fn walk(&self, reach: Reach) -> Result<Option<Answer>, Fault> {
        let mut args = vec!["-z".to_owned(), WALK_FORMAT.to_owned()];
        match reach {
            Reach::Since(seconds) => args.push(format!("--max-age={}", seconds.max(0))),
            Reach::Newest(count) => args.push(format!("--max-count={count}")),
            Reach::LastNotAfter(seconds) => {
                args.extend([
                    format!("--min-age={}", seconds.max(0)),
                    "--max-count=1".to_owned(),
                ]);
            }
        }
        args.extend(
            [
                "--decorate=full",
                "--decorate-refs=refs/tags/*",
                "HEAD",
                "--",
            ]
            .map(str::to_owned),
        );
        match self.log(&args, Vec::new()) {
            Ok(answer) => Ok(Some(answer)),
            Err((fault, is_unborn)) => match is_unborn {
                true => Ok(None),
                false => Err(fault),
            },
        }
    }

    /// Reads the sizes of commits; a merge's is its difference to the first parent.
    pub(super) fn sizes(&self, ids: &[&str]) -> Result<Answer, Fault> {
        self.of_commits(&["-z", "--numstat", HEAD_FORMAT], ids)
    }

    /// Reads the patches of commits.
    pub(super) fn patches(&self, ids: &[&str]) -> Result<Answer, Fault> {
        const FORMAT: &str = "--format=%x00%x01%H";
        self.of_commits(
            &[
                "--patch",
                "--unified=3",
                "--full-index",
                "--submodule=short",
                FORMAT,
            ],
            ids,
        )
    }

    fn of_commits(&self, what: &[&str], ids: &[&str]) -> Result<Answer, Fault> {
        let mut args: Vec<String> = what.iter().map(|arg| (*arg).to_owned()).collect();
        let fixed = [
            "--no-walk=unsorted",
            "--diff-merges=first-parent",
            "--no-renames",
            "--no-relative",
            "--no-ext-diff",
            "--no-textconv",
            "--diff-algorithm=myers",
            "--ignore-submodules=none",
            "--stdin",
            "--",
        ];
        args.extend(fixed.map(str::to_owned));
        let mut input = ids.join("\n").into_bytes();
        input.push(b'\n');
        self.log(&args, input).map_err(|(fault, _)| fault)
    }

    /// Reads the objects behind tags, in the order asked for.
    pub(super) fn tag_objects(&self, names: &[&[u8]]) -> Result<Answer, Fault> {
        let mut input = Vec::new();
        for name in names {
            input.extend_from_slice(b"refs/tags/");
            input.extend_from_slice(name);
            input.push(b'\n');
        }
        let args = ["cat-file", "--batch"].map(str::to_owned);
        self.call(&args, input).map_err(|(fault, _)| fault)
    }

    fn log(&self, args: &[String], input: Vec<u8>) -> Result<Answer, (Fault, bool)> {
        let fixed = [
            "log",
            "--no-color",
            "--no-show-signature",
            "--no-mailmap",
            "--encoding=UTF-8",
        ];
        let all: Vec<String> = fixed
            .iter()
            .map(|arg| (*arg).to_owned())
            .chain(args.iter().cloned())
            .collect();
        self.call(&all, input)
    }

    fn call(&self, args: &[String], input: Vec<u8>) -> Result<Answer, (Fault, bool)> {
        let settings = [
            "core.fsmonitor=false",
            "core.pager=cat",
            "core.attributesFile=/dev/null",
            "log.showRoot=true",
            "log.showSignature=false",
            "log.excludeDecoration=refs/nothing",
            "diff.orderFile=/dev/null",
            "protocol.allow=never",
        ];
        let mut argv: Vec<OsString> = vec!["--no-pager".into(), "--no-replace-objects".into()];
        for setting in settings {
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
            Ok(Outcome::Finished(finished)) => judge(finished),
            Ok(Outcome::TimedOut { stdout }) if stdout.is_empty() => Err((Fault::Deadline, false)),
            Ok(Outcome::TimedOut { stdout }) => Ok(Answer {
                bytes: stdout,
                is_cut: true,
            }),
            Err(SpawnError::SpawnFailed(error)) if error.kind() == std::io::ErrorKind::NotFound => {
                Err((Fault::ExecutableMissing, false))
            }
            Err(_) => Err((Fault::Failed, false)),
        }
    }
}

pub(super) fn environment() -> Environment {
    let is_git = |name: &OsStr| name.as_bytes().starts_with(b"GIT_");
    let with = [
        ("GIT_OPTIONAL_LOCKS", "0"),
        ("GIT_NO_LAZY_FETCH", "1"),
        ("GIT_TERMINAL_PROMPT", "0"),
        ("GIT_ATTR_NOSYSTEM", "1"),
        ("LC_ALL", "C"),
        ("LANGUAGE", "C"),
    ];
    Environment::Inherit {
        without: crate::workspace::env::names()
            .into_iter()
            .filter(|name| is_git(name))
            .collect(),
        with: with
            .map(|(name, value)| (name.into(), value.into()))
            .to_vec(),
    }
}

fn judge(finished: Finished) -> Result<Answer, (Fault, bool)> {
    if finished.ending == Ending::Exit(0) {
        return Ok(Answer {
            bytes: finished.stdout,
            is_cut: finished.overflowed,
        });
    }
    let said = String::from_utf8_lossy(&finished.stderr);
    let says = |words: &[&str]| words.iter().any(|word| said.contains(word));
    let fault = match () {
        () if says(&["dubious ownership", "unsafe repository"]) => Fault::NotTrusted,
        () if says(&["not a git repository", "cannot change to"]) => Fault::NotARepository,
        () => Fault::Failed,
    };
    let is_unborn = says(&[
        "does not have any commits yet",
        "unknown revision",
        "bad revision 'HEAD'",
    ]);
    Err((fault, is_unborn))
}

/// Splits the answer of [`Git::tag_objects`]: of each annotated tag its message.
pub(super) fn parse_tag_messages(bytes: &[u8], count: usize) -> Vec<Option<String>> {
    let mut rest = bytes;
    let mut all = Vec::new();
    while all.len() < count {
        let Some((object, after)) = next_object(rest) else {
            break;
        };
        all.push(object);
        rest = after;
    }
    all.resize(count, None);
    all
}

fn next_object(bytes: &[u8]) -> Option<(Option<String>, &[u8])> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let after = &bytes[end + 1..];
    let words: Vec<&str> = head.split(' ').collect();
    let [_, kind, size] = words.as_slice() else {
        // `refs/tags/x missing`: there is no body.
        return Some((None, after));
    };
    let Ok(size) = size.parse::<usize>() else {
        return Some((None, after));
    };
    let body = after.get(..size)?;
    let rest = after.get(size + 1..).unwrap_or(&[]);
    let message = (*kind == "tag").then(|| tag_message(body)).flatten();
    Some((message, rest))
}

fn tag_message(object: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(object);
    text.split_once("\n\n")
        .map(|(_, message)| message.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_messages_are_read_in_order_and_lightweight_tags_have_none() {
        let tag = "object x\ntype commit\ntag v1\ntagger A <a@b> 1 +0000\n\nThe release\n";
        let text = format!(
            "aa tag {}\n{tag}\nrefs/tags/gone missing\nbb commit 3\nx\ny\n",
            tag.len()
        );
        let found = parse_tag_messages(text.as_bytes(), 3);
        assert_eq!(found, [Some("The release\n".to_owned()), None, None]);
    }

    #[test]
    fn a_cut_answer_gives_what_is_whole() {
        assert_eq!(parse_tag_messages(b"aa tag 500\nhalf", 2), [None, None]);
    }
}
