//! The inbox as a store: many writers, file modes, damage, size.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

use crate::support::lark::{CHAT, CHAT2, Lark, event};
use crate::support::{Finished, Run};

struct Desk {
    lark: Lark,
    config: String,
}

impl Desk {
    fn new() -> Self {
        let lark = Lark::new();
        let config = lark.inbox_config("one", CHAT);
        Self { lark, config }
    }

    fn run(&self, words: &[&str]) -> Run<'_> {
        self.lark.inbox(words, &self.config)
    }

    fn ingest(&self, events: &Value) -> Value {
        self.run(&["ingest", "--execute"])
            .stdin(events.to_string())
            .packet()
    }

    fn inbox(&self) -> PathBuf {
        self.lark.sandbox.project().join(".loopx/inbox/one")
    }

    fn database(&self) -> PathBuf {
        self.inbox().join(".state/inbox.sqlite3")
    }

    fn exports(&self) -> Vec<(String, Vec<u8>)> {
        let mut files = Vec::new();
        gather(&self.inbox(), &mut files);
        files.retain(|(name, _)| {
            Path::new(name)
                .extension()
                .is_some_and(|kind| kind == "json")
        });
        files.sort();
        files
    }
}

fn gather(folder: &Path, files: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            gather(&path, files);
        } else {
            files.push((
                path.to_string_lossy().into_owned(),
                fs::read(&path).expect("a file"),
            ));
        }
    }
}

fn numbered(range: std::ops::Range<usize>) -> Value {
    range
        .map(|index| {
            event(
                &format!("om_zqp{index:06}"),
                json!({"create_time": format!("{}", 1_758_189_600_000_u64 + index as u64)}),
            )
        })
        .collect()
}

fn count(packet: &Value, name: &str) -> u64 {
    packet[name]
        .as_u64()
        .unwrap_or_else(|| panic!("{name} of {packet}"))
}

#[test]
fn eight_processes_fill_one_inbox_and_every_event_is_there_once() {
    let desk = Desk::new();
    let accepted: u64 = std::thread::scope(|scope| {
        let desk = &desk;
        // Neighbours overlap by half of their events.
        let writers: Vec<_> = (0..8)
            .map(|index| {
                scope.spawn(move || {
                    count(
                        &desk.ingest(&numbered(index * 50..index * 50 + 100)),
                        "accepted_count",
                    )
                })
            })
            .collect();
        writers
            .into_iter()
            .map(|writer| writer.join().expect("a writer"))
            .sum()
    });
    assert_eq!(accepted, 450, "accepted over all writers");
    assert_eq!(count(&desk.run(&["drain"]).packet(), "captured_count"), 450);
    let files = desk.exports();
    assert_eq!(
        count(&desk.run(&["export", "--execute"]).packet(), "stale_count"),
        0
    );
    assert_eq!(files, desk.exports());
}

#[test]
fn acknowledgements_of_many_processes_are_all_kept() {
    let desk = Desk::new();
    desk.ingest(&numbered(0..40));
    std::thread::scope(|scope| {
        for index in 0..8 {
            let desk = &desk;
            scope.spawn(move || {
                let ids: Vec<String> = (index * 5..index * 5 + 5)
                    .map(|id| format!("om_zqp{id:06}"))
                    .collect();
                let mut words = vec!["ack", "--execute"];
                words.extend(ids.iter().flat_map(|id| ["--message-id", id]));
                assert_eq!(count(&desk.run(&words).packet(), "new_count"), 5);
            });
        }
    });
    let packet = desk.run(&["drain"]).packet();
    assert_eq!(
        (
            count(&packet, "pending_count"),
            count(&packet, "processed_count")
        ),
        (0, 40)
    );
    let file: Value =
        serde_json::from_slice(&fs::read(desk.inbox().join("processed.json")).expect("an export"))
            .expect("json");
    assert_eq!(file["message_ids"].as_array().map(Vec::len), Some(40));
}

