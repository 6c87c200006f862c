//! The comments of one document through the binary: every code a document command can stop with, and what is kept then. Answers that are none
//! keep nothing, and a later sound answer goes on from where the scan was. Long, because each code needs its own situation.

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

fn status(lark: &Lark) -> Value {
    Lark::packet(lark.inbox(&["document-comment-status"], CONFIG), &[]).1
}

fn answer(lark: &Lark, id: &str, text: &str) -> Value {
    let words = ["document-comment-reply", "--event-id", id, "--text", text];
    let words = [&words[..], &["--execute"]].concat();
    Lark::packet(lark.inbox(&words, CONFIG), &[]).1
}

/// Changes the configuration.
fn configure(lark: &Lark, change: &[(&str, Value)]) {
    let path = lark.sandbox.project().join(CONFIG);
    let mut config: Value =
        serde_json::from_slice(&std::fs::read(&path).expect("read")).expect("json");
    for (name, value) in change {
        config[*name] = value.clone();
    }
    lark.write(CONFIG, &config);
}

/// The replies the platform holds for the one card.
fn replies(lark: &Lark) -> usize {
    lark.state()["documents"][ADDRESS]["comments"][0]["replies"]
        .as_array()
        .map_or(0, Vec::len)
}

fn sign_in(lark: &Lark, scopes: &[&str]) {
    lark.edit(|state| {
        state["profiles"][PROFILE]["user"] = json!({"open_id": "ou_zqpperson"});
        state["profiles"][PROFILE]["scopes"] = json!(scopes);
    });
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

/// A position that no later capture could leave would hide every other comment.
#[test]
fn a_position_that_the_provider_refuses_is_given_up_and_one_that_failed_in_passing_is_kept() {
    let reply = |id: &str| json!({"reply_id": id, "text": format!("{MARK} words")});
    let card = |id: &str, replies: &[&str]| json!({"comment_id": id, "replies": replies.iter().map(|id| reply(id)).collect::<Vec<_>>()});
    let many = card("zqpc1", &["zqpr1", "zqpr2", "zqpr3"]);
    let at_replies = || {
        let lark = prepared();
        lark.edit(|state| state["documents"][ADDRESS]["comments"] = json!([many]));
        let page = json!({"status": "page_captured", "accepted_count": 2});
        holds(&capture(&lark), &page);
        lark
    };
    let given_up = |blocker: &str| json!({"ok": false, "status": "position_given_up", "blocker": blocker, "cursor_state_mutated": true});
    let deleted = at_replies();
    deleted.edit(|state| {
        state["documents"][ADDRESS]["comments"] = json!([card("zqpc2", &["zqpr4"])]);
    });
    holds(
        &capture(&deleted),
        &given_up("lark_document_comment_replies_failed"),
    );
    holds(
        &capture(&deleted),
        &json!({"ok": true, "status": "scan_complete", "accepted_count": 1}),
    );
    let passing = at_replies();
    passing.faults(json!([{"on": "api", "path": "replies", "do": "network"}]));
    holds(
        &capture(&passing),
        &json!({"ok": false, "status": "blocked", "cursor_state_mutated": false}),
    );
    passing.faults(json!([]));
    holds(
        &capture(&passing),
        &json!({"ok": true, "accepted_count": 1}),
    );
    let expired = at_replies();
    expired.faults(json!([{"on": "api", "path": "replies", "do": "code", "code": 1_069_302}]));
    holds(
        &capture(&expired),
        &given_up("lark_document_comment_replies_failed"),
    );
    let outer = prepared();
    outer.faults(
        json!([{"on": "drive +list-comments", "nth": [1], "do": "set",
        "values": {"/data/has_more": true, "/data/page_token": "gone"}}]),
    );
    holds(&capture(&outer), &json!({"status": "page_captured"}));
    holds(
        &capture(&outer),
        &given_up("lark_document_comment_list_failed"),
    );
    holds(
        &capture(&outer),
        &json!({"ok": true, "status": "scan_complete"}),
    );
}

/// Where the platform keeps no key, an answer whose id was lost has neither: it is no new comment.
#[test]
fn an_own_answer_whose_id_was_lost_is_not_captured_as_a_comment() {
    let lark = prepared();
    lark.edit(|state| state["options"]["keep_extra"] = json!(false));
    capture(&lark);
    let id = event_id(&lark);
    lark.faults(json!([{"on": "api", "method": "POST", "do": "lose_answer"}]));
    holds(
        &answer(&lark, &id, "a < b & more"),
        &json!({"ok": false, "blocker": "comment_reply_recovery_pending"}),
    );
    lark.faults(json!([]));
    assert_eq!(replies(&lark), 2, "it arrived");
    holds(
        &capture(&lark),
        &json!({"ok": true, "accepted_count": 0, "skipped_count": 1}),
    );
}

const READ: &str = "docs:document.comment:read";
const CREATE: &str = "docs:document.comment:create";

#[test]
fn a_position_too_long_to_be_read_again_is_refused_and_the_next_page_goes_on() {
    let lark = prepared();
    for pages in [
        json!({"/data/has_more": true, "/data/page_token": "t".repeat(3000)}),
        json!({"/data/items/0/has_more": true, "/data/items/0/page_token": "t".repeat(3000)}),
    ] {
        lark.faults(json!([{"on": "drive +list-comments", "do": "set", "values": pages}]));
        holds(
            &capture(&lark),
            &json!({"ok": false, "blocker": "lark_document_comment_response_invalid", "cursor_state_mutated": false,
            "inbox_state_mutated": false}),
        );
        holds(
            &status(&lark),
            &json!({"captured_count": 0, "inbox_healthy": true}),
        );
    }
    lark.faults(json!([]));
    holds(
        &capture(&lark),
        &json!({"ok": true, "status": "scan_complete", "accepted_count": 1}),
    );
}

#[test]
fn an_answer_whose_id_led_elsewhere_is_found_by_its_key_and_given_once() {
    let lark = prepared();
    capture(&lark);
    let id = event_id(&lark);
    lark.faults(json!([{"on": "api", "method": "POST", "do": "set", "values": {"/data/reply_id": "zqpr1"}}]));
    holds(
        &answer(&lark, &id, "an answer"),
        &json!({"ok": true, "status": "verified", "readback_verified": true, "external_write_outcome": "performed"}),
    );
    assert_eq!(replies(&lark), 2, "one answer");
}

#[test]
fn an_answer_that_reads_back_changed_stays_pending_and_is_never_given_again() {
    let lark = prepared();
    capture(&lark);
    let id = event_id(&lark);
    lark.faults(json!([{"on": "api", "method": "GET", "path": "replies", "do": "network"}]));
    let pending = json!({"ok": false, "status": "pending_readback", "blocker": "comment_reply_readback_failed",
        "external_write_outcome": "performed", "readback_verified": false});
    holds(&answer(&lark, &id, "an answer"), &pending);
    holds(
        &answer(&lark, &id, "another answer"),
        &json!({"ok": false, "blocker": "reply_receipt_digest_mismatch", "external_write_outcome": "none"}),
    );
    lark.faults(json!([]));
    lark.edit(|state| {
        state["documents"][ADDRESS]["comments"][0]["replies"][1]["text"] = json!("other words");
    });
    holds(
        &answer(&lark, &id, "an answer"),
        &json!({"ok": false, "blocker": "comment_reply_readback_failed", "external_write_outcome": "none"}),
    );
    assert_eq!(replies(&lark), 2, "one answer");
}

#[test]
fn an_answer_in_each_of_its_forms_is_verified() {
    for form in ["flat", "nested", "listed"] {
        let lark = prepared();
        lark.edit(|state| state["options"]["reply_form"] = json!(form));
        capture(&lark);
        let id = event_id(&lark);
        holds(
            &answer(&lark, &id, "a < b"),
            &json!({"ok": true, "status": "verified"}),
        );
        holds(
            &answer(&lark, &id, "a < b"),
            &json!({"ok": true, "status": "verified", "external_write_outcome": "none"}),
        );
        assert_eq!(replies(&lark), 2, "{form}");
    }
}

/// What a bot may do is what the newest published version of its application may do.
#[test]
fn the_status_tells_what_a_bot_may_do() {
    let scope = |name: &str, kind: &str| json!({"scope": name, "token_types": [kind]});
    let version = |status: u8, scopes: Value| json!([{"version": "1", "status": status, "publish_time": "1758189600", "scopes": scopes}]);
    let all = || json!([scope(READ, "tenant"), scope(CREATE, "tenant")]);
    for (versions, expected) in [
        (
            version(1, all()),
            json!({"ok": true, "status": "ready", "permission_read_ready": true, "permission_create_ready": true}),
        ),
        (
            version(1, json!([scope(READ, "tenant"), scope(CREATE, "user")])),
            json!({"ok": false, "blocker": "lark_document_comment_permission_required", "permission_read_ready": true,
            "permission_create_ready": false}),
        ),
        (
            version(1, Value::Null),
            json!({"ok": false, "blocker": "lark_document_comment_permission_required"}),
        ),
        (
            version(2, all()),
            json!({"ok": false, "blocker": "permission_probe_unknown"}),
        ),
        (
            json!([]),
            json!({"ok": false, "blocker": "permission_probe_invalid"}),
        ),
    ] {
        let lark = prepared();
        lark.edit(|state| state["app_versions"] = json!({APP: versions}));
        holds(&status(&lark), &expected);
        assert_eq!(lark.count("drive +list-comments"), 0);
    }
}

/// A list that is null or absent is empty; every asked scope must stand in one of the two.
#[test]
fn the_status_tells_what_a_person_may_do() {
    for (scopes, fault, expected) in [
        (
            vec![READ, CREATE],
            json!([]),
            json!({"ok": true, "status": "ready", "permission_read_ready": true}),
        ),
        (
            vec![READ, CREATE],
            json!([{"on": "auth check", "do": "drop", "key": "missing"}]),
            json!({"ok": true, "status": "ready"}),
        ),
        (
            vec![READ],
            json!([]),
            json!({"ok": false, "blocker": "lark_document_comment_permission_required", "permission_read_ready": true}),
        ),
        (
            vec![],
            json!([{"on": "auth check", "do": "drop", "key": "granted", "rc": 1}]),
            json!({"ok": false, "blocker": "lark_document_comment_permission_required", "permission_read_ready": false}),
        ),
        (
            vec![READ, CREATE],
            json!([{"on": "auth check", "do": "drop", "key": "granted"}]),
            json!({"ok": false, "blocker": "permission_probe_invalid"}),
        ),
        (
            vec![READ, CREATE],
            json!([{"on": "auth check", "do": "network"}]),
            json!({"ok": false, "blocker": "permission_probe_unknown"}),
        ),
    ] {
        let lark = prepared();
        configure(&lark, &[("identity", json!("user"))]);
        sign_in(&lark, &scopes);
        lark.faults(fault);
        holds(&status(&lark), &expected);
    }
    let lark = prepared();
    configure(&lark, &[("identity", json!("user"))]);
    holds(
        &status(&lark),
        &json!({"ok": false, "blocker": "permission_probe_identity_mismatch"}),
    );
}

#[test]
fn a_program_below_the_floor_and_a_filter_nothing_here_can_apply_read_nothing() {
    let lark = prepared();
    lark.faults(json!([{"on": "version", "do": "old"}]));
    for packet in [capture(&lark), status(&lark)] {
        holds(
            &packet,
            &json!({"ok": false, "blocker": "lark_document_comment_cli_unsupported"}),
        );
    }
    lark.faults(json!([]));
    configure(&lark, &[("capture_policy", json!("addressed_only"))]);
    for packet in [capture(&lark), status(&lark)] {
        holds(
            &packet,
            &json!({"ok": false, "blocker": "connector_address_filter_unsupported"}),
        );
    }
    assert_eq!(lark.count("drive +list-comments"), 0);
    configure(&lark, &[("capture_policy", json!("incremental"))]);
    capture(&lark);
    let id = event_id(&lark);
    lark.faults(json!([{"on": "version", "do": "old"}]));
    holds(
        &answer(&lark, &id, "an answer"),
        &json!({"ok": false, "blocker": "lark_document_comment_cli_unsupported", "external_write_outcome": "none"}),
    );
    assert_eq!(replies(&lark), 1, "no answer");
}

#[test]
fn a_card_that_takes_no_answer_is_skipped_where_answers_are_given_and_kept_where_not() {
    for closed in ["is_solved", "is_whole"] {
        let lark = prepared();
        // Solved meanwhile, or about the whole document.
        let values = json!({format!("/data/items/0/{closed}"): true});
        lark.faults(json!([{"on": "drive +list-comments", "do": "set", "values": values}]));
        holds(
            &capture(&lark),
            &json!({"ok": true, "accepted_count": 0, "skipped_count": 1}),
        );
        configure(&lark, &[("response", json!({"enabled": false}))]);
        holds(&capture(&lark), &json!({"ok": true, "accepted_count": 1}));
        configure(&lark, &[("response", json!({"enabled": true}))]);
        let id = event_id(&lark);
        holds(
            &answer(&lark, &id, "an answer"),
            &json!({"ok": false, "blocker": "comment_reply_not_supported", "external_write_outcome": "none"}),
        );
    }
}

#[test]
fn a_refused_call_names_what_is_missing_and_stores_nothing() {
    let on = |command: &str, method: &str, fault: Value| {
        let mut rule = json!({"on": command});
        if !method.is_empty() {
            rule["method"] = json!(method);
            rule["path"] = json!("replies");
        }
        for (name, value) in fault.as_object().into_iter().flatten() {
            rule[name] = value.clone();
        }
        json!([rule])
    };
    let causes = |failed: &str| {
        [
            (
                json!({"do": "code", "code": 1_069_303}),
                "lark_document_comment_permission_required".to_owned(),
            ),
            (
                json!({"do": "code", "code": 99_991_672}),
                "lark_document_comment_permission_required".to_owned(),
            ),
            (
                json!({"do": "no_login"}),
                "lark_document_comment_authorization_required".to_owned(),
            ),
            (json!({"do": "code", "code": 1_069_307}), failed.to_owned()),
        ]
    };
    let refused =
        |blocker: &str| json!({"ok": false, "blocker": blocker, "external_write_outcome": "none"});
    for (fault, blocker) in causes("lark_document_comment_list_failed") {
        let lark = prepared();
        lark.faults(on("drive +list-comments", "", fault));
        holds(&capture(&lark), &refused(&blocker));
        holds(&status(&lark), &json!({"captured_count": 0}));
    }
    for (fault, blocker) in causes("lark_document_comment_replies_failed") {
        let lark = prepared();
        lark.edit(|state| {
            state["options"]["inline_replies"] = json!(1);
            let rows = &mut state["documents"][ADDRESS]["comments"][0]["replies"];
            rows.as_array_mut()
                .expect("a list")
                .push(json!({"reply_id": "zqpr2", "text": "more"}));
        });
        holds(
            &capture(&lark),
            &json!({"ok": true, "status": "page_captured"}),
        );
        lark.faults(on("api", "GET", fault));
        let packet = capture(&lark);
        holds(&packet, &refused(&blocker));
        lark.faults(json!([]));
        if packet["status"] == "position_given_up" {
            // The next scan finds the card, and its replies, again.
            holds(&capture(&lark), &json!({"status": "page_captured"}));
        }
        holds(
            &capture(&lark),
            &json!({"ok": true, "status": "scan_complete", "accepted_count": 1}),
        );
    }
    for (fault, blocker) in causes("lark_document_comment_reply_failed") {
        let lark = prepared();
        capture(&lark);
        let id = event_id(&lark);
        lark.faults(on("api", "POST", fault));
        holds(&answer(&lark, &id, "an answer"), &refused(&blocker));
        lark.faults(json!([]));
        holds(
            &answer(&lark, &id, "other words"),
            &json!({"ok": true, "status": "verified"}),
        );
    }
}

#[test]
fn words_that_are_none_or_too_many_are_no_answer() {
    let lark = prepared();
    capture(&lark);
    let id = event_id(&lark);
    for text in [" ", &"x".repeat(1201)] {
        holds(
            &answer(&lark, &id, text),
            &json!({"ok": false, "blocker": "comment_reply_text_invalid", "external_write_outcome": "none"}),
        );
    }
    assert_eq!(replies(&lark), 1, "no answer");
}

#[test]
fn a_position_that_is_damaged_shows_in_the_status() {
    let lark = prepared();
    capture(&lark);
    holds(&status(&lark), &json!({"ok": true, "inbox_healthy": true}));
    let database = lark
        .sandbox
        .project()
        .join(".loopx/inbox/doc/.state/inbox.sqlite3");
    let connection = rusqlite::Connection::open(database).expect("opened");
    connection
        .execute("UPDATE comment_cursor SET body_json = '{}'", [])
        .expect("damaged");
    drop(connection);
    holds(
        &status(&lark),
        &json!({"ok": false, "status": "attention_required", "inbox_healthy": false}),
    );
}
