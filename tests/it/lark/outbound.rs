//! Faults of the provider while something is written to it: what is said, what is never sent twice. The numbers are those of
//! docs/spec/lark-cli.md 15.

use serde_json::{Value, json};

use crate::support::lark::{ALICE, APP, CHAT, Lark, MARK, event};

const BOB: &str = "ou_zqpbob";

struct Desk {
    lark: Lark,
    config: String,
}

impl Desk {
    fn new() -> Self {
        let lark = Lark::new();
        let config = lark.inbox_config("one", CHAT);
        Self { lark, config }
    }

    /// A desk with marks and one captured message.
    fn with_message() -> Self {
        let lark = Lark::new();
        let marks = json!({"received_reaction_emoji": "Get", "processing_reaction_emoji": "OnIt"});
        let config = lark.inbox_config_with("one", CHAT, marks);
        lark.seed("om_zqpa", "words", 1_789_000_000, json!({}));
        lark.inbox(&["ingest", "--execute"], &config)
            .stdin(json!([event("om_zqpa", json!({}))]).to_string())
            .packet();
        Self { lark, config }
    }

    fn send(&self, text: &str) -> Value {
        self.act(&["send", "--text", text, "--execute"])
    }

    fn reply(&self, text: &str) -> Value {
        self.act(&[
            "reply",
            "--message-id",
            "om_zqpa",
            "--text",
            text,
            "--execute",
        ])
    }

    fn mark(&self, command: &str) -> Value {
        self.act(&[command, "--message-id", "om_zqpa", "--execute"])
    }

    fn act(&self, words: &[&str]) -> Value {
        Lark::packet(self.lark.inbox(words, &self.config), &[]).1
    }

    /// Like `act`, more than an hour later for both sides.
    fn act_later(&self, words: &[&str]) -> Value {
        self.lark
            .edit(|state| state["clock_offset"] = json!(offset() + 4200));
        Lark::packet(
            self.lark
                .inbox(words, &self.config)
                .now("2026-09-18T10:10:00Z"),
            &[],
        )
        .1
    }

    fn sends(&self) -> usize {
        let is_real = |call: &&Value| {
            !call["argv"]
                .as_array()
                .expect("words")
                .contains(&json!("--dry-run"))
        };
        let calls = self.lark.calls();
        calls
            .iter()
            .filter(|call| {
                call["command"] == "im +messages-send" || call["command"] == "im +messages-reply"
            })
            .filter(is_real)
            .count()
    }

    fn creates(&self) -> usize {
        let is_create = |call: &&Value| {
            call["argv"]
                .as_array()
                .expect("words")
                .contains(&json!("POST"))
        };
        self.lark.calls().iter().filter(is_create).count()
    }
}

fn holds(packet: &Value, wanted: &Value) {
    for (name, value) in wanted.as_object().expect("an object") {
        assert_eq!(&packet[name], value, "{name} of {packet}");
    }
}

fn real_send(rule: Value) -> Value {
    let mut rule = rule;
    rule["on"] = json!("im +messages-send");
    rule["dry_run"] = json!(false);
    json!([rule])
}

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

/// What moves the stand-in's clock to the instant the sandbox believes in.
fn offset() -> i64 {
    let real = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("after 1970")
        .as_secs();
    1_789_722_000 - i64::try_from(real).expect("small")
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

/// 13, 14, 23
#[test]
fn a_mark_of_unknown_outcome_is_never_made_twice_and_an_absent_one_counts_as_removed() {
    let desk = Desk::with_message();
    desk.lark
        .faults(json!([{"on": "api", "method": "POST", "do": "lose_answer"}]));
    holds(
        &desk.mark("processing"),
        &json!({"ok": false, "status": "provider_outcome_uncertain", "external_write_outcome": "unknown"}),
    );
    desk.lark.faults(json!([]));
    holds(
        &desk.mark("processing"),
        &json!({"ok": false, "status": "provider_outcome_uncertain"}),
    );
    assert_eq!(desk.creates(), 1);

    let desk = Desk::with_message();
    desk.lark
        .faults(json!([{"on": "api", "method": "POST", "do": "code", "code": 231_003}]));
    holds(
        &desk.mark("processing"),
        &json!({"ok": false, "blocker": "lark_inbox_processing_reaction_create_failed", "external_write_outcome": "none"}),
    );
    desk.lark.faults(json!([]));
    holds(
        &desk.mark("processing"),
        &json!({"ok": true, "status": "processing"}),
    );
    // Twenty other marks make a second page of marks.
    desk.lark.edit(|state| {
        let rows = state["marks"]["om_zqpa"].as_array_mut().expect("marks");
        rows.extend((0..60).map(|index| json!({"reaction_id": format!("re_{index}"), "emoji": "Get", "app_id": "cli_zqpelse"})));
    });
    let delete = json!({"on": "api", "method": "DELETE", "do": "code", "code": 231_003});
    desk.lark.faults(json!([delete, {"on": "api", "method": "GET", "path": "reactions", "nth": [2], "do": "code", "code": 99}]));
    holds(
        &desk.mark("reaction-complete"),
        &json!({"ok": false, "status": "cleanup_pending", "pending_delete_count": 1}),
    );
    desk.lark.edit(|state| {
        state["marks"]["om_zqpa"]
            .as_array_mut()
            .expect("marks")
            .retain(|row| row["emoji"] != "OnIt")
    });
    desk.lark.faults(json!([delete]));
    holds(
        &desk.mark("reaction-complete"),
        &json!({"ok": true, "status": "completed", "deleted_count": 1}),
    );
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
