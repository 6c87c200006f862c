//! What is decided late is decided on the state of that moment: leases, caps, pauses and rosters that change while a
//! host runs (docs/spec/kernel.md 3.1, 5.2, 11.1, 15).

use crate::support::world::{GOAL, World};

const TRUE: &str = "[\"/bin/true\"]";

/// A host that first runs one command of ours, then answers.
fn host_that_runs(world: &World, command: &str, answer: &str) -> String {
    let body = format!(
        "{} --registry \"$LOOPX_REGISTRY\" --runtime-root \"$LOOPX_RUNTIME_ROOT\" {command} --goal-id {GOAL} >did.txt 2>&1 || exit 9\n{answer}",
        env!("CARGO_BIN_EXE_loopx"),
    );
    world.host("meanwhile.sh", &body)
}

const PROGRESS: &str = "printf '%s' \"$result\"";
const COMPLETION: &str = "printf '%s' \"$result\" | sed s/validated_progress/validated_completion/";

fn completable() -> (World, String) {
    let (world, todo) = World::with_todo();
    world.register("lane-b");
    let update = ["todo", "update", "--goal-id", GOAL, "--todo-id", &todo];
    let intent = ["--completion-intent", "active_goal"];
    world.run(&[&update[..], &intent].concat()).packet();
    (world, todo)
}

fn status(world: &World, todo: &str) -> String {
    let list = world.run(&["todo", "list", "--goal-id", GOAL]).packet();
    let todos = list["todos"].as_array().expect("todos").clone();
    let found = todos.iter().find(|found| found["todo_id"] == todo);
    found.expect("the todo")["status"]
        .as_str()
        .expect("a word")
        .to_owned()
}

#[test]
fn a_lease_taken_meanwhile_keeps_the_driver_from_completing_and_its_end_lets_it() {
    let (world, todo) = completable();
    let take = format!("task-lease acquire --todo-id {todo} --owner lane-b --idempotency-key k");
    let host = host_that_runs(&world, &take, COMPLETION);
    let failed = world.turn_with("turn-1", &host, TRUE).refusal();
    assert_eq!(failed["error_code"], "todo_lease_conflict", "{failed}");
    assert_eq!(status(&world, &todo), "open");
    assert_eq!(world.spent(), 0);
    let release = [
        "task-lease",
        "release",
        "--goal-id",
        GOAL,
        "--todo-id",
        &todo,
    ];
    let proof = [
        "--owner",
        "lane-b",
        "--idempotency-key",
        "k",
        "--expected-version",
        "1",
    ];
    world.run(&[&release[..], &proof].concat()).packet();
    let retry = world.turn("turn-1").flag(&["--retry-failed-turn"]);
    assert_eq!(retry.packet()["status"], "committed");
    assert_eq!(status(&world, &todo), "done");
    assert_eq!((world.host_calls(), world.spent()), (1, 1));
}

#[test]
fn no_command_finishes_or_moves_a_todo_past_somebody_elses_lease() {
    let (world, todo) = completable();
    let other = world.todo("another", &[]);
    let lease = [
        "task-lease",
        "acquire",
        "--goal-id",
        GOAL,
        "--todo-id",
        &todo,
    ];
    let holder = ["--owner", "lane-b", "--idempotency-key", "k"];
    world.run(&[&lease[..], &holder].concat()).packet();
    let at = ["--goal-id", GOAL, "--todo-id", &todo];
    let by = ["--agent-id", "lane-a"];
    for words in [
        vec!["todo", "complete", "--agent-id", "lane-a"],
        vec!["todo", "update", "--status", "done"],
        vec!["todo", "update", "--status", "done", "--agent-id", "lane-a"],
        vec!["todo", "update", "--status", "done", "--agent-id", "lane-b"],
        vec![
            "todo",
            "update",
            "--status",
            "deferred",
            "--agent-id",
            "lane-a",
        ],
        vec![
            "todo",
            "supersede",
            "--superseded-by",
            &other,
            "--reason",
            "r",
        ],
        vec!["todo", "claim", "--claimed-by", "lane-a"],
    ] {
        world
            .run(&[&words[..], &at].concat())
            .refused("todo_lease_conflict");
    }
    let note = ["todo", "update", "--note", "seen"];
    world.run(&[&note[..], &at, &by].concat()).packet();
    let hold = ["todo", "update", "--status", "blocked", "--reason", "wait"];
    world.run(&[&hold[..], &at].concat()).packet();
    assert_eq!(status(&world, &todo), "blocked");
}

