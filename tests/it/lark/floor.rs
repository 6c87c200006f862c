//! A program that is there and too old is refused by every command that needs it, in one way and before it is asked anything else
//! (docs/spec/lark-cli.md 7).

use std::path::PathBuf;

use serde_json::{Value, json};

use super::collector::CONFIG;
use super::desk::{Desk, holds};
use crate::support::Run;
use crate::support::lark::{CHAT, Lark, PROFILE};

fn outdated(lark: &Lark) {
    lark.faults(json!([{"on": "version", "do": "old"}]));
}

/// The one refusal: what was found and what is needed, and nothing was asked or changed.
fn refused(lark: &Lark, what: &str, run: Run<'_>) {
    let before = tree(lark);
    let (exit, packet) = Lark::packet(run, &[]);
    assert_eq!(exit, Some(1), "{what}: {packet}");
    holds(
        &packet,
        &json!({"ok": false, "schema_version": "lark_event_inbox_error_v0", "error_code": "dependency_incompatible",
            "error": "`lark-cli` 1.0.68 is too old; install 1.0.69 or newer, then run the same command again",
            "dependency": {"program": "lark-cli", "found_version": "1.0.68", "needed_version": "1.0.69"},
            "external_write_outcome": "none"}),
    );
    assert_eq!(others(lark), Vec::<String>::new(), "{what}");
    assert!(lark.sent().is_empty(), "{what}");
    assert_eq!(tree(lark), before, "{what} leaves no trace");
}

/// Every file but those of the stand-in.
fn tree(lark: &Lark) -> Vec<(PathBuf, Vec<u8>)> {
    let mut files = lark.sandbox.tree();
    files.retain(|(path, _)| !path.starts_with(lark.state_folder()));
    files
}

/// What was called beside the version.
fn others(lark: &Lark) -> Vec<String> {
    let calls = lark.calls().into_iter();
    calls
        .map(|call| call["command"].as_str().expect("a name").to_owned())
        .filter(|command| command != "version")
        .collect()
}

#[test]
fn every_command_on_messages_refuses_a_program_below_the_floor_before_its_first_call() {
    let desk = Desk::with_message();
    outdated(&desk.lark);
    let mention = "<at open_id=\"ou_zqpbob\">Bob</at> please";
    let rows: [&[&str]; 7] = [
        &["send", "--text", "words", "--execute"],
        &["send", "--text", "words", "--provider-preflight"],
        &[
            "reply",
            "--message-id",
            "om_zqpa",
            "--text",
            "x",
            "--execute",
        ],
        &[
            "reply",
            "--message-id",
            "om_zqpa",
            "--text",
            "x",
            "--provider-preflight",
        ],
        &[
            "notify-reviewer",
            "--pull-request-url",
            "https://git.example/team/repo/pull/7",
            "--text",
            mention,
            "--reader-profile",
            PROFILE,
            "--execute",
        ],
        &["processing", "--message-id", "om_zqpa", "--execute"],
        &["reaction-complete", "--message-id", "om_zqpa", "--execute"],
    ];
    for words in rows {
        refused(
            &desk.lark,
            &words.join(" "),
            desk.lark.inbox(words, &desk.config),
        );
    }
}

#[test]
fn history_and_the_collector_refuse_a_program_below_the_floor_before_their_first_call() {
    let lark = Lark::new();
    lark.collector(&[("alpha", CHAT)], json!({}));
    outdated(&lark);
    let start = ["--route-key", "alpha", "--start", "2026-09-10T00:00:00Z"];
    let page = [&["history-catch-up"][..], &start].concat();
    refused(&lark, "a page in preview", lark.inbox(&page, CONFIG));
    let page = [&page[..], &["--execute"]].concat();
    let (_, packet) = Lark::packet(lark.inbox(&page, CONFIG), &[]);
    holds(
        &packet,
        &json!({"ok": false, "error_code": "dependency_incompatible"}),
    );
    let run = ["collector-run", "--lark-cli-executable", "lark-cli"];
    let (exit, packet) = Lark::packet(lark.inbox(&run, CONFIG), &[]);
    assert_eq!(exit, Some(1));
    holds(
        &packet,
        &json!({"ok": false, "error_code": "dependency_incompatible", "external_write_outcome": "none"}),
    );
    assert_eq!(others(&lark), Vec::<String>::new());
    let (exit, seen) = Lark::packet(
        lark.inbox(&["collector-status", "--probe-event-bus"], CONFIG),
        &[],
    );
    assert_eq!(exit, Some(0), "a status is shown in any case");
    holds(
        &seen,
        &json!({"ok": true, "status": "attention_required", "event_bus_healthy": false,
            "dependency": {"program": "lark-cli", "found_version": "1.0.68", "needed_version": "1.0.69"}}),
    );
    assert_eq!(others(&lark), Vec::<String>::new());
}

#[test]
fn a_preview_that_asks_nobody_does_not_ask_for_the_version_either() {
    let desk = Desk::with_message();
    outdated(&desk.lark);
    let rows: [&[&str]; 4] = [
        &["send", "--text", "words"],
        &["reply", "--message-id", "om_zqpa", "--text", "x"],
        &["processing", "--message-id", "om_zqpa"],
        &["reaction-complete", "--message-id", "om_zqpa"],
    ];
    for words in rows {
        holds(&desk.act(words), &json!({"ok": true}));
    }
    let lark = Lark::new();
    lark.collector(&[("alpha", CHAT)], json!({}));
    outdated(&lark);
    for words in [&["collector-plan"][..], &["collector-status"]] {
        holds(
            &Lark::packet(lark.inbox(words, CONFIG), &[]).1,
            &json!({"ok": true}),
        );
    }
    assert!(desk.lark.calls().is_empty() && lark.calls().is_empty());
}

/// The call that follows has a code for a program whose answer does not come; a version nobody can read is no new enough one.
#[test]
fn a_version_that_is_not_told_leaves_it_to_the_call_and_one_that_is_no_number_is_refused() {
    let desk = Desk::new();
    desk.lark
        .faults(json!([{"on": "version", "do": "network"}]));
    holds(
        &desk.send("words"),
        &json!({"ok": true, "status": "sent_verified"}),
    );
    desk.lark
        .faults(json!([{"on": "version", "do": "garbage"}]));
    let packet = desk.send("other words");
    holds(
        &packet,
        &json!({"ok": false, "error_code": "dependency_incompatible"}),
    );
    assert_eq!(packet["dependency"]["found_version"], Value::Null);
    assert_eq!(desk.sends(), 1, "the first words alone");
}
