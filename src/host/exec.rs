//! The structured host: one program, its request on standard input, one answer on standard output.

use std::ffi::OsString;
use std::time::Duration;

use crate::failpoint::Point;
use crate::port::host::{HostCall, HostOutcome, TurnHost};
use crate::process::{self, Ending, Environment, Invocation, SpawnError};

/// How much of an answer is read; one byte more than is allowed tells that there was more.
const MAX_OUTPUT: usize = 12_001;

/// Runs argument vectors directly, in their own group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct StructuredHost;

impl TurnHost for StructuredHost {
    fn run(&self, call: &HostCall) -> HostOutcome {
        let Some((program, args)) = call.argv.split_first() else {
            return HostOutcome::NotStarted;
        };
        let with = call
            .environment
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .collect();
        let mut invocation = Invocation::new(program, args)
            .cwd(&call.folder)
            .env(Environment {
                without: Vec::new(),
                with,
            })
            .stdin(call.stdin.clone())
            .deadline(Duration::from_secs(call.timeout_seconds.max(1)))
            .max_output(MAX_OUTPUT);
        // A driver that is asked to stop takes its host along; the Turn stands where it stood and can be resumed.
        if call.is_host {
            invocation = invocation.on_started(|| crate::failpoint!(Point::HostStarted));
        }
        match process::run(&invocation) {
            Ok(done) => HostOutcome::Exited {
                status: match done.ending {
                    Ending::Exit(status) => Some(status),
                    Ending::Signal(_) => None,
                },
                // What went to standard error is counted by nobody: only the answer has a limit.
                is_cut: done.stdout.len() == MAX_OUTPUT,
                stdout: done.stdout,
            },
            Err(SpawnError::TimedOut) => HostOutcome::TimedOut,
            Err(_) => HostOutcome::NotStarted,
        }
    }
}
