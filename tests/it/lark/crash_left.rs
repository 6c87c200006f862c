//! What a run leaves that died at a point: it really died there, and only the repeat makes the end right. The other side of `crash`:
//! no command dies at a point it does not name, and a name that no point has is refused.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use loopx::failpoint::Point;
use rusqlite::Connection;
use serde_json::{Value, json};

use super::crash::{DOCUMENT_URL, Scene, exports, prepared, scene, with_supervisor};
use crate::support::Run;
use crate::support::lark::{CHAT, Lark};

/// Where everything is done but the packet: the repeat finds the end as it must be.
const DONE: [(Point, &str); 9] = [
    (Point::InboxExportWritten, "ack"),
    (Point::InboxExportWritten, "document-comment-ack"),
    (Point::InboxExportWritten, "notify-reviewer"),
    (Point::InboxExportWritten, "processing"),
    (Point::InboxExportWritten, "reaction-complete"),
    (Point::InboxExportWritten, "reply"),
    (Point::InboxExportWritten, "send"),
    (Point::ReconcileConfigReplaced, "collector-route-reconcile"),
    (Point::SendReceiptSaved, "send"),
];

/// Says what is wrong with the state between the death and the repeat.
pub(super) fn fault(
    (lark, scene): (&Lark, &Scene),
    (calm, undisturbed): (&Lark, &Scene),
    (point, command): (Point, &str),
) -> Option<String> {
    let found = facts(lark, scene);
    for (name, value) in expected(point, command).as_object().into_iter().flatten() {
        if &found[name] != value {
            return Some(format!(
                "{command} died at {} and {name} is not {value}: {found}",
                point.name()
            ));
        }
    }
    let is_done = DONE.contains(&(point, command));
    let is_equal = found == facts(calm, undisturbed);
    (is_equal != is_done).then(|| {
        format!(
            "{command} died at {}: nothing is left to do is {is_equal}: {found}",
            point.name()
        )
    })
}

/// What the documents say is there after the death, and what is not (docs/spec/lark-inbox.md 17).
fn expected(point: Point, command: &str) -> Value {
    match point {
        Point::InboxBatchCommitted if command == "collector-run" => {
            json!({"events": 1, "files": 0})
        }
        Point::InboxBatchCommitted => json!({"events": 2, "files": 0, "cursor": false}),
        Point::ConnectionEventCommitted => json!({"events": 1, "connected": 1}),
        Point::InboxAckCommitted if command == "ack" => json!({"processed": 2}),
        Point::InboxAckCommitted => json!({"processed": 1}),
        Point::MaterialReviewCommitted => json!({"processed": 1, "reviews": 1}),
        Point::SendIntentRecorded => json!({"attempts": ["pending"], "sent": 0}),
        Point::SendAccepted | Point::SendReadBack => json!({"attempts": ["pending"], "sent": 1}),
        Point::SendReceiptSaved if command == "send" => json!({"attempts": [], "sent": 1}),
        Point::SendReceiptSaved => json!({"attempts": ["verified"], "sent": 1}),
        Point::ReactionPrepared => json!({"journal": ["prepared"], "marks": 0, "receipts": 0}),
        Point::ReactionAnswered => json!({"journal": ["prepared"], "marks": 1, "receipts": 0}),
        Point::ReactionCreated => json!({"journal": ["created"], "marks": 1, "receipts": 0}),
        Point::ReactionSettled => json!({"journal": [], "marks": 1, "receipts": 1}),
        // The other mark is given before the received one is taken away.
        Point::ReactionDeleted if command == "processing" => json!({"marks": 1, "receipts": 2}),
        Point::ReactionDeleted => json!({"marks": 0, "receipts": 1}),
        Point::HistoryPageReadBack => json!({"events": 2, "cursor": false, "temps": 0}),
        Point::HistoryCursorTempWritten => json!({"events": 2, "cursor": false, "temps": 1}),
        Point::HistoryCursorReplaced => json!({"events": 2, "cursor": true, "temps": 0}),
        Point::ReconcileConfigReplaced => json!({"routes": 2}),
        Point::CollectorServiceWritten => json!({"service": true, "services": false}),
        Point::CollectorStatusWritten => json!({"running": true, "events": 0}),
        Point::CommentPageCommitted => json!({"files": 0}),
        Point::CommentReplyRecorded => json!({"answers": ["creating"], "replies": 3}),
        Point::CommentReplyAccepted => json!({"answers": ["creating"], "replies": 4}),
        Point::CommentReplyVerified => json!({"answers": ["verified"], "replies": 4}),
        _ => json!({}),
    }
}

