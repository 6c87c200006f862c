//! Many processes on one goal: one writer at a time, one spend a Turn, and never more than the cap.

use std::process::Child;

use serde_json::Value;

use crate::support::world::{GOAL, World};

pub(super) fn start(world: &World, commands: &[Vec<&str>]) -> Vec<Child> {
    let spawn = |args: &Vec<&str>| {
        world
            .run(args)
            .prepared()
            .command()
            .spawn()
            .expect("starts")
    };
    commands.iter().map(spawn).collect()
}

pub(super) fn codes(children: Vec<Child>) -> Vec<Option<i32>> {
    let wait = |child: Child| child.wait_with_output().expect("ends").status.code();
    children.into_iter().map(wait).collect()
}

#[test]
fn sixteen_processes_on_one_turn_start_one_host_and_spend_once() {
    let (world, _) = World::with_todo();
    let host = world.host("good.sh", "printf '%s' \"$result\"");
    let command = vec![
        "turn",
        "run-once",
        "--goal-id",
        GOAL,
        "--agent-id",
        "lane-a",
        "--turn-instance-id",
        "turn-1",
        "--project",
        ".",
        "--host-command-json",
        &host,
        "--validation-command-json",
        "[\"/bin/true\"]",
        "--execute",
        "--format",
        "json",
    ];
    let mut winners = 0;
    for child in start(&world, &vec![command; 16]) {
        let done = child.wait_with_output().expect("ends");
        let packet: Value = serde_json::from_slice(&done.stdout).expect("a packet");
        if done.status.code() == Some(0) {
            assert_eq!(packet["status"], "committed", "{packet}");
            winners += u32::from(packet["replayed"] == false);
        } else {
            assert_eq!(done.status.code(), Some(1), "{packet}");
            assert_eq!(packet["error_code"], "turn_lane_in_flight", "{packet}");
            assert_eq!(packet["in_flight"]["agent_id"], "lane-a", "{packet}");
        }
    }
    assert_eq!(winners, 1);
    assert_eq!(world.turn("turn-1").packet()["status"], "committed");
    assert_eq!(world.host_calls(), 1);
    assert_eq!(world.spent(), 1);
}

#[test]
fn equal_writebacks_and_spends_from_many_processes_are_one() {
    let (world, todo) = World::with_todo();
    world.decide(&["--turn-instance-id", "turn-1", "--todo-id", &todo]);
    let refresh = vec![
        "refresh-state",
        "--goal-id",
        GOAL,
        "--agent-id",
        "lane-a",
        "--todo-id",
        &todo,
        "--turn-instance-id",
        "turn-1",
        "--classification",
        "step_done",
        "--delivery-outcome",
        "outcome_progress",
        "--settle-turn",
    ];
    let ends = codes(start(&world, &vec![refresh; 8]));
    assert!(ends.iter().all(|code| *code == Some(0)), "{ends:?}");
    assert_eq!(world.runs(), ["quota_slot_spent", "step_done"]);
    assert_eq!(world.spent(), 1);
}

#[test]
fn racing_spends_never_pass_the_cap_and_the_store_stays_sound() {
    let world = World::new();
    let lanes = ["lane-a", "lane-b", "lane-c", "lane-d"];
    let mut turns = Vec::new();
    for lane in lanes {
        world.register(lane);
        let todo = world.todo(lane, &["--claimed-by", lane]);
        world.ask(lane, &["--turn-instance-id", "turn-1"]).packet();
        let refresh = [
            "refresh-state",
            "--goal-id",
            GOAL,
            "--agent-id",
            lane,
            "--todo-id",
            &todo,
            "--turn-instance-id",
            "turn-1",
        ];
        world
            .run(&refresh)
            .flag(&["--delivery-outcome", "outcome_progress"])
            .packet();
        turns.push((lane, todo));
    }
    world.configure(&["--quota-allowed-slots", "2"]);
    let commands: Vec<Vec<&str>> = turns
        .iter()
        .map(|(lane, todo)| {
            vec![
                "quota",
                "spend-slot",
                "--goal-id",
                GOAL,
                "--agent-id",
                lane,
                "--todo-id",
                todo,
                "--turn-instance-id",
                "turn-1",
                "--execute",
            ]
        })
        .collect();
    let ends = codes(start(&world, &commands));
    assert_eq!(
        ends.iter().filter(|code| **code == Some(0)).count(),
        2,
        "{ends:?}"
    );
    assert_eq!(world.spent(), 2);
    assert_eq!(world.outcome().3, "ok");
}

#[test]
fn a_claim_has_one_winner() {
    let (world, todo) = World::with_todo();
    world.register("lane-b");
    let claim = |lane| {
        vec![
            "todo",
            "claim",
            "--goal-id",
            GOAL,
            "--todo-id",
            &todo,
            "--claimed-by",
            lane,
        ]
    };
    let commands: Vec<Vec<&str>> = (0..8)
        .map(|index| claim(["lane-a", "lane-b"][index % 2]))
        .collect();
    let ends = codes(start(&world, &commands));
    assert_eq!(
        ends.iter().filter(|code| **code == Some(0)).count(),
        4,
        "{ends:?}"
    );
}

#[test]
fn one_poll_of_a_turn_closes_it_whoever_comes_first() {
    let world = World::new();
    let due = ["--task-class", "continuous_monitor", "--next-due-at"];
    let todo = world.todo("Watch", &[&due[..], &["2026-01-01T00:00:00Z"]].concat());
    world.decide(&["--turn-instance-id", "turn-1", "--todo-id", &todo]);
    let poll = vec![
        "quota",
        "monitor-poll",
        "--goal-id",
        GOAL,
        "--agent-id",
        "lane-a",
        "--todo-id",
        &todo,
        "--turn-instance-id",
        "turn-1",
        "--result",
        "unchanged",
        "--execute",
    ];
    let ends = codes(start(&world, &vec![poll; 8]));
    assert!(ends.iter().all(|code| *code == Some(0)), "{ends:?}");
    let kind = |event: &serde_json::Value| event["event_kind"] == "quota_monitor_poll";
    assert_eq!(world.events().iter().filter(|event| kind(event)).count(), 1);
    let other = [
        "quota",
        "monitor-poll",
        "--goal-id",
        GOAL,
        "--agent-id",
        "lane-a",
        "--execute",
    ];
    let at = [
        "--todo-id",
        &todo,
        "--turn-instance-id",
        "turn-1",
        "--result",
        "changed",
    ];
    world
        .run(&other)
        .flag(&at)
        .refused("committed_writeback_payload_conflict");
}
