//! What a spend says about itself (docs/spec/kernel.md 11.3).

use crate::support::world::{GOAL, World};

/// A written-back Turn that is not paid, with room for this many slots.
fn owing(slots: &str) -> (World, String) {
    let (world, todo) = World::with_todo();
    world.configure(&["--quota-allowed-slots", slots]);
    world.decide(&["--turn-instance-id", "turn-1", "--todo-id", &todo]);
    world.refresh(&todo, "turn-1", &[]).packet();
    (world, todo)
}

#[test]
fn the_spend_that_takes_the_last_slot_says_that_the_goal_is_throttled_after_it() {
    let (world, todo) = owing("1");
    let paid = world.spend(&todo, "turn-1").packet();
    assert_eq!(paid["would_throttle"], true);
    assert_eq!(world.decide(&[])["state"], "throttled");
}

#[test]
fn a_spend_that_leaves_a_slot_throttles_nothing() {
    let (world, todo) = owing("2");
    let paid = world.spend(&todo, "turn-1").packet();
    assert_eq!(paid["would_throttle"], false);
    assert_eq!(world.decide(&[])["state"], "eligible");
}

#[test]
fn a_preview_a_spend_and_its_repeat_give_their_own_reasons() {
    let (world, todo) = owing("2");
    let preview = world
        .run(&["quota", "spend-slot", "--goal-id", GOAL])
        .flag(&["--agent-id", "lane-a", "--todo-id", &todo])
        .flag(&["--turn-instance-id", "turn-1"])
        .packet();
    let paid = world.spend(&todo, "turn-1").packet();
    let again = world.spend(&todo, "turn-1").packet();
    let reason = |packet: &serde_json::Value| packet["reason"].as_str().map(str::to_owned);
    assert!(reason(&preview).is_some_and(|text| text.contains("--execute")));
    assert!(reason(&paid).is_some_and(|text| text.contains("validated")));
    assert!(reason(&again).is_some_and(|text| text.contains("paid before")));
}

#[test]
fn an_unpaid_turn_behind_a_paid_one_is_named_and_paid() {
    let (world, todo) = World::with_todo();
    for turn in ["turn-1", "turn-2"] {
        world.decide(&["--turn-instance-id", turn, "--todo-id", &todo]);
    }
    for turn in ["turn-1", "turn-2"] {
        world.refresh(&todo, turn, &[]).packet();
    }
    let spend = ["quota", "spend-slot", "--goal-id", GOAL, "--agent-id"];
    let spend = || world.run(&spend).flag(&["lane-a", "--execute"]).packet();
    assert_eq!(spend()["turn_instance_id"], "turn-2");
    let owing = world.decide(&[]);
    assert_eq!(
        owing["settlement_owed"]["turn_instance_id"], "turn-1",
        "{owing}"
    );
    let second = spend();
    assert_eq!(second["turn_instance_id"], "turn-1", "{second}");
    assert_eq!(second["appended"], true);
    let replayed = spend();
    assert_eq!(replayed["turn_instance_id"], "turn-2");
    assert_eq!(replayed["idempotent_replay"], true);
    assert_eq!(world.spent(), 2);
}

#[test]
fn a_spend_is_corrected_by_an_agent_of_the_goal_for_a_reason_others_may_read() {
    let (world, todo) = owing("2");
    let paid = world.spend(&todo, "turn-1").packet();
    let at = paid["generated_at"].as_str().expect("an instant");
    let void = |agent: &str, reason: &str| {
        let head = ["quota", "void-slot", "--goal-id", GOAL, "--execute"];
        let what = ["--void-generated-at", at, "--reason-summary", reason];
        world.run(&head).flag(&what).flag(&["--agent-id", agent])
    };
    void("nobody", "wrong lane").refused("actor_not_registered");
    void("lane-a", "see /home/joe/x").misused("invalid_arguments");
    assert_eq!(world.spent(), 1);
    assert_eq!(void("lane-a", "wrong lane").packet()["changed"], true);
    assert_eq!(world.spent(), 0);
    let events = world.events();
    let voided = events
        .iter()
        .find(|event| event["event_kind"] == "quota_void");
    let voided = voided.expect("an event");
    assert_eq!(voided["details"]["reason_summary"], "wrong lane");
}
