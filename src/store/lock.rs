//! Advisory locks in one fixed order.
//!
//! A lock is a kernel lock on a sibling file; that the file exists means nothing and it is never deleted. A held guard
//! hands out only guards further right in the list of `Rank`s: taking them in the wrong order does not compile.
//! The holder leaves a record in the file, so that a refused process can say who works there, without any path.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::marker::PhantomData;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::StoreError;
use super::private_file;
use super::rows::{from_micros, micros};
use crate::contract::digest;
use crate::contract::time::Timestamp;

/// A record of a holder is shorter.
const RECORD_BYTES: u64 = 4096;

/// A place in the lock order.
pub trait Rank {
    /// The position, outermost first.
    const ORDER: u8;
}

macro_rules! ranks {
    ($($name:ident = $order:literal;)*) => {
        $(
            /// The rank of that name.
            #[derive(Debug)]
            pub struct $name;
            impl Rank for $name { const ORDER: u8 = $order; }
        )*
    };
}

ranks! {
    Collector = 0;
    Lane = 1;
    Report = 2;
    RequestEntry = 3;
    TurnJournal = 4;
    Capture = 5;
    Binding = 6;
    Target = 7;
    Outbound = 8;
    Reaction = 9;
    Settlement = 10;
    Cursor = 11;
    Archive = 12;
    MachineConfiguration = 13;
    Registry = 14;
    Export = 15;
}

/// How long to wait for a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// Writers: five seconds.
    Mutation,
    /// Pollers: one second.
    Monitor,
    /// One at a time: no wait, being second is an ordinary answer.
    SingleFlight,
}

impl Policy {
    const fn name(self) -> &'static str {
        match self {
            Policy::Mutation => "mutation",
            Policy::Monitor => "monitor",
            Policy::SingleFlight => "single_flight",
        }
    }

    const fn wait(self) -> Duration {
        match self {
            Policy::Mutation => Duration::from_secs(5),
            Policy::Monitor => Duration::from_secs(1),
            Policy::SingleFlight => Duration::ZERO,
        }
    }

    const fn poll(self) -> Duration {
        match self {
            Policy::Mutation => Duration::from_millis(50),
            Policy::Monitor | Policy::SingleFlight => Duration::from_millis(100),
        }
    }
}

/// Who wants a lock and what for.
#[derive(Clone, Debug)]
pub struct Claim<'a> {
    /// The kind of the locked thing; the record holds a digest of it and of its place.
    pub lock_id: &'a str,
    /// The acting agent, if any.
    pub agent_id: Option<&'a str>,
    /// The command.
    pub operation: &'a str,
    /// How long to wait.
    pub policy: Policy,
    /// The clock's instant as text.
    pub now: &'a str,
}

/// Who held a lock that could not be obtained, as its record says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Holder {
    /// The acting agent.
    pub agent_id: Option<String>,
    /// The command.
    pub operation: Option<String>,
    /// When it was taken.
    pub acquired_at: Option<String>,
    /// The machine.
    pub host: Option<String>,
    /// The process.
    pub pid: Option<u64>,
}

/// A held lock of one rank; dropping it frees the lock.
#[derive(Debug)]
pub struct Held<R: Rank> {
    file: File,
    record: Value,
    since: Instant,
    rank: PhantomData<R>,
}

/// Takes the first lock of a command.
pub fn acquire<R: Rank>(path: &Path, claim: &Claim<'_>) -> Result<Held<R>, StoreError> {
    if let Some(folder) = path.parent() {
        private_file::create_dir(folder).map_err(StoreError::write)?;
    }
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(nix::fcntl::OFlag::O_NOFOLLOW.bits())
        .open(path)
        .map_err(StoreError::write)?;
    let deadline = Instant::now() + claim.policy.wait();
    loop {
        match file.try_lock() {
            Ok(()) => break,
            Err(TryLockError::WouldBlock) if Instant::now() < deadline => {
                std::thread::sleep(claim.policy.poll())
            }
            Err(TryLockError::WouldBlock) => {
                return Err(StoreError::LockTimeout(Box::new(read_holder(&mut file))));
            }
            Err(TryLockError::Error(error)) => return Err(StoreError::write(error)),
        }
    }
    let record = json!({
        "schema_version": "file_lock_holder_v0",
        "lock_id": lock_id(path, claim),
        "pid": std::process::id(),
        "agent_id": claim.agent_id,
        "operation": claim.operation,
        "policy": claim.policy.name(),
        "acquired_at": claim.now,
        "host": machine_name(),
    });
    // The record informs others; a full disk must not stop a command that only reads from here on.
    let _ = write_record(&mut file, &record);
    Ok(Held {
        file,
        record,
        since: Instant::now(),
        rank: PhantomData,
    })
}

/// Who holds a lock, as far as its record tells: it was not released, and the process still lives on this machine. Only the record is read; to
/// try the lock would make it look taken to whoever wants it in that moment.
pub fn holder(path: &Path) -> Option<Holder> {
    let bytes = private_file::read_up_to(path, RECORD_BYTES).ok()??;
    let record: Value = serde_json::from_slice(&bytes).ok()?;
    let is_released = record.get("released_at").is_some_and(|at| !at.is_null());
    let holder = holder_of(&record);
    let pid = holder.pid.and_then(|pid| i32::try_from(pid).ok())?;
    let is_here = holder.host == machine_name();
    // A process of somebody else lives as well.
    let lives = pid > 1
        && !matches!(
            nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), None),
            Err(nix::errno::Errno::ESRCH)
        );
    (!is_released && is_here && lives).then_some(holder)
}

