//! One call of a program: argument vector in, one answer out, within a deadline.

use std::io::{self, Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::invocation::{Cancel, Invocation, SpawnError};
use super::signal::Group;

/// How long a child may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(2);
/// How long pipes may stay open after the child itself has ended.
const PIPE_GRACE: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_millis(5);

/// How a child ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    Exit(i32),
    Signal(i32),
}

/// What a finished child left.
#[derive(Clone, Debug)]
pub(crate) struct Finished {
    pub(crate) ending: Ending,
    pub(crate) stdout: Vec<u8>,
    pub(crate) stderr: Vec<u8>,
    /// More was printed than was kept.
    pub(crate) overflowed: bool,
}

impl From<ExitStatus> for Ending {
    fn from(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => Self::Exit(code),
            (None, signal) => Self::Signal(signal.unwrap_or(0)),
        }
    }
}

/// What came of a program that was started.
#[derive(Debug)]
pub(crate) enum Outcome {
    Finished(Finished),
    /// The deadline passed; this much had been printed by then.
    TimedOut {
        stdout: Vec<u8>,
    },
}

/// Runs one program to its end, or ends its whole process group when the deadline has passed.
pub(crate) fn run(invocation: &Invocation) -> Result<Finished, SpawnError> {
    match observe(invocation)? {
        Outcome::Finished(finished) => Ok(finished),
        Outcome::TimedOut { .. } => Err(SpawnError::TimedOut),
    }
}

/// As [`run`], but what was printed before the deadline is kept.
pub(crate) fn observe(invocation: &Invocation) -> Result<Outcome, SpawnError> {
    let started = Instant::now();
    if invocation.cancel.is_cancelled() {
        return Err(SpawnError::TimedOut);
    }
    let folder = invocation.cwd.clone().filter(|_| invocation.owns_cwd);
    let (mut child, running) = Group::start(folder, || invocation.spawn())?;
    (invocation.on_started)();
    let group = running.id();
    let (done, pipes) = mpsc::channel();
    let stdout = collect(child.stdout.take(), invocation.max_output, &done);
    let stderr = collect(child.stderr.take(), invocation.max_output, &done);
    if let Some(mut input) = child.stdin.take() {
        let bytes = invocation.stdin.clone();
        // A child that does not read its input closes the pipe; that is its answer to give.
        thread::spawn(move || drop(input.write_all(&bytes)));
    }
    drop(done);
    let end = started + invocation.deadline;
    let ending = match wait_until(&mut child, &pipes, (end, &invocation.cancel)) {
        Some(ending) => ending,
        None => {
            end_group(&mut child, group);
            drop(running);
            let (stdout, _) = stdout.take();
            return Ok(Outcome::TimedOut { stdout });
        }
    };
    if !pipes_closed(&pipes) {
        // A descendant in the group still holds a pipe: it is ended with the call it belongs to.
        let _ = killpg(group, Signal::SIGKILL);
        let _ = pipes_closed(&pipes);
    }
    drop(running);
    let (stdout, cut_out) = stdout.take();
    let (stderr, cut_err) = stderr.take();
    Ok(Outcome::Finished(Finished {
        ending,
        stdout,
        stderr,
        overflowed: cut_out || cut_err,
    }))
}

/// What one pipe said so far; shared with the thread that reads it.
#[derive(Clone, Default)]
struct Kept(Arc<Mutex<(Vec<u8>, bool)>>);

impl Kept {
    fn push(&self, bytes: &[u8], limit: usize) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let room = limit.saturating_sub(kept.0.len()).min(bytes.len());
        kept.0.extend_from_slice(&bytes[..room]);
        kept.1 |= room < bytes.len();
    }

    fn take(&self) -> (Vec<u8>, bool) {
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        (std::mem::take(&mut kept.0), kept.1)
    }
}

fn collect<R: Read + Send + 'static>(pipe: Option<R>, limit: usize, done: &Sender<()>) -> Kept {
    let kept = Kept::default();
    let (shared, done) = (kept.clone(), done.clone());
    thread::spawn(move || {
        if let Some(mut pipe) = pipe {
            let mut buffer = vec![0; 64 << 10];
            while let Some(count) = read_some(&mut pipe, &mut buffer) {
                shared.push(&buffer[..count], limit);
            }
        }
        let _ = done.send(());
    });
    kept
}

pub(super) fn read_some(pipe: &mut impl Read, buffer: &mut [u8]) -> Option<usize> {
    loop {
        match pipe.read(buffer) {
            Ok(0) => return None,
            Ok(count) => return Some(count),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(_) => return None,
        }
    }
}

