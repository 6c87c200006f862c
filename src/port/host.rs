//! Who runs a Turn: one bounded program that gets a request and answers with one result.

use std::path::PathBuf;

/// One start of a host or of a validator.
#[derive(Clone, Debug)]
pub struct HostCall {
    /// The program and its arguments.
    pub argv: Vec<String>,
    /// The folder it runs in.
    pub folder: PathBuf,
    /// What it reads.
    pub stdin: Vec<u8>,
    /// What it finds in its environment, beside what this process has.
    pub environment: Vec<(String, String)>,
    /// How long it may take.
    pub timeout_seconds: u64,
    /// True for the host itself, false for a validator.
    pub is_host: bool,
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostOutcome {
    /// It ended by itself.
    Exited {
        /// Its exit status; `None` when a signal ended it.
        status: Option<i32>,
        /// What it printed, cut at the limit.
        stdout: Vec<u8>,
        /// True when it printed more.
        is_cut: bool,
    },
    /// It did not end in time and was ended with its group.
    TimedOut,
    /// It never started.
    NotStarted,
}

/// Runs programs for Turns.
pub trait TurnHost {
    /// Runs one call to its end.
    fn run(&self, call: &HostCall) -> HostOutcome;
}
