//! What waits in the inboxes of a goal, as `status` counts it (docs/spec/lark-inbox.md 5.3).

use serde_json::{Value, json};

use super::turn_start::{GOAL, Wake};
use crate::support::lark::{BOT, CHAT, CHAT2, MARK};

const NOW: &str = "2026-09-10T00:00:00Z";
/// An hour and a minute before it.
const MILLIS: &str = "1788994740000";

fn status(wake: &Wake) -> Value {
    let shown = wake.lark.run(["status", "--goal-id", GOAL]).now(NOW);
    let packet = shown.packet();
    assert!(!packet.to_string().contains(MARK), "{packet}");
    packet["goals"][0]["inboxes"].clone()
}

fn ingest(wake: &Wake, id: &str, more: &Value) {
    let mut event = json!({"schema_version": "lark_event_inbox_event_v0", "message_id": id, "create_time": MILLIS,
        "content": "words", "mentions": []});
    for (name, value) in more.as_object().expect("an object") {
        event[name] = value.clone();
    }
    let config = ".loopx/config/lark/alpha.json";
    wake.lark
        .inbox(&["ingest", "--execute"], config)
        .stdin(event.to_string())
        .packet();
}

#[test]
fn a_goal_without_an_inbox_says_nothing_of_one_and_one_with_it_counts_what_waits() {
    let world = crate::support::world::World::new();
    let shown = world.run(&["status"]).packet();
    assert!(shown["goals"][0].get("inboxes").is_none());

    let wake = Wake::new(&[("alpha", CHAT), ("beta", CHAT2)], Value::Null);
    let before = status(&wake);
    assert_eq!(before[0]["pending_count"], 0);
    assert_eq!(before[0]["oldest_pending_at"], Value::Null);
    let to_bot = json!({"content": "@Relay when?", "mentions": [{"key": "@_user_1", "id": BOT, "name": "Relay"}]});
    ingest(&wake, "om_zqpu1", &to_bot);
    ingest(
        &wake,
        "om_zqpu2",
        &json!({"create_time": "2026-09-09 22:58"}),
    );
    let tree = wake.lark.sandbox.tree();
    let row = status(&wake)[0].clone();
    assert_eq!(wake.lark.sandbox.tree(), tree);
    for (name, wanted) in [
        ("schema_version", json!("lark_event_inbox_urgency_v1")),
        ("pending_count", json!(2)),
        ("direct_question_count", json!(1)),
        ("direct_mention_count", json!(1)),
        ("attention_required_count", json!(1)),
        ("material_review_count", json!(1)),
        ("oldest_pending_at", json!("2026-09-09T22:58:00Z")),
        ("oldest_pending_age_seconds", json!(3720)),
        ("reply_due", json!(true)),
        ("material_review_due", json!(true)),
        ("material_review_drain_limit", json!(20)),
        ("route_count", json!(2)),
        ("agent_ids", json!([])),
        ("for_other_agents", json!(true)),
        (
            "drain_command",
            json!("loopx lark-inbox drain --goal-id demo-goal"),
        ),
    ] {
        assert_eq!(row[name], wanted, "{name} of {row}");
    }
    let text = wake.lark.run(["status"]).now(NOW).run();
    let line =
        "Inbox: 2 wait, 1 of them for an answer; `loopx lark-inbox drain --goal-id demo-goal`";
    assert!(text.text().contains(line), "{}", text.text());

    let ack = ["ack", "--message-id", "om_zqpu1", "--execute"];
    wake.lark
        .inbox(&ack, ".loopx/config/lark/alpha.json")
        .packet();
    let row = status(&wake)[0].clone();
    assert_eq!(
        (&row["pending_count"], &row["reply_due"]),
        (&json!(1), &json!(false))
    );
    wake.lark
        .run(["extension", "disable", "loopx-lark", "--execute"])
        .packet();
    let row = status(&wake)[0].clone();
    assert!(row["unavailable"].is_string(), "{row}");
    assert!(row.get("pending_count").is_none());
}
