//! The rows of the decision table, reached by commands.

use crate::support::world::{GOAL, World};

fn row(world: &World, more: &[&str]) -> (String, bool, String) {
    let packet = world.decide(more);
    let plan = world
        .run(&["turn", "plan", "--goal-id", GOAL, "--agent-id", "lane-a"])
        .flag(more)
        .prepared()
        .packet();
    (
        packet["effective_action"]
            .as_str()
            .expect("an action")
            .to_owned(),
        packet["should_run"].as_bool().expect("a flag"),
        plan["route"]["kind"].as_str().expect("a route").to_owned(),
    )
}

fn is(action: &str, should_run: bool, route: &str) -> (String, bool, String) {
    (action.to_owned(), should_run, route.to_owned())
}

#[test]
fn who_asks_is_judged_first() {
    let (world, _) = World::with_todo();
    world.ask("9lane", &[]).refused("quota_agent_id_invalid");
    world
        .ask("lane-z", &[])
        .refused("quota_agent_not_registered");
    let unknown = world
        .run(&["quota", "should-run", "--goal-id", "absent"])
        .refused("goal_not_found");
    assert_eq!(unknown["state"], "unknown");
}

#[test]
fn quota_states_end_the_decision_in_their_order() {
    let (world, _) = World::with_todo();
    assert_eq!(row(&world, &[]), is("normal_run", true, "ready_for_host"));
    world.configure(&["--quota-allowed-slots", "0"]);
    assert_eq!(row(&world, &[]), is("throttled_skip", false, "wait"));
    world.configure(&["--focus-wait"]);
    assert_eq!(row(&world, &[]), is("blocked_wait", false, "wait"));
    world.configure(&["--waiting-on", "user_or_controller"]);
    assert_eq!(
        row(&world, &[]),
        is("operator_gate_notify", false, "user_action_required")
    );
    world.configure(&["--severity", "high"]);
    assert_eq!(row(&world, &[]).0, "blocked_health");
    world.configure(&["--quota-compute", "0"]);
    assert_eq!(row(&world, &[]), is("quota_skip", false, "wait"));
}

#[test]
fn gates_cover_ask_and_leave_other_work_free() {
    let world = World::new();
    let scope = "production:goal:release";
    let gated = world.todo(
        "publish",
        &["--required-decision-scope", scope, "--priority", "P0"],
    );
    let gate = world.gate("May we?", &["--decision-scope", scope]);
    assert_eq!(
        row(&world, &[]),
        is("operator_gate_notify", false, "user_action_required")
    );
    world.todo("measure", &[]);
    assert_eq!(
        row(&world, &[]),
        is("scoped_user_gate_fallback", true, "ready_for_host")
    );
    let head = ["todo", "update", "--goal-id", GOAL, "--todo-id", &gate];
    world
        .run(&head)
        .flag(&["--status", "done"])
        .refused("gate_decision_required");
    world
        .run(&head)
        .flag(&["--decision-outcome", "reject"])
        .packet();
    assert_ne!(
        world.decide(&[])["selected_todo"]["todo_id"],
        gated.as_str()
    );
    world
        .run(&head)
        .flag(&["--decision-outcome", "approve"])
        .packet();
    assert_eq!(
        world.decide(&[])["selected_todo"]["todo_id"],
        gated.as_str()
    );
}

#[test]
fn scope_rows_say_whose_the_work_is() {
    let world = World::new();
    world.register("lane-b");
    assert_eq!(
        row(&world, &[]),
        is("successor_replan_required", true, "replan_required")
    );
    let todo = world.todo("theirs", &["--claimed-by", "lane-b"]);
    assert_eq!(row(&world, &[]), is("agent_scope_wait", false, "wait"));
    world.configure(&["--registered-agent", "lane-a"]);
    assert_eq!(row(&world, &[]), is("reassignment_required", false, "wait"));
    let head = ["todo", "update", "--goal-id", GOAL, "--todo-id", &todo];
    world
        .run(&head)
        .flag(&["--clear-claim", "--status", "blocked", "--reason", "parts"])
        .packet();
    assert_eq!(row(&world, &[]), is("agent_scope_exhausted", false, "wait"));
}

#[test]
fn a_missing_capability_asks_for_a_repair_only_when_nothing_else_runs() {
    let world = World::new();
    world.todo("fetch", &["--required-capability", "network"]);
    assert_eq!(
        row(&world, &[]),
        is("capability_bridge_repair", true, "repair_required")
    );
    assert_eq!(
        row(&world, &["--available-capability", "network"]).0,
        "normal_run"
    );
    world.todo("measure", &[]);
    assert_eq!(row(&world, &[]).0, "normal_run");
}

#[test]
fn monitors_run_when_due_and_stay_quiet_otherwise() {
    let world = World::new();
    let due = [
        "--task-class",
        "continuous_monitor",
        "--next-due-at",
        "2026-09-18T08:00:00Z",
    ];
    let todo = world.todo("watch", &due);
    assert_eq!(row(&world, &[]), is("monitor_due", true, "ready_for_host"));
    world
        .run(&[
            "quota",
            "monitor-poll",
            "--goal-id",
            GOAL,
            "--agent-id",
            "lane-a",
            "--todo-id",
            &todo,
        ])
        .flag(&[
            "--result",
            "unchanged",
            "--next-due-at",
            "2027-01-01T00:00:00Z",
            "--execute",
        ])
        .packet();
    assert_eq!(row(&world, &[]), is("monitor_quiet_skip", false, "wait"));
    world.configure(&["--agent-work-mode", "lane-a=monitor_only"]);
    world.todo("work", &[]);
    assert_eq!(row(&world, &[]), is("agent_monitor_only", false, "wait"));
}

