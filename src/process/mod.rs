//! The one place that starts other programs.
//!
//! A child is an argument vector, never a shell string. It runs in a process group of its own, so that ending it ends what it
//! started; both pipes are drained while it runs; what it prints is kept up to a limit and read to the end beyond it. A program
//! that never started, one that did not finish in time and one that finished are three different answers.
//!
//! Two forms: [`run`] waits for one answer within a deadline; [`stream()`] starts a long-lived child and hands its lines, as they
//! come, to a channel. [`stop_signals`] turns the signals that ask this process to stop into a channel message;
//! [`wait_while_read`] waits for whoever reads what is printed.
//!
//! Deliberately absent: retries, parsing, any knowledge of the program that is started, and an asynchronous runtime.

mod call;
mod invocation;
mod reader;
mod signal;
mod stream;

pub(crate) use call::{Ending, Finished, Outcome, observe, run};
pub(crate) use invocation::{Cancel, Environment, Invocation, SpawnError};
pub(crate) use reader::wait_while_read;
pub(crate) use signal::{Stopwatch, kill_pid, pid_alive, stop_signals, terminate_pid, user_id};
pub(crate) use stream::{StreamEvent, StreamItem, Streaming, stream};
