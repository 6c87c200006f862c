//! Whom a todo is for, what a gate holds up, and the words a todo takes (docs/spec/kernel.md 4.1, 4.4, 5.2).

use serde_json::Value;

use crate::support::world::{GOAL, World};

fn add(words: &[&str]) -> Vec<String> {
    let head = ["todo", "add", "--goal-id", GOAL, "--text", "something"];
    let all = head.iter().chain(words);
    all.map(|word| (*word).to_owned()).collect()
}

fn run(world: &World, words: &[String]) -> Value {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    world.run(&words).packet()
}

fn misused(world: &World, words: &[String]) {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    world.run(&words).misused("invalid_arguments");
}

#[test]
fn a_global_gate_without_a_class_is_a_user_gate_and_holds_everybody_up() {
    for flags in [&["--global-gate"][..], &["--blocks-agent", "lane-a"]] {
        let (world, _) = World::with_todo();
        let gate = run(&world, &add(&[&["--role", "user"], flags].concat()));
        assert_eq!(gate["todo"]["task_class"], "user_gate");
        assert_eq!(
            world.decide(&[])["effective_action"],
            "operator_gate_notify"
        );
        let id = gate["todo_id"].as_str().expect("an id");
        let close = ["--todo-id", id, "--status", "done"];
        world
            .run(&[&["todo", "update", "--goal-id", GOAL][..], &close].concat())
            .refused("gate_decision_required");
    }
}

#[test]
fn what_only_a_gate_can_do_is_refused_on_any_other_todo() {
    let world = World::new();
    for role in [
        &["--role", "agent"][..],
        &["--role", "user", "--task-class", "user_action"],
    ] {
        misused(&world, &add(&[role, &["--global-gate"]].concat()));
        misused(
            &world,
            &add(&[role, &["--blocks-agent", "lane-a"]].concat()),
        );
    }
}

#[test]
fn a_gate_that_names_no_target_says_that_it_holds_nothing_up() {
    let world = World::new();
    let gate = ["--role", "user", "--task-class", "user_gate"];
    let bare = run(&world, &add(&gate));
    assert!(bare["next_step"].to_string().contains("--decision-scope"));
    let scoped = [&gate[..], &["--decision-scope", "production:goal:release"]].concat();
    assert_eq!(run(&world, &add(&scoped))["next_step"], Value::Null);
}

#[test]
fn no_writer_gives_a_todo_to_an_agent_it_is_not_for() {
    for keeps_away in [["--bound-agent", "lane-b"], ["--exclude-agent", "lane-a"]] {
        let world = World::new();
        world.register("lane-b");
        let todo = world.todo("for lane-b alone", &keeps_away);
        let at = ["--goal-id", GOAL, "--todo-id", &todo];
        let lease = ["--owner", "lane-a", "--idempotency-key", "k1"];
        for (head, tail) in [
            (["todo", "claim"], &["--agent-id", "lane-a"][..]),
            (["todo", "complete"], &["--agent-id", "lane-a"]),
            (
                ["todo", "update"],
                &["--agent-id", "lane-a", "--status", "done"],
            ),
            (["task-lease", "acquire"], &lease),
        ] {
            world
                .run(&[&head[..], &at, tail].concat())
                .refused("claim_owner_mismatch");
        }
        let theirs = ["--owner", "lane-b", "--idempotency-key", "k2"];
        world
            .run(&[&["task-lease", "acquire"][..], &at, &theirs].concat())
            .packet();
        let to = ["--new-owner", "lane-a", "--new-idempotency-key", "k3"];
        world
            .run(&[&["task-lease", "transfer"][..], &at, &theirs, &to].concat())
            .flag(&["--expected-version", "1"])
            .refused("claim_owner_mismatch");
        let complete = ["--agent-id", "lane-b", "--task-lease-idempotency-key", "k2"];
        world
            .run(&[&["todo", "complete"][..], &at, &complete].concat())
            .packet();
    }
}

#[test]
fn an_owner_that_is_kept_away_is_refused_from_the_start() {
    let world = World::new();
    world.register("lane-b");
    let owned = ["--role", "agent", "--claimed-by", "lane-a"];
    misused(
        &world,
        &add(&[&owned[..], &["--bound-agent", "lane-b"]].concat()),
    );
    misused(
        &world,
        &add(&[&owned[..], &["--exclude-agent", "lane-a"]].concat()),
    );
}

#[test]
fn conditions_and_cadences_that_mean_nothing_are_refused() {
    let (world, todo) = World::with_todo();
    misused(
        &world,
        &add(&["--role", "agent", "--resume-when", "garbage"]),
    );
    misused(&world, &add(&["--role", "agent", "--cadence", "sometimes"]));
    let update = ["todo", "update", "--goal-id", GOAL, "--todo-id", &todo];
    world
        .run(&[&update[..], &["--resume-when", "later"]].concat())
        .misused("invalid_arguments");
    run(&world, &add(&["--role", "agent", "--cadence", "30m"]));
}

#[test]
fn a_goal_that_waits_for_nobody_says_how_it_works_again() {
    let world = World::new();
    let clear = ["configure-goal", "--goal-id", GOAL, "--clear-waiting-on"];
    let cleared = world.run(&clear).execute().packet();
    assert_eq!(cleared["waiting_on"], Value::Null);
    let next = cleared["next_step"].as_str().expect("a sentence");
    assert!(next.contains("--waiting-on codex --execute"), "{next}");
    assert_eq!(world.decide(&[])["state"], "waiting");
    let back = ["configure-goal", "--goal-id", GOAL, "--waiting-on", "codex"];
    assert_eq!(
        world.run(&back).execute().packet()["next_step"],
        Value::Null
    );
}

#[test]
fn every_lease_command_takes_its_own_flags_alone() {
    let (world, todo) = World::with_todo();
    let at = ["--goal-id", GOAL, "--todo-id", &todo];
    let holder = ["--owner", "lane-a", "--idempotency-key", "k1"];
    for (action, foreign) in [
        ("acquire", ["--new-owner", "lane-b"]),
        ("renew", ["--write-scope", "src"]),
        ("release", ["--ttl-seconds", "60"]),
        ("transfer", ["--ttl-seconds", "60"]),
    ] {
        world
            .run(&[&["task-lease", action][..], &at, &holder, &foreign].concat())
            .misused("invalid_arguments");
    }
}