#[test]
fn routes_added_at_once_are_all_there() {
    let lark = Lark::new();
    let config = lark.collector(&[("alpha", CHAT)], json!({}));
    let names: Vec<String> = (0..8).map(|index| format!("route-{index}")).collect();
    std::thread::scope(|scope| {
        for name in &names {
            let (lark, config) = (&lark, &config);
            scope.spawn(move || {
                let chat = format!("{CHAT2}{}", name.replace('-', ""));
                let inbox = lark.inbox_config(name, &chat);
                let words = [
                    "collector-route-reconcile",
                    "--route-key",
                    name,
                    "--chat-id",
                    &chat,
                    "--event-inbox-config",
                    &inbox,
                    "--execute",
                ];
                assert_eq!(lark.inbox(&words, config).packet()["status"], "applied");
            });
        }
    });
    let file = lark.sandbox.project().join(&config);
    let written: Value =
        serde_json::from_slice(&fs::read(&file).expect("the configuration")).expect("json");
    assert_eq!(written["routes"].as_array().map(Vec::len), Some(9));
}

#[test]
fn every_file_is_private_whatever_the_mask() {
    let desk = Desk::new();
    let masked = |words: &[&str], stdin: &str| {
        let run = desk.run(words).stdin(stdin);
        let mut command = run.command();
        let line: Vec<String> = command
            .get_args()
            .map(|arg| format!("'{}'", arg.to_string_lossy()))
            .collect();
        let mut shell = std::process::Command::new("sh");
        shell.arg("-c").arg(format!(
            "umask 000; exec '{}' {}",
            command.get_program().to_string_lossy(),
            line.join(" ")
        ));
        for (name, value) in command.get_envs() {
            shell.env(name, value.expect("a value"));
        }
        shell
            .current_dir(command.get_current_dir().expect("a folder"))
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped());
        command = shell;
        let mut child = command.spawn().expect("the shell starts");
        std::io::Write::write_all(&mut child.stdin.take().expect("piped"), stdin.as_bytes())
            .expect("written");
        let finished: Finished = run.finish(child);
        assert_eq!(finished.code, Some(0), "{words:?}: {}", finished.text());
    };
    desk.lark
        .seed("om_zqp000000", "words", 1_789_000_000, json!({}));
    masked(&["ingest", "--execute"], &numbered(0..3).to_string());
    masked(&["ack", "--message-id", "om_zqp000001", "--execute"], "");
    masked(
        &[
            "material-review",
            "--message-id",
            "om_zqp000002",
            "--no-follow-up",
            "out of scope",
            "--execute",
        ],
        "",
    );
    masked(
        &[
            "reply",
            "--message-id",
            "om_zqp000000",
            "--text",
            "an answer",
            "--execute",
        ],
        "",
    );
    let mut seen = 0;
    modes(&desk.lark.sandbox.project().join(".loopx/inbox"), &mut seen);
    assert!(seen > 6, "{seen} files");
    let damaged = |path: &Path| fs::metadata(path).map(|meta| meta.permissions().mode() & 0o777);
    for tail in ["", "-wal", "-shm"] {
        let path = PathBuf::from(format!("{}{tail}", desk.database().display()));
        assert!(damaged(&path).map_or(true, |mode| mode == 0o600), "{tail}");
    }
}

fn modes(folder: &Path, seen: &mut usize) {
    let mode = |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
    assert_eq!(mode(folder), 0o700, "{}", folder.display());
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            modes(&path, seen);
        } else {
            *seen += 1;
            assert_eq!(mode(&path), 0o600, "{}", path.display());
        }
    }
}

/// Every command of an inbox, by the words that start it.
fn commands() -> Vec<Vec<&'static str>> {
    vec![
        vec!["drain"],
        vec!["ack", "--message-id", "om_zqp000000", "--execute"],
        vec![
            "material-review",
            "--message-id",
            "om_zqp000000",
            "--no-follow-up",
            "out of scope",
            "--execute",
        ],
        vec!["ingest", "--execute"],
        vec!["export", "--execute"],
        vec!["send", "--text", "plain words", "--execute"],
        vec![
            "reply",
            "--message-id",
            "om_zqp000000",
            "--text",
            "an answer",
            "--execute",
        ],
        vec!["processing", "--message-id", "om_zqp000000", "--execute"],
        vec![
            "reaction-complete",
            "--message-id",
            "om_zqp000000",
            "--execute",
        ],
    ]
}

