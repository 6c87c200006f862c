//! Faults of the provider while something is written to it: what is said, what is never sent twice. The numbers are those of
//! docs/spec/lark-cli.md 15.

use serde_json::{Value, json};

use super::desk::{Desk, holds, real_send};
use crate::support::lark::{ALICE, CHAT, Lark, MARK};

const BOB: &str = "ou_zqpbob";

/// 1
#[test]
fn a_sender_is_verified_on_the_third_try_and_not_later() {
    let desk = Desk::new();
    let rule = |turns: Value| {
        json!([{"on": "auth status", "nth": turns, "do": "set", "values": {"/identities/bot/status": "verify_failed",
        "/identities/bot/verified": false, "/identities/bot/available": false}}])
    };
    desk.lark.faults(rule(json!([1, 2])));
    holds(
        &desk.send("hello"),
        &json!({"ok": true, "status": "sent_verified"}),
    );
    assert_eq!(desk.lark.count("auth status"), 3);
    desk.lark.faults(rule(json!([1, 2, 3])));
    holds(
        &desk.send("again"),
        &json!({"ok": false, "blocker": "lark_outbound_message_sender_identity_mismatch", "external_write_outcome": "none"}),
    );
    assert_eq!((desk.lark.count("auth status"), desk.sends()), (6, 1));
}

/// 2, 3
#[test]
fn another_sender_and_a_foreign_chat_stop_before_anything_is_sent() {
    let desk = Desk::new();
    desk.lark
        .edit(|state| state["profiles"]["zqp-bot"]["app_name"] = json!("Somebody Else"));
    holds(
        &desk.send("hello"),
        &json!({"status": "gate_required", "blocker": "lark_outbound_message_sender_identity_mismatch"}),
    );
    assert_eq!(
        (desk.lark.count("auth status"), desk.lark.count("api")),
        (1, 0),
        "no further call"
    );
    let desk = Desk::new();
    desk.lark
        .edit(|state| state["chats"][CHAT]["bots"] = json!([]));
    holds(
        &desk.send("hello"),
        &json!({"status": "gate_required", "blocker": "lark_outbound_message_sender_not_in_configured_chat"}),
    );
    assert_eq!(desk.sends(), 0);
}

/// 4, 5
#[test]
fn a_member_of_a_late_page_is_found_and_a_cut_list_proves_nothing() {
    let desk = Desk::new();
    let text = format!("<at open_id=\"{BOB}\">Bob</at> please look");
    desk.lark.edit(|state| {
        let mut users: Vec<Value> = (0..150)
            .map(
                |index| json!({"open_id": format!("ou_zqpuser{index:04}"), "name": "Zqp Somebody"}),
            )
            .collect();
        users.push(json!({"open_id": BOB, "name": "Zqp Bob"}));
        state["chats"][CHAT]["users"] = json!(users);
    });
    holds(
        &desk.send(&text),
        &json!({"ok": true, "status": "sent_verified"}),
    );
    desk.lark
        .edit(|state| state["options"]["member_page_cap"] = json!(1));
    let other = format!("<at open_id=\"{BOB}\">Bob</at> please look again");
    holds(
        &desk.send(&other),
        &json!({"ok": false, "blocker": "lark_outbound_message_mention_identity_unresolved"}),
    );
    assert_eq!(desk.sends(), 1);
}

/// 6, 7
#[test]
fn a_message_without_its_mention_or_with_one_more_is_not_verified() {
    let desk = Desk::new();
    let text = format!("<at open_id=\"{BOB}\">Bob</at> please look");
    let twice = json!([{"id": BOB, "key": "@_user_1", "name": "Zqp Bob"}, {"id": ALICE, "key": "@_user_2", "name": "Zqp Alice"}]);
    for mentions in [json!([]), twice] {
        desk.lark.faults(json!([{"on": "im +messages-mget", "do": "set", "values": {"/data/messages/0/mentions": mentions}}]));
        let packet = desk.send(&text);
        holds(
            &packet,
            &json!({"ok": false, "status": "sent_unverified", "blocker": "lark_outbound_message_not_verified",
            "external_write_outcome": "performed", "reply_verified": false}),
        );
    }
    desk.lark.faults(json!([]));
    holds(
        &desk.send(&text),
        &json!({"ok": true, "status": "sent_verified"}),
    );
    assert_eq!(desk.lark.sent().len(), 1, "one message under one key");
}

