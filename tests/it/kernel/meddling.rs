//! Hosts that meddle: with the settlement of their own Turn, and with its journal (docs/spec/kernel.md 10.2, 11.1).

use std::fs;

use serde_json::Value;

use crate::support::world::{GOAL, World};

const TRUE: &str = "[\"/bin/true\"]";

/// A host that settles its Turn itself with this content, then prints its result.
fn settles_itself(world: &World, todo: &str, next: &str) -> String {
    let body = format!(
        "{} --registry \"$LOOPX_REGISTRY\" --runtime-root \"$LOOPX_RUNTIME_ROOT\" refresh-state --goal-id {GOAL} --agent-id lane-a \
         --todo-id {todo} --turn-instance-id turn-1 --classification host_progress --recommended-action 'Read on' \
         --next-action '{next}' --delivery-batch-scale implementation --delivery-outcome outcome_progress \
         --vision-unchanged-reason 'Scope stays' --settle-turn >settled.txt || exit 9\nprintf '%s' \"$result\"",
        env!("CARGO_BIN_EXE_loopx"),
    );
    world.host("settles.sh", &body)
}

#[test]
fn a_result_that_was_not_stored_is_never_called_committed() {
    let (world, todo) = World::with_todo();
    let host = settles_itself(&world, &todo, "Something else");
    let failed = world.turn_with("turn-1", &host, TRUE).refusal();
    assert_eq!(failed["status"], "failed", "{failed}");
    assert_eq!(failed["error_code"], "committed_writeback_payload_conflict");
    assert_eq!(failed["effects"]["host_invoked"], true);
    assert_eq!(failed["effects"]["state_written"], false);
    assert_eq!(world.runs(), ["host_progress", "quota_slot_spent"]);
    let retry = world.turn("turn-1").flag(&["--retry-failed-turn"]);
    retry.refused("committed_writeback_payload_conflict");
    assert_eq!(world.host_calls(), 1);
    assert_eq!(world.spent(), 1);
}

#[test]
fn exactly_the_same_content_is_adopted_and_nothing_is_written_twice() {
    let (world, todo) = World::with_todo();
    let host = settles_itself(&world, &todo, "Go on");
    let done = world.turn_with("turn-1", &host, TRUE).packet();
    assert_eq!(done["status"], "committed", "{done}");
    assert_eq!(done["effects"]["state_written"], false);
    assert_eq!(done["effects"]["quota_spent"], false);
    assert_eq!(done["quota_slot_spend_count"], 1);
    assert_eq!(world.runs(), ["host_progress", "quota_slot_spent"]);
    assert_eq!(world.spent(), 1);
}

#[test]
fn a_journal_its_host_changed_or_removed_is_left_as_it_lies() {
    for meddle in ["printf ' ' >> \"$f\"", "mv \"$f\" taken.json"] {
        let (world, _) = World::with_todo();
        let body = format!(
            "for f in \"$LOOPX_RUNTIME_ROOT\"/goals/*/turns/*.json; do cp \"$f\" kept.json; {meddle}; done; printf '%s' \"$result\""
        );
        let host = world.host("meddles.sh", &body);
        let refused = world.turn_with("turn-1", &host, TRUE);
        let refused = refused.refused("journal_inconsistent");
        assert_eq!(refused["effects"]["host_invoked"], true, "{refused}");
        let key: String = refused["resume_turn_key"].as_str().expect("a key").into();
        let name = format!("{}.json", &key["sha256:".len()..]);
        let folder = world.runtime().join("goals").join(GOAL).join("turns");
        let path = folder.join(name);
        let kept = world.sandbox.project().join("kept.json");
        let lies = fs::read(&path).ok();
        assert_ne!(lies, fs::read(&kept).ok(), "it was not written over");
        world.turn("turn-1").refused("journal_inconsistent");
        assert_eq!(world.spent(), 0);
        fs::copy(&kept, &path).expect("the exact file");
        assert_eq!(world.turn("turn-1").packet()["status"], "committed");
        assert_eq!(world.spent(), 1);
    }
}

#[test]
fn a_supplement_and_the_call_before_it_both_replay_what_they_said() {
    let (world, todo) = World::with_todo();
    let vision = ["--vision-state", "open", "--vision-summary", "See it all"];
    let head = ["refresh-state", "--goal-id", GOAL, "--agent-id", "lane-a"];
    world.run(&[&head[..], &vision].concat()).packet();
    world.decide(&["--turn-instance-id", "turn-1", "--todo-id", &todo]);
    let closing = ["--delivery-boundary", "semantic_closeout", "--settle-turn"];
    let reason = ["--vision-unchanged-reason", "It still holds"];
    let first = || world.refresh(&todo, "turn-1", &closing).packet();
    let late = || world.refresh(&todo, "turn-1", &[&closing[..], &reason].concat());
    let decision = |packet: &Value| packet["vision_checkpoint"]["decision"].clone();
    assert_eq!(decision(&first()), "missing_required");
    let supplement = late().packet();
    assert_eq!(decision(&supplement), "unchanged_with_reason");
    assert_eq!(supplement["appended"], true);
    let again = late().packet();
    assert_eq!(decision(&again), "unchanged_with_reason");
    assert_eq!(again["appended"], false);
    assert_eq!(again["generated_at"], supplement["generated_at"]);
    let original = first();
    assert_eq!(original["appended"], false);
    assert_eq!(decision(&original), "missing_required");
    let other = ["--vision-unchanged-reason", "Another one"];
    let other = world.refresh(&todo, "turn-1", &[&closing[..], &other].concat());
    other.refused("committed_vision_decision_conflict");
    assert_eq!(world.spent(), 1);
}