#[test]
fn a_written_back_turn_is_paid_before_anything_new() {
    let (world, todo) = World::with_todo();
    world.decide(&["--turn-instance-id", "turn-1"]);
    world.refresh(&todo, "turn-1", &[]).packet();
    let packet = world.decide(&["--turn-instance-id", "turn-2"]);
    assert_eq!(packet["effective_action"], "unsettled_host_turn_recovery");
    assert_eq!(
        packet["unsettled_host_turn_recovery"]["prior_turn_instance_id"],
        "turn-1"
    );
    assert!(packet.get("heartbeat_receipt").is_none());
    assert_eq!(row(&world, &[]).2, "blocked");
    world.configure(&["--quota-allowed-slots", "0"]);
    let full = world.decide(&[]);
    assert_eq!(full["effective_action"], "throttled_skip");
    assert_eq!(full["settlement_owed"]["kind"], "quota_spend");
    world.configure(&["--quota-allowed-slots", "default"]);
    world.spend(&todo, "turn-1").packet();
    let settled = world.decide(&["--turn-instance-id", "turn-1"]);
    assert_eq!(settled["effective_action"], "heartbeat_settled_skip");
}

#[test]
fn a_named_todo_is_looked_at_alone() {
    let world = World::new();
    world.register("lane-b");
    world.todo("first", &["--priority", "P0"]);
    let late = world.todo("late", &["--resume-when", "2027-01-01T00:00:00Z"]);
    let theirs = world.todo("theirs", &["--claimed-by", "lane-b"]);
    assert_eq!(
        world.decide(&["--todo-id", &late])["effective_action"],
        "agent_scope_wait"
    );
    world
        .ask("lane-a", &["--todo-id", &theirs])
        .refused("claim_owner_mismatch");
    world
        .ask("lane-a", &["--todo-id", "todo_000000000000"])
        .refused("todo_not_found");
    let waiting = world.todo("after", &["--resume-when", &late, "--priority", "P0"]);
    assert_eq!(world.decide(&["--todo-id", &waiting])["should_run"], false);
    world
        .run(&[
            "todo",
            "complete",
            "--goal-id",
            GOAL,
            "--todo-id",
            &late,
            "--agent-id",
            "lane-a",
        ])
        .packet();
    assert_eq!(world.decide(&["--todo-id", &waiting])["should_run"], true);
}

#[test]
fn the_end_of_a_goal_is_quiet() {
    let (world, todo) = World::with_todo();
    let complete = [
        "todo",
        "complete",
        "--goal-id",
        GOAL,
        "--todo-id",
        &todo,
        "--agent-id",
        "lane-a",
    ];
    world.run(&complete).flag(&["--no-follow-up"]).packet();
    assert_eq!(row(&world, &[]), is("terminal_no_followup", false, "wait"));
    assert_eq!(world.decide(&[])["state"], "terminal_no_followup");
}

#[test]
fn an_admission_is_bound_once_upgraded_once_and_then_replayed() {
    let world = World::new();
    let first = world.decide(&["--turn-instance-id", "turn-1"]);
    assert_eq!(first["heartbeat_receipt"]["settlement_binding_owed"], true);
    let todo = world.todo("later", &[]);
    let other = world.todo("other", &[]);
    let named = ["--turn-instance-id", "turn-1", "--todo-id", &todo];
    assert_eq!(
        world.decide(&named)["heartbeat_receipt"]["status"],
        "upgraded"
    );
    let again = world.decide(&named);
    assert_eq!(again["heartbeat_receipt"]["status"], "replayed");
    world
        .ask(
            "lane-a",
            &["--turn-instance-id", "turn-1", "--todo-id", &other],
        )
        .refused("heartbeat_receipt_identity_conflict");
}

#[test]
fn an_open_user_item_that_blocks_nothing_is_shown_beside_the_work_and_notifies_nobody() {
    let (world, _) = World::with_todo();
    let add = ["todo", "add", "--goal-id", GOAL, "--role", "user"];
    let look = ["--task-class", "user_action", "--text", "Look at it"];
    world.run(&[&add[..], &look].concat()).packet();
    let packet = world.decide(&[]);
    assert_eq!(packet["effective_action"], "normal_run");
    let contract = &packet["interaction_contract"];
    assert_eq!(contract["mode"], "bounded_delivery_with_user_notice");
    assert_eq!(contract["cli_channel"]["spend_after_validation"], true);
    let user = &contract["user_channel"];
    assert_eq!(user["action_required"], false);
    assert_eq!(user["notify"], "DONT_NOTIFY");
    assert_eq!(user["actions"][0], "Look at it");
    assert_eq!(user["non_blocking"], true);
    assert_eq!(packet["requires_user_action"], false);
    assert_eq!(world.turn("turn-1").packet()["status"], "committed");
}
