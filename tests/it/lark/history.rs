//! Reading a chat's history under faults of the provider, and the live stream that history completes. The numbers are those of
//! docs/spec/lark-cli.md 15.

use serde_json::{Value, json};

use crate::support::lark::{ALICE, APP, BOT, CHAT, Lark, MARK, PROFILE, assert_private};

const BASE: i64 = 1_789_000_000;
const IDS: [&str; 2] = ["om_zqph", "om_zqpt"];

struct Desk {
    lark: Lark,
    config: String,
}

impl Desk {
    fn new(messages: i64) -> Self {
        let lark = Lark::new();
        let config = lark.collector(&[("alpha", CHAT)], json!({}));
        for index in 0..messages {
            lark.seed(&format!("om_zqph{index}"), "words", BASE + index, json!({}));
        }
        Self { lark, config }
    }

    fn catch_up(&self, size: &str) -> Value {
        let words = [
            "history-catch-up",
            "--route-key",
            "alpha",
            "--start",
            "2026-09-01T00:00:00Z",
            "--page-size",
            size,
            "--execute",
        ];
        let finished = self.lark.inbox(&words, &self.config).json_run();
        assert_private(&finished, &IDS);
        finished.json()
    }

    fn tree(&self) -> Vec<(std::path::PathBuf, Vec<u8>)> {
        let mut tree = self.lark.sandbox.tree();
        tree.retain(|(path, _)| path.starts_with(self.lark.sandbox.project().join(".loopx/inbox")));
        tree
    }

    fn captured(&self) -> u64 {
        let packet = self.lark.inbox(&["drain"], &self.config).packet();
        packet["captured_count"].as_u64().expect("a count")
    }

    fn calls(&self, command: &str) -> Vec<Value> {
        self.lark
            .calls()
            .into_iter()
            .filter(|call| call["command"] == command)
            .collect()
    }

    fn stored(&self, id: &str) -> Value {
        let file = self
            .lark
            .sandbox
            .project()
            .join(format!(".loopx/inbox/alpha/{id}.json"));
        serde_json::from_slice(&std::fs::read(file).expect("an export")).expect("json")
    }

    /// Collects until the stream ends by itself, or until its second try.
    fn listen(&self, script: Value) -> Value {
        self.lark
            .edit(|state| state["streams"] = json!({"im.message.receive_v1": script}));
        let run = self.lark.inbox(
            &[
                "collector-run",
                "--lark-cli-executable",
                "lark-cli",
                "--format",
                "json",
            ],
            &self.config,
        );
        let (mut is_asked, before) = (false, self.lark.count("event consume"));
        let mut child = run.command().spawn().expect("the collector starts");
        while child.try_wait().expect("a child").is_none() {
            if !is_asked && self.lark.count("event consume") >= before + 2 {
                is_asked = true;
                let pid = nix::unistd::Pid::from_raw(i32::try_from(child.id()).expect("a pid"));
                nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).expect("it lives");
            }
            std::thread::yield_now();
        }
        let finished = run.finish(child);
        assert_private(&finished, &[]);
        finished.json()
    }
}

fn holds(packet: &Value, wanted: &Value) {
    for (name, value) in wanted.as_object().expect("an object") {
        assert_eq!(&packet[name], value, "{name} of {packet}");
    }
}

fn on_history(rule: Value) -> Value {
    let mut rule = rule;
    rule["on"] = json!("im +chat-messages-list");
    json!([rule])
}

fn live(id: &str, extra: Value) -> Value {
    let mut event = json!({"type": "im.message.receive_v1", "event_id": id.replace("om_", "ev_"), "message_id": id, "create_time": "1789000000000",
        "chat_id": CHAT, "chat_type": "group", "message_type": "text", "sender_id": ALICE, "sender_type": "user", "content": "words", "mentions": []});
    for (name, value) in extra.as_object().into_iter().flatten() {
        event[name.as_str()] = value.clone();
    }
    event
}

/// 10
#[test]
fn a_refused_listing_moves_neither_cursor_nor_inbox() {
    let desk = Desk::new(3);
    let before = desk.tree();
    let rows = [
        (
            json!({"do": "code", "code": 230_027}),
            "group_history_permission_required",
        ),
        (
            json!({"do": "no_login"}),
            "group_history_authorization_required",
        ),
        (
            json!({"do": "code", "code": 99}),
            "group_history_provider_failed",
        ),
        (
            json!({"do": "garbage"}),
            "group_history_provider_payload_invalid",
        ),
        (
            json!({"do": "truncate"}),
            "group_history_provider_payload_invalid",
        ),
        (
            json!({"do": "drop", "key": "has_more"}),
            "group_history_provider_payload_invalid",
        ),
        (
            json!({"do": "set", "values": {"/identity": "user"}}),
            "group_history_provider_payload_invalid",
        ),
    ];
    for (fault, status) in rows {
        desk.lark.faults(on_history(fault));
        holds(
            &desk.catch_up("2"),
            &json!({"ok": false, "status": status, "cursor_state_mutated": false, "inbox_state_mutated": false}),
        );
        assert_eq!(desk.tree(), before, "{status}");
    }
    desk.lark.faults(json!([]));
    holds(
        &desk.catch_up("2"),
        &json!({"ok": true, "accepted_count": 2}),
    );
}

