//! Formats of the past stay readable, and stores of the future stay untouched.

use std::fs;

use serde_json::{Value, json};

use crate::support::Sandbox;
use crate::support::world::World;

const KEY: &str = "8a4b18b097aaff4f7b4152ef21cb6e75daa584e5485316fdf291decea8873e2f";
const RECORDED: &str = include_str!("../../../fixtures/journal/v0/committed.json");

fn old_goal(journal: &str) -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox
        .loopx(["bootstrap", "--goal-id", "old-goal"])
        .packet();
    let register = [
        "register-agent",
        "--goal-id",
        "old-goal",
        "--agent-id",
        "lane-a",
        "--execute",
    ];
    sandbox.loopx(register).packet();
    sandbox.file(
        &format!(".loopx/runtime/goals/old-goal/turns/{KEY}.json"),
        journal,
    );
    sandbox
}

fn resume(sandbox: &Sandbox) -> crate::support::Run<'_> {
    let key = format!("sha256:{KEY}");
    sandbox.loopx([
        "turn",
        "run-once",
        "--goal-id",
        "old-goal",
        "--agent-id",
        "lane-a",
        "--project",
        ".",
        "--resume-turn-key",
        &key,
        "--host-command-json",
        "[\"/bin/false\"]",
        "--validation-command-json",
        "[\"/bin/true\"]",
        "--retry-failed-turn",
        "--execute",
    ])
}

fn inspect<'a>(sandbox: &'a Sandbox, more: &[&str]) -> crate::support::Run<'a> {
    let key = format!("sha256:{KEY}");
    let head = [
        "turn",
        "inspect-journal",
        "--goal-id",
        "old-goal",
        "--agent-id",
        "lane-a",
    ];
    sandbox.loopx([&head[..], &["--turn-key", &key], more].concat())
}

fn changed(change: impl FnOnce(&mut Value)) -> String {
    let mut journal: Value = serde_json::from_str(RECORDED).expect("the fixture");
    change(&mut journal);
    journal.to_string()
}

#[test]
fn a_historical_committed_turn_replays_and_keeps_its_bytes() {
    let sandbox = old_goal(RECORDED);
    let replay = resume(&sandbox).packet();
    assert_eq!(replay["replayed"], true);
    assert_eq!(replay["effects"]["host_invoked"], false);
    let path = sandbox
        .project()
        .join(format!(".loopx/runtime/goals/old-goal/turns/{KEY}.json"));
    assert_eq!(fs::read_to_string(path).expect("the journal"), RECORDED);
    let key = format!("sha256:{KEY}");
    let detail = [
        "turn",
        "detail",
        "--goal-id",
        "old-goal",
        "--agent-id",
        "lane-a",
        "--turn-key",
        &key,
    ];
    assert_eq!(
        sandbox.loopx(detail).refusal()["error_code"],
        "turn_capture_not_recorded"
    );
}

#[test]
fn a_historical_result_settles_without_a_capture() {
    let sandbox = old_goal(&changed(|journal| {
        journal["status"] = json!("failed");
        journal["completed_phases"] = json!(["host_execute", "typed_result"]);
        journal["validation_stage"] = json!("task_postcondition");
    }));
    let settled = resume(&sandbox).packet();
    assert_eq!(settled["status"], "committed");
    assert_eq!(settled["quota_slot_spend_count"], 1);
}

#[test]
fn a_historical_turn_that_needs_its_host_or_lost_its_signature_is_refused() {
    let needs_host = old_goal(&changed(|journal| {
        journal["status"] = json!("failed");
        journal["completed_phases"] = json!([]);
        journal["host_failure"] = json!({"schema_version": "loopx_turn_host_failure_v0", "kind": "unknown", "attempt": 1});
        journal
            .as_object_mut()
            .expect("an object")
            .remove("host_result");
    }));
    assert_eq!(
        resume(&needs_host).refusal()["error_code"],
        "turn_capture_not_recorded"
    );
    let forged = old_goal(&changed(|journal| {
        journal["plan"]["turn_envelope"]["action_signature"]["envelope_hash"] = json!("sha256:1");
    }));
    assert_eq!(
        resume(&forged).refusal()["error_code"],
        "turn_action_mismatch"
    );
    let found = inspect(&forged, &[]).packet();
    assert_eq!(found["decision"], "replay_blocked");
    assert_eq!(found["violations"][0], "action_signature_mismatch");
    let decision = &found["recovery_decision"];
    assert_eq!(decision["action"], "blocked");
    assert_eq!(decision["reason"], "turn_action_mismatch");
    let found = inspect(&needs_host, &["--retry-failed-turn"]).packet();
    let decision = &found["recovery_decision"];
    assert_eq!(decision["reason"], "turn_capture_not_recorded");
    let sound = inspect(&old_goal(RECORDED), &[]).packet();
    assert_eq!(sound["decision"], "replay_legal");
}