/// What is there: rows, files, and what the platform holds.
fn facts(lark: &Lark, scene: &Scene) -> Value {
    let project = lark.sandbox.project();
    let inbox = project
        .join(".loopx/inbox")
        .join(scene.inboxes.first().map_or("none", |(_, name)| name));
    let files: BTreeSet<String> = scene
        .inboxes
        .iter()
        .flat_map(|(_, name)| exports(lark, name).into_keys())
        .collect();
    let events = files
        .iter()
        .filter(|name| name.starts_with("om_") || name.starts_with("lark-comment-"));
    let state = lark.state();
    let marks = state["marks"].as_object().into_iter().flatten();
    let marks: usize = marks
        .map(|(_, rows)| rows.as_array().map_or(0, Vec::len))
        .sum();
    let history = names(&project.join(".loopx/inbox/.history"));
    let home = lark.sandbox.home().join(".config/systemd/user");
    json!({
        "events": count(&inbox, "SELECT COUNT(*) FROM events"),
        "files": events.count(),
        "exports": files,
        "processed": count(&inbox, "SELECT COUNT(*) FROM processed"),
        "reviews": count(&inbox, "SELECT COUNT(*) FROM material_receipts"),
        "attempts": words(&inbox, "SELECT state FROM outbound_attempts"),
        "journal": words(&inbox, "SELECT phase FROM reaction_operations"),
        "receipts": count(&inbox, "SELECT COUNT(*) FROM reaction_receipts"),
        "answers": words(&inbox, "SELECT status FROM comment_replies"),
        "connected": count(&project.join(".loopx/inbox/lark-goal-topics/one"), "SELECT COUNT(*) FROM events"),
        "sent": lark.sent().len(),
        "marks": marks,
        "replies": state["documents"][DOCUMENT_URL]["comments"][0]["replies"].as_array().map(Vec::len),
        "cursor": history.contains(&"alpha.json".to_owned()),
        "temps": history.iter().filter(|name| !name.ends_with(".json") && !name.ends_with(".lock")).count(),
        "routes": object(&project.join(&scene.config))["routes"].as_array().map(Vec::len),
        "service": home.join("loopx-lark-collector.service").exists(),
        "services": lark.sandbox.tree().iter().any(|(path, _)| path.ends_with("lark-collectors.json")),
        "running": object(&project.join(".loopx/runtime/lark-collector/collector-status.json"))["running"],
    })
}

fn object(path: &Path) -> Value {
    fs::read(path)
        .ok()
        .and_then(|bytes| serde_json::from_slice(&bytes).ok())
        .unwrap_or_default()
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries
        .map(|entry| {
            let name = entry.expect("an entry").file_name();
            name.to_string_lossy().into_owned()
        })
        .collect()
}

/// The database as its next reader finds it; none before the first write.
fn database(inbox: &Path) -> Option<Connection> {
    let path = inbox.join(".state/inbox.sqlite3");
    path.exists()
        .then(|| Connection::open(path).expect("the database opens"))
}

fn count(inbox: &Path, query: &str) -> u64 {
    database(inbox).map_or(0, |database| {
        database
            .query_row(query, [], |row| row.get(0))
            .expect("a count")
    })
}

