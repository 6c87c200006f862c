//! Every refusal of the inbox, of extensions and of channel targets says what it is in one stable word.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::desk::Desk;
use crate::support::lark::{CHAT, Lark};

fn file(name: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(name)).expect("a file")
}

/// The words a table of codes gives.
fn coded(source: &str) -> BTreeSet<String> {
    let text = file(source);
    let codes = text
        .lines()
        .filter_map(|line| line.split_once("=> \"")?.1.split('"').next());
    codes
        .filter(|code| {
            code.bytes()
                .all(|byte| byte.is_ascii_lowercase() || byte == b'_')
        })
        .map(str::to_owned)
        .collect()
}

/// The words one type gives: by its arms, or as it is serialised.
fn coded_by(source: &str, head: &str) -> BTreeSet<String> {
    let text = file(source);
    let (_, body) = text.split_once(head).expect("the type");
    // An enum, or the first function of an implementation.
    let ends = ["\n    }\n", "\n}\n"].map(|end| body.find(end).unwrap_or(body.len()));
    let body = &body[..ends[0].min(ends[1])];
    let words = body.lines().filter_map(|line| {
        let arm = line.split_once("=> \"").map(|(_, rest)| rest);
        arm.or_else(|| line.trim().strip_prefix("#[serde(rename = \""))?
            .split('"')
            .next()
    });
    words.map(str::to_owned).collect()
}

/// The blockers and error codes of packets that are no refusal of the command itself.
const TYPES: [(&str, &str); 5] = [
    ("comment_packet.rs", "impl CommentBlocker {"),
    ("stream.rs", "pub enum StreamCode {"),
    ("history_packet.rs", "pub enum HistoryFailure {"),
    ("turn_start.rs", "impl SyncFault {"),
    ("notification_packet.rs", "impl NotificationBlocker {"),
];

/// The words at the head of the rows of a page.
fn explained(page: &str) -> BTreeSet<String> {
    let text = file(page);
    let heads = text
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split(" | ").next());
    heads
        .flat_map(|head| head.split(", "))
        .map(|code| code.trim_matches('`').to_owned())
        .collect()
}

#[test]
fn every_code_is_explained_and_every_explained_code_exists() {
    let general = explained("docs/errors.md");
    let page = explained("docs/guide/lark-inbox-codes.md");
    let mut known = coded("src/contract/inbox/fault.rs");
    known.extend(coded("src/contract/channel/outbound.rs"));
    known.extend(coded("src/kernel/extension.rs"));
    known.extend(
        [
            "extension_unknown",
            "extension_manifest_invalid",
            "extension_probe_failed",
            "extension_record_changed",
        ]
        .map(str::to_owned),
    );
    let sentences = loopx::contract::inbox::sentence::SENTENCES;
    known.extend(sentences.iter().map(|(code, _)| (*code).to_owned()));
    for (source, head) in TYPES {
        let given = coded_by(&format!("src/contract/inbox/{source}"), head);
        assert!(!given.is_empty(), "{source}");
        known.extend(given);
    }
    let missing: Vec<_> = known
        .iter()
        .filter(|code| {
            !page.contains(*code) && !general.contains(*code) && *code != "extension_unavailable"
        })
        .collect();
    let stale: Vec<_> = page.difference(&known).collect();
    assert!(
        missing.is_empty() && stale.is_empty(),
        "{missing:?} {stale:?}"
    );
}

/// A refusal: what is asked, and the code that is expected.
type Row<'a> = (&'a [&'a str], &'a str);