/// A world whose store is a recorded one.
fn recorded_store(dump: &str, version: i64) -> World {
    let world = World::new();
    let path = world.runtime().join("state.sqlite3");
    for suffix in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(world.runtime().join(format!("state.sqlite3{suffix}")));
    }
    let store = rusqlite::Connection::open(&path).expect("a database");
    store.execute_batch(dump).expect("the recorded store");
    store
        .pragma_update(None, "user_version", version)
        .expect("a number");
    store
        .pragma_update(None, "journal_mode", "WAL")
        .expect("a mode");
    drop(store);
    let registry = include_str!("../../../fixtures/store/registry-v1.json");
    let path = world.sandbox.project().join(".loopx/registry.json");
    fs::write(path, registry).expect("written");
    world
}

#[test]
fn every_older_store_is_opened_read_and_written() {
    for (dump, version) in [
        (include_str!("../../../fixtures/store/state-v1.sql"), 1),
        (include_str!("../../../fixtures/store/state-v2.sql"), 2),
        (include_str!("../../../fixtures/store/state-v3.sql"), 3),
    ] {
        let world = recorded_store(dump, version);
        let list = world
            .run(&["todo", "list", "--goal-id", "demo-goal"])
            .packet();
        assert_eq!(list["todos"][0]["text"], "Measure the first step");
        let number = || -> i64 {
            world
                .store()
                .query_row("PRAGMA user_version", [], |row| row.get(0))
                .expect("a number")
        };
        // A read brings nothing up, and what looks at the store finds it sound as it is.
        world.run(&["status", "--goal-id", "demo-goal"]).packet();
        world.run(&["doctor"]).packet();
        world.run(&["backup", "--out", "../older"]).packet();
        assert_eq!(number(), version);
        world.todo("second", &[]);
        assert_eq!(world.decide(&[])["should_run"], true);
        assert!(number() > 3);
        world.run(&["doctor"]).packet();
    }
}

#[test]
fn the_next_action_of_an_older_store_is_still_the_last_one() {
    let world = recorded_store(include_str!("../../../fixtures/store/state-v2.sql"), 2);
    let refresh = |next: &str| {
        let head = [
            "refresh-state",
            "--goal-id",
            "demo-goal",
            "--agent-id",
            "lane-a",
        ];
        let more = ["--next-action", next, "--vision-state", "open"];
        let packet = world.run(&[&head[..], &more].concat()).packet();
        packet["vision_checkpoint"]["required"].clone()
    };
    assert_eq!(refresh("Go on"), false);
    assert_eq!(refresh("Turn round"), true);
}

#[test]
fn a_newer_damaged_or_lost_store_is_typed_and_keeps_its_bytes() {
    let (world, todo) = World::with_todo();
    let path = world.runtime().join("state.sqlite3");
    let store = world.store();
    store
        .pragma_update(None, "user_version", 999)
        .expect("a number");
    store
        .query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))
        .expect("a checkpoint");
    drop(store);
    let all = |code: &str| {
        let kept = fs::read(&path).ok();
        world.ask("lane-a", &[]).refused(code);
        world
            .run(&[
                "todo",
                "add",
                "--goal-id",
                "demo-goal",
                "--role",
                "agent",
                "--text",
                "no",
            ])
            .refused(code);
        world.refresh(&todo, "turn-1", &[]).refused(code);
        world.turn("turn-1").refused(code);
        assert_eq!(fs::read(&path).ok(), kept);
    };
    all("schema_unsupported");
    fs::write(
        &path,
        b"not a database at all, and long enough to be looked at".repeat(100),
    )
    .expect("written");
    all("store_corrupt");
    fs::write(&path, b"").expect("written");
    all("store_corrupt");
    fs::remove_file(&path).expect("removed");
    for suffix in ["-wal", "-shm"] {
        let _ = fs::remove_file(world.runtime().join(format!("state.sqlite3{suffix}")));
    }
    all("store_corrupt");
    assert_eq!(world.host_calls(), 0);
}

#[test]
fn the_sizes_of_an_envelope_are_those_of_what_is_printed() {
    let (world, _) = World::with_todo();
    let printed = world.decide(&["--turn-envelope"]);
    let length = |left_out: &[&str]| {
        let members = printed.as_object().expect("an object").iter();
        let kept: serde_json::Map<String, Value> = members
            .filter(|(name, _)| !left_out.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        Value::Object(kept).to_string().len()
    };
    let sizes = &printed["compaction"];
    let thin = length(&["compaction", "source"]);
    assert_eq!(sizes["envelope_utf8_bytes"], thin);
    assert_eq!(sizes["complete_utf8_bytes"], length(&["compaction"]));
    assert_eq!(sizes["within_budget"], thin <= 8_192);
}
