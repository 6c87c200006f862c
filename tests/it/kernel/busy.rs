//! Commands that meet somebody else's lock or transaction (docs/spec/kernel.md 3.3, 15).

use std::fs::{File, OpenOptions};

use serde_json::json;

use crate::support::world::{GOAL, World};

/// Takes the lock of that file as another process would.
fn hold(path: &std::path::Path) -> File {
    let file = OpenOptions::new().append(true).open(path).expect("a lock");
    file.lock().expect("held");
    file
}

fn failed_turn() -> (World, String) {
    let (world, _) = World::with_todo();
    let host = world.host("fails.sh", "exit 3");
    world
        .turn_with("turn-1", &host, "[\"/bin/true\"]")
        .refusal();
    let key = world.turn_key();
    (world, key)
}

#[test]
fn a_store_that_stays_busy_refuses_the_writer_and_leaves_no_half() {
    let (world, _) = World::with_todo();
    let before = world.outcome();
    let store = world.store();
    store.execute_batch("BEGIN IMMEDIATE").expect("held");
    let add = ["todo", "add", "--goal-id", GOAL, "--role", "agent"];
    world
        .run(&add)
        .flag(&["--text", "Second"])
        .refused("store_busy");
    let list = world.run(&["todo", "list", "--goal-id", GOAL]).packet();
    assert_eq!(list["todos"].as_array().map(Vec::len), Some(1));
    store.execute_batch("ROLLBACK").expect("released");
    assert_eq!(world.outcome(), before);
    world.todo("Second", &[]);
}

#[test]
fn a_reader_is_not_held_up_by_a_writer_in_its_transaction() {
    let (world, key) = failed_turn();
    let store = world.store();
    store.execute_batch("BEGIN IMMEDIATE").expect("held");
    let own = ["--goal-id", GOAL, "--agent-id", "lane-a"];
    for (command, flags) in [
        ("detail", vec!["--turn-key", &key]),
        ("inspect-journal", vec!["--turn-key", &key]),
        ("plan", vec![]),
    ] {
        let run = world.run(&["turn", command]).flag(&own).flag(&flags);
        assert_eq!(run.packet()["ok"], true, "{command}");
    }
}

#[test]
fn a_lane_that_is_held_refuses_the_turn_at_once_and_touches_nothing() {
    let (world, _) = failed_turn();
    let lanes = world.runtime().join(format!("goals/{GOAL}/turns/.lanes"));
    let lane = std::fs::read_dir(lanes).expect("lanes").next();
    let held = hold(&lane.expect("a lane").expect("an entry").path());
    let retry = || world.turn("turn-1").flag(&["--retry-failed-turn"]);
    let before = world.sandbox.tree();
    retry().refused("turn_lane_in_flight");
    // The host script of the test itself is no effect of the refused Turn.
    let after = world.sandbox.tree();
    let others = |tree: Vec<(std::path::PathBuf, Vec<u8>)>| -> Vec<_> {
        let keep = |(path, _): &(std::path::PathBuf, Vec<u8>)| !path.ends_with("good.sh");
        tree.into_iter().filter(keep).collect()
    };
    assert_eq!(others(after), others(before));
    drop(held);
    assert_eq!(retry().packet()["status"], "committed");
}

#[test]
fn an_inspection_waits_for_the_writer_of_the_journal_only_so_long() {
    let (world, key) = failed_turn();
    let name = format!(
        "goals/{GOAL}/turns/{}.lock",
        key.trim_start_matches("sha256:")
    );
    let held = hold(&world.runtime().join(name));
    let own = ["--goal-id", GOAL, "--agent-id", "lane-a"];
    let turn = ["--turn-key", key.as_str()];
    let inspect = || {
        let head = world.run(&["turn", "inspect-journal"]);
        head.flag(&own).flag(&turn)
    };
    inspect().refused("lock_acquire_timeout");
    // Detail never waits: the capture does not change.
    let detail = world.run(&["turn", "detail"]).flag(&own).flag(&turn);
    assert_eq!(detail.packet()["effects"], json!([]));
    drop(held);
    inspect().packet();
}
