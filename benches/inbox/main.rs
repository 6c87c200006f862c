//! Timings of the inbox: `cargo bench --bench inbox`.
//!
//! Both figures are ratios to floors of the same run: a batch of 10,000 events to one bare transaction of the same
//! rows, one event a process to a process that opens a store and commits one row. Each is also taken with 100,000
//! events stored before, because an inbox only grows.

#[path = "../whole_process/table.rs"]
#[allow(dead_code)]
mod table;

use std::path::PathBuf;
use std::process::Command;
use std::time::{Duration, Instant};

use rusqlite::{Connection, TransactionBehavior, params};
use serde_json::{Value, json};

use table::{Verdict, median, say, time};

const LOOPX: &str = env!("CARGO_BIN_EXE_loopx");
const FLOOR: &str = env!("CARGO_BIN_EXE_bench-floor");
const PROVIDER: &str = env!("CARGO_BIN_EXE_fake-lark-cli");
const BATCH: usize = 10_000;
const STORED: usize = 100_000;
const BATCH_RUNS: usize = 5;
const SINGLE_RUNS: usize = 60;

fn main() {
    let mut verdict = Verdict::default();
    batches(&mut verdict);
    singles(&mut verdict);
    verdict.finish();
}

/// One batch of 10,000 events: exports included, in a new inbox and in a full one.
fn batches(verdict: &mut Verdict) {
    let full = Inbox::new(STORED);
    // No folder goes before the last measurement: ext4 does not give out the inodes of files that were deleted in the last
    // minutes, and looking past 10,000 of them takes each new file longer than writing it.
    let fresh: Vec<Inbox> = (0..BATCH_RUNS).map(|_| Inbox::new(0)).collect();
    let mut timed = [Vec::new(), Vec::new(), Vec::new()];
    for (run, new) in fresh.iter().enumerate() {
        let first = STORED + run * BATCH;
        timed[0].push(bare_transaction(first));
        timed[1].push(new.ingest(&events(first, BATCH)));
        timed[2].push(full.ingest(&events(first, BATCH)));
    }
    let [bare, new, old] = timed.map(median);
    say(&format!(
        "{BATCH} events: bare transaction {bare:.1} ms, in a new inbox {new:.1} ms ({:.1} x), in one of {STORED} {old:.1} ms ({:.1} x)",
        new / bare,
        old / bare
    ));
    check(verdict, new, bare * 60.0, "a batch in a new inbox");
    check(verdict, old, bare * 60.0, "a batch in a full inbox");
    check(
        verdict,
        old,
        new * 2.0,
        "a batch in a full inbox against a new one",
    );
}

/// One event a process, against a process that commits one row.
fn singles(verdict: &mut Verdict) {
    let (few, many) = (Inbox::new(10), Inbox::new(STORED));
    let mut timed = [Vec::new(), Vec::new(), Vec::new()];
    for run in 0..SINGLE_RUNS {
        let event = events(STORED + run, 1);
        timed[0].push(few.floor());
        timed[1].push(few.ingest(&event));
        timed[2].push(many.ingest(&event));
    }
    let [floor, ten, full] = timed.map(median);
    say(&format!(
        "one event: one commit {floor:.2} ms, with 10 stored {ten:.2} ms ({:.2} x), with {STORED} {full:.2} ms ({:.2} x)",
        ten / floor,
        full / floor
    ));
    check(verdict, ten, floor * 2.0, "one event with 10 stored");
    check(verdict, full, floor * 2.0, "one event with many stored");
    check(
        verdict,
        full,
        ten * 1.3,
        "one event with many stored against 10",
    );
}

fn check(verdict: &mut Verdict, found: f64, allowed: f64, what: &str) {
    verdict.check(
        found <= allowed,
        &format!("{what}: {found:.2} ms of {allowed:.2}"),
    );
}

fn event(index: usize) -> Value {
    json!({"schema_version": "lark_event_inbox_event_v0", "message_id": format!("om_bench{index:07}"),
        "create_time": (1_758_189_600_000 + index).to_string(), "content": "Please look at the failing check before Friday.",
        "sender_type": "user", "sender_id": "ou_bench", "mentions": []})
}

