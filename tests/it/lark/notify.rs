//! `notify-reviewer`: said once, by the routine of every message; what a search cannot prove is not sent (docs/spec/lark-inbox.md 15).

use serde_json::{Value, json};

use super::desk::{Desk, holds, offset, real_send};
use crate::support::lark::{CHAT, Lark, PROFILE};

const READER: &str = "zqp-reader";
const ADDRESS: &str = "https://git.example/team/repo/pull/7";
const TEXT: &str = "<at open_id=\"ou_zqpbob\">Bob</at> please review";

pub(super) fn desk() -> Desk {
    let desk = Desk::new();
    desk.lark.edit(|state| {
        let app = json!({"app_id": "cli_zqpreader", "app_name": "Zqp Reader", "open_id": "ou_zqpreaderbot", "user": {"open_id": "ou_zqpperson"}});
        state["profiles"][READER] = app;
    });
    desk
}

fn words<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let mut words = vec!["notify-reviewer", "--pull-request-url", ADDRESS];
    words.extend(["--text", TEXT, "--reader-profile", READER]);
    words.extend(more);
    words
}

pub(super) fn notify(desk: &Desk) -> Value {
    desk.act(&words(&["--execute"]))
}

#[test]
fn a_reviewer_is_notified_in_order_and_once() {
    let desk = desk();
    let preview = desk.act(&words(&[]));
    holds(
        &preview,
        &json!({"ok": true, "status": "preview_ready", "external_write_outcome": "none"}),
    );
    assert!(
        desk.lark
            .calls()
            .iter()
            .all(|call| call["command"] == "version"),
        "a preview calls nobody"
    );
    let sent = notify(&desk);
    holds(
        &sent,
        &json!({"ok": true, "status": "sent_verified", "external_write_outcome": "performed", "notification_verified": true,
        "reader_identity_verified": true, "dedupe_search_performed": true, "idempotency_key": preview["idempotency_key"]}),
    );
    let calls = desk.lark.calls();
    let order: Vec<String> = calls
        .iter()
        .filter(|call| call["command"] != "version")
        .map(|call| {
            let is_preview = call["argv"].to_string().contains("--dry-run");
            let name = call["command"].as_str().expect("a name");
            format!("{name}{}", if is_preview { " dry" } else { "" })
        })
        .collect();
    assert_eq!(
        order,
        [
            "auth status",
            "auth status",
            "api",
            "im +chat-members-list",
            "im +messages-search",
            "im +messages-send dry",
            "im +messages-send",
            "im +messages-mget"
        ]
    );
    let send = calls[calls.len() - 2]["argv"].to_string();
    assert!(send.contains("--msg-type") && send.contains("--content") && send.contains("loopx-"));
    assert!(
        desk.lark.sent()[0]["text"]
            .as_str()
            .is_some_and(|text| text.ends_with(ADDRESS))
    );
    holds(
        &notify(&desk),
        &json!({"ok": true, "status": "already_sent", "external_write_outcome": "none", "notification_verified": true}),
    );
    assert_eq!(desk.sends(), 1);
}

#[test]
fn a_lost_answer_is_found_by_the_search_whenever_the_command_is_repeated() {
    let desk = desk();
    desk.lark
        .edit(|state| state["clock_offset"] = json!(offset()));
    desk.lark.faults(real_send(json!({"do": "lose_answer"})));
    holds(
        &notify(&desk),
        &json!({"ok": false, "status": "sent_unverified", "blocker": "lark_notification_delivery_outcome_unknown",
        "external_write_outcome": "unknown"}),
    );
    desk.lark.faults(json!([]));
    let late = desk.act_later(&words(&["--execute"]));
    holds(&late, &json!({"ok": true, "status": "already_sent"}));
    assert_eq!((desk.sends(), desk.lark.sent().len()), (1, 1));
}

#[test]
fn a_message_the_search_does_not_know_yet_is_not_sent_again() {
    let desk = desk();
    desk.lark
        .edit(|state| state["clock_offset"] = json!(offset()));
    desk.lark
        .edit(|state| state["options"]["search_lag"] = json!(true));
    holds(&notify(&desk), &json!({"status": "sent_verified"}));
    holds(
        &notify(&desk),
        &json!({"ok": true, "status": "sent_verified", "external_write_outcome": "none"}),
    );
    let late = desk.act_later(&words(&["--execute"]));
    holds(&late, &json!({"ok": true, "status": "sent_verified"}));
    assert_eq!((desk.sends(), desk.lark.sent().len()), (1, 1));
}

#[test]
fn a_lost_answer_the_search_never_shows_is_looked_for_in_the_chat() {
    let desk = desk();
    desk.lark
        .edit(|state| state["clock_offset"] = json!(offset()));
    desk.lark
        .edit(|state| state["options"]["search_lag"] = json!(true));
    desk.lark.faults(real_send(json!({"do": "lose_answer"})));
    holds(
        &notify(&desk),
        &json!({"external_write_outcome": "unknown"}),
    );
    desk.lark.faults(json!([]));
    let late = desk.act_later(&words(&["--execute"]));
    holds(&late, &json!({"ok": true, "status": "sent_verified"}));
    assert_eq!((desk.sends(), desk.lark.sent().len()), (1, 1));
}

