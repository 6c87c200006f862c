//! Repositories with exact instants, written through `fast-import`.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A repository being written.
pub(super) struct Repository {
    path: PathBuf,
    stream: Vec<u8>,
    marks: usize,
}

impl Repository {
    /// Makes a repository with one commit of long ago.
    pub(super) fn at(path: &Path) -> Self {
        Self::with(path, &[])
    }

    /// As [`Self::at`], with more options of `init`.
    pub(super) fn with(path: &Path, options: &[&str]) -> Self {
        std::fs::create_dir_all(path).expect("a folder");
        let mut args = vec!["init", "-q", "-b", "main"];
        args.extend(options);
        git(path, &args, b"");
        let mut made = Self {
            path: path.to_owned(),
            stream: Vec::new(),
            marks: 0,
        };
        made.commit("2026-06-01T00:00:00Z", b"chore: start", "start.txt");
        made
    }

    /// Adds a commit with one new file and returns its mark.
    pub(super) fn commit(&mut self, at: &str, message: impl AsRef<[u8]>, file: &str) -> usize {
        self.marks += 1;
        let seconds = loopx::contract::time::Timestamp::parse(at)
            .expect("an instant")
            .unix_seconds();
        let message = message.as_ref();
        let body = format!("{file} {}\n", self.marks);
        self.push(format!("commit refs/heads/main\nmark :{}\n", self.marks).as_bytes());
        self.push(
            format!("committer Zqcanary <zqcanary@zqcanary.example> {seconds} +0000\n").as_bytes(),
        );
        self.push(format!("data {}\n", message.len()).as_bytes());
        self.push(message);
        self.push(format!("\nM 100644 inline {file}\ndata {}\n{body}\n", body.len()).as_bytes());
        self.marks
    }

    /// Tags the newest commit.
    pub(super) fn tag(&mut self, name: &str) {
        self.push(format!("reset refs/tags/{name}\nfrom :{}\n\n", self.marks).as_bytes());
    }

    fn push(&mut self, bytes: &[u8]) {
        self.stream.extend_from_slice(bytes);
    }

    /// Writes everything and checks it out.
    pub(super) fn done(self) -> PathBuf {
        git(
            &self.path,
            &["fast-import", "--quiet", "--force"],
            &self.stream,
        );
        if self.path.join(".git").exists() {
            git(
                &self.path,
                &["reset", "-q", "--hard", "refs/heads/main"],
                b"",
            );
        }
        self.path
    }
}

/// Runs git in a folder.
pub(super) fn git(folder: &Path, args: &[&str], input: &[u8]) {
    let mut child = Command::new("git")
        .args(args)
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap_or_default())
        .env("HOME", folder)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("git starts");
    let mut pipe = child.stdin.take().expect("piped");
    pipe.write_all(input).expect("git reads its input");
    drop(pipe);
    assert!(child.wait().expect("git ends").success(), "git {args:?}");
}
