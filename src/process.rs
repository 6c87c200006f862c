//! The one place that starts other programs.
//!
//! A child is an argument vector, never a shell string. It runs in a process group of its own, so that ending it ends what it
//! started; both pipes are drained while it runs; what it prints is kept up to a limit and read to the end beyond it. A program
//! that never started, one that did not finish in time and one that finished are three different answers.
//!
//! Two forms: [`run`] waits for one answer within a deadline; [`stream`] starts a long-lived child and hands its lines, as they
//! come, to a channel. [`stop_signals`] turns the signals that ask this process to stop into a channel message.
//!
//! Deliberately absent: retries, parsing, any knowledge of the program that is started, and an asynchronous runtime.

use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{SigSet, Signal, killpg};
use nix::unistd::Pid;

/// The longest argument that Linux starts a program with.
pub(crate) const MAX_ARGUMENT_BYTES: usize = 131_071;
/// How long a child may take to end after it was asked to.
const GRACE: Duration = Duration::from_secs(2);
/// How long pipes may stay open after the child itself has ended.
const PIPE_GRACE: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_millis(5);
const STREAM_POLL: Duration = Duration::from_millis(20);

/// One program call: argument vector, folder, environment, input and bounds.
#[derive(Clone, Debug)]
pub(crate) struct Invocation {
    program: PathBuf,
    args: Vec<OsString>,
    cwd: Option<PathBuf>,
    env: Environment,
    stdin: Vec<u8>,
    deadline: Duration,
    max_output: usize,
    on_started: fn(),
}

/// What a child sees of the environment.
#[derive(Clone, Debug)]
pub(crate) enum Environment {
    /// Everything of this process but the names in `without`, plus `with`.
    Inherit {
        without: Vec<OsString>,
        with: Vec<(OsString, OsString)>,
    },
    /// These pairs and nothing else.
    Only(Vec<(OsString, OsString)>),
}

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

/// Why there is no answer of a finished child.
#[derive(Debug, thiserror::Error)]
pub(crate) enum SpawnError {
    #[error("the program could not be started")]
    SpawnFailed(#[source] io::Error),
    #[error("one argument is longer than the system starts a program with")]
    ArgumentTooLong,
    #[error("an argument holds a zero byte")]
    ZeroByte,
    #[error("the program did not finish in time")]
    TimedOut,
}

impl Invocation {
    /// A call of `program` with `args`: no input, the environment of this process, 30 seconds, 64 MiB of output.
    pub(crate) fn new<A: Into<OsString>>(
        program: impl Into<PathBuf>,
        args: impl IntoIterator<Item = A>,
    ) -> Self {
        Self {
            program: program.into(),
            args: args.into_iter().map(Into::into).collect(),
            cwd: None,
            env: Environment::Inherit {
                without: Vec::new(),
                with: Vec::new(),
            },
            stdin: Vec::new(),
            deadline: Duration::from_secs(30),
            max_output: 64 << 20,
            on_started: || {},
        }
    }

    pub(crate) fn cwd(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cwd = Some(folder.into());
        self
    }

    pub(crate) fn env(mut self, env: Environment) -> Self {
        self.env = env;
        self
    }

    pub(crate) fn stdin(mut self, bytes: Vec<u8>) -> Self {
        self.stdin = bytes;
        self
    }

    pub(crate) fn deadline(mut self, deadline: Duration) -> Self {
        self.deadline = deadline;
        self
    }

    /// Calls back once the program runs.
    pub(crate) fn on_started(mut self, call: fn()) -> Self {
        self.on_started = call;
        self
    }

    pub(crate) fn max_output(mut self, bytes: usize) -> Self {
        self.max_output = bytes;
        self
    }

    fn check(&self) -> Result<(), SpawnError> {
        for part in self
            .args
            .iter()
            .map(OsString::as_os_str)
            .chain([self.program.as_os_str()])
        {
            check_argument(part)?;
        }
        Ok(())
    }