/// 8, 24
#[test]
fn an_unknown_outcome_is_said_and_its_repeat_keeps_the_key() {
    let faults = [
        json!({"do": "lose_answer"}),
        json!({"do": "empty"}),
        json!({"do": "drop", "key": "message_id"}),
        json!({"do": "code", "code": 424_242}),
        json!({"do": "network", "subtype": "transport"}),
        json!({"do": "network", "subtype": "timeout"}),
        json!({"do": "internal"}),
        json!({"do": "die"}),
        json!({"do": "truncate"}),
    ];
    for fault in faults {
        let desk = Desk::new();
        desk.lark.faults(real_send(fault.clone()));
        let packet = desk.send("plain words");
        holds(
            &packet,
            &json!({"ok": false, "status": "sent_unverified", "external_write_outcome": "unknown",
            "blocker": "lark_outbound_message_delivery_outcome_unknown", "verification_performed": false}),
        );
        desk.lark.faults(json!([]));
        let repeat = desk.send("plain words");
        holds(
            &repeat,
            &json!({"ok": true, "status": "sent_verified", "idempotency_key": packet["idempotency_key"]}),
        );
        assert_eq!(desk.lark.sent().len(), 1, "after {fault}");
    }
}

#[test]
fn a_call_that_hangs_is_ended_and_its_outcome_is_unknown() {
    let desk = Desk::new();
    desk.lark.faults(real_send(json!({"do": "hang_after"})));
    let run = desk
        .lark
        .inbox(
            &["send", "--text", "plain words", "--execute"],
            &desk.config,
        )
        .env("LOOPX_TEST_PROVIDER_TIMEOUT_MS", "700");
    holds(
        &Lark::packet(run, &[]).1,
        &json!({"ok": false, "external_write_outcome": "unknown"}),
    );
    desk.lark.faults(json!([]));
    holds(
        &desk.send("plain words"),
        &json!({"ok": true, "status": "sent_verified"}),
    );
    assert_eq!(desk.lark.sent().len(), 1);
}

/// 19
#[test]
fn a_refused_send_is_no_send_and_may_be_tried_again() {
    for fault in [
        json!({"do": "code", "code": 99_991_400}),
        json!({"do": "page", "code": 429}),
        json!({"do": "code", "code": 230_002}),
    ] {
        let desk = Desk::new();
        desk.lark.faults(real_send(fault));
        holds(
            &desk.send("plain words"),
            &json!({"ok": false, "status": "gate_required", "blocker": "lark_outbound_message_provider_failed",
            "external_write_outcome": "none"}),
        );
        assert_eq!(desk.lark.sent().len(), 0);
        desk.lark.faults(json!([]));
        holds(
            &desk.send("plain words"),
            &json!({"ok": true, "status": "sent_verified"}),
        );
        assert_eq!(desk.lark.sent().len(), 1);
    }
}

/// 18
#[test]
fn an_unreachable_provider_is_named_without_its_words() {
    for subtype in ["tls", "transport"] {
        let desk = Desk::with_message();
        desk.lark.faults(json!([{"on": "*", "do": "network", "subtype": subtype, "stderr": format!("x509: {MARK} ticket={MARK}")}]));
        holds(
            &desk.send("plain words"),
            &json!({"ok": false, "external_write_outcome": "none"}),
        );
        holds(
            &desk.mark("processing"),
            &json!({"ok": false, "status": "provider_outcome_uncertain", "external_write_outcome": "unknown"}),
        );
        assert_eq!(desk.lark.sent().len(), 0);
    }
}

/// 20
#[test]
fn a_credential_of_the_provider_never_comes_out() {
    let desk = Desk::with_message();
    desk.lark.faults(json!([{"on": "*", "do": "pass", "stderr": format!("token=t-{MARK} wss://x.invalid/?ticket={MARK}")}]));
    holds(&desk.send("plain words"), &json!({"ok": true}));
    holds(&desk.reply("an answer"), &json!({"ok": true}));
    holds(&desk.mark("processing"), &json!({"ok": true}));
}

/// 21
#[test]
fn only_commands_that_every_release_has_are_called() {
    let desk = Desk::with_message();
    desk.send("plain words");
    desk.mark("processing");
    desk.reply("an answer");
    let known = [
        "auth status",
        "api",
        "im +messages-send",
        "im +messages-reply",
        "im +messages-mget",
        "im +chat-members-list",
        "version",
    ];
    for call in desk.lark.calls() {
        assert!(known.iter().any(|name| call["command"] == *name), "{call}");
    }
}