#[test]
fn a_cap_a_pause_or_a_stop_meanwhile_refuses_the_debit() {
    for (command, code) in [
        (
            "configure-goal --quota-allowed-slots 0 --execute",
            "budget_rejected",
        ),
        (
            "configure-goal --quota-compute 0 --execute",
            "quota_spend_rejected",
        ),
        (
            "goal-lifecycle --operation stop --reason r --execute",
            "quota_spend_rejected",
        ),
        (
            "goal-lifecycle --operation archive --reason r --execute",
            "quota_spend_rejected",
        ),
    ] {
        let (world, _) = World::with_todo();
        let host = host_that_runs(&world, command, PROGRESS);
        let failed = world.turn_with("turn-1", &host, TRUE).refusal();
        assert_eq!(failed["error_code"], code, "{command}: {failed}");
        assert_eq!(failed["effects"]["quota_spent"], false, "{command}");
        let sql = "SELECT COUNT(*) FROM spends";
        let spends: i64 = world
            .store()
            .query_row(sql, [], |row| row.get(0))
            .expect("a count");
        assert_eq!(spends, 0, "{command}");
    }
}

#[test]
fn an_agent_taken_off_the_roster_meanwhile_writes_nothing_back() {
    let (world, _) = World::with_todo();
    let command = "configure-goal --registered-agent lane-b --execute";
    let host = host_that_runs(&world, command, PROGRESS);
    let failed = world.turn_with("turn-1", &host, TRUE).refusal();
    assert_eq!(failed["error_code"], "actor_not_registered", "{failed}");
    assert!(world.runs().is_empty());
    world.register("lane-a");
    let retry = world.turn("turn-1").flag(&["--retry-failed-turn"]);
    assert_eq!(retry.packet()["status"], "committed");
    assert_eq!((world.host_calls(), world.spent()), (1, 1));
}

#[test]
fn a_todo_does_not_follow_itself() {
    let (world, todo) = World::with_todo();
    let at = ["--goal-id", GOAL, "--todo-id", &todo];
    for words in [
        vec![
            "todo",
            "complete",
            "--agent-id",
            "lane-a",
            "--successor-todo-id",
            &todo,
        ],
        vec![
            "todo",
            "update",
            "--completion-intent",
            "successor",
            "--successor-todo-id",
            &todo,
        ],
        vec![
            "todo",
            "supersede",
            "--superseded-by",
            &todo,
            "--reason",
            "r",
        ],
    ] {
        world
            .run(&[&words[..], &at].concat())
            .misused("invalid_arguments");
    }
    assert_eq!(status(&world, &todo), "open");
}

#[test]
fn the_work_of_a_turn_is_written_back_and_paid_and_changes_no_todo_that_is_anothers_by_then() {
    let at = |todo: &str| ["--goal-id", GOAL, "--todo-id", todo].map(str::to_owned);
    let commands: [&[&str]; 3] = [
        &["todo", "complete", "--agent-id", "lane-b"],
        &["todo", "claim", "--claimed-by", "lane-b"],
        &[
            "task-lease",
            "acquire",
            "--owner",
            "lane-b",
            "--idempotency-key",
            "k",
        ],
    ];
    for command in commands {
        let (world, todo) = completable();
        world.decide(&["--turn-instance-id", "turn-1", "--todo-id", &todo]);
        let at = at(&todo);
        let at: Vec<&str> = at.iter().map(String::as_str).collect();
        world.run(&[command, &at].concat()).packet();
        let record = |world: &World| {
            let sql = "SELECT body_json, revision FROM todos WHERE todo_id=?1";
            let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
            let found: (String, i64) = world.store().query_row(sql, [&todo], read).expect("a todo");
            found
        };
        let before = record(&world);
        let done = world.refresh(&todo, "turn-1", &["--settle-turn"]).packet();
        assert_eq!(
            done["settlement_progress"]["state"], "settled",
            "{command:?}"
        );
        assert_eq!(record(&world), before, "{command:?}");
        assert_eq!(world.spent(), 1);
        // Finishing it stays the other's.
        let complete = ["todo", "complete", "--agent-id", "lane-a"];
        let turn = ["--turn-instance-id", "turn-1", "--no-follow-up"];
        world.run(&[&complete[..], &at, &turn].concat()).refusal();
        assert_eq!(record(&world), before, "{command:?}");
    }
}