fn check(desk: &Desk, config: &str, rows: &[Row<'_>]) {
    for (words, code) in rows {
        let (exit, packet) = Lark::packet(desk.lark.inbox(words, config).stdin(""), &[]);
        assert_eq!(packet["error_code"], *code, "{words:?}: {packet}");
        assert_eq!(
            (exit, &packet["ok"]),
            (Some(1), &Value::Bool(false)),
            "{words:?}"
        );
    }
}

#[test]
fn a_single_inbox_names_each_of_its_refusals() {
    let desk = Desk::new();
    check(
        &desk,
        &desk.config,
        &[
            (&["ingest"], "input_empty"),
            (&["ack", "--message-id", "x"], "message_ids_invalid"),
            (&["send", "--text", " "], "text_empty"),
            (&["send", "--text", "@x"], "text_reserved_start"),
            (&["send", "--text", "a\\nb"], "text_literal_newline"),
            (&["send", "--text", "a </at>"], "text_broken_mention"),
            (&["send", "--text", "a @Bob"], "text_visible_mention"),
            (&["send", "--text", &"x".repeat(1201)], "text_too_long"),
            (
                &["send", "--text", "a", "--route-key", "alpha"],
                "route_key_not_default",
            ),
            (
                &["reply", "--message-id", "om_none", "--text", "a"],
                "source_message_not_captured",
            ),
            (
                &["processing", "--message-id", "om_none"],
                "source_message_not_captured",
            ),
            (
                &[
                    "material-review",
                    "--message-id",
                    "om_none",
                    "--no-follow-up",
                    "x",
                ],
                "material_review_message_not_captured",
            ),
            (&["collector-plan"], "collector_config_required"),
            (
                &[
                    "history-catch-up",
                    "--route-key",
                    "a",
                    "--start",
                    "2026-01-01T00:00:00Z",
                ],
                "collector_config_required",
            ),
        ],
    );
    check(
        &desk,
        ".loopx/config/none.json",
        &[(&["drain"], "inbox_config_missing")],
    );
    desk.lark.write("broken.json", &json!([]));
    check(
        &desk,
        "broken.json",
        &[(&["drain"], "inbox_config_unreadable")],
    );
    desk.lark.write(
        "wrong.json",
        &json!({"schema_version": "lark_event_inbox_config_v0", "enabled": true}),
    );
    check(&desk, "wrong.json", &[(&["drain"], "inbox_config_invalid")]);
    desk.lark.write(
        "newer.json",
        &json!({"schema_version": "lark_event_inbox_config_v9"}),
    );
    check(&desk, "newer.json", &[(&["drain"], "schema_unsupported")]);
    desk.lark.write(
        "off.json",
        &json!({"schema_version": "lark_event_inbox_config_v0"}),
    );
    check(
        &desk,
        "off.json",
        &[(&["send", "--text", "a"], "inbox_not_enabled")],
    );
}

#[test]
fn a_collector_names_each_of_its_refusals() {
    let desk = Desk::new();
    let config = desk.lark.collector(&[("alpha", CHAT)], json!({}));
    let start =
        |start: &'static str| ["history-catch-up", "--route-key", "alpha", "--start", start];
    check(
        &desk,
        &config,
        &[
            (&["send", "--text", "a"], "route_key_required"),
            (
                &["reply", "--message-id", "om_none", "--text", "a"],
                "message_route_unresolved",
            ),
            (
                &[
                    "history-catch-up",
                    "--route-key",
                    "beta",
                    "--start",
                    "2026-01-01T00:00:00Z",
                ],
                "route_key_unknown",
            ),
            (&start("2026-01-01T00:00:00"), "history_start_invalid"),
            (&start("2099-01-01T00:00:00Z"), "history_start_not_past"),
        ],
    );
    let off = desk
        .lark
        .collector(&[("alpha", CHAT)], json!({"enabled": false}));
    check(
        &desk,
        &off,
        &[(&["collector-install", "--execute"], "collector_not_enabled")],
    );
    let bad = desk
        .lark
        .collector(&[("alpha", CHAT)], json!({"consume_timeout": "1d"}));
    check(
        &desk,
        &bad,
        &[(&["collector-plan"], "collector_config_invalid")],
    );
}

#[test]
fn an_extension_names_each_of_its_refusals() {
    let lark = Lark::new();
    let rows: [(&[&str], i32, &str); 7] = [
        (&["disable", "nobody"], 2, "extension_not_installed"),
        (
            &["rollback", "loopx-lark"],
            1,
            "extension_no_earlier_revision",
        ),
        (
            &["install", "--bundled", "loopx-lark"],
            2,
            "extension_already_installed",
        ),
        (
            &["upgrade", "--bundled", "loopx-lark"],
            2,
            "extension_revision_unchanged",
        ),
        (
            &["install", "--manifest", "none.json"],
            2,
            "input_unreadable",
        ),
        (&["install", "--bundled", "nobody"], 2, ""),
        (
            &["doctor", "nobody", "--execute"],
            2,
            "extension_not_installed",
        ),
    ];
    let run = |words: &[&str]| {
        let mut all = vec!["extension"];
        all.extend(words);
        Lark::packet(lark.run(all), &[])
    };
    for (words, exit, code) in rows {
        let (found, packet) = run(words);
        assert_eq!(
            (found, &packet["ok"]),
            (Some(exit), &json!(false)),
            "{words:?}: {packet}"
        );
        if !code.is_empty() {
            assert_eq!(packet["error_code"], code, "{words:?}: {packet}");
        }
    }
    run(&["disable", "loopx-lark", "--execute"]);
    let (exit, packet) = run(&["doctor", "loopx-lark", "--execute"]);
    assert_eq!((exit, &packet["error_code"]), (Some(1), &json!("disabled")));
    for (text, code) in [
        ("{", "store_corrupt"),
        (
            "{\"schema_version\":\"loopx_extension_state_v9\"}",
            "schema_unsupported",
        ),
    ] {
        lark.write("state.json", &Value::Null);
        fs::write(lark.sandbox.project().join("state.json"), text).expect("written");
        for words in [
            ["list"].as_slice(),
            &["disable", "loopx-lark"],
            &["doctor", "loopx-lark"],
        ] {
            let mut all = vec!["extension", "--state-file", "state.json"];
            all.extend(words);
            let (exit, packet) = Lark::packet(lark.run(all), &[]);
            assert_eq!(
                (exit, &packet["error_code"], &packet["status"]),
                (Some(2), &json!(code), &json!("invalid_request")),
                "{words:?}: {packet}"
            );
        }
    }
}

#[test]
fn a_channel_target_names_its_refusal() {
    let lark = Lark::new();
    let words = [
        "goal-channel",
        "target",
        "add",
        "--name",
        "Not A Name",
        "--chat-id",
        "oc_1",
        "--bot-app-id",
        "cli_1",
        "--sender-profile",
        "bot",
    ];
    let (exit, packet) = Lark::packet(lark.run(words), &[]);
    assert_eq!(exit, Some(1), "{packet}");
    assert!(packet["blocker"].is_string(), "{packet}");
    assert_eq!(packet["error_code"], packet["blocker"]);
}

/// A disk that takes no byte more: the change is named as what failed, and what was there stays.
#[test]
fn every_writer_of_a_document_names_the_write_that_failed() {
    let lark = Lark::new();
    let collector = lark.collector(&[("alpha", CHAT)], json!({}));
    let beta = lark.inbox_config("beta", "oc_zqpbeta");
    let full = ["sh", "-c", "trap '' XFSZ; ulimit -f 0; exec \"$@\"", "sh"];
    let target = "goal-channel target add --name team --chat-id oc_1 --bot-app-id cli_1 --execute";
    let reconcile = format!(
        "lark-inbox collector-route-reconcile --project . --config {collector} --route-key beta --chat-id oc_zqpbeta \
         --event-inbox-config {beta} --execute"
    );
    for line in [
        target,
        "extension disable loopx-lark --execute",
        "extension doctor loopx-lark --execute",
        &reconcile,
    ] {
        let before = lark.sandbox.tree();
        let run = lark.run(line.split_whitespace()).around(&full);
        let (exit, packet) = Lark::packet(run, &[]);
        assert_ne!(exit, Some(0), "{line}");
        assert_eq!(
            packet["error_code"], "store_write_failed",
            "{line}: {packet}"
        );
        assert_eq!(packet["external_write_outcome"], "none", "{line}");
        let kept = |files: Vec<(std::path::PathBuf, Vec<u8>)>| -> Vec<_> {
            let is_document = |(path, bytes): &(std::path::PathBuf, Vec<u8>)| {
                !bytes.is_empty() && !path.to_string_lossy().contains("/state/")
            };
            files.into_iter().filter(is_document).collect()
        };
        assert_eq!(kept(lark.sandbox.tree()), kept(before), "{line}");
    }
    // The service file has no folder it could lie in.
    fs::write(lark.sandbox.home().join(".config"), "a file").expect("written");
    let words = ["collector-install", "--execute"];
    let (_, packet) = Lark::packet(lark.inbox(&words, &collector), &[]);
    assert_eq!(packet["error_code"], "store_write_failed", "{packet}");
}

#[test]
fn without_the_program_every_command_says_so_and_how_to_get_it() {
    for name in ["send", "reply"] {
        for last in ["--provider-preflight", "--execute"] {
            let desk = Desk::with_message();
            let source = match name {
                "send" => &[][..],
                _ => &["--message-id", "om_zqpa"],
            };
            let words = [&[name, "--text", "a", last], source].concat();
            let run = desk.lark.inbox(&words, &desk.config);
            let (exit, packet) = Lark::packet(run.env("PATH", "/nowhere"), &[]);
            let code = packet["error_code"].as_str().unwrap_or_default();
            assert!(code.ends_with("_provider_unavailable"), "{packet}");
            let sentence = packet["error"].as_str().unwrap_or_default();
            assert!(sentence.contains("install"), "{packet}");
            assert_eq!(
                (exit, &packet["external_write_outcome"]),
                (Some(1), &json!("none"))
            );
        }
    }
}

#[test]
fn a_send_without_a_reply_block_says_what_to_add() {
    let desk = Desk::new();
    let path = desk.lark.sandbox.project().join(&desk.config);
    let mut config: Value =
        serde_json::from_slice(&fs::read(&path).expect("a file")).expect("json");
    config["reply"] = json!({});
    fs::write(&path, config.to_string()).expect("written");
    let (_, packet) = Lark::packet(desk.lark.inbox(&["send", "--text", "a"], &desk.config), &[]);
    assert_eq!(
        packet["blocker"],
        "lark_outbound_message_sender_unconfigured"
    );
    assert!(packet["error"].is_string(), "{packet}");
}

#[test]
fn an_acknowledged_id_that_nobody_captured_is_counted() {
    let desk = Desk::with_message();
    let words = [
        "ack",
        "--message-id",
        "om_zqpa",
        "--message-id",
        "om_zqptypo",
    ];
    let (_, packet) = Lark::packet(
        desk.lark.inbox(&words, &desk.config),
        &["om_zqpa", "om_zqptypo"],
    );
    assert_eq!(
        (&packet["ok"], &packet["uncaptured_count"]),
        (&json!(true), &json!(1))
    );
    let (_, packet) = Lark::packet(
        desk.lark.inbox(&words[..3], &desk.config),
        &["om_zqpa", "om_zqptypo"],
    );
    assert_eq!(packet.get("uncaptured_count"), None);
}

#[test]
fn no_private_folder_may_be_a_link_that_leads_out() {
    for folder in [
        ".loopx/inbox/.turn-start",
        ".loopx/inbox/.history",
        ".loopx/runtime/lark-collector",
    ] {
        let lark = Lark::new();
        let config = lark.collector(&[("alpha", CHAT)], json!({}));
        let outside = tempfile::tempdir().expect("a folder");
        let link = lark.sandbox.project().join(folder);
        std::fs::create_dir_all(link.parent().expect("a parent")).expect("made");
        std::os::unix::fs::symlink(outside.path(), &link).expect("linked");
        let (_, packet) = Lark::packet(lark.inbox(&["drain"], &config), &[]);
        assert_eq!(packet["error_code"], "inbox_outside_project", "{folder}");
    }
}

#[test]
fn nothing_is_written_through_a_link_inside_an_inbox() {
    let desk = Desk::with_message();
    let outside = tempfile::tempdir().expect("a folder");
    let inbox = desk.lark.sandbox.project().join(".loopx/inbox/one");
    assert!(inbox.join("om_zqpa.json").exists());
    std::os::unix::fs::symlink(outside.path(), inbox.join("outbound")).expect("linked");
    let words = [
        "reply",
        "--message-id",
        "om_zqpa",
        "--text",
        "a",
        "--execute",
    ];
    let (_, packet) = Lark::packet(desk.lark.inbox(&words, &desk.config), &[]);
    assert_eq!(packet["error_code"], "inbox_outside_project");
    let left = std::fs::read_dir(outside.path()).expect("readable").count();
    assert_eq!(left, 0);
}
