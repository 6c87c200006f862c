//! Nobody asks a program that works for its version; one that fails as an old one does is asked once and named (docs/spec/lark-cli.md 7).

use serde_json::{Value, json};

use super::collector::{CONFIG, collect, live, script};
use super::desk::{Desk, holds};
use super::notify;
use super::turn_start::Wake;
use crate::support::Run;
use crate::support::lark::{CHAT, Lark, PROFILE};

/// An old program that does not know what it is asked.
fn outdated(lark: &Lark) {
    lark.faults(json!([{"on": "version", "do": "old"}, {"on": "*", "do": "usage"}]));
    lark.edit(|state| {
        state["streams"] = json!({"im.message.receive_v1":
            {"refuse": {"kind": "usage"}}});
    });
}

/// The one refusal: what was found and what is needed, nothing was changed, and the version was asked once.
fn refused(lark: &Lark, what: &str, run: Run<'_>) {
    let before = lark.count("version");
    let (exit, packet) = Lark::packet(run, &[]);
    assert_eq!(exit, Some(1), "{what}: {packet}");
    holds(
        &packet,
        &json!({"ok": false, "schema_version": "lark_event_inbox_error_v0", "error_code": "dependency_incompatible",
            "error": "`lark-cli` 1.0.68 is too old; install 1.0.69 or newer, then run the same command again",
            "dependency": {"program": "lark-cli", "found_version": "1.0.68", "needed_version": "1.0.69"},
            "external_write_outcome": "none"}),
    );
    assert!(lark.sent().is_empty(), "{what}");
    assert_eq!(lark.count("version"), before + 1, "{what}");
}

const PAGE: [&str; 5] = [
    "history-catch-up",
    "--route-key",
    "alpha",
    "--start",
    "2026-09-10T00:00:00Z",
];
const SEND: [&str; 4] = ["send", "--text", "words", "--execute"];
const REPLY: [&str; 6] = [
    "reply",
    "--message-id",
    "om_zqpa",
    "--text",
    "x",
    "--execute",
];
const NOTIFY: [&str; 8] = [
    "notify-reviewer",
    "--pull-request-url",
    "https://git.example/team/repo/pull/7",
    "--text",
    "<at open_id=\"ou_zqpbob\">Bob</at> please",
    "--reader-profile",
    PROFILE,
    "--execute",
];

#[test]
fn every_command_on_messages_names_a_program_below_the_floor_and_works_after_the_update() {
    let desk = Desk::with_message();
    outdated(&desk.lark);
    let rows: [&[&str]; 7] = [
        &SEND,
        &["send", "--text", "words", "--provider-preflight"],
        &REPLY,
        &[
            "reply",
            "--message-id",
            "om_zqpa",
            "--text",
            "x",
            "--provider-preflight",
        ],
        &NOTIFY,
        &["processing", "--message-id", "om_zqpa", "--execute"],
        &["processing", "--message-id", "om_zqpa", "--execute"],
    ];
    for words in rows {
        refused(
            &desk.lark,
            &words.join(" "),
            desk.lark.inbox(words, &desk.config),
        );
    }
    desk.lark.faults(json!([]));
    holds(&desk.mark("processing"), &json!({"status": "processing"}));
    outdated(&desk.lark);
    let complete = ["reaction-complete", "--message-id", "om_zqpa", "--execute"];
    refused(
        &desk.lark,
        "the mark is still there",
        desk.lark.inbox(&complete, &desk.config),
    );
    desk.lark.faults(json!([]));
    holds(
        &desk.mark("reaction-complete"),
        &json!({"status": "completed"}),
    );
    holds(&desk.act(&SEND), &json!({"status": "sent_verified"}));
}

#[test]
fn history_the_collector_and_a_wake_name_a_program_below_the_floor() {
    let lark = Lark::new();
    lark.collector(&[("alpha", CHAT)], json!({}));
    outdated(&lark);
    refused(&lark, "a page in preview", lark.inbox(&PAGE, CONFIG));
    let executed = [&PAGE[..], &["--execute"]].concat();
    refused(&lark, "a page", lark.inbox(&executed, CONFIG));
    let run = ["collector-run", "--lark-cli-executable", "lark-cli"];
    refused(&lark, "a run", lark.inbox(&run, CONFIG));
    let asked = lark.count("version");
    let words = ["collector-status", "--probe-event-bus"];
    let (exit, seen) = Lark::packet(lark.inbox(&words, CONFIG), &[]);
    assert_eq!(exit, Some(0), "a status is shown in any case");
    holds(
        &seen,
        &json!({"ok": true, "status": "attention_required", "event_bus_healthy": false,
            "dependency": {"program": "lark-cli", "found_version": "1.0.68", "needed_version": "1.0.69"}}),
    );
    assert_eq!(lark.count("version"), asked + 1);
    let wake = Wake::synced(&[("alpha", CHAT)]);
    outdated(&wake.lark);
    let synced = wake.sync("2026-09-10T00:00:00Z");
    assert_eq!(synced["error_code"], "dependency_incompatible", "{synced}");
    assert_eq!(wake.lark.count("version"), 1);
}

