//! Leases end with their todo (docs/spec/kernel.md 4.3).

use serde_json::Value;

use crate::support::world::{GOAL, World};

const SCOPE: [&str; 2] = ["--write-scope", "src/**"];

fn lease(world: &World, action: &str, todo: &str, more: &[&str]) -> Value {
    let head = ["task-lease", action, "--goal-id", GOAL, "--todo-id", todo];
    world.run(&[&head[..], more].concat()).packet()["lease"].clone()
}

fn acquire(world: &World, todo: &str, owner: &str, key: &str) -> Value {
    let holder = ["--owner", owner, "--idempotency-key", key];
    lease(world, "acquire", todo, &[&holder[..], &SCOPE].concat())
}

#[test]
fn a_completed_todo_gives_its_lease_back_at_once_and_its_paths_are_free() {
    let (world, todo) = World::with_todo();
    let other = world.todo("another", &[]);
    let held = acquire(&world, &todo, "lane-a", "k1");
    assert_eq!(held["status"], "active");
    let complete = ["todo", "complete", "--goal-id", GOAL, "--todo-id", &todo];
    let proof = ["--agent-id", "lane-a", "--task-lease-idempotency-key", "k1"];
    world.run(&[&complete[..], &proof].concat()).packet();
    let ended = lease(&world, "inspect", &todo, &[]);
    assert_eq!(ended["status"], "released");
    assert_eq!(ended["version"], 2);
    assert_eq!(ended["lease_epoch"], held["lease_epoch"]);
    let events = world.events();
    let last = events.iter().rfind(|event| event["event_kind"] == "lease");
    assert_eq!(last.expect("an event")["status"], "release");
    assert_eq!(acquire(&world, &other, "lane-a", "k2")["status"], "active");
    let release = [
        "task-lease",
        "release",
        "--goal-id",
        GOAL,
        "--todo-id",
        &todo,
    ];
    let proof = ["--owner", "lane-a", "--idempotency-key", "k1"];
    world
        .run(&[&release[..], &proof].concat())
        .flag(&["--expected-version", "2"])
        .refused("lease_not_active");
}

#[test]
fn a_driven_completion_ends_the_lease_with_its_writeback() {
    let (world, todo) = World::with_todo();
    let update = ["todo", "update", "--goal-id", GOAL, "--todo-id", &todo];
    let intent = ["--completion-intent", "active_goal"];
    world.run(&[&update[..], &intent].concat()).packet();
    acquire(&world, &todo, "lane-a", "k1");
    let body = "printf '%s' \"$result\" | sed s/validated_progress/validated_completion/";
    let host = world.host("completes.sh", body);
    let done = world.turn_with("turn-1", &host, "[\"/bin/true\"]").packet();
    assert_eq!(done["status"], "committed");
    assert_eq!(lease(&world, "inspect", &todo, &[])["status"], "released");
}

#[test]
fn paths_that_may_meet_are_leased_once() {
    let (world, todo) = World::with_todo();
    let other = world.todo("another", &[]);
    let holder = |key| ["--owner", "lane-a", "--idempotency-key", key];
    let ask = |todo: &str, key, scope| {
        let head = [
            "task-lease",
            "acquire",
            "--goal-id",
            GOAL,
            "--todo-id",
            todo,
        ];
        let scope = ["--write-scope", scope];
        world.run(&[&head[..], &holder(key), &scope].concat())
    };
    ask(&todo, "k1", "src/a*").packet();
    for scope in ["src/ab.rs", "./src//a.rs", "src/*/x.rs", "docs/../src/a"] {
        ask(&other, "k2", scope).refused("write_scope_conflict");
    }
    assert_eq!(ask(&other, "k2", "src/b.rs").packet()["ok"], true);
}
