//! What a person has yet to decide, or turned down, keeps work from running on every way to it (docs/spec/kernel.md 4.4, 6.3, 9.4).

use serde_json::Value;

use crate::support::world::{GOAL, World};

const SCOPE: &str = "production:goal:release";
const DUE: [&str; 4] = [
    "--task-class",
    "continuous_monitor",
    "--next-due-at",
    "2026-09-18T08:00:00Z",
];

fn decide(world: &World, gate: &str, outcome: &str) -> Value {
    let head = ["todo", "update", "--goal-id", GOAL, "--todo-id", gate];
    let outcome = ["--decision-outcome", outcome, "--reason", "said so"];
    world.run(&[&head[..], &outcome].concat()).packet()
}

fn action(world: &World, more: &[&str]) -> String {
    let packet = world.decide(more);
    packet["effective_action"]
        .as_str()
        .expect("a word")
        .to_owned()
}

/// A Turn whose host failed, so that it may be tried again.
fn failed_turn(world: &World) {
    let host = world.host("bad.sh", "exit 1");
    world
        .turn_with("turn-1", &host, "[\"/bin/true\"]")
        .refusal();
}

#[test]
fn a_condition_that_is_not_met_hides_no_gate_from_admission() {
    let world = World::new();
    let todo = world.todo("publish", &["--required-decision-scope", SCOPE]);
    failed_turn(&world);
    let calls = world.host_calls();
    let gate = world.gate("May we?", &["--decision-scope", SCOPE]);
    let update = ["todo", "update", "--goal-id", GOAL, "--todo-id", &todo];
    let later = ["--resume-when", "2027-01-01T00:00:00Z"];
    world.run(&[&update[..], &later].concat()).packet();
    let again = || world.turn("turn-1").flag(&["--retry-failed-turn"]);
    let refused = again().refused("turn_admission_refused");
    assert_eq!(refused["reason"], "open_gate");
    decide(&world, &gate, "reject");
    let refused = again().refused("turn_admission_refused");
    assert_eq!(refused["reason"], "decision_scope_rejected");
    assert_eq!((world.host_calls(), world.spent()), (calls, 0));
    decide(&world, &gate, "approve");
    assert_eq!(again().packet()["status"], "committed");
}

#[test]
fn an_agent_for_monitors_alone_gets_no_other_work_by_naming_it() {
    let (world, todo) = World::with_todo();
    failed_turn(&world);
    let calls = world.host_calls();
    world.configure(&["--agent-work-mode", "lane-a=monitor_only"]);
    for more in [&[][..], &["--todo-id", &todo]] {
        assert_eq!(action(&world, more), "agent_monitor_only");
    }
    let refused = world
        .turn("turn-1")
        .flag(&["--retry-failed-turn"])
        .refused("turn_admission_refused");
    assert_eq!(refused["reason"], "agent_monitor_only");
    assert_eq!((world.host_calls(), world.spent()), (calls, 0));
}

#[test]
fn a_monitor_is_held_by_gates_like_other_work() {
    let world = World::new();
    let monitor = world.todo("watch", &DUE);
    let gate = world.gate("May we?", &["--global-gate", "--decision-scope", SCOPE]);
    let named = ["--todo-id", monitor.as_str()];
    for more in [&[][..], &named] {
        assert_eq!(action(&world, more), "operator_gate_notify");
    }
    decide(&world, &gate, "reject");
    for more in [&[][..], &named] {
        let packet = world.decide(more);
        assert_eq!(packet["effective_action"], "agent_scope_wait");
        let refused = &packet["agent_scope_frontier"]["refused_gates"][0];
        assert_eq!(refused["gate_id"], gate.as_str());
    }
    world.configure(&["--agent-work-mode", "lane-a=monitor_only"]);
    assert_eq!(action(&world, &[]), "agent_scope_wait");
    decide(&world, &gate, "approve");
    assert_eq!(action(&world, &[]), "monitor_due");
    assert_eq!(world.turn("turn-1").packet()["status"], "committed");
}

