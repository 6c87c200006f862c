//! Guidance that has to be looked at before a message of a named purpose leaves, docs/spec/lark-inbox.md 6.4 step 5.

use serde_json::{Value, json};

use super::desk::{Desk, holds};
use crate::support::lark::{CHAT, Lark};

fn styled() -> Desk {
    let lark = Lark::new();
    let config = lark.inbox_config_with("one", CHAT, json!({"editorial_style": "concise"}));
    Desk { lark, config }
}

fn send(desk: &Desk, more: &[&str]) -> Value {
    let mut words = vec!["send", "--text", "plain words"];
    words.extend(more);
    desk.act(&words)
}

#[test]
fn a_message_of_a_purpose_waits_for_the_digest_of_its_guidance() {
    let desk = styled();
    let held = send(&desk, &["--message-purpose", "progress", "--execute"]);
    holds(
        &held,
        &json!({"ok": true, "status": "agent_review_required", "external_write_outcome": "none", "provider_preview_verified": true}),
    );
    assert_eq!(desk.sends(), 0);
    let digest = held["outbound_guidance"]["guidance_digest"]
        .as_str()
        .expect("a digest");
    let reviewed = [
        "--message-purpose",
        "progress",
        "--reviewed-guidance-digest",
        digest,
        "--execute",
    ];
    let sent = send(&desk, &reviewed);
    holds(&sent, &json!({"ok": true, "status": "sent_verified"}));
    assert_eq!(sent["outbound_guidance"]["decision"], "continue_delivery");
    let other = [
        "--message-purpose",
        "help",
        "--reviewed-guidance-digest",
        digest,
        "--execute",
    ];
    holds(
        &send(&desk, &other),
        &json!({"status": "agent_review_required"}),
    );
    assert_eq!(desk.sends(), 1);
}

#[test]
fn a_plain_preview_shows_the_guidance_and_calls_nobody() {
    let desk = styled();
    let preview = send(&desk, &["--message-purpose", "urgent"]);
    holds(&preview, &json!({"ok": true, "status": "preview_ready"}));
    assert_eq!(
        preview["outbound_guidance"]["decision"],
        "agent_review_required"
    );
    let calls = desk.lark.calls();
    assert!(calls.iter().all(|call| call["command"] == "version"));
}

#[test]
fn without_a_written_style_no_purpose_holds_a_message_back() {
    let desk = Desk::new();
    let sent = send(&desk, &["--message-purpose", "progress", "--execute"]);
    holds(&sent, &json!({"ok": true, "status": "sent_verified"}));
    assert_eq!(sent["outbound_guidance"], Value::Null);
}