/// 11
#[test]
fn a_failed_second_page_is_asked_for_again_with_its_token() {
    let desk = Desk::new(3);
    holds(
        &desk.catch_up("2"),
        &json!({"ok": true, "status": "page_captured"}),
    );
    desk.lark.faults(on_history(json!({"do": "network"})));
    holds(
        &desk.catch_up("2"),
        &json!({"ok": false, "cursor_state_mutated": false}),
    );
    desk.lark.faults(json!([]));
    holds(
        &desk.catch_up("2"),
        &json!({"ok": true, "status": "history_complete", "accepted_count": 1}),
    );
    let token = |call: &Value| {
        let words: Vec<&str> = call["argv"]
            .as_array()
            .expect("words")
            .iter()
            .filter_map(Value::as_str)
            .collect();
        words
            .iter()
            .position(|word| *word == "--page-token")
            .map(|at| words[at + 1].to_owned())
    };
    let tokens: Vec<_> = desk
        .calls("im +chat-messages-list")
        .iter()
        .map(token)
        .collect();
    assert_eq!(tokens[0], None);
    assert!(tokens[1].is_some() && tokens[1] == tokens[2], "{tokens:?}");
    assert_eq!(desk.captured(), 3);
}

/// 12
#[test]
fn an_edited_message_keeps_its_first_words_and_gains_a_revision() {
    let desk = Desk::new(1);
    desk.catch_up("50");
    let first = desk.stored("om_zqph0");
    let cursor = desk
        .lark
        .sandbox
        .project()
        .join(".loopx/inbox/.history/alpha.json");
    std::fs::remove_file(cursor).expect("moved aside");
    desk.lark.edit(|state| {
        state["messages"][0]["text"] = json!("other words");
        state["messages"][0]["edited"] = json!(true);
    });
    holds(
        &desk.catch_up("50"),
        &json!({"ok": true, "accepted_count": 0, "duplicate_count": 1, "revised_count": 1}),
    );
    assert_eq!(desk.stored("om_zqph0"), first);
    assert!(
        desk.lark
            .sandbox
            .project()
            .join(".loopx/inbox/alpha/revisions/om_zqph0.json")
            .is_file()
    );
}

/// 22
#[test]
fn a_cut_thread_is_completed_later_and_stored_once() {
    let desk = Desk::new(1);
    desk.lark.edit(|state| {
        state["messages"][0]["thread_id"] = json!("omt_zqp");
        let rows = state["messages"].as_array_mut().expect("a list");
        rows.extend((0..120).map(|index| {
            json!({"message_id": format!("om_zqpt{index:03}"), "chat_id": CHAT, "text": "words", "sender_type": "user", "sender_id": ALICE,
                "at": BASE + 10 + index, "thread_id": "omt_zqp", "parent_id": "om_zqph0", "root_id": "om_zqph0"})
        }));
    });
    desk.lark
        .faults(json!([{"on": "im +threads-messages-list", "nth": [2], "do": "network"}]));
    holds(
        &desk.catch_up("50"),
        &json!({"ok": false, "status": "group_history_thread_incomplete", "page_partial": true, "cursor_state_mutated": false}),
    );
    let part = desk.captured();
    assert!((51..121).contains(&part), "{part} of the thread are kept");
    desk.lark.faults(json!([]));
    holds(
        &desk.catch_up("50"),
        &json!({"ok": true, "status": "history_complete", "completed_thread_count": 1}),
    );
    assert_eq!(desk.captured(), 121);
}

/// 26
#[test]
fn the_parent_of_a_thread_reply_comes_from_the_message_as_it_was_sent() {
    let desk = Desk::new(0);
    desk.lark.edit(|state| {
        let link = |id: &str, sender: &str, kind: &str, parent: Option<&str>| {
            let mut row = json!({"message_id": id, "chat_id": CHAT, "text": "words", "sender_type": kind, "sender_id": sender, "at": BASE,
                "thread_id": "omt_zqp", "root_id": parent});
            row["parent_id"] = parent.map_or(Value::Null, |parent| json!(parent));
            row
        };
        state["messages"] = json!([link("om_zqpown", APP, "app", None), link("om_zqplive", ALICE, "user", Some("om_zqpown"))]);
    });
    let packet = desk.listen(json!({"events": [live("om_zqplive", json!({"thread_id": "omt_zqp"}))], "end": {"reason": "timeout"}}));
    holds(
        &packet,
        &json!({"ok": true, "captured_count": 1, "reply_to_bot_count": 1, "reply_context_verified_count": 1}),
    );
    holds(
        &desk.stored("om_zqplive"),
        &json!({"reply_context_verified": true, "reply_to_bot": true}),
    );
}