fn events(first: usize, count: usize) -> Vec<u8> {
    let list: Vec<Value> = (first..first + count).map(event).collect();
    serde_json::to_vec(&list).expect("json")
}

/// The rows of a batch in one transaction, nothing else: no process, no checks, no files.
fn bare_transaction(first: usize) -> Duration {
    let folder = tempfile::tempdir().expect("a folder");
    let mut store = Connection::open(folder.path().join("bare.sqlite3")).expect("a store");
    store
        .query_row("PRAGMA journal_mode=WAL", [], |_| Ok(()))
        .expect("a log");
    store
        .execute_batch(
            "PRAGMA synchronous=FULL;
             CREATE TABLE events(seq INTEGER PRIMARY KEY, route_key TEXT, message_id TEXT, create_time TEXT, body_json TEXT);
             CREATE UNIQUE INDEX events_message ON events(message_id);
             CREATE INDEX events_pending ON events(create_time, message_id);",
        )
        .expect("the tables");
    let rows: Vec<Value> = (first..first + BATCH).map(event).collect();
    let begun = Instant::now();
    let step = store
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .expect("a transaction");
    let mut insert = step
        .prepare("INSERT INTO events(route_key, message_id, create_time, body_json) VALUES('', ?1, ?2, ?3)")
        .expect("a statement");
    for row in &rows {
        let body = row.to_string();
        insert
            .execute(params![
                row["message_id"].as_str(),
                row["create_time"].as_str(),
                body
            ])
            .expect("a row");
    }
    drop(insert);
    step.commit().expect("a commit");
    begun.elapsed()
}

/// A project with one inbox.
struct Inbox {
    folder: tempfile::TempDir,
}

impl Inbox {
    fn new(stored: usize) -> Self {
        let inbox = Self {
            folder: tempfile::tempdir().expect("a folder"),
        };
        for name in ["bin", "home", "state", "project/.loopx/config/lark"] {
            std::fs::create_dir_all(inbox.path(name)).expect("a folder");
        }
        std::os::unix::fs::symlink(PROVIDER, inbox.path("bin/lark-cli")).expect("a link");
        let config = json!({"schema_version": "lark_event_inbox_config_v0", "enabled": true, "inbox_dir": ".loopx/inbox/one",
            "capture_scope": "configured_chat_all"});
        std::fs::write(
            inbox.path("project/.loopx/config/lark/one.json"),
            config.to_string(),
        )
        .expect("a file");
        let store = Connection::open(inbox.path("floor.sqlite3")).expect("a store");
        store
            .query_row("PRAGMA journal_mode=WAL", [], |_| Ok(()))
            .expect("a log");
        drop(store);
        // Each runs once before it counts: the first call of a folder has more to make.
        inbox.floor();
        time(
            &mut inbox.command(&[
                "extension",
                "install",
                "--bundled",
                "loopx-lark",
                "--execute",
            ]),
            b"",
        );
        let mut first = 0;
        while first < stored {
            let count = BATCH.min(stored - first);
            inbox.ingest(&events(first, count));
            first += count;
        }
        inbox
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn command(&self, args: &[&str]) -> Command {
        let path = std::env::var("PATH").unwrap_or_default();
        let mut command = Command::new(LOOPX);
        command
            .args(args)
            .current_dir(self.path("project"))
            .env("HOME", self.path("home"))
            .env("FAKE_LARK_STATE", self.path("state"))
            .env("PATH", format!("{}:{path}", self.path("bin").display()));
        command
    }

    fn ingest(&self, events: &[u8]) -> Duration {
        let config = ".loopx/config/lark/one.json";
        time(
            &mut self.command(&[
                "lark-inbox",
                "ingest",
                "--project",
                ".",
                "--config",
                config,
                "--execute",
            ]),
            events,
        )
    }

    fn floor(&self) -> Duration {
        let mut command = Command::new(FLOOR);
        command
            .arg("commit")
            .arg("--store")
            .arg(self.path("floor.sqlite3"));
        time(&mut command, b"")
    }
}