/// Tells two locks apart without saying where they lie.
fn lock_id(path: &Path, claim: &Claim<'_>) -> String {
    let place = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let place = place.to_string_lossy();
    digest::nul_joined(&[claim.lock_id, &place]).short(16)
}

impl<R: Rank> Held<R> {
    /// Takes a further lock, of a rank to the right of this one.
    pub fn then<N: Rank>(&self, path: &Path, claim: &Claim<'_>) -> Result<Held<N>, StoreError> {
        const { assert!(R::ORDER < N::ORDER, "locks are taken from left to right") };
        acquire(path, claim)
    }
}

impl<R: Rank> Held<R> {
    /// The instant of the claim and the time since: the clock itself is read once per command.
    fn released_at(&self) -> Option<Timestamp> {
        let acquired = self.record.get("acquired_at")?.as_str()?;
        let held = i64::try_from(self.since.elapsed().as_micros()).ok()?;
        from_micros(micros(Timestamp::parse(acquired)?).checked_add(held)?)
    }
}

impl<R: Rank> Drop for Held<R> {
    fn drop(&mut self) {
        let released_at = self.released_at();
        let mut record = std::mem::take(&mut self.record);
        record["released_at"] = json!(released_at);
        let _ = write_record(&mut self.file, &record);
    }
}

fn write_record(file: &mut File, record: &Value) -> io::Result<()> {
    let mut bytes = serde_json::to_vec(record)?;
    bytes.push(b'\n');
    file.rewind()?;
    file.write_all(&bytes)?;
    file.set_len(bytes.len() as u64)
}

fn read_holder(file: &mut File) -> Holder {
    let mut text = String::new();
    let read = file
        .rewind()
        .and_then(|()| file.take(RECORD_BYTES).read_to_string(&mut text));
    let Ok(record) = read.map(|_| serde_json::from_str::<Value>(&text).unwrap_or_default()) else {
        return Holder::default();
    };
    holder_of(&record)
}

fn holder_of(record: &Value) -> Holder {
    let word = |key: &str| record.get(key).and_then(Value::as_str).map(str::to_owned);
    Holder {
        agent_id: word("agent_id"),
        operation: word("operation"),
        acquired_at: word("acquired_at"),
        host: word("host"),
        pid: record.get("pid").and_then(Value::as_u64),
    }
}

fn machine_name() -> Option<String> {
    std::fs::read_to_string("/proc/sys/kernel/hostname")
        .ok()
        .map(|name| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(policy: Policy) -> Claim<'static> {
        Claim {
            lock_id: "x",
            agent_id: Some("lane-a"),
            operation: "test",
            policy,
            now: "2026-01-01T00:00:00Z",
        }
    }

    #[test]
    fn a_second_taker_learns_who_holds_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        let held = acquire::<Lane>(&path, &claim(Policy::SingleFlight)).unwrap();
        let Err(StoreError::LockTimeout(holder)) =
            acquire::<Lane>(&path, &claim(Policy::SingleFlight))
        else {
            panic!("the lock was handed out twice");
        };
        assert_eq!(holder.agent_id.as_deref(), Some("lane-a"));
        assert_eq!(holder.pid, Some(u64::from(std::process::id())));
        assert_eq!(super::holder(&path), Some(*holder));
        drop(held);
        assert_eq!(super::holder(&path), None);
        assert!(acquire::<Lane>(&path, &claim(Policy::SingleFlight)).is_ok());
    }

    #[test]
    fn the_record_says_who_held_it_from_when_to_when_and_names_no_place() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.lock");
        let record = || {
            let text = std::fs::read_to_string(&path).unwrap();
            serde_json::from_str::<Value>(&text).unwrap()
        };
        let held = acquire::<Lane>(&path, &claim(Policy::Monitor)).unwrap();
        let taken = record();
        assert_eq!(taken["schema_version"], "file_lock_holder_v0");
        assert_eq!(taken["policy"], "monitor");
        assert_eq!(taken.get("released_at"), None);
        assert_eq!(taken["lock_id"].as_str().unwrap().len(), 16);
        drop(held);
        let released = record();
        let at =
            |record: &Value, name: &str| Timestamp::parse(record[name].as_str().unwrap()).unwrap();
        assert!(at(&released, "released_at") >= at(&released, "acquired_at"));
        assert_eq!(released.get("released"), None);
        assert!(!released.to_string().contains("a.lock"));
        let _again = acquire::<Lane>(&path, &claim(Policy::Monitor)).unwrap();
        assert_eq!(record().get("released_at"), None);
    }

    #[test]
    fn a_lock_further_right_is_handed_out() {
        let folder = tempfile::tempdir().unwrap();
        let lane = acquire::<Lane>(&folder.path().join("a"), &claim(Policy::Mutation)).unwrap();
        assert!(
            lane.then::<Registry>(&folder.path().join("b"), &claim(Policy::Mutation))
                .is_ok()
        );
    }
}