/// A recalled message is shown with a placeholder in place of its words; the stream had them.
#[test]
fn a_message_recalled_before_its_lookup_keeps_the_words_the_stream_brought() {
    let desk = Desk::new(0);
    let gone = json!({"deleted": true});
    desk.lark
        .seed("om_zqplive", "[Invalid text JSON]", BASE, gone.clone());
    desk.lark
        .seed("om_zqpparent", "[Invalid text JSON]", BASE, gone);
    desk.lark.seed("om_zqpreply", "words", BASE, json!({}));
    let reply = json!({"parent_id": "om_zqpparent", "event_id": "ev_zqpreply"});
    let events = json!([live("om_zqplive", json!({})), live("om_zqpreply", reply)]);
    let packet = desk.listen(json!({"events": events, "end": {"reason": "timeout"}}));
    holds(&packet, &json!({"ok": true, "captured_count": 2}));
    holds(
        &desk.stored("om_zqplive"),
        &json!({"content": "words", "reply_context_verified": false, "reply_to_bot": false}),
    );
    let stored = desk.stored("om_zqpreply");
    assert_eq!(stored["parent_id"], "om_zqpparent");
    assert_eq!(stored["reply_context"]["content"], "", "{stored}");
}

/// One odd sender would hold up its page for ever, or make a live message vanish.
#[test]
fn a_sender_that_is_no_id_costs_no_message() {
    let desk = Desk::new(0);
    let odd = json!({"sender_id": "a b"});
    desk.lark.seed("om_zqplive", "words", BASE, odd.clone());
    desk.lark.seed("om_zqpold", "words", BASE, odd);
    let events = json!([live("om_zqplive", json!({}))]);
    let packet = desk.listen(json!({"events": events, "end": {"reason": "timeout"}}));
    holds(&packet, &json!({"ok": true, "captured_count": 1}));
    assert_eq!(desk.stored("om_zqplive")["sender_id"], ALICE);
    holds(
        &desk.catch_up("50"),
        &json!({"ok": true, "status": "history_complete", "accepted_count": 1}),
    );
    assert_eq!(desk.stored("om_zqpold")["content"], "words");
}

/// Nothing of a committed page is taken back by a bookkeeping that has to wait.
#[test]
fn a_busy_store_after_the_commit_keeps_the_receipt_of_the_page() {
    let desk = Desk::new(0);
    let project = desk.lark.sandbox.project();
    desk.lark.seed("om_zqpold", "words", BASE, json!({}));
    holds(&desk.catch_up("50"), &json!({"ok": true}));
    let cursor = project.join(".loopx/inbox/.history/alpha.json");
    std::fs::remove_file(&cursor).expect("the position is moved aside");
    let file = project.join(".loopx/inbox/alpha/.state/inbox.sqlite3");
    let database = rusqlite::Connection::open(file).expect("opened");
    let row = "INSERT INTO live_gaps VALUES('alpha', '2026-09-10T00:00:00Z', '2026-09-10T00:00:01Z', 'not_running')";
    database.execute_batch(row).expect("a hole");
    database.execute_batch("BEGIN IMMEDIATE").expect("held");
    holds(
        &desk.catch_up("50"),
        &json!({"ok": true, "status": "history_complete", "cursor_state_mutated": true}),
    );
}

/// 17
#[test]
fn an_event_that_comes_twice_is_stored_once_and_its_first_words_stay() {
    let desk = Desk::new(0);
    desk.lark.seed("om_zqplive", "words", BASE, json!({}));
    let again = live("om_zqplive", json!({"content": "again"}));
    let events = json!([
        live("om_zqplive", json!({})),
        again,
        "no json",
        "[1]",
        "",
        live("om_zqpelse", json!({"chat_id": "oc_other"}))
    ]);
    let packet = desk.listen(json!({"events": events, "end": {"reason": "timeout"}}));
    holds(
        &packet,
        &json!({"ok": true, "status": "completed", "routed_route_count": 1}),
    );
    assert_eq!(desk.captured(), 1);
}

