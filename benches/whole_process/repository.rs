//! `generate` on a repository of a hundred thousand commits, against its own git calls.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use super::replay;
use super::table::{Verdict, median, say, time};

const LOOPX: &str = env!("CARGO_BIN_EXE_loopx");
const COMMITS: u64 = 100_000;
/// 2026-11-28T16:00:00Z, the instant of the report.
const NOW: u64 = 1_795_881_600;
const SPAN: u64 = 4 * 365 * 86_400;
const RUNS: usize = 9;

/// Times one week of the repository.
pub(crate) fn generate(verdict: &mut Verdict) {
    let root = tempfile::tempdir().expect("a temporary folder can be made");
    let repository = root.path().join("repository");
    build(&repository);
    let recorder = root.path().join("recorder");
    replay::recorder(&recorder);
    let path = std::env::var("PATH").unwrap_or_default();
    let recorded = format!("{}:{path}", recorder.display());
    time(command(&repository).env("PATH", recorded), b"");
    let calls = replay::calls(&recorder);
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    for _ in 0..RUNS {
        theirs.push(replay::again(&calls));
        ours.push(time(&mut command(&repository), b""));
    }
    let (ours, theirs) = (median(ours), median(theirs));
    let allowed = 1.3 * theirs + 15.0;
    say(&format!(
        "\ngenerate, one week of {COMMITS} commits: {} git calls {theirs:.1} ms, whole command {ours:.1} ms, ratio {:.2}",
        calls.len(),
        ours / theirs
    ));
    verdict.check(
        calls.len() <= 4,
        &format!("generate makes {} git calls", calls.len()),
    );
    verdict.check(
        ours <= allowed,
        &format!("generate takes {ours:.1} ms, {allowed:.1} ms are allowed"),
    );
}

fn command(repository: &Path) -> Command {
    let mut command = Command::new(LOOPX);
    command
        .args([
            "periodic-report",
            "generate",
            "--preview",
            "--window",
            "last-7-days",
        ])
        .args(["--timezone", "UTC", "--format", "json"])
        .current_dir(repository)
        .env("SOURCE_DATE_EPOCH", NOW.to_string());
    command
}

/// Writes the history through `fast-import`: seven types, 23 scopes, files all over the tree.
fn build(repository: &Path) {
    const TYPES: [&str; 7] = ["feat", "fix", "docs", "refactor", "chore", "test", "perf"];
    let mut stream = String::new();
    for index in 0..COMMITS {
        let when = NOW - 3_600 - (COMMITS - 1 - index) * (SPAN / COMMITS);
        let kind = TYPES[usize::try_from(index % 7).unwrap_or(0)];
        let message = format!(
            "{kind}(area{}): change number {index}\n\nOne sentence about it.\n",
            index % 23
        );
        let body = format!("row {index}\n").repeat(5);
        let file = format!(
            "dir{}/sub{}/file{}.txt",
            index % 40,
            (index / 40) % 50,
            (index / 2_000) % 20
        );
        // Writing into a string cannot fail.
        let _ = write!(
            stream,
            "commit refs/heads/main\nmark :{}\ncommitter A <a@team.example> {when} +0000\ndata {}\n{message}M 100644 inline {file}\ndata {}\n{body}\n",
            index + 1,
            message.len(),
            body.len()
        );
    }
    let git = |args: &[&str], input: &str| {
        time(
            Command::new("git").arg("-C").arg(repository).args(args),
            input.as_bytes(),
        );
    };
    std::fs::create_dir(repository).expect("a temporary folder can be filled");
    git(&["init", "-q", "-b", "main"], "");
    git(&["fast-import", "--quiet", "--force"], &stream);
}
