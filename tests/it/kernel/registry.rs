//! The registry under several writers, killed writers, pointers and files that are none.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::{Value, json};

use super::race::{codes, start};
use crate::support::world::{GOAL, World};

const SECOND: [&str; 5] = ["bootstrap", "--goal-id", "second", "--title", "Second"];

fn registry(world: &World) -> PathBuf {
    world.sandbox.project().join(".loopx/registry.json")
}

fn entries(path: &PathBuf, goal: &str) -> usize {
    let text = fs::read_to_string(path).expect("a registry");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    let goals = document["goals"].as_array().expect("goals");
    goals.iter().filter(|entry| entry["id"] == goal).count()
}

fn status(world: &World) -> Value {
    world.run(&["status"]).packet()
}

#[test]
fn one_goal_made_by_many_processes_is_one_entry() {
    let world = World::new();
    let ends = codes(start(&world, &vec![SECOND.to_vec(); 8]));
    assert!(ends.iter().all(|code| *code == Some(0)), "{ends:?}");
    assert_eq!(entries(&registry(&world), "second"), 1);
    status(&world);
}

#[test]
fn a_goal_of_another_registry_is_made_there() {
    let world = World::new();
    let shared = world.sandbox.file("shared.json", r#"{"goals":[]}"#);
    let mut document: Value =
        serde_json::from_slice(&fs::read(registry(&world)).expect("read")).expect("JSON");
    document["goals"]
        .as_array_mut()
        .expect("goals")
        .push(json!({"id": "second", "source_registry": "../shared.json"}));
    fs::write(registry(&world), document.to_string()).expect("written");
    world.run(&SECOND).packet();
    assert_eq!(entries(&registry(&world), "second"), 1);
    assert_eq!(entries(&shared, "second"), 1);
    let again = world.run(&SECOND).packet();
    assert_eq!(again["changed"], false);
}

#[test]
fn only_one_process_registers_a_new_agent() {
    let world = World::new();
    let args = [
        "register-agent",
        "--goal-id",
        GOAL,
        "--agent-id",
        "lane-b",
        "--require-new",
        "--execute",
    ];
    let ends = codes(start(&world, &vec![args.to_vec(); 8]));
    let won = ends.iter().filter(|code| **code == Some(0)).count();
    assert_eq!(won, 1, "{ends:?}");
    world.run(&args).refused("agent_exists");
}

#[test]
fn equal_gate_decisions_of_many_processes_are_one() {
    let world = World::new();
    let args = [
        "operator-gate",
        "--goal-id",
        GOAL,
        "--gate",
        "launch",
        "--decision",
        "approve",
    ];
    let ends = codes(start(&world, &vec![args.to_vec(); 8]));
    assert!(ends.iter().all(|code| *code == Some(0)), "{ends:?}");
    let rows: i64 = world
        .store()
        .query_row("SELECT count(*) FROM gate_decisions", [], |row| row.get(0))
        .expect("a count");
    assert_eq!(rows, 1);
}

#[test]
fn a_gate_that_is_set_again_takes_a_new_decision() {
    let world = World::new();
    let decide = || {
        let args = [
            "operator-gate",
            "--goal-id",
            GOAL,
            "--gate",
            "launch",
            "--decision",
            "approve",
        ];
        world.run(&args).packet()
    };
    let set = || world.configure(&["--missing-gate", "launch", "--waiting-on", "controller"]);
    set();
    assert_eq!(decide()["changed"], true);
    assert_eq!(decide()["changed"], false);
    set();
    assert_eq!(decide()["changed"], true);
    assert_eq!(decide()["changed"], false);
    assert_eq!(
        world.runs(),
        ["operator_gate_approved", "operator_gate_approved"]
    );
}

#[test]
fn two_goals_whose_turns_join_to_one_identity_are_told_apart() {
    let world = World::new();
    let mut todos = Vec::new();
    for (goal, agent) in [("g", "a:b"), ("g:a", "b")] {
        let made = ["bootstrap", "--goal-id", goal, "--title", "T"];
        world.run(&made).packet();
        let known = ["register-agent", "--goal-id", goal, "--agent-id", agent];
        world.run(&known).execute().packet();
        let add = ["todo", "add", "--goal-id", goal, "--role", "agent"];
        let todo = world.run(&add).flag(&["--text", "Same words"]).packet();
        todos.push(todo["todo_id"].clone());
    }
    let ask = |goal: &'static str, agent: &'static str| {
        let args = [
            "quota",
            "should-run",
            "--goal-id",
            goal,
            "--agent-id",
            agent,
        ];
        world.run(&args).flag(&["--turn-instance-id", "turn-1"])
    };
    let host = world.host("good.sh", "printf '%s' \"$result\"");
    let turn = |goal: &str, agent: &str| {
        let args = [
            "turn",
            "run-once",
            "--goal-id",
            goal,
            "--agent-id",
            agent,
            "--turn-instance-id",
            "turn-2",
            "--project",
            ".",
            "--host-command-json",
            &host,
            "--validation-command-json",
            "[\"/bin/true\"]",
            "--execute",
        ];
        world.run(&args).packet()
    };
    let refused_turn = |goal: &str, agent: &str| {
        let args = [
            "turn",
            "run-once",
            "--goal-id",
            goal,
            "--agent-id",
            agent,
            "--turn-instance-id",
            "turn-2",
            "--project",
            ".",
            "--host-command-json",
            &host,
            "--validation-command-json",
            "[\"/bin/true\"]",
            "--execute",
        ];
        world
            .run(&args)
            .refused("heartbeat_receipt_identity_conflict");
    };
    assert_eq!(turn("g", "a:b")["status"], "committed");
    ask("g", "a:b").packet();
    match todos[0] == todos[1] {
        true => {
            ask("g:a", "b").refused("heartbeat_receipt_identity_conflict");
            refused_turn("g:a", "b");
            assert_eq!(world.host_calls(), 1);
        }
        false => {
            ask("g:a", "b").packet();
        }
    }
}

/// Events of one kind in the goal.
fn configs(world: &World, goal: &str) -> usize {
    let path = world
        .runtime()
        .join("goals")
        .join(goal)
        .join("rollout-event-log.jsonl");
    let text = fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("an event"))
        .filter(|event| event["event_kind"] == "goal_config")
        .count()
}

