//! The collector beside its faults: a damaged inbox, its log, what a run leaves behind.

use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use crate::support::lark::{ALICE, CHAT, CHAT2, Lark};

const CONFIG: &str = ".loopx/config/lark-collector.json";

fn two_routes() -> Lark {
    let lark = Lark::new();
    lark.collector(&[("alpha", CHAT), ("beta", CHAT2)], json!({}));
    lark
}

fn live(id: &str, chat: &str) -> Value {
    json!({"type": "im.message.receive_v1", "event_id": id.replace("om_", "ev_"), "message_id": id, "create_time": "1789000000000",
        "chat_id": chat, "chat_type": "group", "message_type": "text", "sender_id": ALICE, "sender_type": "user", "content": "words",
        "mentions": []})
}

fn script(lark: &Lark, script: Value) {
    lark.edit(|state| state["streams"] = json!({"im.message.receive_v1": script}));
}

fn collect(lark: &Lark) -> Value {
    let words = ["collector-run", "--lark-cli-executable", "lark-cli"];
    Lark::packet(lark.inbox(&words, CONFIG), &[]).1
}

fn status(lark: &Lark) -> Value {
    Lark::packet(lark.inbox(&["collector-status"], CONFIG), &[]).1
}

fn database(lark: &Lark, name: &str) -> PathBuf {
    let folder = lark.sandbox.project().join(".loopx/inbox").join(name);
    folder.join(".state/inbox.sqlite3")
}

fn captured(lark: &Lark, name: &str) -> Value {
    let config = format!(".loopx/config/lark/{name}.json");
    lark.inbox(&["drain"], &config).packet()["captured_count"].clone()
}

#[test]
fn a_damaged_inbox_stops_no_other_route_and_what_it_missed_is_a_hole_after_its_repair() {
    let lark = two_routes();
    script(
        &lark,
        json!({"events": [live("om_zqpa0", CHAT), live("om_zqpb0", CHAT2)], "end": {"reason": "timeout"}}),
    );
    assert_eq!(collect(&lark)["captured_count"], 2);
    let sound = fs::read(database(&lark, "alpha")).expect("a database");
    fs::write(database(&lark, "alpha"), "no database at all").expect("damaged");
    script(
        &lark,
        json!({"events": [live("om_zqpa1", CHAT), live("om_zqpb1", CHAT2)], "end": {"reason": "timeout"}}),
    );
    let run = collect(&lark);
    assert_eq!(
        (&run["ok"], &run["captured_count"]),
        (&json!(true), &json!(1)),
        "{run}"
    );
    assert_eq!(
        (&run["damaged_route_count"], &run["unstored_event_count"]),
        (&json!(1), &json!(1))
    );
    let seen = status(&lark);
    assert_eq!(
        (&seen["ok"], &seen["status"]),
        (&json!(true), &json!("attention_required"))
    );
    let finding = &seen["damaged_routes"][0];
    assert_eq!(
        (&finding["route_key"], &finding["error_code"]),
        (&json!("alpha"), &json!("store_corrupt"))
    );
    assert_eq!(finding["unstored_event_count"], 1);
    let since = finding["unstored_since"]
        .as_str()
        .expect("an instant")
        .to_owned();

    fs::write(database(&lark, "alpha"), sound).expect("repaired");
    script(
        &lark,
        json!({"events": [live("om_zqpa2", CHAT)], "end": {"reason": "timeout"}}),
    );
    let run = collect(&lark);
    assert_eq!(
        (&run["damaged_route_count"], &run["captured_count"]),
        (&json!(0), &json!(1))
    );
    assert_eq!(
        (captured(&lark, "alpha"), captured(&lark, "beta")),
        (json!(2), json!(2))
    );
    let gap = status(&lark)["history_gap"].clone();
    let hole = gap["since"].as_str().expect("a hole").to_owned();
    assert!(hole <= since, "{hole} {since}");
    assert!(
        gap["next_command"]
            .as_str()
            .is_some_and(|line| line.contains("--route-key alpha")),
        "{gap}"
    );
}

#[test]
fn a_collector_without_one_sound_inbox_refuses() {
    let lark = two_routes();
    for name in ["alpha", "beta"] {
        fs::create_dir_all(database(&lark, name).parent().expect("a folder")).expect("made");
        fs::write(database(&lark, name), "no database at all").expect("damaged");
    }
    script(&lark, json!({"events": [], "end": {"reason": "timeout"}}));
    assert_eq!(collect(&lark)["error_code"], "store_corrupt");
    assert_eq!(lark.count("event consume"), 0);
}