#[test]
fn a_goal_that_waits_for_its_operator_runs_no_monitor_that_is_named() {
    let world = World::new();
    let monitor = world.todo("watch", &DUE);
    let wait = ["--waiting-on", "user_or_controller", "--missing-gate", "go"];
    world.configure(&wait);
    for more in [&[][..], &["--todo-id", &monitor]] {
        assert_eq!(action(&world, more), "operator_gate_notify");
    }
}

#[test]
fn a_refusal_holds_what_the_open_gate_held_and_one_scope_frees_no_more_than_itself() {
    let world = World::new();
    world.todo("anything", &[]);
    let wide = ["--global-gate", "--decision-scope", SCOPE];
    let gate = world.gate("May we?", &wide);
    assert_eq!(action(&world, &[]), "operator_gate_notify");
    decide(&world, &gate, "reject");
    assert_eq!(action(&world, &[]), "agent_scope_wait");
    let narrow = world.gate("And this alone?", &["--decision-scope", SCOPE]);
    decide(&world, &narrow, "approve");
    assert_eq!(action(&world, &[]), "agent_scope_wait");
    let scoped = world.todo("release", &["--required-decision-scope", SCOPE]);
    decide(&world, &gate, "approve");
    assert_eq!(action(&world, &["--todo-id", &scoped]), "normal_run");
    decide(&world, &narrow, "reject");
    assert_eq!(action(&world, &["--todo-id", &scoped]), "agent_scope_wait");
    assert_eq!(action(&world, &[]), "normal_run");
}

#[test]
fn a_gate_that_was_turned_down_is_not_put_away_before_it_is_approved() {
    let world = World::new();
    world.todo("anything", &[]);
    let gate = world.gate("May we?", &["--global-gate"]);
    decide(&world, &gate, "reject");
    let archive = ["todo", "archive-completed", "--goal-id", GOAL];
    let kept = world.run(&archive).packet();
    assert_eq!(kept["archived_todo_ids"], serde_json::json!([]));
    let named = [&archive[..], &["--todo-id", &gate]].concat();
    world.run(&named).refused("gate_decision_required");
    decide(&world, &gate, "approve");
    assert_eq!(action(&world, &[]), "normal_run");
    let gone = world.run(&archive).packet();
    assert_eq!(gone["archived_todo_ids"], serde_json::json!([gate]));
    decide(&world, &gate, "reject");
    assert_eq!(action(&world, &[]), "agent_scope_wait");
    decide(&world, &gate, "approve");
    assert_eq!(action(&world, &[]), "normal_run");
}

#[test]
fn what_may_not_be_spent_is_not_said_to_be_spendable() {
    let (world, todo) = World::with_todo();
    let turn = ["--turn-instance-id", "turn-1"];
    world.decide(&turn);
    world.refresh(&todo, "turn-1", &[]).packet();
    let may = |world: &World| {
        world.decide(&turn)["interaction_contract"]["cli_channel"]["spend_allowed_now"] == true
    };
    assert!(may(&world));
    world.configure(&["--quota-allowed-slots", "0"]);
    assert!(!may(&world));
    world.configure(&["--quota-allowed-slots", "default"]);
    let pause = ["goal-lifecycle", "--goal-id", GOAL, "--operation", "pause"];
    world.run(&pause).execute().packet();
    assert!(!may(&world));
    world.spend(&todo, "turn-1").refused("quota_spend_rejected");
}

#[test]
fn a_goal_that_waits_for_its_operator_asks_that_before_the_todos_of_the_user() {
    let world = World::new();
    let add = ["todo", "add", "--goal-id", GOAL, "--role", "user"];
    let pay = ["--task-class", "user_action", "--text", "Pay the bill"];
    world.run(&[&add[..], &pay].concat()).packet();
    let question = ["--operator-question", "May we?", "--missing-gate", "go"];
    let wait = ["--waiting-on", "user_or_controller"];
    world.configure(&[&question[..], &wait].concat());
    let packet = world.decide(&[]);
    let user = &packet["interaction_contract"]["user_channel"];
    assert_eq!(
        user["actions"],
        serde_json::json!(["May we?", "Pay the bill"])
    );
}
