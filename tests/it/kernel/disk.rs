//! Nothing can be written: reads answer as before, writes are typed and leave every byte (docs/spec/kernel.md 3.2).
//!
//! A file size limit of zero works on every machine. A full file system and a read-only one need a mount of one's own;
//! where that is not allowed the limit alone proves it.

use crate::support::world::{GOAL, Kernel, World};

/// What a refused write is called: the capture of a Turn has a name of its own.
const CODES: [&str; 2] = ["store_write_failed", "turn_capture_write_failed"];
/// Every write to a file fails.
const NO_BYTES: [&str; 3] = ["sh", "-c", r#"trap "" XFSZ; ulimit -f 0; exec "$0" "$@""#];
/// The project lies on a file system of its own that has no free block.
const FULL: [&str; 5] = [
    "unshare",
    "-rm",
    "sh",
    "-c",
    r#"here=$PWD; disk=$here.disk; mkdir -p "$disk" && mount -t tmpfs -o size=12m tmpfs "$disk" && cp -a "$here/." "$disk/" \
       && mount --bind "$disk" "$here" && cd "$here" || exit 77
       dd if=/dev/zero of="$disk/fill" bs=4k 2>/dev/null
       sums() { find . -type f ! -name fill ! -name '*-shm' ! -name '*-wal' ! -name '*.lock' ! -name '*.lane' -exec sha256sum {} + | sort; }
       before=$(sums); "$0" "$@"; code=$?; [ "$before" = "$(sums)" ] || exit 99; exit $code"#,
];
/// The project is mounted read-only.
const READ_ONLY: [&str; 5] = [
    "unshare",
    "-rm",
    "sh",
    "-c",
    r#"mount --bind "$PWD" "$PWD" && mount -o remount,bind,ro "$PWD" && cd "$PWD" || exit 77; exec "$0" "$@""#,
];

/// The kinds of refusal this machine can make.
fn kinds() -> Vec<&'static [&'static str]> {
    let can_mount = |kind: &[&str]| {
        let world = World::new();
        let look = world.run(&["todo", "list", "--goal-id", GOAL]);
        look.prepared().around(kind).run().code != Some(77)
    };
    let mounts = [&FULL[..], &READ_ONLY[..]];
    let has_unshare = std::process::Command::new("unshare")
        .arg("--version")
        .output();
    let mut kinds = vec![&NO_BYTES[..]];
    if has_unshare.is_ok() {
        kinds.extend(mounts.into_iter().filter(|kind| can_mount(kind)));
    }
    kinds
}

/// A goal with a committed Turn.
fn world(log: Log) -> (World, String, String) {
    let (world, todo) = World::with_todo();
    world.turn("turn-1").packet();
    let key = world.turn_key();
    if log == Log::Gone {
        let store = world.store();
        store
            .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
            .expect("a checkpoint");
        drop(store);
        for suffix in ["-wal", "-shm"] {
            let _ = std::fs::remove_file(world.runtime().join(format!("state.sqlite3{suffix}")));
        }
    }
    (world, todo, key)
}

/// Whether the write-ahead log lies beside the store.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Log {
    Kept,
    Gone,
}

fn reads<'a>(world: &'a World, todo: &str, key: &str) -> Vec<Kernel<'a>> {
    let goal = ["--goal-id", GOAL];
    let agent = ["--agent-id", "lane-a"];
    let of = |words: &[&str], more: &[&str]| world.run(&[words, &goal, more].concat());
    let turn = [&agent[..], &["--turn-key", key]].concat();
    vec![
        world.ask("lane-a", &[]),
        of(&["turn", "plan"], &agent),
        of(&["turn", "detail"], &turn),
        of(&["turn", "inspect-journal"], &turn),
        of(&["turn", "managed-step"], &turn),
        of(&["todo", "list"], &[]),
        of(&["status"], &[]),
        of(&["task-lease", "inspect"], &["--todo-id", todo]),
        of(
            &["handoff", "inspect"],
            &[&agent[..], &["--todo-id", todo, "--session-id", "s"]].concat(),
        ),
        world.run(&["quota", "status"]),
        world.run(&["doctor"]),
    ]
}

fn writes<'a>(world: &'a World, todo: &str) -> Vec<Kernel<'a>> {
    let goal = ["--goal-id", GOAL];
    let of = |words: &[&str], more: &[&str]| world.run(&[words, &goal, more].concat());
    vec![
        of(&["todo", "add"], &["--role", "agent", "--text", "more"]),
        of(&["todo", "update"], &["--todo-id", todo, "--note", "seen"]),
        of(&["refresh-state"], &["--agent-id", "lane-a"]),
        of(
            &["configure-goal"],
            &["--quota-compute", "0.5", "--execute"],
        ),
        of(
            &["task-lease", "acquire"],
            &[
                "--todo-id",
                todo,
                "--owner",
                "lane-a",
                "--idempotency-key",
                "k",
            ],
        ),
        world.turn("turn-2"),
    ]
}

#[test]
fn every_read_answers_where_nothing_can_be_written() {
    for kind in kinds() {
        // A limit keeps even the lock file of a log from growing, which a full disk does not.
        let logs: &[Log] = if kind == NO_BYTES {
            &[Log::Gone]
        } else {
            &[Log::Kept, Log::Gone]
        };
        for log in logs.iter().copied() {
            let (world, todo, key) = world(log);
            for read in reads(&world, &todo, &key) {
                let done = read.prepared().around(kind).json_run();
                assert_eq!(done.code, Some(0), "{kind:?}: {}", done.text());
            }
        }
    }
}

#[test]
fn every_write_is_refused_by_its_name_and_leaves_every_byte() {
    for kind in kinds() {
        let (world, todo, _) = world(Log::Kept);
        let before = world.sandbox.tree();
        for write in writes(&world, &todo) {
            let done = write.prepared().around(kind).json_run();
            let packet = done.json();
            assert_eq!(done.code, Some(1), "{kind:?}: {packet}");
            let code = packet["error_code"].as_str().expect("a code");
            assert!(CODES.contains(&code), "{kind:?}: {packet}");
        }
        let after = world.sandbox.tree();
        let names = |tree: &[(std::path::PathBuf, Vec<u8>)]| {
            let all = tree.iter().map(|(path, _)| path.clone());
            all.collect::<Vec<_>>()
        };
        assert_eq!(names(&after), names(&before), "{kind:?}");
        assert!(after == before, "{kind:?}: bytes changed");
        world.todo("more", &[]);
        assert_eq!(world.turn("turn-2").packet()["status"], "committed");
        assert_eq!(world.outcome().3, "ok");
    }
}
