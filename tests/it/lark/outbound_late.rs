//! A send or reply whose answer was lost, more than an hour ago: looked for before anything is sent again.

use serde_json::json;

use super::desk::{Desk, holds, offset, real_send};
use crate::support::lark::{APP, CHAT, Lark};

/// 9
#[test]
fn after_the_hour_an_open_send_is_looked_for_in_the_chat() {
    let words = ["send", "--text", "plain words", "--execute"];
    for (fault, calls) in [("lose_answer", 1), ("network", 2)] {
        let desk = Desk::new();
        desk.lark
            .edit(|state| state["clock_offset"] = json!(offset()));
        desk.lark.faults(real_send(json!({"do": fault})));
        holds(
            &desk.act(&words),
            &json!({"external_write_outcome": "unknown"}),
        );
        desk.lark
            .faults(json!([{"on": "im +chat-messages-list", "do": "code", "code": 99}]));
        desk.lark
            .edit(|state| state["clock_offset"] = json!(offset() + 4200));
        let later = || {
            desk.lark
                .inbox(&words, &desk.config)
                .now("2026-09-18T10:10:00Z")
        };
        holds(
            &Lark::packet(later(), &[]).1,
            &json!({"ok": false, "status": "sent_unverified", "external_write_outcome": "unknown",
            "blocker": "lark_outbound_message_delivery_outcome_unknown"}),
        );
        assert_eq!(
            desk.sends(),
            1,
            "nothing is sent while the chat cannot be read"
        );
        desk.lark.faults(json!([]));
        holds(
            &Lark::packet(later(), &[]).1,
            &json!({"ok": true, "status": "sent_verified"}),
        );
        assert_eq!(
            (desk.lark.sent().len(), desk.sends()),
            (1, calls),
            "after {fault}"
        );
    }
}

#[test]
fn an_open_send_of_a_clock_that_was_ahead_is_looked_for_and_never_sent_again_on_silence() {
    let words = ["send", "--text", "plain words", "--execute"];
    for (fault, found) in [("lose_answer", true), ("network", false)] {
        let desk = Desk::new();
        desk.lark
            .edit(|state| state["clock_offset"] = json!(offset()));
        desk.lark.faults(real_send(json!({"do": fault})));
        let ahead = desk.lark.inbox(&words, &desk.config);
        holds(
            &Lark::packet(ahead.now("2026-09-20T09:00:00Z"), &[]).1,
            &json!({"external_write_outcome": "unknown"}),
        );
        desk.lark.faults(json!([]));
        let status = if found {
            "sent_verified"
        } else {
            "sent_unverified"
        };
        holds(&desk.act(&words), &json!({"ok": found, "status": status}));
        assert_eq!(
            (desk.lark.sent().len(), desk.sends()),
            (usize::from(found), 1),
            "after {fault}"
        );
    }
}

#[test]
fn a_refused_repeat_says_what_became_of_the_open_try_and_not_that_nothing_was_sent() {
    let desk = Desk::new();
    desk.lark.faults(real_send(json!({"do": "network"})));
    let unknown = json!({"ok": false, "status": "sent_unverified", "external_write_outcome": "unknown",
        "blocker": "lark_outbound_message_delivery_outcome_unknown"});
    holds(&desk.send("words"), &unknown);
    desk.lark
        .faults(real_send(json!({"do": "code", "code": 99_991_400})));
    holds(&desk.send("words"), &unknown);
    holds(
        &desk.send("other words"),
        &json!({"ok": false, "blocker": "lark_outbound_message_provider_failed", "external_write_outcome": "none"}),
    );
}

/// 25
#[test]
fn after_the_hour_an_open_reply_is_looked_for_in_the_thread_of_its_source() {
    let words = [
        "reply",
        "--message-id",
        "om_zqpa",
        "--text",
        "an answer",
        "--execute",
    ];
    for (fault, calls) in [("lose_answer", 1), ("network", 2)] {
        let desk = Desk::with_message();
        desk.lark
            .edit(|state| state["clock_offset"] = json!(offset()));
        let rule =
            |fault: &str| json!([{"on": "im +messages-reply", "dry_run": false, "do": fault}]);
        desk.lark.faults(rule(fault));
        holds(
            &desk.act(&words),
            &json!({"external_write_outcome": "unknown"}),
        );
        // The same words, to another message of the same thread, are no answer to this one.
        desk.lark
            .edit(|state| state["clock_offset"] = json!(offset() + 4200));
        let later = || {
            desk.lark
                .inbox(&words, &desk.config)
                .now("2026-09-18T10:10:00Z")
        };
        desk.lark
            .faults(json!([{"on": "im +threads-messages-list", "do": "network"}]));
        holds(
            &Lark::packet(later(), &[]).1,
            &json!({"ok": false, "blocker": "lark_inbox_reply_delivery_outcome_unknown"}),
        );
        assert_eq!(
            desk.sends(),
            1,
            "nothing is sent while the thread cannot be read"
        );
        if fault == "lose_answer" {
            desk.lark
                .faults(json!([{"on": "im +threads-messages-list", "do": "set",
                "values": {"/data/messages": [], "/data/has_more": false}}]));
            holds(
                &Lark::packet(later(), &[]).1,
                &json!({"ok": false, "blocker": "lark_inbox_reply_delivery_outcome_unknown"}),
            );
            assert_eq!(
                desk.sends(),
                1,
                "an empty answer about a thread proves nothing"
            );
        }
        desk.lark.faults(json!([]));
        holds(
            &Lark::packet(later(), &[]).1,
            &json!({"ok": true, "status": "sent_verified"}),
        );
        assert_eq!(
            (desk.lark.sent().len(), desk.sends()),
            (1, calls),
            "after {fault}"
        );
    }
}

#[test]
fn the_same_words_to_another_message_of_the_thread_are_no_answer() {
    let words = [
        "reply",
        "--message-id",
        "om_zqpa",
        "--text",
        "an answer",
        "--execute",
    ];
    let desk = Desk::with_message();
    desk.lark
        .edit(|state| state["clock_offset"] = json!(offset()));
    desk.lark
        .faults(json!([{"on": "im +messages-reply", "dry_run": false, "do": "network"}]));
    holds(
        &desk.act(&words),
        &json!({"external_write_outcome": "unknown"}),
    );
    desk.lark.faults(json!([]));
    desk.lark.edit(|state| {
        let thread = json!("omt_zqpa");
        let rows = state["messages"].as_array_mut().expect("a list");
        rows[0]["thread_id"] = thread.clone();
        rows.push(json!({"message_id": "om_zqpb", "chat_id": CHAT, "text": "an answer", "sender_type": "app", "sender_id": APP,
            "at": 1_789_722_010, "thread_id": thread, "parent_id": "om_zqpother", "root_id": "om_zqpa"}));
    });
    let packet = desk.act_later(&words);
    holds(&packet, &json!({"ok": true, "status": "sent_verified"}));
    assert_eq!(desk.lark.sent().len(), 1, "sent, not adopted");
}