fn words(inbox: &Path, query: &str) -> Vec<String> {
    database(inbox).map_or_else(Vec::new, |database| {
        let mut rows = database.prepare(query).expect("prepared");
        let words = rows.query_map([], |row| row.get(0)).expect("asked");
        words.collect::<Result<_, _>>().expect("words")
    })
}

fn armed(run: Run<'_>, points: &[Point]) -> Option<String> {
    let names: Vec<&str> = points.iter().map(|point| point.name()).collect();
    let finished = run.env("LOOPX_FAILPOINT", &names.join(",")).json_run();
    finished.code.is_none().then(|| finished.errors())
}

fn all_commands() -> BTreeSet<&'static str> {
    let commands = Point::ALL.iter().flat_map(|point| point.commands());
    commands
        .filter_map(|command| command.strip_prefix("lark-inbox "))
        .collect()
}

#[test]
fn no_command_dies_at_a_point_it_does_not_name_and_no_preview_at_any() {
    for command in all_commands() {
        let is_named = |point: &&Point| {
            let full = format!("lark-inbox {command}");
            point.commands().contains(&full.as_str())
        };
        let own = *Point::ALL.iter().find(is_named).expect("a point");
        let foreign: Vec<Point> = Point::ALL
            .iter()
            .filter(|point| !is_named(point))
            .copied()
            .collect();
        let lark = Lark::new();
        with_supervisor(&lark);
        let mut scene = scene(&lark, command, own);
        if scene.words.last().is_some_and(|word| word == "--execute")
            || command == "history-catch-up"
        {
            let words = scene.words.clone();
            scene.words.retain(|word| word != "--execute");
            let died = armed(prepared(&lark, &scene), Point::ALL);
            assert_eq!(died, None, "a preview of {command}");
            scene.words = words;
        }
        let died = armed(prepared(&lark, &scene), &foreign);
        assert_eq!(died, None, "{command} at a point it does not name");
    }
}

#[test]
fn no_reader_of_an_inbox_reaches_a_point() {
    let lark = Lark::new();
    with_supervisor(&lark);
    let collector = lark.collector(&[("alpha", CHAT)], json!({}));
    for words in [
        &["drain"][..],
        &["collector-plan"],
        &["collector-status", "--probe-event-bus"],
        &["collector-log"],
    ] {
        let run = lark.inbox(words, &collector);
        assert_eq!(armed(run, Point::ALL), None, "{words:?}");
    }
    let document = scene(
        &lark,
        "document-comment-capture",
        Point::CommentPageCommitted,
    );
    let run = lark.inbox(&["document-comment-status"], &document.config);
    assert_eq!(armed(run, Point::ALL), None);
}

/// A test that arms a misspelt point would wait for a crash that cannot come, and pass if it did not look.
#[test]
fn a_name_that_no_point_has_is_refused_before_anything_is_read() {
    let lark = Lark::new();
    let config = lark.inbox_config("one", CHAT);
    let before = lark.sandbox.tree();
    for name in ["send_acepted", "SEND_ACCEPTED", "send_accepted,nothing"] {
        let run = lark.inbox(&["send", "--text", "words", "--execute"], &config);
        let (exit, packet) = Lark::packet(run.env("LOOPX_FAILPOINT", name), &[]);
        assert_eq!(exit, Some(2), "{packet}");
        assert_eq!(packet["error_code"], "invalid_arguments", "{packet}");
    }
    assert_eq!(lark.sandbox.tree(), before);
    assert!(lark.calls().is_empty());
}

/// The other side: among many armed points the command dies at the one it reaches.
#[test]
fn a_command_that_names_an_armed_point_dies() {
    let lark = Lark::new();
    let scene = scene(&lark, "ingest", Point::InboxBatchCommitted);
    assert!(armed(prepared(&lark, &scene), Point::ALL).is_some());
}