#[test]
fn a_newer_or_damaged_database_is_named_and_left_as_it_is() {
    for (code, damage) in [
        ("schema_unsupported", raise as fn(&Path)),
        ("store_corrupt", scramble),
        ("store_corrupt", empty),
    ] {
        let desk = Desk::new();
        desk.ingest(&numbered(0..2));
        damage(&desk.database());
        let bytes = fs::read(desk.database()).expect("the database");
        for words in commands() {
            let (exit, packet) = Lark::packet(
                desk.run(&words).stdin(numbered(5..6).to_string()),
                &["om_zqp000000"],
            );
            assert_eq!(
                (exit, &packet["error_code"]),
                (Some(1), &json!(code)),
                "{words:?}: {packet}"
            );
        }
        assert_eq!(
            fs::read(desk.database()).expect("the database"),
            bytes,
            "{code}: bytes are kept"
        );
        assert!(desk.lark.sent().is_empty());
    }
}

fn raise(database: &Path) {
    let connection = rusqlite::Connection::open(database).expect("opened");
    connection
        .pragma_update(None, "user_version", 99)
        .expect("raised");
    connection
        .pragma_update(None, "wal_checkpoint", "TRUNCATE")
        .ok();
}

fn scramble(database: &Path) {
    side_files(database);
    let mut bytes = fs::read(database).expect("the database");
    bytes[..16].fill(0x5a);
    fs::write(database, bytes).expect("written");
}

fn empty(database: &Path) {
    side_files(database);
    fs::write(database, "").expect("written");
}

fn side_files(database: &Path) {
    let connection = rusqlite::Connection::open(database).expect("opened");
    connection
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .expect("checkpoint");
}

#[test]
fn exports_are_never_believed_and_come_back_byte_for_byte() {
    let desk = Desk::new();
    desk.ingest(&numbered(0..3));
    desk.run(&["ack", "--message-id", "om_zqp000001", "--execute"])
        .packet();
    let (files, answer) = (desk.exports(), desk.run(&["drain"]).packet());
    fs::write(desk.inbox().join("om_zqp000000.json"), "{half").expect("altered");
    fs::remove_file(desk.inbox().join("om_zqp000002.json")).expect("deleted");
    fs::write(desk.inbox().join("processed.json"), "[]").expect("altered");
    assert_eq!(desk.run(&["drain"]).packet(), answer);
    let packet = desk.run(&["export", "--execute"]).packet();
    assert_eq!(
        (count(&packet, "stale_count"), &packet["status"]),
        (3, &json!("exported"))
    );
    assert_eq!(desk.exports(), files);
}

#[test]
fn a_folder_in_the_way_of_an_export_is_said_and_loses_nothing() {
    let desk = Desk::new();
    fs::create_dir_all(desk.inbox().join("om_zqp000000.json")).expect("a folder");
    let run = desk
        .run(&["ingest", "--execute"])
        .stdin(numbered(0..2).to_string());
    let packet = run.json_run().json();
    assert_eq!(
        (count(&packet, "accepted_count"), &packet["export_pending"]),
        (2, &json!(true))
    );
    assert_eq!(count(&desk.run(&["drain"]).packet(), "pending_count"), 2);
}

#[test]
fn a_hundred_thousand_stored_events_slow_no_command() {
    let (small, large) = (Desk::new(), Desk::new());
    small.ingest(&numbered(0..10));
    for start in (0..100_000).step_by(10_000) {
        assert_eq!(
            count(
                &large.ingest(&numbered(start..start + 10_000)),
                "accepted_count"
            ),
            10_000
        );
    }
    assert_eq!(
        count(&large.run(&["drain"]).packet(), "captured_count"),
        100_000
    );
    let timed = |desk: &Desk, words: &[&str], stdin: &Value| {
        let time = (0..5).map(|_| {
            let started = Instant::now();
            desk.run(words).stdin(stdin.to_string()).packet();
            started.elapsed()
        });
        time.min().expect("five runs")
    };
    for (words, stdin) in [
        (vec!["drain"], json!([])),
        (
            vec!["ack", "--message-id", "om_zqp000003", "--execute"],
            json!([]),
        ),
        (
            vec!["ingest", "--execute"],
            json!([event("om_zqpnew", json!({}))]),
        ),
    ] {
        let (few, many) = (timed(&small, &words, &stdin), timed(&large, &words, &stdin));
        assert!(many < few * 3, "{words:?}: {many:?} against {few:?}");
    }
}