#[test]
fn every_blocker_is_named_and_sends_nothing() {
    let auth = |profile: &str, field: &str, value: Value| {
        let (profile, field) = (profile.to_owned(), field.to_owned());
        move |state: &mut Value| state["profiles"][&profile][&field] = value.clone()
    };
    type Edit = Box<dyn Fn(&mut Value)>;
    let nothing: fn(&mut Value) = |_| {};
    let cases: Vec<(&str, Edit, Value)> = vec![
        (
            "dedicated_bot_identity_mismatch",
            Box::new(auth(PROFILE, "app_name", json!("Somebody Else"))),
            json!([]),
        ),
        (
            "reviewer_notification_reader_auth_required",
            Box::new(auth(READER, "user", Value::Null)),
            json!([]),
        ),
        (
            "reviewer_notification_dedupe_readback_failed",
            Box::new(auth(READER, "search_scope", json!(false))),
            json!([]),
        ),
        (
            "reviewer_notification_dedupe_readback_failed",
            Box::new(|state| state["options"]["search_ids_only"] = json!(true)),
            json!([]),
        ),
        (
            "lark_bot_group_access_required",
            Box::new(|state| state["chats"][CHAT]["bots"] = json!([])),
            json!([]),
        ),
        (
            "reviewer_notification_destination_unavailable",
            Box::new(nothing),
            json!([{"on": "api", "do": "code", "code": 99}]),
        ),
        (
            "reviewer_notification_identity_unresolved",
            Box::new(|state| state["chats"][CHAT]["users"] = json!([])),
            json!([]),
        ),
        (
            "lark_bot_group_access_required",
            Box::new(nothing),
            json!([{"on": "im +chat-members-list", "do": "code", "code": 99_991_672}]),
        ),
        (
            "reviewer_notification_provider_unavailable",
            Box::new(nothing),
            json!([{"on": "im +messages-search", "do": "network"}]),
        ),
        (
            "lark_notification_provider_preview_mismatch",
            Box::new(nothing),
            json!([{"on": "im +messages-send", "dry_run": true, "do": "code", "code": 99}]),
        ),
        (
            "reviewer_notification_provider_failed",
            Box::new(nothing),
            json!([{"on": "im +messages-send", "dry_run": false, "do": "code", "code": 230_001}]),
        ),
    ];
    for (blocker, edit, faults) in cases {
        let desk = desk();
        desk.lark.edit(edit);
        desk.lark.faults(faults);
        holds(
            &notify(&desk),
            &json!({"ok": false, "status": "gate_required", "blocker": blocker, "error_code": blocker,
            "external_write_outcome": "none"}),
        );
        assert_eq!(desk.lark.sent().len(), 0, "{blocker}");
    }
}

#[test]
fn a_bot_of_ones_own_and_a_reader_are_needed() {
    let desk = Desk::new();
    let mut words = words(&["--execute"]);
    words.retain(|word| *word != "--reader-profile" && *word != READER);
    holds(
        &desk.act(&words),
        &json!({"ok": false, "blocker": "reviewer_notification_reader_auth_required"}),
    );
    let lark = Lark::new();
    let reply = json!({"enabled": false, "received_reaction_emoji": ""});
    let config = lark.inbox_config_with("one", CHAT, reply);
    let silent = Desk { lark, config };
    holds(
        &silent.act(&words),
        &json!({"ok": false, "blocker": "dedicated_bot_identity_required", "idempotency_key": null}),
    );
}

#[test]
fn the_configured_reader_is_used_where_none_is_named() {
    let desk = desk();
    let config = desk
        .lark
        .inbox_config_with("one", CHAT, json!({"reader_profile": READER}));
    assert_eq!(config, desk.config);
    let mut words = words(&["--execute"]);
    words.retain(|word| *word != "--reader-profile" && *word != READER);
    holds(
        &desk.act(&words),
        &json!({"ok": true, "status": "sent_verified"}),
    );
}

#[test]
fn a_notification_without_a_mention_or_an_address_is_refused_before_any_call() {
    let desk = desk();
    for (text, address, code) in [
        ("please review", ADDRESS, "reviewer_mention_required"),
        (TEXT, "git.example/pull/7", "pull_request_url_invalid"),
    ] {
        let words = [
            "notify-reviewer",
            "--pull-request-url",
            address,
            "--text",
            text,
            "--execute",
        ];
        holds(&desk.act(&words), &json!({"ok": false, "error_code": code}));
    }
    let calls = desk.lark.calls();
    assert!(calls.iter().all(|call| call["command"] == "version"));
}

#[test]
fn a_notification_that_does_not_read_back_is_unverified_and_not_sent_again() {
    let desk = desk();
    desk.lark.faults(
        json!([{"on": "im +messages-mget", "do": "set", "values": {"/data/messages/0/mentions": []}}]),
    );
    holds(
        &notify(&desk),
        &json!({"ok": false, "status": "sent_unverified", "blocker": "lark_notification_not_verified",
        "external_write_outcome": "performed", "notification_verified": false}),
    );
    holds(
        &notify(&desk),
        &json!({"ok": false, "blocker": "reviewer_notification_dedupe_readback_failed", "external_write_outcome": "none"}),
    );
    desk.lark.faults(json!([]));
    holds(
        &notify(&desk),
        &json!({"ok": true, "status": "already_sent"}),
    );
    assert_eq!((desk.sends(), desk.lark.sent().len()), (1, 1));
}

#[test]
fn what_the_search_found_has_to_read_back() {
    let desk = desk();
    holds(&notify(&desk), &json!({"status": "sent_verified"}));
    desk.lark
        .faults(json!([{"on": "im +messages-mget", "do": "network"}]));
    holds(
        &notify(&desk),
        &json!({"ok": false, "blocker": "reviewer_notification_dedupe_readback_failed", "external_write_outcome": "none"}),
    );
    assert_eq!(desk.sends(), 1);
}

#[test]
fn four_processes_notify_once() {
    let desk = desk();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| holds(&notify(&desk), &json!({"ok": true})));
        }
    });
    assert_eq!((desk.sends(), desk.lark.sent().len()), (1, 1));
}
