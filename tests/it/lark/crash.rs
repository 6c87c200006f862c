//! Every named point of an inbox command: a run dies there, what is left is looked at (`crash_left`), a repeat follows, and in the end
//! everything equals a run that never died.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use loopx::failpoint::Point;
use serde_json::{Value, json};

use super::crash_left as left;
use crate::support::Run;
use crate::support::lark::{ALICE, APP, BOT, CHAT, CHAT2, Lark, MARK, PROFILE, event};

const DOCUMENT: &str = ".loopx/config/lark/doc.json";
pub(super) const DOCUMENT_URL: &str = "https://docs.example.invalid/docx/zqpdoc";

/// One command about to act, and the inboxes it works on.
pub(super) struct Scene {
    pub(super) config: String,
    pub(super) words: Vec<String>,
    stdin: String,
    pub(super) inboxes: Vec<(String, &'static str)>,
}

pub(super) fn scene(lark: &Lark, command: &str, point: Point) -> Scene {
    let words = |words: &[&str]| {
        words
            .iter()
            .map(|word| (*word).to_owned())
            .collect::<Vec<_>>()
    };
    let both = json!([event("om_zqpa", json!({})), event("om_zqpb", json!({}))]).to_string();
    let single = |extra: Value, args: &[&str], stdin: &str| {
        let config = lark.inbox_config_with("one", CHAT, extra);
        Scene {
            inboxes: vec![(config.clone(), "one")],
            config,
            words: words(args),
            stdin: stdin.to_owned(),
        }
    };
    let filled = |extra: Value, args: &[&str]| {
        let scene = single(extra, args, "");
        lark.seed("om_zqpa", "words", 1_758_189_600, json!({}));
        lark.seed("om_zqpb", "words", 1_758_189_601, json!({}));
        lark.inbox(&["ingest", "--execute"], &scene.config)
            .stdin(&both)
            .packet();
        scene
    };
    let marks = json!({"received_reaction_emoji": "Get", "processing_reaction_emoji": "OnIt"});
    match command {
        "ingest" => single(json!({}), &["ingest", "--execute"], &both),
        "export" => {
            let scene = filled(json!({}), &["export", "--execute"]);
            for name in ["om_zqpa.json", "om_zqpb.json"] {
                fs::remove_file(lark.sandbox.project().join(".loopx/inbox/one").join(name))
                    .expect("removed");
            }
            scene
        }
        "ack" => filled(
            json!({}),
            &[
                "ack",
                "--message-id",
                "om_zqpa",
                "--message-id",
                "om_zqpb",
                "--execute",
            ],
        ),
        "material-review" => filled(
            json!({}),
            &[
                "material-review",
                "--message-id",
                "om_zqpa",
                "--no-follow-up",
                "out of scope",
                "--execute",
            ],
        ),
        "send" => single(
            json!({}),
            &["send", "--text", "plain words", "--execute"],
            "",
        ),
        "notify-reviewer" => {
            lark.edit(|state| {
                state["profiles"][PROFILE]["user"] = json!({"open_id": "ou_zqpperson"})
            });
            single(
                json!({"reader_profile": PROFILE}),
                &[
                    "notify-reviewer",
                    "--pull-request-url",
                    "https://git.example/pull/7",
                    "--text",
                    "<at open_id=\"ou_zqpbob\">Bob</at> please review",
                    "--execute",
                ],
                "",
            )
        }
        "reply" => {
            let scene = filled(
                marks,
                &[
                    "reply",
                    "--message-id",
                    "om_zqpa",
                    "--text",
                    "an answer",
                    "--execute",
                ],
            );
            if matches!(point, Point::ReactionDeleted) {
                lark.inbox(
                    &["processing", "--message-id", "om_zqpa", "--execute"],
                    &scene.config,
                )
                .packet();
            }
            scene
        }
        "processing" => {
            let scene = filled(
                marks,
                &["processing", "--message-id", "om_zqpa", "--execute"],
            );
            if matches!(point, Point::ReactionDeleted) {
                with_received_mark(lark);
            }
            scene
        }
        "reaction-complete" => {
            let scene = filled(
                marks,
                &["reaction-complete", "--message-id", "om_zqpa", "--execute"],
            );
            let processing = || {
                lark.inbox(
                    &["processing", "--message-id", "om_zqpa", "--execute"],
                    &scene.config,
                )
            };
            if matches!(point, Point::ReactionSettled) {
                // The mark exists, its receipt does not: completing recovers it first.
                died(processing(), Point::ReactionCreated);
            } else {
                processing().packet();
            }
            scene
        }
        "history-catch-up" => {
            for index in 0..3 {
                lark.seed(
                    &format!("om_zqph{index}"),
                    "words",
                    1_789_000_000 + index,
                    json!({}),
                );
            }
            let config = lark.collector(&[("alpha", CHAT)], json!({}));
            let args = [
                "history-catch-up",
                "--route-key",
                "alpha",
                "--start",
                "2026-09-01T00:00:00Z",
                "--page-size",
                "2",
                "--execute",
            ];
            Scene {
                inboxes: vec![(".loopx/config/lark/alpha.json".to_owned(), "alpha")],
                config,
                words: words(&args),
                stdin: String::new(),
            }
        }
        "collector-run" => {
            let config = lark.collector(&[("alpha", CHAT)], json!({}));
            if matches!(point, Point::ConnectionEventCommitted) {
                lark.connect(&json!({}));
            }
            deliver(lark);
            Scene {
                inboxes: vec![(".loopx/config/lark/alpha.json".to_owned(), "alpha")],
                config,
                words: words(&["collector-run", "--lark-cli-executable", "lark-cli"]),
                stdin: String::new(),
            }
        }
        "collector-route-reconcile" => {
            let config = lark.collector(&[("alpha", CHAT)], json!({}));
            let beta = lark.inbox_config("beta", CHAT2);
            let args = [
                "collector-route-reconcile",
                "--route-key",
                "beta",
                "--chat-id",
                CHAT2,
                "--event-inbox-config",
                &beta,
                "--execute",
            ];
            Scene {
                inboxes: Vec::new(),
                config,
                words: words(&args),
                stdin: String::new(),
            }
        }
        "collector-install" => {
            let config = lark.collector(&[("alpha", CHAT)], json!({}));
            Scene {
                inboxes: Vec::new(),
                config,
                words: words(&["collector-install", "--execute"]),
                stdin: String::new(),
            }
        }
        _ => document(lark, command),
    }
}

/// A live event at the source, and the end of the stream.
fn deliver(lark: &Lark) {
    let mentions = json!([{"key": "@_user_1", "id": BOT, "name": "Zqp Relay"}]);
    lark.seed(
        "om_zqplive",
        "@_user_1 words",
        1_789_000_000,
        json!({"mentions": mentions}),
    );
    let live = json!({"type": "im.message.receive_v1", "event_id": "ev_zqplive", "message_id": "om_zqplive", "create_time": "1789000000000",
        "chat_id": CHAT, "chat_type": "group", "message_type": "text", "sender_id": ALICE, "sender_type": "user",
        "content": "@Zqp Relay words", "mentions": [{"key": "@_user_1", "id": BOT, "name": "Zqp Relay"}]});
    lark.edit(|state| {
        state["streams"] = json!({"im.message.receive_v1": {"events": [live, live], "end": {"reason": "timeout"}}});
    });
}

/// The received mark is on the message, as a turn that read it leaves it; no inbox command sets one.
fn with_received_mark(lark: &Lark) {
    lark.edit(|state| {
        state["marks"]["om_zqpa"] =
            json!([{"reaction_id": "react_received", "emoji": "Get", "app_id": APP}])
    });
    let database = lark
        .sandbox
        .project()
        .join(".loopx/inbox/one/.state/inbox.sqlite3");
    let row =
        json!({"reaction_id": "react_received", "emoji_type": "Get", "message_id": "om_zqpa"})
            .to_string();
    let connection = rusqlite::Connection::open(database).expect("the database opens");
    let insert = "INSERT INTO reaction_receipts(message_id, mark, body_json) VALUES('om_zqpa', 'received', ?1)";
    assert_eq!(connection.execute(insert, [row]).expect("inserted"), 1);
}

fn document(lark: &Lark, command: &str) -> Scene {
    lark.write(
        DOCUMENT,
        &json!({"schema_version": "lark_document_comment_config_v0", "enabled": true, "source_ref": "design-doc", "document_url": DOCUMENT_URL,
            "identity": "bot", "profile": PROFILE, "capture_policy": "configured_source", "inbox_dir": ".loopx/inbox/doc", "page_size": 2,
            "timeout_seconds": 60, "response": {"enabled": true}}),
    );
    lark.edit(|state| {
        let reply = |id: &str| json!({"reply_id": id, "text": format!("{MARK} {id}")});
        state["documents"] = json!({DOCUMENT_URL: {"file_token": "zqpdoc", "file_type": "docx", "comments": [
            {"comment_id": "zqpc1", "replies": [reply("zqpr1"), reply("zqpr2"), reply("zqpr3")]}]}});
        let scopes: Vec<Value> = ["docs:document.comment:read", "docs:document.comment:create"]
            .iter()
            .map(|scope| json!({"scope": scope, "token_types": ["tenant"]}))
            .collect();
        state["app_versions"] = json!({APP: [{"version": "1", "status": 1, "publish_time": "1758189600", "scopes": scopes}]});
    });
    let mut words = vec![command.to_owned()];
    if command != "document-comment-capture" {
        while lark
            .inbox(&["document-comment-capture", "--execute"], DOCUMENT)
            .packet()["status"]
            != "scan_complete"
        {}
        let id = exports(lark, "doc")
            .into_keys()
            .find(|name| name.starts_with("lark-comment-"))
            .expect("a stored comment");
        words.extend([
            "--event-id".to_owned(),
            id.trim_end_matches(".json").to_owned(),
        ]);
    }
    match command {
        "document-comment-reply" => words.extend(["--text".to_owned(), "an answer".to_owned()]),
        "document-comment-ack" => {
            let id = words[2].clone();
            lark.inbox(
                &[
                    "document-comment-reply",
                    "--event-id",
                    &id,
                    "--text",
                    "an answer",
                    "--execute",
                ],
                DOCUMENT,
            )
            .packet();
        }
        _ => {}
    }
    words.push("--execute".to_owned());
    Scene {
        config: DOCUMENT.to_owned(),
        words,
        stdin: String::new(),
        inboxes: vec![(DOCUMENT.to_owned(), "doc")],
    }
}

pub(super) fn prepared<'a>(lark: &'a Lark, scene: &Scene) -> Run<'a> {
    let words: Vec<&str> = scene.words.iter().map(String::as_str).collect();
    lark.inbox(&words, &scene.config).stdin(&scene.stdin)
}

