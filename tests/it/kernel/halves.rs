//! Settlement of which one half is gone: what can be derived again is put back, the rest is a typed refusal
//! (docs/spec/kernel.md 10.3, 11.1, 11.4).

use serde_json::Value;

use crate::support::world::{GOAL, World};

/// A written-back Turn that is not paid.
fn written_back() -> (World, String) {
    let (world, todo) = World::with_todo();
    world.decide(&["--turn-instance-id", "turn-1", "--todo-id", &todo]);
    world.refresh(&todo, "turn-1", &[]).packet();
    (world, todo)
}

/// The same, paid.
fn settled() -> (World, String) {
    let (world, todo) = World::with_todo();
    world.decide(&["--turn-instance-id", "turn-1", "--todo-id", &todo]);
    world.refresh(&todo, "turn-1", &["--settle-turn"]).packet();
    (world, todo)
}

fn sql(world: &World, text: &str) {
    assert!(world.store().execute(text, []).expect(text) > 0, "{text}");
}

fn event_of(world: &World, kind: &str) -> Option<(String, String)> {
    let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
    let sql = "SELECT event_id,body_json FROM events WHERE event_kind=?1";
    world.store().query_row(sql, [kind], read).ok()
}

const LOSE_RECEIPT: &str = "DELETE FROM events WHERE event_kind='refresh_state'";

#[test]
fn a_writeback_that_lost_its_event_gets_the_same_event_back_by_an_exact_repeat() {
    let (world, todo) = written_back();
    let before = event_of(&world, "refresh_state");
    sql(&world, LOSE_RECEIPT);
    let refused = world.spend(&todo, "turn-1").refused("writeback_missing");
    assert_eq!(refused["receipt_repair_required"], true);
    let wake = world.decide(&["--turn-instance-id", "turn-2"]);
    assert_eq!(wake["effective_action"], "unsettled_host_turn_recovery");
    let missing = &wake["unsettled_host_turn_recovery"]["missing_receipts"];
    assert_eq!(missing[0], "durable_writeback_receipt");
    assert_eq!(missing[1], "quota_spend_receipt");
    assert_eq!(wake["settlement_owed"], Value::Null);
    let own = world.decide(&["--turn-instance-id", "turn-1"]);
    let state = &own["settlement_progress"]["state"];
    assert_eq!(state, "writeback_receipt_required");
    let preview = world.refresh(&todo, "turn-1", &["--dry-run"]).packet();
    assert_eq!(preview["receipt_repair_required"], true);
    assert_eq!(event_of(&world, "refresh_state"), None);
    let repaired = world.refresh(&todo, "turn-1", &[]).packet();
    assert_eq!(repaired["receipt_repaired"], true);
    assert_eq!(repaired["appended"], false);
    let state = &repaired["settlement_progress"]["state"];
    assert_eq!(state, "spend_required");
    assert_eq!(event_of(&world, "refresh_state"), before);
    world.spend(&todo, "turn-1").packet();
    assert_eq!(world.spent(), 1);
}

#[test]
fn the_command_of_the_next_wake_repairs_what_was_lost() {
    let (world, todo) = written_back();
    let before = event_of(&world, "refresh_state");
    sql(&world, LOSE_RECEIPT);
    let wake = world.decide(&["--turn-instance-id", "turn-2"]);
    let command = &wake["interaction_contract"]["cli_channel"]["next_cli_actions"][0];
    assert_eq!(command, "loopx doctor --execute");
    let look = world.run(&["doctor"]).packet();
    let found = look["findings"].as_array().expect("findings");
    let receipts = found.iter().find(|finding| finding["check"] == "receipts");
    assert_eq!(receipts.expect("a finding")["status"], "warning");
    world.run(&["doctor", "--execute"]).packet();
    assert_eq!(event_of(&world, "refresh_state"), before);
    let wake = world.decide(&["--turn-instance-id", "turn-2"]);
    let command = &wake["interaction_contract"]["cli_channel"]["next_cli_actions"][0];
    assert!(command.as_str().expect("a command").contains("spend-slot"));
    world.spend(&todo, "turn-1").packet();
    assert_eq!(world.spent(), 1);
}

#[test]
fn a_repair_and_a_settlement_are_one_call() {
    let (world, todo) = written_back();
    sql(&world, LOSE_RECEIPT);
    let done = world.refresh(&todo, "turn-1", &["--settle-turn"]).packet();
    assert_eq!(done["receipt_repaired"], true);
    assert_eq!(done["settlement_progress"]["state"], "settled");
    assert_eq!(world.spent(), 1);
}

#[test]
fn a_changed_run_gets_an_event_that_says_it_was_repaired() {
    let (world, todo) = written_back();
    sql(&world, LOSE_RECEIPT);
    sql(&world, "UPDATE writebacks SET event_id='0000000000000000'");
    world.refresh(&todo, "turn-1", &[]).packet();
    let (_, body) = event_of(&world, "refresh_state").expect("an event");
    let body: Value = serde_json::from_str(&body).expect("an object");
    assert_eq!(body["status"], "receipt_repaired");
    world.spend(&todo, "turn-1").packet();
    assert_eq!(world.spent(), 1);
}