/// Waits for the end of the child; the end of its pipes is what usually tells.
fn wait_until(
    child: &mut Child,
    pipes: &Receiver<()>,
    (end, cancel): (Instant, &Cancel),
) -> Option<Ending> {
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status.into());
        }
        if cancel.is_cancelled() {
            return None;
        }
        let left = end.checked_duration_since(Instant::now())?;
        match pipes.recv_timeout(left.min(POLL)) {
            Ok(()) | Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                thread::sleep(left.min(Duration::from_millis(1)))
            }
        }
    }
}

/// Waits a bounded while until both readers are through.
pub(super) fn pipes_closed(pipes: &Receiver<()>) -> bool {
    let end = Instant::now() + PIPE_GRACE;
    loop {
        let left = end.saturating_duration_since(Instant::now());
        match pipes.recv_timeout(left) {
            Ok(()) => {}
            Err(RecvTimeoutError::Disconnected) => return true,
            Err(RecvTimeoutError::Timeout) => return false,
        }
    }
}

/// Asks the group to end, then ends it; reaps the child.
fn end_group(child: &mut Child, group: Pid) {
    let _ = killpg(group, Signal::SIGTERM);
    let end = Instant::now() + GRACE;
    while Instant::now() < end && matches!(child.try_wait(), Ok(None)) {
        thread::sleep(POLL);
    }
    // A fork may race with the signal: repeated until nobody is left.
    for _ in 0..3 {
        if killpg(group, Signal::SIGKILL).is_err() {
            break;
        }
    }
    let _ = child.wait();
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::process::Environment;
    use crate::process::invocation::MAX_ARGUMENT_BYTES;

    fn sh(script: &str) -> Invocation {
        Invocation::new("/bin/sh", ["-c", script])
    }

    #[test]
    fn both_pipes_and_the_exit_code_come_back() {
        let done = run(&sh("cat; echo err >&2; exit 3").stdin(b"in".to_vec())).expect("sh starts");
        assert_eq!(done.ending, Ending::Exit(3));
        assert_eq!(
            (done.stdout.as_slice(), done.stderr.as_slice()),
            (&b"in"[..], &b"err\n"[..])
        );
        assert!(!done.overflowed);
    }

    #[test]
    fn output_beyond_the_limit_is_read_but_not_kept() {
        let done = run(&sh("head -c 300000 /dev/zero").max_output(10)).expect("sh starts");
        assert_eq!(
            (done.ending, done.stdout.len(), done.overflowed),
            (Ending::Exit(0), 10, true)
        );
    }

    #[test]
    fn a_deadline_ends_the_whole_group() {
        let started = Instant::now();
        let answer = run(&sh("sleep 60 & echo $!; sleep 60").deadline(Duration::from_millis(200)));
        assert!(matches!(answer, Err(SpawnError::TimedOut)));
        assert!(started.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_descendant_that_keeps_the_pipe_does_not_keep_the_call() {
        let started = Instant::now();
        let done = run(&sh("echo first; sleep 60 &")).expect("sh starts");
        assert_eq!(
            (done.ending, done.stdout.as_slice()),
            (Ending::Exit(0), &b"first\n"[..])
        );
        assert!(started.elapsed() < Duration::from_secs(10));
    }

    #[test]
    fn a_program_that_does_not_exist_is_not_started() {
        let answer = run(&Invocation::new("/nonexistent/program", [] as [&str; 0]));
        assert!(matches!(answer, Err(SpawnError::SpawnFailed(_))));
    }

    #[test]
    fn arguments_that_cannot_be_passed_are_refused_before_the_start() {
        let long = "x".repeat(MAX_ARGUMENT_BYTES + 1);
        assert!(matches!(
            run(&Invocation::new("/bin/true", [long])),
            Err(SpawnError::ArgumentTooLong)
        ));
        assert!(matches!(
            run(&Invocation::new("/bin/true", ["a\0b"])),
            Err(SpawnError::ZeroByte)
        ));
        let fits = "x".repeat(MAX_ARGUMENT_BYTES);
        assert!(run(&Invocation::new("/bin/true", [fits])).is_ok());
    }

    #[test]
    fn a_child_sees_what_is_added_and_not_what_is_taken_away() {
        let env = Environment {
            without: vec!["PATH".into()],
            with: vec![("ONE".into(), "1".into())],
        };
        let done = run(&Invocation::new("/usr/bin/env", [] as [&str; 0]).env(env)).expect("starts");
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(text.lines().any(|line| line == "ONE=1"));
        assert!(!text.lines().any(|line| line.starts_with("PATH=")));
    }

    #[test]
    fn a_signal_is_not_an_exit_code() {
        let done = run(&sh("kill -9 $$")).expect("sh starts");
        assert_eq!(done.ending, Ending::Signal(9));
    }
}
