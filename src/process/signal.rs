//! Signals to and from other processes, and monotonic time.

use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::Pid;

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

/// From now on SIGTERM and SIGINT do not end this process but call `on_stop`. They are handled and not blocked: a blocked signal would be
/// inherited by every child, which then could not be ended by it.
pub(crate) fn stop_signals(on_stop: impl Fn() + Send + 'static) {
    let stops = [Signal::SIGTERM as i32, Signal::SIGINT as i32];
    let Ok(mut signals) = signal_hook::iterator::Signals::new(stops) else {
        return;
    };
    thread::spawn(move || {
        for _ in signals.forever() {
            on_stop();
        }
    });
}

/// Returns the number of the user that runs the program.
pub(crate) fn user_id() -> u32 {
    nix::unistd::getuid().as_raw()
}
