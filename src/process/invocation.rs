//! What is started: argument vector, folder, environment, input and bounds.

use std::ffi::{OsStr, OsString};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The longest argument that Linux starts a program with.
pub(super) const MAX_ARGUMENT_BYTES: usize = 131_071;

/// One program call: argument vector, folder, environment, input and bounds.
#[derive(Clone, Debug)]
pub(crate) struct Invocation {
    program: PathBuf,
    args: Vec<OsString>,
    pub(super) cwd: Option<PathBuf>,
    env: Environment,
    pub(super) stdin: Vec<u8>,
    pub(super) deadline: Duration,
    pub(super) max_output: usize,
    pub(super) on_started: fn(),
    /// The folder belongs to this call and goes with it.
    pub(super) owns_cwd: bool,
    pub(super) cancel: Cancel,
}

/// Ends a running call from another thread, and every later one before it starts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cancel(Arc<AtomicBool>);

impl Cancel {
    pub(crate) fn cancel(&self) {
        self.0.store(true, Ordering::Release);
    }

    pub(super) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// What a child sees of the environment: everything of this process but the names in `without`, plus `with`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Environment {
    pub(crate) without: Vec<OsString>,
    pub(crate) with: Vec<(OsString, OsString)>,
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
            env: Environment::default(),
            stdin: Vec::new(),
            deadline: Duration::from_secs(30),
            max_output: 64 << 20,
            on_started: || {},
            owns_cwd: false,
            cancel: Cancel::default(),
        }
    }

    pub(crate) fn cwd(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cwd = Some(folder.into());
        self
    }

    /// Runs in a folder that is removed with the call, also when this process is asked to stop.
    pub(crate) fn own_folder(mut self, folder: impl Into<PathBuf>) -> Self {
        self.cwd = Some(folder.into());
        self.owns_cwd = true;
        self
    }

    /// Ends the call when it is cancelled, as if its time were up.
    pub(crate) fn cancel(mut self, cancel: Cancel) -> Self {
        self.cancel = cancel;
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

    pub(super) fn spawn(&self) -> Result<Child, SpawnError> {
        self.check()?;
        let mut command = Command::new(&self.program);
        command.args(&self.args).process_group(0);
        for name in &self.env.without {
            command.env_remove(name);
        }
        command.envs(self.env.with.iter().map(|(name, value)| (name, value)));
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
fn check_argument(part: &OsStr) -> Result<(), SpawnError> {
    if part.as_bytes().len() > MAX_ARGUMENT_BYTES {
        return Err(SpawnError::ArgumentTooLong);
    }
    if part.as_bytes().contains(&0) {
        return Err(SpawnError::ZeroByte);
    }
    Ok(())
}