#[test]
fn an_entry_written_before_a_kill_is_recorded_by_the_next_command() {
    let world = World::new();
    let killed = world
        .run(&SECOND)
        .env("LOOPX_FAILPOINT", "registry_replaced")
        .prepared()
        .run();
    assert_eq!(killed.code, None, "{}", killed.text());
    assert_eq!(configs(&world, "second"), 0);
    assert_eq!(world.run(&SECOND).packet()["changed"], false);
    assert_eq!(configs(&world, "second"), 1);
    world.run(&SECOND).packet();
    assert_eq!(configs(&world, "second"), 1);

    let path = registry(&world);
    let text = fs::read_to_string(&path).expect("read");
    fs::write(&path, text.replace("\"Second\"", "\"By hand\"")).expect("written");
    let add = [
        "todo",
        "add",
        "--goal-id",
        "second",
        "--role",
        "agent",
        "--text",
        "First",
    ];
    world.run(&add).packet();
    assert_eq!(configs(&world, "second"), 2);
}

#[test]
fn a_killed_registration_is_recorded_by_its_repeat() {
    let world = World::new();
    let before = configs(&world, GOAL);
    let args = [
        "register-agent",
        "--goal-id",
        GOAL,
        "--agent-id",
        "lane-b",
        "--execute",
    ];
    let killed = world
        .run(&args)
        .env("LOOPX_FAILPOINT", "registry_replaced")
        .prepared()
        .run();
    assert_eq!(killed.code, None, "{}", killed.text());
    world.run(&args).packet();
    assert_eq!(configs(&world, GOAL), before + 1);
}

#[test]
fn a_pipe_in_place_of_the_registry_is_refused_at_once() {
    let world = World::new();
    let path = registry(&world);
    fs::remove_file(&path).expect("removed");
    let made = Command::new("mkfifo").arg(&path).status().expect("mkfifo");
    assert!(made.success());
    // A command that waited for the pipe would be ended with another code.
    world
        .run(&["status"])
        .prepared()
        .around(&["timeout", "5"])
        .refusal();
}

#[test]
fn the_ranking_shows_a_goal_of_another_registry_as_it_stands_there() {
    let world = World::new();
    world.configure(&["--quota-allowed-slots", "3"]);
    let pointer =
        json!({"goals": [{"id": GOAL, "source_registry": "project/.loopx/registry.json"}]});
    let name = world
        .sandbox
        .project()
        .file_name()
        .expect("a name")
        .to_owned();
    let pointer = pointer
        .to_string()
        .replace("project/", &format!("{}/", name.to_string_lossy()));
    let shared = world.sandbox.root().join("shared.json");
    fs::write(&shared, pointer).expect("written");
    let shared = shared.to_string_lossy().into_owned();
    let rank = |more: &[&str]| {
        let head = ["quota", "status", "--registry", &shared];
        world.run(&[&head[..], more].concat()).packet()["goals"].clone()
    };
    let own = world.run(&["quota", "status"]).packet()["goals"].clone();
    assert_eq!(rank(&[]), own);
    assert_eq!(own[0]["quota"]["allowed_slots"], 3, "{own}");
    let lifecycle = [
        "goal-lifecycle",
        "--goal-id",
        GOAL,
        "--operation",
        "archive",
    ];
    world.run(&lifecycle).execute().packet();
    assert_eq!(rank(&[]), json!([]));
    assert_eq!(rank(&["--include-archived"])[0]["goal_id"], GOAL);
}
