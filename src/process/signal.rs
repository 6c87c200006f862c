//! Signals to and from other processes, and monotonic time.

use std::collections::BTreeMap;
use std::path::PathBuf;
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

/// The signals that ask this process to stop: SIGTERM, SIGINT, and SIGHUP when the terminal closes. Whoever started it so that it outlives
/// its terminal (`nohup`) has SIGHUP ignored, and it stays so: a handler would take that away.
fn stops() -> Vec<i32> {
    let mut stops = vec![Signal::SIGTERM as i32, Signal::SIGINT as i32];
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if !is_ignored(&status, Signal::SIGHUP) {
        stops.push(Signal::SIGHUP as i32);
    }
    stops
}

/// Reads the mask of ignored signals; where the system shows none, nothing counts as ignored.
fn is_ignored(status: &str, signal: Signal) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok())
        .is_some_and(|mask| mask >> (signal as i32 - 1) & 1 == 1)
}

/// From now on a signal to stop does not end this process but calls `on_stop`. It is handled and not blocked: a blocked signal would be
/// inherited by every child, which then could not be ended by it.
pub(crate) fn stop_signals(on_stop: impl Fn() + Send + 'static) {
    *on_stop_held() = Some(Box::new(on_stop));
    end_children_on_stop();
}

/// The groups of the children that end with this process, with the folder that goes with each. Whoever holds it keeps others from starting
/// or forgetting one.
static GROUPS: Mutex<BTreeMap<i32, Option<PathBuf>>> = Mutex::new(BTreeMap::new());
static WATCH: Once = Once::new();
/// What a stop means instead, for a process that ends by itself.
static ON_STOP: Mutex<Option<OnStop>> = Mutex::new(None);

type OnStop = Box<dyn Fn() + Send>;

fn on_stop_held() -> MutexGuard<'static, Option<OnStop>> {
    ON_STOP.lock().unwrap_or_else(PoisonError::into_inner)
}
/// How long a group may take to end itself.
const GRACE: Duration = Duration::from_millis(500);
const POLL: Duration = Duration::from_millis(10);

/// From now on a signal to stop ends the children first, then this process as it would have ended it. A child is in a group of its own, so
/// nobody else would tell it.
pub(super) fn end_children_on_stop() {
    WATCH.call_once(|| {
        let Ok(mut signals) = signal_hook::iterator::Signals::new(stops()) else {
            return;
        };
        thread::spawn(move || {
            for signal in signals.forever() {
                if let Some(on_stop) = on_stop_held().as_ref() {
                    on_stop();
                    continue;
                }
                // Held until the end: nothing is started, and no outcome of an ended child is taken for its own.
                let groups = groups();
                end_groups(&groups);
                for folder in groups.values().flatten() {
                    let _ = std::fs::remove_dir_all(folder);
                }
                let _ = signal_hook::low_level::emulate_default_handler(signal);
            }
        });
    });
}

fn end_groups(groups: &BTreeMap<i32, Option<PathBuf>>) {
    let send = |signal: Option<Signal>| {
        groups
            .keys()
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

fn groups() -> MutexGuard<'static, BTreeMap<i32, Option<PathBuf>>> {
    GROUPS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A child's group for as long as somebody waits for it.
pub(super) struct Group(i32);

impl Group {
    /// Starts a child, so that a stop finds either none or one it can end, and the folder that is its own.
    pub(super) fn start<E>(
        folder: Option<PathBuf>,
        spawn: impl FnOnce() -> Result<Child, E>,
    ) -> Result<(Child, Self), E> {
        end_children_on_stop();
        let mut groups = groups();
        let child = spawn()?;
        let group = child.id().cast_signed();
        groups.insert(group, folder);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_signal_is_ignored_when_its_bit_is_set() {
        let status = "Name:\tloopx\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000000\n";
        assert!(is_ignored(status, Signal::SIGHUP));
        assert!(!is_ignored(status, Signal::SIGINT));
        assert!(is_ignored(status, Signal::SIGPIPE));
        assert!(!is_ignored("", Signal::SIGHUP));
    }
}
