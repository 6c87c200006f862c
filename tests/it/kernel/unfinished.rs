//! What `status` says about Turns that are not finished (docs/spec/kernel.md 5.2).

use std::fs::File;
use std::io::{Read, Write};
use std::process::Stdio;

use serde_json::Value;

use crate::support::world::{GOAL, World};

const GOOD: &str = "[\"/bin/true\"]";

/// The one goal as `status` shows it; the look itself changes no byte.
fn look(world: &World) -> Value {
    // A host that lost its driver may still write beside the state.
    let state = || {
        let mut files = world.sandbox.tree();
        files.retain(|(path, _)| path.starts_with(world.runtime()));
        files
    };
    let before = state();
    let status = world.run(&["status", "--goal-id", GOAL]).packet();
    world.run(&["status"]).prepared().run();
    assert!(state() == before, "a look writes nothing");
    status["goals"][0].clone()
}

/// The one unfinished Turn.
fn turn(world: &World) -> Value {
    let goal = look(world);
    let turns = goal["unfinished_turns"].as_array().expect("a Turn");
    assert_eq!(turns.len(), 1, "{goal}");
    turns[0].clone()
}

/// The printed command with its blanks filled in.
fn follow(world: &World, turn: &Value, host: &str) -> Value {
    let command = turn["next_command"].as_str().expect("a command");
    let mut words: Vec<String> = command.split(' ').map(str::to_owned).collect();
    assert_eq!(words.remove(0), "loopx");
    for at in 1..words.len() {
        words[at] = match (words[at - 1].as_str(), words[at].as_str()) {
            ("--project", "<dir>") => ".".to_owned(),
            ("--host-command-json", "<argv>") => host.to_owned(),
            ("--validation-command-json", "<argv>") => GOOD.to_owned(),
            (_, word) => word.to_owned(),
        };
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    world.run(&words).packet()
}

#[test]
fn a_killed_turn_is_shown_at_its_step_and_the_printed_command_finishes_it() {
    for (point, phase, owed, attempts) in [
        ("capture_row_committed", "captured", "host_execute", 0),
        ("journal_opened", "captured", "host_execute", 0),
        ("host_started", "host_started", "host_execute", 1),
        ("typed_result_stored", "typed_result", "validation", 1),
        ("validation_stored", "validation", "durable_writeback", 1),
        ("writeback_committed", "durable_writeback", "quota_spend", 1),
        ("spend_checkpointed", "quota_spend", "scheduler_apply", 1),
    ] {
        let (world, todo) = World::with_todo();
        let host = world.host("good.sh", "printf '%s' \"$result\"");
        let killed = world
            .turn_with("turn-1", &host, GOOD)
            .env("LOOPX_FAILPOINT", point)
            .prepared()
            .run();
        assert_eq!(killed.code, None, "{point}");
        let shown = turn(&world);
        assert_eq!(shown["phase"], phase, "{point}: {shown}");
        assert_eq!(shown["owed_step"], owed, "{point}: {shown}");
        assert_eq!(shown["host_attempt_count"], attempts, "{point}");
        assert_eq!(shown["agent_id"], "lane-a");
        assert_eq!(shown["running_since"], Value::Null, "nobody lives");
        assert_eq!(shown["blocked_by"], Value::Null);
        if point != "capture_row_committed" {
            assert_eq!(shown["binding_id"], todo.as_str());
        }
        let text = world.run(&["status"]).prepared().run().text();
        assert!(text.contains("Turn of lane-a"), "{text}");
        assert!(text.contains(owed), "{text}");
        let done = follow(&world, &shown, &host);
        assert_eq!(done["status"], "committed", "{point}: {done}");
        assert_eq!(look(&world)["unfinished_turns"], Value::Null, "{point}");
        assert_eq!(world.spent(), 1, "{point}");
    }
}

#[test]
fn a_running_host_is_shown_as_running_and_only_a_look_is_offered() {
    let (world, todo) = World::with_todo();
    // Outside of the sandbox, whose files are read as a whole.
    let pipes = tempfile::tempdir().expect("a folder");
    let [go, up] = ["go", "up"].map(|name| pipes.path().join(name));
    for pipe in [&go, &up] {
        let made = std::process::Command::new("mkfifo").arg(pipe).status();
        assert!(made.expect("mkfifo").success());
    }
    let (up_name, go_name) = (up.display(), go.display());
    let body = format!("echo up > {up_name}; cat {go_name}; printf '%s' \"$result\"");
    let host = world.host("host.sh", &body);
    let run = world.turn_with("turn-1", &host, GOOD).prepared();
    let mut child = run
        .command()
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut told = String::new();
    let mut up = File::open(&up).expect("the host runs");
    up.read_to_string(&mut told).expect("the host speaks");
    let shown = turn(&world);
    assert_eq!(shown["running_since"], "2026-09-18T09:00:00Z", "{shown}");
    assert_eq!(shown["phase"], "host_started");
    assert_eq!(shown["binding_id"], todo.as_str());
    let next = shown["next_command"].as_str().expect("a command");
    assert!(next.starts_with("loopx turn inspect-journal"), "{next}");
    let text = world.run(&["status"]).prepared().run().text();
    assert!(text.contains("running since 2026-09-18"), "{text}");
    let mut gate = File::options().write(true).open(&go).expect("a pipe");
    gate.write_all(b"").expect("opened");
    drop(gate);
    assert!(child.wait().expect("it ends").success());
    assert_eq!(look(&world)["unfinished_turns"], Value::Null);
    assert_eq!(world.spent(), 1);
}

#[test]
fn a_failed_turn_is_shown_while_it_is_the_newest_and_a_spent_budget_leads_to_a_new_one() {
    let (world, _) = World::with_todo();
    let bad = world.host("bad.sh", "exit 3");
    world.turn_with("turn-1", &bad, GOOD).refusal();
    let shown = turn(&world);
    assert_eq!(
        (&shown["status"], &shown["phase"]),
        (&"failed".into(), &"host_started".into())
    );
    let next = shown["next_command"].as_str().expect("a command");
    assert!(next.contains("--retry-failed-turn"), "{next}");
    let slow = world.host("slow.sh", "exec sleep 600");
    for _ in 0..2 {
        let limit = ["--retry-failed-turn", "--timeout-seconds", "1"];
        world
            .turn_with("turn-1", &slow, GOOD)
            .flag(&limit)
            .refusal();
    }
    let shown = turn(&world);
    assert_eq!(shown["blocked_by"], "host_retry_budget_exhausted");
    let next = shown["next_command"].as_str().expect("a command");
    assert_eq!(
        next,
        "loopx quota should-run --goal-id demo-goal --agent-id lane-a"
    );
    assert_eq!(world.turn("turn-2").packet()["status"], "committed");
    assert_eq!(look(&world)["unfinished_turns"], Value::Null, "left behind");
}

#[test]
fn a_turn_its_agent_wrote_back_and_did_not_pay_is_shown_with_the_owed_command() {
    let (world, todo) = World::with_todo();
    assert_eq!(look(&world)["unsettled_turns"], Value::Null);
    world.decide(&["--turn-instance-id", "turn-1", "--todo-id", &todo]);
    world.refresh(&todo, "turn-1", &[]).packet();
    let owed = look(&world)["unsettled_turns"][0].clone();
    assert_eq!(owed["prior_turn_instance_id"], "turn-1");
    assert_eq!(owed["agent_id"], "lane-a");
    assert_eq!(owed["missing_receipts"][0], "quota_spend_receipt");
    let text = world.run(&["status"]).prepared().run().text();
    assert!(text.contains("written back, not paid"), "{text}");
    follow(&world, &owed, "");
    assert_eq!(look(&world)["unsettled_turns"], Value::Null);
    assert_eq!(world.spent(), 1);
}