fn died(run: Run<'_>, point: Point) {
    let finished = run.env("LOOPX_FAILPOINT", point.name()).run();
    assert_eq!(
        finished.code,
        None,
        "{} was not reached: {} {}",
        point.name(),
        finished.text(),
        finished.errors()
    );
}

/// The exports of an inbox, settling times left out.
pub(super) fn exports(lark: &Lark, name: &str) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    gather(
        &lark.sandbox.project().join(".loopx/inbox").join(name),
        "",
        &mut found,
    );
    found
}

fn gather(folder: &Path, below: &str, found: &mut BTreeMap<String, Value>) {
    for entry in fs::read_dir(folder).into_iter().flatten() {
        let path = entry.expect("an entry").path();
        let name = format!(
            "{below}{}",
            path.file_name().expect("a name").to_string_lossy()
        );
        if path.is_dir() {
            gather(&path, &format!("{name}/"), found);
        } else if Path::new(&name)
            .extension()
            .is_some_and(|kind| kind == "json")
        {
            found.insert(
                name,
                serde_json::from_slice(&fs::read(&path).expect("a file")).expect("json"),
            );
        }
    }
}

/// What the world looks like in the end, without ids the platform gave.
fn outcome(lark: &Lark, scene: &Scene) -> Value {
    for (config, _) in &scene.inboxes {
        lark.inbox(&["export", "--execute"], config).packet();
    }
    let files: Vec<_> = scene
        .inboxes
        .iter()
        .map(|(_, name)| exports(lark, name))
        .collect();
    let state = lark.state();
    let marks: Vec<String> = state["marks"]
        .as_object()
        .into_iter()
        .flatten()
        .flat_map(|(id, rows)| {
            rows.as_array()
                .into_iter()
                .flatten()
                .map(move |row| format!("{id} {}", row["emoji"]))
        })
        .collect();
    let replies = state["documents"][DOCUMENT_URL]["comments"][0]["replies"]
        .as_array()
        .map(Vec::len);
    let texts: Vec<Value> = lark
        .sent()
        .into_iter()
        .map(|message| message["text"].clone())
        .collect();
    json!({"files": files, "marks": marks, "replies": replies, "texts": texts})
}