#[test]
fn a_debit_that_lost_its_event_is_repaired_without_a_second_debit() {
    let (world, todo) = settled();
    sql(&world, "DELETE FROM events WHERE event_kind='quota_spend'");
    world.run(&["doctor", "--execute"]).packet();
    assert!(event_of(&world, "quota_spend").is_some());
    sql(&world, "DELETE FROM events WHERE event_kind='quota_spend'");
    world.spend(&todo, "turn-1").packet();
    assert!(event_of(&world, "quota_spend").is_some());
    assert_eq!(world.spent(), 1);
}

#[test]
fn every_other_half_is_a_typed_refusal_and_changes_nothing() {
    for (damage, code) in [
        ("DELETE FROM writebacks", "effect_outcome_unknown"),
        ("DELETE FROM spends", "effect_outcome_unknown"),
        (
            "DELETE FROM runs WHERE classification='step_done'",
            "writeback_missing",
        ),
        (
            "DELETE FROM runs WHERE classification='quota_slot_spent'",
            "receipt_missing",
        ),
        (
            "UPDATE runs SET body_json='{}' WHERE classification='step_done'",
            "malformed_settlement_state",
        ),
        (
            "UPDATE events SET body_json='{}' WHERE event_kind='quota_spend'",
            "malformed_settlement_state",
        ),
        ("DELETE FROM admissions", "receipt_missing"),
    ] {
        let (world, todo) = settled();
        sql(&world, damage);
        let rows = |world: &World| {
            let sql = "SELECT (SELECT COUNT(*) FROM runs),(SELECT COUNT(*) FROM events),(SELECT COUNT(*) FROM spends)";
            let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?, row.get(2)?));
            let counts: (i64, i64, i64) = world.store().query_row(sql, [], read).expect("counts");
            counts
        };
        let before = rows(&world);
        for command in [
            world.refresh(&todo, "turn-1", &["--settle-turn"]),
            world.spend(&todo, "turn-1"),
        ] {
            assert_eq!(command.refusal()["error_code"], code, "{damage}");
        }
        assert_eq!(rows(&world), before, "{damage}");
    }
}

#[test]
fn a_spend_alone_and_an_event_alone_are_reported_by_the_doctor_or_refused() {
    let (world, todo) = settled();
    sql(&world, "DELETE FROM runs WHERE classification='step_done'");
    sql(&world, LOSE_RECEIPT);
    sql(&world, "DELETE FROM writebacks");
    let code = "malformed_settlement_state";
    world.spend(&todo, "turn-1").refused(code);
    world.refresh(&todo, "turn-1", &[]).refused(code);
    let (world, _) = settled();
    sql(&world, "DELETE FROM spends");
    let look = world.run(&["doctor", "--execute"]).refusal();
    let found = look["findings"].as_array().expect("findings");
    let receipts = found.iter().find(|finding| finding["check"] == "receipts");
    assert_eq!(
        receipts.expect("a finding")["error_code"],
        "effect_outcome_unknown"
    );
}

#[test]
fn no_lost_row_is_an_internal_error() {
    const TABLES: [&str; 13] = [
        "events",
        "runs",
        "writebacks",
        "spends",
        "admissions",
        "turns",
        "captures",
        "settlement_steps",
        "todos",
        "todo_counts",
        "goal_heads",
        "visions",
        "vision_checkpoints",
    ];
    for table in TABLES {
        let (world, todo) = World::with_todo();
        let key = world.turn("turn-1").packet()["resume_turn_key"].clone();
        let key = key.as_str().expect("a key");
        world
            .store()
            .execute(&format!("DELETE FROM {table}"), [])
            .expect("a deletion");
        let goal = ["--goal-id", GOAL];
        let agent = ["--agent-id", "lane-a"];
        let turn = ["turn", "inspect-journal", "--turn-key", key];
        for command in [
            world.ask("lane-a", &["--turn-instance-id", "turn-1"]),
            world.ask("lane-a", &["--turn-instance-id", "turn-2"]),
            world.refresh(&todo, "turn-1", &["--settle-turn"]),
            world.spend(&todo, "turn-1"),
            world.turn("turn-1"),
            world.run(&[&turn[..], &goal, &agent].concat()),
            world.run(&[&["todo", "list"][..], &goal].concat()),
            world.run(&[&["status"][..], &goal].concat()),
        ] {
            let done = command.flag(&["--format", "json"]).prepared().run();
            let packet = done.json();
            assert!(matches!(done.code, Some(0 | 1)), "{table}: {packet}");
            assert_ne!(packet["error_code"], "internal_error", "{table}: {packet}");
        }
        let spends: i64 = world
            .store()
            .query_row("SELECT COUNT(*) FROM spends", [], |row| row.get(0))
            .expect("a count");
        assert!(spends <= 1, "{table}");
    }
}