#[test]
fn a_program_that_works_is_never_asked_for_its_version() {
    let desk = Desk::with_message();
    desk.lark.faults(json!([{"on": "version", "do": "old"}]));
    holds(&desk.mark("processing"), &json!({"status": "processing"}));
    holds(&desk.act(&SEND), &json!({"status": "sent_verified"}));
    holds(&desk.act(&REPLY), &json!({"status": "sent_verified"}));
    holds(
        &desk.mark("reaction-complete"),
        &json!({"status": "already_complete"}),
    );
    assert_eq!(desk.lark.count("version"), 0);
    let desk = notify::desk();
    desk.lark.faults(json!([{"on": "version", "do": "old"}]));
    holds(&notify::notify(&desk), &json!({"status": "sent_verified"}));
    assert_eq!(desk.lark.count("version"), 0);
    let lark = Lark::new();
    lark.collector(&[("alpha", CHAT)], json!({}));
    lark.faults(json!([{"on": "version", "do": "old"}]));
    let executed = [&PAGE[..], &["--execute"]].concat();
    holds(
        &Lark::packet(lark.inbox(&executed, CONFIG), &[]).1,
        &json!({"ok": true}),
    );
    script(
        &lark,
        json!({"events": [live("om_zqpa0", CHAT)], "end": {"reason": "timeout"}}),
    );
    assert_eq!(collect(&lark)["captured_count"], 1);
    let words = ["collector-status", "--probe-event-bus"];
    let seen = Lark::packet(lark.inbox(&words, CONFIG), &[]).1;
    assert_eq!(seen.get("dependency"), None);
    assert_eq!(lark.count("version"), 0);
    let wake = Wake::synced(&[("alpha", CHAT)]);
    wake.lark.faults(json!([{"on": "version", "do": "old"}]));
    let synced = wake.sync("2026-09-10T00:00:00Z");
    assert_eq!(synced["error_code"], Value::Null, "{synced}");
    assert_eq!(wake.lark.count("version"), 0);
}

/// What the provider refuses says nothing about the program, and a program that is new enough keeps its answer.
#[test]
fn another_failure_or_a_program_that_is_new_enough_keeps_its_own_answer() {
    let desk = Desk::new();
    let old = json!({"on": "version", "do": "old"});
    desk.lark
        .faults(json!([old, {"on": "im +chat-members-list", "do": "network"}]));
    let refused = desk.send("<at open_id=\"ou_zqpbob\">Bob</at> words");
    assert_ne!(refused["error_code"], "dependency_incompatible");
    assert_eq!(desk.lark.count("version"), 0, "{refused}");
    for version in [
        json!({"on": "version", "do": "as_it_is"}),
        json!({"on": "version", "do": "garbage"}),
    ] {
        let asked = desk.lark.count("version");
        desk.lark
            .faults(json!([version, {"on": "auth status", "do": "usage"}]));
        holds(
            &desk.send("words"),
            &json!({"ok": false, "blocker": "lark_outbound_message_sender_identity_mismatch"}),
        );
        assert_eq!(desk.lark.count("version"), asked + 1);
    }
}

/// After a write whose end nobody knows that is the answer, whatever the program is.
#[test]
fn nobody_asks_for_the_version_after_a_write() {
    let desk = Desk::new();
    let old = json!({"on": "version", "do": "old"});
    desk.lark
        .faults(json!([old, {"on": "im +messages-mget", "do": "usage"}]));
    holds(
        &desk.send("words"),
        &json!({"ok": false, "status": "sent_unverified", "external_write_outcome": "performed"}),
    );
    desk.lark
        .faults(json!([old, {"on": "im +messages-send", "dry_run": false, "do": "garbage"}]));
    let packet: Value = desk.send("other words");
    holds(
        &packet,
        &json!({"ok": false, "external_write_outcome": "unknown"}),
    );
    assert_eq!(desk.lark.count("version"), 0);
}
