//! Timing, memory, and the table that is printed.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio, exit};
use std::time::{Duration, Instant};

const MEASURE: &str = "--measure-memory";

/// Prints one line.
pub(crate) fn say(line: &str) {
    let mut out = std::io::stdout().lock();
    // A reader that went away needs no table.
    let _ = writeln!(out, "{line}");
}

/// Whether the budgets hold.
#[derive(Default)]
pub(crate) struct Verdict {
    broken: Vec<String>,
}

impl Verdict {
    /// Notes one budget.
    pub(crate) fn check(&mut self, holds: bool, what: &str) {
        if !holds {
            self.broken.push(what.to_owned());
        }
    }

    /// Says how it ended and ends the program.
    pub(crate) fn finish(self) {
        for what in &self.broken {
            say(&format!("over budget: {what}"));
        }
        say(&format!("{} budgets broken", self.broken.len()));
        exit(i32::from(!self.broken.is_empty()));
    }
}

/// Returns the median of some durations in milliseconds.
pub(crate) fn median(mut all: Vec<Duration>) -> f64 {
    all.sort();
    all.get(all.len() / 2)
        .map_or(0.0, |one| one.as_secs_f64() * 1_000.0)
}

/// Runs a prepared command once with bytes on standard input and returns the wall time.
pub(crate) fn time(command: &mut Command, input: &[u8]) -> Duration {
    let begun = Instant::now();
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program under test was built by cargo");
    let mut pipe = child.stdin.take().expect("standard input is piped");
    // The program may end without reading its input.
    let _ = pipe.write_all(input);
    drop(pipe);
    let status = child.wait().expect("a child can be waited for");
    assert!(status.success(), "a timed command failed: {command:?}");
    begun.elapsed()
}

/// Returns the peak memory of a command in KiB, measured in a process of its own.
pub(crate) fn memory(program: &Path, args: &[&str], input: &[u8]) -> i64 {
    let me = std::env::current_exe().expect("a running program has a path");
    let mut child = Command::new(me)
        .arg(MEASURE)
        .arg(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("this program can start itself");
    let mut pipe = child.stdin.take().expect("standard input is piped");
    let _ = pipe.write_all(input);
    drop(pipe);
    let output = child.wait_with_output().expect("a child can be waited for");
    String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse()
        .unwrap_or(0)
}

/// In the measuring process: runs the command and returns its peak memory.
pub(crate) fn child_memory() -> Option<i64> {
    let mut args = std::env::args_os().skip(1);
    if args.next()? != MEASURE {
        return None;
    }
    let status = Command::new(args.next()?)
        .args(args)
        .stdout(Stdio::null())
        .status();
    assert!(
        status.is_ok_and(|status| status.success()),
        "a measured command failed"
    );
    let usage = nix::sys::resource::getrusage(nix::sys::resource::UsageWho::RUSAGE_CHILDREN);
    usage.ok().map(|usage| usage.max_rss())
}