    fn spawn(&self) -> Result<Child, SpawnError> {
        self.check()?;
        let mut command = Command::new(&self.program);
        command.args(&self.args).process_group(0);
        match &self.env {
            Environment::Inherit { without, with } => {
                for name in without {
                    command.env_remove(name);
                }
                command.envs(with.iter().map(|(name, value)| (name, value)));
            }
            Environment::Only(pairs) => {
                command
                    .env_clear()
                    .envs(pairs.iter().map(|(name, value)| (name, value)));
            }
        }
        if let Some(folder) = &self.cwd {
            command.current_dir(folder);
        }
        command.stdin(if self.stdin.is_empty() {
            Stdio::null()
        } else {
            Stdio::piped()
        });
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().map_err(|error| match error.raw_os_error() {
            Some(nix::libc::E2BIG) => SpawnError::ArgumentTooLong,
            _ => SpawnError::SpawnFailed(error),
        })
    }
}

/// Says whether `part` can be an argument of a program at all.
pub(crate) fn check_argument(part: &OsStr) -> Result<(), SpawnError> {
    if part.as_bytes().len() > MAX_ARGUMENT_BYTES {
        return Err(SpawnError::ArgumentTooLong);
    }
    if part.as_bytes().contains(&0) {
        return Err(SpawnError::ZeroByte);
    }
    Ok(())
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
    let mut child = invocation.spawn()?;
    (invocation.on_started)();
    let group = Pid::from_raw(child.id().cast_signed());
    let (done, pipes) = mpsc::channel();
    let stdout = collect(child.stdout.take(), invocation.max_output, &done);
    let stderr = collect(child.stderr.take(), invocation.max_output, &done);
    if let Some(mut input) = child.stdin.take() {
        let bytes = invocation.stdin.clone();
        // A child that does not read its input closes the pipe; that is its answer to give.
        thread::spawn(move || drop(input.write_all(&bytes)));
    }
    drop(done);
    let ending = match wait_until(&mut child, &pipes, started + invocation.deadline) {
        Some(ending) => ending,
        None => {
            end_group(&mut child, group);
            let (stdout, _) = stdout.take();
            return Ok(Outcome::TimedOut { stdout });
        }
    };
    if !pipes_closed(&pipes) {
        // A descendant in the group still holds a pipe: it is ended with the call it belongs to.
        let _ = killpg(group, Signal::SIGKILL);
        let _ = pipes_closed(&pipes);
    }
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

fn read_some(pipe: &mut impl Read, buffer: &mut [u8]) -> Option<usize> {
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
fn wait_until(child: &mut Child, pipes: &Receiver<()>, end: Instant) -> Option<Ending> {
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status.into());
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
fn pipes_closed(pipes: &Receiver<()>) -> bool {
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

/// What a streaming child said or did; `tag` is the caller's name for it.
#[derive(Debug)]
pub(crate) struct StreamItem<T> {
    pub(crate) tag: T,
    pub(crate) what: StreamEvent,
}

#[derive(Debug)]
pub(crate) enum StreamEvent {
    /// One line of standard output without its line feed.
    Out(Vec<u8>),
    /// One line of standard error without its line feed.
    Err(Vec<u8>),
    /// The child ended and both pipes are read to their end.
    Ended(Ending),
}

/// A running child whose lines go to a channel. Dropping it ends the group.
#[derive(Debug)]
pub(crate) struct Streaming {
    pid: u32,
    state: Arc<Mutex<Option<Child>>>,
}

/// The longest line that is handed on; a longer one is dropped whole.
const MAX_LINE: usize = 4 << 20;

/// Starts a long-lived child and hands every line it prints to `sink`. The invocation's deadline does not apply.
pub(crate) fn stream<T>(
    invocation: &Invocation,
    tag: T,
    sink: Sender<StreamItem<T>>,
) -> Result<Streaming, SpawnError>
where
    T: Clone + Send + 'static,
{
    let mut child = invocation.spawn()?;
    let pid = child.id();
    let (done, pipes) = mpsc::channel();
    lines(
        child.stdout.take(),
        StreamEvent::Out,
        (tag.clone(), sink.clone()),
        done.clone(),
    );
    lines(
        child.stderr.take(),
        StreamEvent::Err,
        (tag.clone(), sink.clone()),
        done,
    );
    let state = Arc::new(Mutex::new(Some(child)));
    let watched = Arc::clone(&state);
    thread::spawn(move || {
        let ending = watch(&watched);
        let _ = pipes_closed(&pipes);
        let _ = sink.send(StreamItem {
            tag,
            what: StreamEvent::Ended(ending),
        });
    });
    Ok(Streaming { pid, state })
}

fn watch(state: &Mutex<Option<Child>>) -> Ending {
    loop {
        {
            let mut held = state.lock().unwrap_or_else(PoisonError::into_inner);
            let ended = match held.as_mut().map(Child::try_wait) {
                Some(Ok(None)) => None,
                Some(Ok(Some(status))) => Some(status.into()),
                Some(Err(_)) | None => Some(Ending::Signal(0)),
            };
            if let Some(ending) = ended {
                // Reaped: the pid may name another process from now on, so nothing signals it any more.
                *held = None;
                return ending;
            }
        }
        thread::sleep(STREAM_POLL);
    }
}

fn lines<T, R>(
    pipe: Option<R>,
    kind: fn(Vec<u8>) -> StreamEvent,
    to: (T, Sender<StreamItem<T>>),
    done: Sender<()>,
) where
    T: Clone + Send + 'static,
    R: Read + Send + 'static,
{
    thread::spawn(move || {
        let (tag, sink) = to;
        let mut splitter = Splitter::default();
        if let Some(mut pipe) = pipe {
            let mut buffer = vec![0; 64 << 10];
            while let Some(count) = read_some(&mut pipe, &mut buffer) {
                splitter.push(&buffer[..count], |line| {
                    let _ = sink.send(StreamItem {
                        tag: tag.clone(),
                        what: kind(line),
                    });
                });
            }
        }
        if let Some(line) = splitter.rest() {
            let _ = sink.send(StreamItem {
                tag,
                what: kind(line),
            });
        }
        let _ = done.send(());
    });
}

/// Cuts bytes at line feeds and at nothing else.
#[derive(Default)]
struct Splitter {
    partial: Vec<u8>,
    too_long: bool,
}

impl Splitter {
    fn push(&mut self, mut bytes: &[u8], mut emit: impl FnMut(Vec<u8>)) {
        while let Some(at) = bytes.iter().position(|byte| *byte == b'\n') {
            self.keep(&bytes[..at]);
            if let Some(line) = self.rest() {
                emit(line);
            }
            bytes = &bytes[at + 1..];
        }
        self.keep(bytes);
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.too_long |= self.partial.len() + bytes.len() > MAX_LINE;
        if !self.too_long {
            self.partial.extend_from_slice(bytes);
        }
    }

    fn rest(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.partial);
        let too_long = std::mem::take(&mut self.too_long);
        (!too_long && !line.is_empty()).then_some(line)
    }
}

impl Streaming {
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Asks the child's group to end.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Ends the child's group.
    pub(crate) fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    fn signal(&self, signal: Signal) {
        let held = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if held.is_some() {
            let _ = killpg(Pid::from_raw(self.pid.cast_signed()), signal);
        }
    }
}

impl Drop for Streaming {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Asks a process that this one did not start to end; false when there is none.
pub(crate) fn terminate_pid(pid: u32) -> bool {
    signal_pid(pid, Some(Signal::SIGTERM))
}

/// Ends a process that this one did not start.
pub(crate) fn kill_pid(pid: u32) -> bool {
    signal_pid(pid, Some(Signal::SIGKILL))
}

/// Says whether a process with this id exists.
pub(crate) fn pid_alive(pid: u32) -> bool {
    signal_pid(pid, None)
}

fn signal_pid(pid: u32, signal: Option<Signal>) -> bool {
    // 0 and 1 would name a whole group or the system's first process.
    i32::try_from(pid)
        .is_ok_and(|pid| pid > 1 && nix::sys::signal::kill(Pid::from_raw(pid), signal).is_ok())
}

/// Monotonic time since a fixed moment; the only clock for pauses and limits.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stopwatch(Instant);

impl Stopwatch {
    pub(crate) fn start() -> Self {
        Self(Instant::now())
    }

    pub(crate) fn elapsed(&self) -> Duration {
        self.0.elapsed()
    }
}

/// From now on SIGTERM and SIGINT do not end this process but call `on_stop`. To be called before any other thread exists;
/// children start with an empty signal mask all the same.
pub(crate) fn stop_signals(on_stop: impl Fn() + Send + 'static) {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    signals.add(Signal::SIGINT);
    if signals.thread_block().is_err() {
        return;
    }
    thread::spawn(move || {
        while signals.wait().is_ok() {
            on_stop();
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

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
    fn an_environment_list_is_all_the_child_sees() {
        let only = Environment::Only(vec![("ONE".into(), "1".into())]);
        let done =
            run(&Invocation::new("/usr/bin/env", [] as [&str; 0]).env(only)).expect("env starts");
        assert_eq!(done.stdout, b"ONE=1\n");
    }

    #[test]
    fn a_signal_is_not_an_exit_code() {
        let done = run(&sh("kill -9 $$")).expect("sh starts");
        assert_eq!(done.ending, Ending::Signal(9));
    }

    #[test]
    fn a_stream_hands_on_lines_of_both_pipes_and_then_its_end() {
        let (sink, items) = mpsc::channel();
        let child = stream(
            &sh("printf 'a\\342\\200\\250b\\nc'; echo d >&2; exit 4"),
            7,
            sink,
        )
        .expect("sh starts");
        assert!(child.pid() > 1);
        let mut out = Vec::new();
        let mut err = Vec::new();
        let ending = loop {
            let item: StreamItem<i32> = items.recv().expect("the stream reports its end");
            assert_eq!(item.tag, 7);
            match item.what {
                StreamEvent::Out(line) => out.push(String::from_utf8(line).expect("text")),
                StreamEvent::Err(line) => err.push(line),
                StreamEvent::Ended(ending) => break ending,
            }
        };
        assert_eq!(
            (ending, out, err),
            (
                Ending::Exit(4),
                vec!["a\u{2028}b".to_owned(), "c".to_owned()],
                vec![b"d".to_vec()]
            )
        );
    }

    #[test]
    fn a_terminated_stream_reports_the_signal() {
        let (sink, items) = mpsc::channel();
        let child = stream(&sh("echo up; exec sleep 60"), (), sink).expect("sh starts");
        assert!(matches!(
            items.recv().map(|item| item.what),
            Ok(StreamEvent::Out(_))
        ));
        child.terminate();
        assert!(matches!(
            items.recv().map(|item| item.what),
            Ok(StreamEvent::Ended(Ending::Signal(15)))
        ));
    }

    #[test]
    fn an_overlong_line_is_dropped_and_the_next_one_kept() {
        let mut splitter = Splitter::default();
        let mut lines = Vec::new();
        splitter.push(&vec![b'x'; MAX_LINE + 1], |line| lines.push(line));
        splitter.push(b"\nnext\n", |line| lines.push(line));
        assert_eq!(lines, vec![b"next".to_vec()]);
    }
}
