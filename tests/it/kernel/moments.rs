//! A host may run for hours: what follows it is judged and stamped by the clock of its own moment, and what came last is told by
//! the order of events (docs/spec/kernel.md 3.2, 9.4).

use serde_json::Value;

use crate::support::world::{GOAL, Kernel, World};

const START: &str = "2026-09-18T09:00:00Z";
const LATER: &str = "2026-09-18T12:00:00Z";
const ANSWER: &str = "printf '%s' \"$result\" | sed s/validated_progress/validated_completion/";

/// A todo with this intent, and a clock that hosts and tests move on.
fn begun(intent: &str) -> (World, String, String) {
    let (world, todo) = World::with_todo();
    world.register("lane-b");
    let update = ["todo", "update", "--goal-id", GOAL, "--todo-id", &todo];
    let intent = ["--completion-intent", intent];
    world.run(&[&update[..], &intent].concat()).packet();
    let clock = world.sandbox.file("clock", START);
    let clock = format!("@{}", clock.to_string_lossy());
    (world, todo, clock)
}

/// A Turn whose host does this before it answers.
fn turn<'a>(world: &'a World, clock: &str, body: &str) -> Kernel<'a> {
    let host = world.host("moves.sh", &format!("{body}\n{ANSWER}"));
    let turn = world.turn_with("turn-1", &host, "[\"/bin/true\"]");
    turn.now(clock)
}

fn ours(command: &str) -> String {
    format!(
        "{} --registry \"$LOOPX_REGISTRY\" --runtime-root \"$LOOPX_RUNTIME_ROOT\" {command} --goal-id {GOAL} >did.txt 2>&1 || exit 9",
        env!("CARGO_BIN_EXE_loopx"),
    )
}

fn moved(instant: &str) -> String {
    format!("echo {instant} > clock")
}

fn completed_at(world: &World, todo: &str) -> Value {
    let list = world.run(&["todo", "list", "--goal-id", GOAL]).packet();
    let todos = list["todos"].as_array().expect("todos");
    let found = todos.iter().find(|found| found["todo_id"] == todo);
    found.expect("the todo")["completed_at"].clone()
}

#[test]
fn what_a_turn_writes_is_stamped_after_its_host_and_counts_from_then() {
    let (world, todo, clock) = begun("active_goal");
    let done = turn(&world, &clock, &moved(LATER)).packet();
    assert_eq!(done["status"], "committed", "{done}");
    assert_eq!(completed_at(&world, &todo), LATER);
    let early: i64 = world
        .store()
        .query_row(
            "SELECT COUNT(*) FROM runs WHERE generated_at < '2026-09-18T12'",
            [],
            |row| row.get(0),
        )
        .expect("a count");
    assert_eq!(early, 0, "no run of the Turn is older than its work");
    // A day after the start the slot is still inside the window, a day after the spend it is not.
    for (instant, slots) in [("2026-09-19T10:00:00Z", 1), ("2026-09-19T13:00:00Z", 0)] {
        let decision = world.ask("lane-a", &[]).now(instant).packet();
        assert_eq!(decision["quota"]["spent_slots"], slots, "{instant}");
    }
}

#[test]
fn a_validator_that_runs_long_moves_the_moment_too() {
    let (world, todo, clock) = begun("active_goal");
    let host = world.host("answers.sh", ANSWER);
    let validator = format!("[\"/bin/sh\",\"-c\",\"{}\"]", moved(LATER));
    let done = world.turn_with("turn-1", &host, &validator).now(&clock);
    assert_eq!(done.packet()["status"], "committed");
    assert_eq!(completed_at(&world, &todo), LATER);
}

#[test]
fn a_lease_that_ran_out_while_the_host_ran_stops_nothing() {
    let (world, todo, clock) = begun("active_goal");
    let take = format!(
        "task-lease acquire --todo-id {todo} --owner lane-b --idempotency-key k --ttl-seconds 60"
    );
    let body = format!("{}\n{}", ours(&take), moved(LATER));
    let done = turn(&world, &clock, &body).packet();
    assert_eq!(done["status"], "committed", "{done}");
    assert_eq!(completed_at(&world, &todo), LATER);
}

#[test]
fn the_last_completion_is_the_last_event_whatever_the_clock_says() {
    let (world, _, clock) = begun("no_followup");
    let other = world.todo("Another", &["--claimed-by", "lane-b"]);
    let finish = format!("todo complete --todo-id {other} --agent-id lane-b");
    // The clock is set back after the other todo was completed: the Turn is the later one all the same.
    let body = format!("{}\n{}\n{}", moved(LATER), ours(&finish), moved(START));
    let done = turn(&world, &clock, &body).packet();
    assert_eq!(done["status"], "committed", "{done}");
    assert_eq!(completed_at(&world, &other), LATER);
    let decision = world.ask("lane-a", &[]).now(LATER).packet();
    assert_eq!(decision["state"], "terminal_no_followup", "{decision}");
}
