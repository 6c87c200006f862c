//! Signals to and from other processes, and monotonic time.

use std::collections::BTreeSet;
use std::process::Child;
use std::sync::{Mutex, MutexGuard, Once, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, killpg};
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

/// The groups of the children that end with this process. Whoever holds it keeps others from starting or forgetting one.
static GROUPS: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());
static END_GROUPS: Once = Once::new();
/// How long a group may take to end itself.
const GRACE: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_millis(10);

/// From now on SIGTERM and SIGINT end the children first, then this process as they would have ended it.
pub(crate) fn end_children_on_stop() {
    END_GROUPS.call_once(|| {
        let stops = [Signal::SIGTERM as i32, Signal::SIGINT as i32];
        let Ok(mut signals) = signal_hook::iterator::Signals::new(stops) else {
            return;
        };
        thread::spawn(move || {
            for signal in signals.forever() {
                // Held until the end: nothing is started, and no outcome of an ended child is taken for its own.
                let groups = groups();
                end_groups(&groups);
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        });
    });
}

fn end_groups(groups: &BTreeSet<i32>) {
    let send = |signal: Option<Signal>| {
        groups
            .iter()
            .filter(|group| killpg(Pid::from_raw(**group), signal).is_ok())
            .count()
    };
    send(Some(Signal::SIGTERM));
    let end = Instant::now() + GRACE;
    while Instant::now() < end && send(None) > 0 {
        thread::sleep(POLL);
    }
    send(Some(Signal::SIGKILL));
}

fn groups() -> MutexGuard<'static, BTreeSet<i32>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A child's group for as long as somebody waits for it.
pub(super) struct Group(i32);

impl Group {
    /// Starts a child, so that a stop finds either none or one it can end.
    pub(super) fn start<E>(spawn: impl FnOnce() -> Result<Child, E>) -> Result<(Child, Self), E> {
        let mut groups = groups();
        let child = spawn()?;
        let group = child.id().cast_signed();
        groups.insert(group);
        Ok((child, Self(group)))
    }

    pub(super) fn id(&self) -> Pid {
        Pid::from_raw(self.0)
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        groups().remove(&self.0);
    }
}

/// Returns the number of the user that runs the program.
pub(crate) fn user_id() -> u32 {
    nix::unistd::getuid().as_raw()
}