/// 27
#[test]
fn twelve_mentions_are_verified_by_the_message_as_it_was_sent() {
    let desk = Desk::new();
    desk.lark.edit(|state| {
        let users: Vec<Value> = (1..=12).map(|index| json!({"open_id": format!("ou_zqpuser{index}"), "name": format!("Zqp {index}")})).collect();
        state["chats"][CHAT]["users"] = json!(users);
    });
    let text: Vec<String> = (1..=12)
        .map(|index| format!("<at open_id=\"ou_zqpuser{index}\">N</at>"))
        .collect();
    holds(
        &desk.send(&format!("{} all of you", text.join(" "))),
        &json!({"ok": true, "status": "sent_verified"}),
    );
    let raw = desk
        .lark
        .calls()
        .into_iter()
        .filter(|call| call["argv"].to_string().contains("/im/v1/messages/om_"))
        .count();
    assert_eq!(raw, 1, "the raw message was read");
}

/// 28
#[test]
fn a_saved_file_is_no_success() {
    let desk = Desk::with_message();
    desk.lark.faults(json!([{"on": "api", "do": "saved_file"}]));
    holds(
        &desk.send("plain words"),
        &json!({"ok": false, "blocker": "lark_outbound_message_sender_not_in_configured_chat"}),
    );
    holds(
        &desk.mark("processing"),
        &json!({"ok": false, "external_write_outcome": "unknown"}),
    );
}

#[test]
fn text_that_would_not_arrive_as_written_is_refused_before_any_call() {
    let desk = Desk::new();
    for text in [
        "-",
        "@file",
        "a\\nb",
        "hello @Bob",
        "<at>x",
        "   ",
        &"x".repeat(1201),
    ] {
        let (code, packet) = Lark::packet(
            desk.lark.inbox(&["send", "--text", text], &desk.config),
            &[],
        );
        assert_eq!(
            (code, &packet["ok"]),
            (Some(1), &json!(false)),
            "{text}: {packet}"
        );
    }
    holds(
        &desk.act(&["send", "--text", &"x".repeat(1200)]),
        &json!({"ok": true, "status": "preview_ready"}),
    );
    holds(
        &desk.act(&["send", "--text", "```\n@Bob a\\nb\n```"]),
        &json!({"ok": true, "status": "preview_ready"}),
    );
    assert!(
        desk.lark
            .calls()
            .iter()
            .all(|call| call["command"] == "version"),
        "no provider call"
    );
}

/// The lock of the outbound attempt makes two at once one after the other.
#[test]
fn four_processes_with_the_same_words_make_one_message() {
    let desk = Desk::new();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                holds(
                    &desk.send("plain words"),
                    &json!({"ok": true, "status": "sent_verified"}),
                )
            });
        }
    });
    assert_eq!(desk.lark.sent().len(), 1);
}

/// docs/spec/lark-cli.md 1.1: only a documented ending with a listed code is a refusal.
#[test]
fn an_ending_nobody_documents_is_of_unknown_outcome() {
    let faults = [
        json!({"do": "code", "code": 230_001, "rc": 77}),
        json!({"do": "code", "code": 230_027, "rc": 5}),
        json!({"do": "code", "code": 230_001, "rc": 4}),
    ];
    for fault in faults {
        let desk = Desk::new();
        desk.lark.faults(real_send(fault.clone()));
        holds(
            &desk.send("plain words"),
            &json!({"ok": false, "status": "sent_unverified", "external_write_outcome": "unknown"}),
        );
        desk.lark.faults(json!([]));
        holds(
            &desk.send("plain words"),
            &json!({"ok": true, "status": "sent_verified"}),
        );
        assert_eq!(desk.lark.sent().len(), 1, "after {fault}");
    }
}

#[test]
fn an_answer_of_another_chat_or_under_another_identity_proves_nothing() {
    let text = format!("<at open_id=\"{BOB}\">Bob</at> please look");
    let set = |on: &str, pointer: &str, value: &str| json!([{"on": on, "do": "set", "values": {pointer: value}}]);
    let members = "im +chat-members-list";
    let (foreign, user) = ("oc_zqpforeign", "user");
    for (faults, blocker) in [
        (
            set(members, "/data/chat_id", foreign),
            "mention_identity_unresolved",
        ),
        (
            set(members, "/identity", user),
            "mention_identity_unresolved",
        ),
        (
            set("api", "/data/chat_id", foreign),
            "sender_not_in_configured_chat",
        ),
        (
            set("api", "/identity", user),
            "sender_not_in_configured_chat",
        ),
        (
            set("im +messages-send", "/identity", user),
            "provider_preview_mismatch",
        ),
    ] {
        let desk = Desk::new();
        desk.lark.faults(faults.clone());
        let packet = desk.send(&text);
        assert_eq!(
            packet["blocker"],
            format!("lark_outbound_message_{blocker}"),
            "{faults}"
        );
        assert_eq!(desk.sends(), 0, "{faults}");
    }
}
