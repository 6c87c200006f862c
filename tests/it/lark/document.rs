//! Answers about a document that are none: nothing of them is kept, and a later sound answer goes on from where the scan was.

use serde_json::{Value, json};

use super::desk::holds;
use crate::support::lark::{APP, Lark, MARK, PROFILE};

const CONFIG: &str = ".loopx/config/lark/doc.json";
const ADDRESS: &str = "https://docs.example.invalid/docx/zqpdoc";

fn prepared() -> Lark {
    let lark = Lark::new();
    lark.write(
        CONFIG,
        &json!({"schema_version": "lark_document_comment_config_v0", "enabled": true, "source_ref": "design-doc", "document_url": ADDRESS,
            "identity": "bot", "profile": PROFILE, "capture_policy": "configured_source", "inbox_dir": ".loopx/inbox/doc",
            "response": {"enabled": true}}),
    );
    lark.edit(|state| {
        let reply = json!({"reply_id": "zqpr1", "text": format!("{MARK} words")});
        state["documents"] = json!({ADDRESS: {"file_token": "zqpdoc", "file_type": "docx",
            "comments": [{"comment_id": "zqpc1", "replies": [reply]}]}});
        let scopes: Vec<Value> = ["docs:document.comment:read", "docs:document.comment:create"]
            .iter()
            .map(|scope| json!({"scope": scope, "token_types": ["tenant"]}))
            .collect();
        state["app_versions"] = json!({APP: [{"version": "1", "status": 1, "publish_time": "1758189600", "scopes": scopes}]});
    });
    lark
}

fn capture(lark: &Lark) -> Value {
    let run = lark.inbox(&["document-comment-capture", "--execute"], CONFIG);
    Lark::packet(run, &[]).1
}

fn event_id(lark: &Lark) -> String {
    let folder = lark.sandbox.project().join(".loopx/inbox/doc");
    let names = std::fs::read_dir(folder).expect("a folder");
    let names = names.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
    let name = names
        .into_iter()
        .find(|name| name.starts_with("lark-comment-"));
    name.expect("a stored comment")
        .trim_end_matches(".json")
        .to_owned()
}

#[test]
fn a_page_with_an_id_that_is_none_moves_nothing_and_poisons_nothing() {
    let lark = prepared();
    for pointer in [
        "/data/file_token",
        "/data/items/0/comment_id",
        "/data/items/0/reply_list/replies/0/reply_id",
    ] {
        lark.faults(
            json!([{"on": "drive +list-comments", "do": "set", "values": {pointer: "bad/../id"}}]),
        );
        holds(
            &capture(&lark),
            &json!({"ok": false, "blocker": "lark_document_comment_response_invalid", "cursor_state_mutated": false,
            "inbox_state_mutated": false}),
        );
    }
    lark.faults(json!([]));
    holds(
        &capture(&lark),
        &json!({"ok": true, "status": "scan_complete", "accepted_count": 1}),
    );
}

#[test]
fn an_answer_created_under_no_id_is_of_unknown_outcome_and_found_by_its_key() {
    let lark = prepared();
    capture(&lark);
    let id = event_id(&lark);
    let words = [
        "document-comment-reply",
        "--event-id",
        &id,
        "--text",
        "an answer",
        "--execute",
    ];
    let reply = || Lark::packet(lark.inbox(&words, CONFIG), &[]).1;
    lark.faults(json!([
        {"on": "api", "method": "POST", "do": "set", "values": {"/data/reply_id": "bad/../id"}},
        {"on": "api", "method": "GET", "path": "replies", "do": "network"}
    ]));
    holds(
        &reply(),
        &json!({"ok": false, "blocker": "comment_reply_recovery_pending", "external_write_outcome": "unknown"}),
    );
    lark.faults(json!([]));
    holds(
        &reply(),
        &json!({"ok": true, "status": "verified", "readback_verified": true}),
    );
    let replies = lark.state()["documents"][ADDRESS]["comments"][0]["replies"].clone();
    assert_eq!(replies.as_array().map(Vec::len), Some(2), "one answer");
}