fn commands(point: Point) -> impl Iterator<Item = &'static str> {
    point
        .commands()
        .iter()
        .filter_map(|command| command.strip_prefix("lark-inbox "))
}

/// A supervisor that agrees to everything.
pub(super) fn with_supervisor(lark: &Lark) {
    use std::os::unix::fs::PermissionsExt;
    let file = lark.sandbox.root().join("lark/bin/systemctl");
    fs::write(&file, "#!/bin/sh\nexit 0\n").expect("written");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("executable");
}

fn check(point: Point, command: &'static str) -> Option<String> {
    let calm = Lark::new();
    with_supervisor(&calm);
    let undisturbed = scene(&calm, command, point);
    prepared(&calm, &undisturbed).json_run();
    let is_page_done = matches!(
        point,
        Point::HistoryCursorReplaced | Point::CommentPageCommitted
    );
    if is_page_done || command == "document-comment-capture" {
        // The page counts as done: the repeat takes the next one.
        prepared(&calm, &undisturbed).json_run();
    }

    let lark = Lark::new();
    with_supervisor(&lark);
    let scene = scene(&lark, command, point);
    let finished = prepared(&lark, &scene)
        .env("LOOPX_FAILPOINT", point.name())
        .run();
    if finished.code.is_some() {
        return Some(format!(
            "{command} never reaches {}: {} {}",
            point.name(),
            finished.text(),
            finished.errors()
        ));
    }
    if let Some(fault) = left::fault((&lark, &scene), (&calm, &undisturbed), (point, command)) {
        return Some(fault);
    }
    if command == "collector-run"
        && lark.state()["streams"]["im.message.receive_v1"]["events"] == json!([])
    {
        deliver(&lark);
    }
    let (_, repeated) = Lark::packet(
        prepared(&lark, &scene),
        &["om_zqpa", "om_zqpb", "om_zqph0", "om_zqph1", "om_zqph2"],
    );
    if command == "processing" && matches!(point, Point::ReactionPrepared | Point::ReactionAnswered)
    {
        // Nobody knows whether the mark exists: blocked, and no second one is made.
        let creates = if matches!(point, Point::ReactionPrepared) {
            0
        } else {
            1
        };
        let made = lark.state()["marks"]["om_zqpa"]
            .as_array()
            .map_or(0, Vec::len);
        return (repeated["ok"] != json!(false) || made != creates)
            .then(|| format!("{command} {}: {repeated}", point.name()));
    }
    if matches!(point, Point::CommentReplyRecorded) {
        // Whether the answer was created is read, and a second one is never tried blindly.
        let replies = &lark.state()["documents"][DOCUMENT_URL]["comments"][0]["replies"];
        let is_held = repeated["blocker"] == "comment_reply_recovery_pending"
            && replies.as_array().map(Vec::len) == Some(3);
        return (!is_held).then(|| format!("{command} {}: {repeated}", point.name()));
    }
    let (ours, theirs) = (outcome(&lark, &scene), outcome(&calm, &undisturbed));
    (ours != theirs).then(|| {
        format!(
            "{command} after {}: {ours}\nundisturbed: {theirs}\nrepeat: {repeated}",
            point.name()
        )
    })
}

#[test]
fn a_command_that_dies_anywhere_is_completed_by_its_repeat() {
    let rows: Vec<(Point, &str)> = Point::ALL
        .iter()
        .flat_map(|&point| commands(point).map(move |command| (point, command)))
        .collect();
    assert!(rows.len() > 40, "the points of the inbox");
    let next = AtomicUsize::new(0);
    let faults = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while let Some(&(point, command)) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                    faults
                        .lock()
                        .expect("unpoisoned")
                        .extend(check(point, command));
                }
            });
        }
    });
    let faults = faults.into_inner().expect("unpoisoned");
    assert!(faults.is_empty(), "{}", faults.join("\n\n"));
}