/// 15
#[test]
fn an_end_nobody_planned_is_a_lost_source() {
    for end in [
        json!({"reason": "signal"}),
        json!({"reason": "timeout", "rc": 1}),
        json!({"exit_line": false}),
    ] {
        let desk = Desk::new(0);
        let packet = desk.listen(json!({"end": end, "noise": [format!("ticket={MARK}")]}));
        holds(
            &packet,
            &json!({"error_code": "lark_event_source_disconnected", "source_healthy": false}),
        );
        assert!(
            desk.calls("event consume").len() >= 2,
            "the source is tried again after {end}"
        );
    }
}

/// 16
#[test]
fn a_bus_of_somebody_else_is_said_and_is_not_readiness() {
    let desk = Desk::new(0);
    let lines = ["[event] remote bus: online_instance_cnt=1"];
    let packet = desk.listen(json!({"refuse": {"kind": "precondition", "lines": lines}}));
    holds(
        &packet,
        &json!({"error_code": "lark_event_remote_connection_active", "source_healthy": false}),
    );
}

#[test]
fn the_own_messages_of_the_bot_are_not_captured() {
    let desk = Desk::new(0);
    desk.lark.seed(
        "om_zqpself",
        "words",
        BASE,
        json!({"sender_type": "app", "sender_id": APP}),
    );
    let own = live(
        "om_zqpself",
        json!({"sender_type": "bot", "sender_id": BOT}),
    );
    let packet = desk.listen(json!({"events": [own], "end": {"reason": "timeout"}}));
    holds(
        &packet,
        &json!({"ok": true, "captured_count": 0, "self_message_skipped_count": 1}),
    );
    let whoami = desk.calls("whoami");
    assert_eq!(whoami.len(), 1, "asked once");
    assert!(whoami[0]["argv"].to_string().contains(PROFILE));
}

#[test]
fn a_changed_binding_stops_before_the_provider_is_asked() {
    let desk = Desk::new(3);
    desk.catch_up("2");
    let calls = desk.lark.calls().len();
    desk.lark.collector(&[("alpha", "oc_zqpbeta")], json!({}));
    holds(
        &desk.catch_up("2"),
        &json!({"ok": false, "external_write_outcome": "none"}),
    );
    let later: Vec<_> = desk
        .lark
        .calls()
        .split_off(calls)
        .into_iter()
        .filter(|call| call["command"] != "version")
        .collect();
    assert_eq!(later, Vec::<Value>::new());
}

/// Lines that were read and not stored when the run was killed lie inside the hole that the next run opens.
#[test]
fn a_run_killed_over_unstored_events_leaves_a_hole_that_history_closes() {
    let desk = Desk::new(0);
    let events: Vec<Value> = (0..3)
        .map(|index| {
            let id = format!("om_zqph{index}");
            desk.lark
                .seed(&id, "words", 1_789_721_990 + index, json!({}));
            live(&id, json!({}))
        })
        .collect();
    desk.lark
        .faults(json!([{"on": "im +messages-mget", "do": "hang"}]));
    let script = json!({"events": events, "live": true});
    desk.lark
        .edit(|state| state["streams"] = json!({"im.message.receive_v1": script}));
    let words = ["collector-run", "--lark-cli-executable", "lark-cli"];
    let run = desk.lark.inbox(&words, &desk.config);
    let mut child = run.command().spawn().expect("the collector starts");
    while desk.lark.count("im +messages-mget") == 0 {
        assert!(child.try_wait().expect("a child").is_none(), "it runs");
        std::thread::yield_now();
    }
    child.kill().expect("killed");
    child.wait().expect("gone");
    desk.lark.faults(json!([]));
    let packet = desk.listen(json!({"end": {"reason": "timeout"}}));
    holds(&packet, &json!({"ok": true, "captured_count": 0}));
    let gap = |desk: &Desk| {
        let packet = desk
            .lark
            .inbox(&["collector-status"], &desk.config)
            .packet();
        packet["history_gap"].clone()
    };
    holds(
        &gap(&desk),
        &json!({"open_count": 1, "since": "2026-09-18T08:58:00Z"}),
    );
    holds(
        &desk.catch_up("50"),
        &json!({"ok": true, "status": "history_complete", "accepted_count": 3}),
    );
    holds(&gap(&desk), &json!({"open_count": 0}));
}

#[test]
fn a_restart_heals_no_lost_source() {
    let desk = Desk::new(0);
    desk.listen(json!({"end": {"reason": "signal"}}));
    let packet = desk.listen(json!({"end": {"reason": "timeout"}}));
    holds(
        &packet,
        &json!({"error_code": "lark_event_source_disconnected", "source_healthy": false}),
    );
    desk.lark.seed("om_zqplive", "words", BASE, json!({}));
    let packet = desk
        .listen(json!({"events": [live("om_zqplive", json!({}))], "end": {"reason": "timeout"}}));
    holds(
        &packet,
        &json!({"error_code": null, "source_healthy": true}),
    );
}
