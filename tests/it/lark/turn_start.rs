//! What a turn start does for a goal whose inbox asks for it (docs/spec/lark-inbox.md 11).

use std::fs;

use loopx::failpoint::Point;
use serde_json::{Value, json};

use crate::support::lark::{CHAT, CHAT2, Lark, MARK};
use crate::support::{Finished, Run};

pub(super) const GOAL: &str = "demo-goal";
const NOW: &str = "2026-09-10T00:00:00Z";
const BASE: i64 = 1_788_998_400;

/// A goal with one agent, one todo and an inbox.
pub(super) struct Wake {
    pub(super) lark: Lark,
}

impl Wake {
    pub(super) fn new(routes: &[(&str, &str)], sync: Value) -> Self {
        let lark = Lark::new();
        let sync = match sync {
            Value::Null => json!({}),
            sync => json!({"turn_start_sync": sync}),
        };
        let config = lark.collector(routes, sync);
        lark.run(["bootstrap", "--goal-id", GOAL, "--title", "Demo"])
            .packet();
        lark.run([
            "register-agent",
            "--goal-id",
            GOAL,
            "--agent-id",
            "lane-a",
            "--execute",
        ])
        .packet();
        let registry = lark.sandbox.project().join(".loopx/registry.json");
        let mut document: Value =
            serde_json::from_slice(&fs::read(&registry).expect("a registry")).expect("json");
        document["goals"][0]["control_plane"]["lark_event_inbox"] =
            json!({"enabled": true, "config_path": config});
        fs::write(&registry, document.to_string()).expect("written");
        lark.run([
            "todo",
            "add",
            "--goal-id",
            GOAL,
            "--role",
            "agent",
            "--text",
            "Measure",
        ])
        .packet();
        Self { lark }
    }

    pub(super) fn synced(routes: &[(&str, &str)]) -> Self {
        Self::new(routes, json!({"enabled": true}))
    }

    fn run(&self, words: &[&str], now: &str) -> Run<'_> {
        self.lark.run(words.iter().copied()).now(now)
    }

    fn wake(&self, now: &str) -> Finished {
        let words = [
            "quota",
            "should-run",
            "--goal-id",
            GOAL,
            "--agent-id",
            "lane-a",
        ];
        let finished = self.run(&words, now).json_run();
        let text = format!("{} {}", finished.text(), finished.errors());
        assert!(!text.contains(MARK), "a private value leaves: {text}");
        finished
    }

    fn dispatch(&self, now: &str) -> Value {
        let packet = self.wake(now).json();
        assert_eq!(packet["ok"], true, "{packet}");
        packet["turn_start_capability_hook_dispatch"].clone()
    }

    pub(super) fn sync(&self, now: &str) -> Value {
        self.dispatch(now)["results"][0]["inbox_sync"].clone()
    }

    /// Configures the received mark of one route.
    fn marked(&self, name: &str, chat: &str) {
        self.lark
            .inbox_config_with(name, chat, json!({"received_reaction_emoji": "Get"}));
    }

    fn marks(&self) -> usize {
        let state = self.lark.state();
        let marks = state["marks"].as_object().cloned().unwrap_or_default();
        marks
            .values()
            .filter_map(Value::as_array)
            .map(Vec::len)
            .sum()
    }
}

fn once<'a>(more: &[&'a str]) -> Vec<&'a str> {
    let words = [
        "turn",
        "run-once",
        "--goal-id",
        GOAL,
        "--agent-id",
        "lane-a",
        "--project",
        ".",
        "--turn-instance-id",
        "turn-1",
        "--host-command-json",
        "[\"/bin/true\"]",
    ];
    [&words[..], more].concat()
}

/// docs/spec/lark-cli.md 7
#[test]
fn a_wake_names_a_program_below_the_floor_and_decides_all_the_same() {
    let wake = Wake::synced(&[("alpha", CHAT), ("beta", CHAT2)]);
    wake.marked("alpha", CHAT);
    wake.lark
        .faults(json!([{"on": "version", "do": "old"}, {"on": "*", "do": "usage"}]));
    let sync = wake.sync(NOW);
    assert_eq!(
        (&sync["status"], &sync["error_code"]),
        (&json!("unavailable"), &json!("dependency_incompatible"))
    );
    assert_eq!(sync["external_write_outcome"], "none");
    assert_eq!(wake.lark.count("version"), 1);
}

#[test]
fn a_wake_reads_the_window_and_names_the_command_that_shows_what_waits() {
    let wake = Wake::synced(&[("alpha", CHAT)]);
    wake.lark.seed("om_zqpold", "words", BASE - 901, json!({}));
    wake.lark.seed("om_zqpnew", "words", BASE - 60, json!({}));
    let dispatch = wake.dispatch(NOW);
    let result = &dispatch["results"][0];
    assert_eq!(
        (&result["status"], &result["observation_count"]),
        (&json!("observed"), &json!(1))
    );
    assert_eq!(result["local_private_state_mutated"], true);
    let command = dispatch["required_reads"][0]["command"]
        .as_str()
        .expect("a command");
    let words: Vec<&str> = command.split(' ').skip(1).collect();
    assert_eq!(
        &words[4..],
        [
            "lark-inbox",
            "drain",
            "--goal-id",
            GOAL,
            "--agent-id",
            "lane-a"
        ]
    );
    let drained = wake.lark.run(words).packet();
    assert_eq!(drained["items"][0]["message_id"], "om_zqpnew");
    let read = &wake
        .lark
        .calls()
        .into_iter()
        .find(|call| call["command"] == "im +chat-messages-list")
        .expect("a read");
    let argv = read["argv"].to_string();
    assert!(
        argv.contains("2026-09-09T23:45:00Z") && argv.contains("2026-09-10T00:00:00Z"),
        "{argv}"
    );
}

#[test]
fn the_next_window_overlaps_and_stores_nothing_twice() {
    let wake = Wake::synced(&[("alpha", CHAT)]);
    wake.lark.seed("om_zqpa", "words", BASE - 2, json!({}));
    wake.sync(NOW);
    wake.lark.seed("om_zqpb", "words", BASE + 30, json!({}));
    let sync = wake.sync("2026-09-10T00:01:00Z");
    assert_eq!(
        (&sync["accepted_count"], &sync["duplicate_count"]),
        (&json!(1), &json!(1))
    );
    assert_eq!(sync["pending_count"], 2);
    let again = wake.sync("2026-09-10T00:01:00Z");
    assert_eq!(
        (&again["page_count"], &again["external_read_performed"]),
        (&json!(0), &json!(false))
    );
}

#[test]
fn the_position_is_exported_and_the_export_command_restores_it() {
    let wake = Wake::synced(&[("alpha", CHAT)]);
    wake.sync(NOW);
    let folder = wake
        .lark
        .sandbox
        .project()
        .join(".loopx/inbox/.turn-start/alpha");
    let file = fs::read_dir(&folder)
        .expect("a folder")
        .next()
        .expect("a file")
        .expect("readable")
        .path();
    let bytes = fs::read(&file).expect("read");
    let cursor: Value = serde_json::from_slice(&bytes).expect("json");
    assert_eq!(cursor["schema_version"], "lark_turn_start_sync_cursor_v0");
    assert_eq!(file.file_stem().map(|name| name.len()), Some(24));
    fs::remove_file(&file).expect("removed");
    let config = ".loopx/config/lark-collector.json";
    let packet = wake.lark.inbox(&["export"], config).packet();
    assert_eq!(
        (&packet["status"], &packet["stale_count"]),
        (&json!("preview_ready"), &json!(1))
    );
    wake.lark.inbox(&["export", "--execute"], config).packet();
    assert_eq!(fs::read(&file).expect("restored"), bytes);
}

#[test]
fn many_messages_are_read_over_several_turns_and_none_is_passed_over() {
    let wake = Wake::new(&[("alpha", CHAT)], json!({"enabled": true, "page_size": 2}));
    for index in 0..11 {
        wake.lark.seed(
            &format!("om_zqp{index}"),
            "words",
            BASE - 100 + index,
            json!({}),
        );
    }
    let first = wake.sync(NOW);
    assert_eq!(
        (&first["accepted_count"], &first["error_code"]),
        (&json!(8), &json!("turn_start_window_incomplete"))
    );
    assert_eq!(first["status"], "partial");
    let second = wake.sync("2026-09-10T00:05:00Z");
    assert_eq!(
        (&second["accepted_count"], &second["pending_count"]),
        (&json!(3), &json!(11))
    );
    assert_eq!(second["status"], "observed");
}

#[test]
fn a_page_that_cannot_be_had_any_more_is_read_again_from_the_start() {
    let wake = Wake::new(&[("alpha", CHAT)], json!({"enabled": true, "page_size": 2}));
    for index in 0..11 {
        wake.lark.seed(
            &format!("om_zqp{index}"),
            "words",
            BASE - 100 + index,
            json!({}),
        );
    }
    wake.sync(NOW);
    wake.lark.faults(
        json!([{"on": "im +chat-messages-list", "nth": [1], "do": "code", "code": 230_001}]),
    );
    wake.sync("2026-09-10T00:01:00Z");
    for minute in 2..5 {
        wake.sync(&format!("2026-09-10T00:0{minute}:00Z"));
    }
    assert_eq!(wake.sync("2026-09-10T00:06:00Z")["pending_count"], 11);
}

#[test]
fn plans_and_previews_and_goals_without_it_read_nothing() {
    let wake = Wake::synced(&[("alpha", CHAT)]);
    wake.lark.seed("om_zqpa", "words", BASE - 60, json!({}));
    let before = wake.lark.calls().len();
    wake.run(
        &["turn", "plan", "--goal-id", GOAL, "--agent-id", "lane-a"],
        NOW,
    )
    .packet();
    wake.run(&once(&[]), NOW).packet();
    wake.run(&["status"], NOW).packet();
    assert_eq!(wake.lark.calls().len(), before);
    let plain = Wake::new(&[("alpha", CHAT)], Value::Null);
    let packet = plain.wake(NOW).json();
    assert_eq!(packet.get("turn_start_capability_hook_dispatch"), None);
    assert_eq!(plain.lark.count("im +chat-messages-list"), 0);
    assert!(!plain.lark.sandbox.project().join(".loopx/inbox").exists());
}

#[test]
fn a_failing_provider_fails_no_decision_and_hides_nothing_that_waits() {
    let wake = Wake::synced(&[("alpha", CHAT)]);
    wake.lark
        .faults(json!([{"on": "im +chat-messages-list", "do": "network"}]));
    let dispatch = wake.dispatch(NOW);
    assert_eq!(dispatch["results"][0]["status"], "unavailable");
    assert_eq!(dispatch["results"][0]["error_code"], "provider_unavailable");
    assert_eq!(dispatch["required_reads"], json!([]));
    wake.lark.faults(json!([]));
    wake.lark.seed("om_zqpa", "words", BASE - 60, json!({}));
    wake.sync(NOW);
    wake.lark
        .faults(json!([{"on": "im +chat-messages-list", "do": "network"}]));
    let dispatch = wake.dispatch("2026-09-10T00:01:00Z");
    assert_eq!(dispatch["results"][0]["status"], "partial");
    assert_eq!(dispatch["required_reads"].as_array().map(Vec::len), Some(1));
}

#[test]
fn a_broken_configuration_is_a_failure_of_the_hook_alone() {
    let wake = Wake::synced(&[("alpha", CHAT)]);
    wake.lark.write(
        ".loopx/config/lark/alpha.json",
        &json!({"schema_version": "lark_event_inbox_config_v0", "enabled": 3}),
    );
    wake.lark.write(
        ".loopx/config/lark-collector.json",
        &json!({"schema_version": "lark_event_collector_config_v1"}),
    );
    let dispatch = wake.dispatch(NOW);
    assert_eq!(
        dispatch["failures"][0]["error_code"],
        "inbox_configuration_unavailable"
    );
}

#[test]
fn a_second_turn_skips_while_one_reads() {
    let wake = Wake::synced(&[("alpha", CHAT)]);
    let folder = wake.lark.sandbox.project().join(".loopx/inbox/.turn-start");
    fs::create_dir_all(&folder).expect("made");
    let held = fs::OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .open(folder.join("sync.lock"))
        .expect("opened");
    held.lock().expect("locked");
    let sync = wake.sync(NOW);
    assert_eq!(
        (&sync["status"], &sync["error_code"]),
        (&json!("partial"), &json!("turn_start_sync_in_progress"))
    );
    assert_eq!(wake.lark.count("im +chat-messages-list"), 0);
}

#[test]
fn three_marks_are_given_at_a_time_and_every_route_gets_its_share() {
    let wake = Wake::synced(&[("alpha", CHAT), ("beta", CHAT2)]);
    wake.marked("alpha", CHAT);
    wake.marked("beta", CHAT2);
    for index in 0..5 {
        wake.lark.seed(
            &format!("om_zqpa{index}"),
            "words",
            BASE - 60 + index,
            json!({}),
        );
    }
    wake.lark
        .seed("om_zqpb0", "words", BASE - 60, json!({"chat_id": CHAT2}));
    let sync = wake.sync(NOW);
    assert_eq!(
        (
            &sync["received_reaction_count"],
            &sync["external_write_outcome"]
        ),
        (&json!(3), &json!("performed"))
    );
    assert_eq!(
        wake.lark.state()["marks"]["om_zqpb0"]
            .as_array()
            .map(Vec::len),
        Some(1)
    );
    wake.sync("2026-09-10T00:00:10Z");
    assert_eq!(wake.marks(), 6);
    let last = wake.sync("2026-09-10T00:00:20Z");
    assert_eq!(
        (&last["received_reaction_attempt_count"], wake.marks()),
        (&json!(0), 6)
    );
}

#[test]
fn a_mark_that_always_fails_does_not_hold_up_the_others() {
    let wake = Wake::synced(&[("alpha", CHAT)]);
    wake.marked("alpha", CHAT);
    for index in 0..6 {
        wake.lark.seed(
            &format!("om_zqpa{index}"),
            "words",
            BASE - 60 + index,
            json!({}),
        );
    }
    wake.lark.faults(json!([{"on": "api", "method": "POST", "path": "reactions", "nth": [1, 2, 3], "do": "code", "code": 231_003}]));
    let first = wake.sync(NOW);
    assert_eq!(
        (
            &first["received_reaction_failure_count"],
            &first["received_reaction_count"]
        ),
        (&json!(3), &json!(0))
    );
    let second = wake.sync("2026-09-10T00:00:10Z");
    assert_eq!(second["received_reaction_count"], 3);
    wake.sync("2026-09-10T00:00:20Z");
    assert_eq!(wake.marks(), 6);
}

#[test]
fn a_turn_that_is_run_reads_before_its_decision_and_says_so() {
    let wake = Wake::synced(&[("alpha", CHAT)]);
    wake.lark.seed("om_zqpa", "words", BASE - 60, json!({}));
    let packet = wake.run(&once(&["--execute"]), NOW).json_run().json();
    let dispatch = &packet["turn_start_capability_hook_dispatch"];
    assert_eq!(dispatch["results"][0]["status"], "observed", "{packet}");
    assert_eq!(packet["effects"]["state_written"], true);
}

/// What is left after a wake died at a point and two more followed: the messages, the marks, the files.
fn after_death(words: &[&str], point: Option<Point>) -> (usize, usize, Value) {
    let wake = Wake::synced(&[("alpha", CHAT)]);
    wake.marked("alpha", CHAT);
    wake.lark.seed("om_zqpa", "words", BASE - 60, json!({}));
    wake.lark.seed("om_zqpb", "words", BASE - 50, json!({}));
    if let Some(point) = point {
        let finished = wake
            .run(words, NOW)
            .env("LOOPX_FAILPOINT", point.name())
            .run();
        assert_eq!(
            finished.code,
            None,
            "{} is not reached: {}",
            point.name(),
            finished.text()
        );
    }
    wake.sync(NOW);
    wake.sync(NOW);
    wake.lark
        .inbox(
            &["export", "--execute"],
            ".loopx/config/lark-collector.json",
        )
        .packet();
    let folder = wake.lark.sandbox.project().join(".loopx/inbox/alpha");
    let files = fs::read_dir(folder).expect("a folder").filter(|entry| {
        let name = entry.as_ref().expect("an entry").file_name();
        name.to_string_lossy().starts_with("om_")
    });
    let drained = wake
        .lark
        .inbox(&["drain"], ".loopx/config/lark-collector.json")
        .packet();
    (
        files.count(),
        wake.marks(),
        drained["pending_count"].clone(),
    )
}

#[test]
fn a_wake_that_dies_anywhere_is_completed_by_the_next() {
    let quota: Vec<&str> = vec![
        "quota",
        "should-run",
        "--goal-id",
        GOAL,
        "--agent-id",
        "lane-a",
    ];
    let calm = after_death(&quota, None);
    assert_eq!(calm, (2, 2, json!(2)));
    for &point in Point::ALL {
        let is_ours = point.name().starts_with("inbox_") || point.name().starts_with("reaction_");
        if !is_ours || !point.commands().contains(&"quota should-run") {
            continue;
        }
        let once = once(&["--execute"]);
        for words in [&quota, &once] {
            let after = after_death(words, Some(point));
            // Nobody knows whether a mark that was asked for exists: no second one is tried.
            let expected = match point {
                Point::ReactionPrepared => (2, 1, json!(2)),
                _ => calm.clone(),
            };
            assert_eq!(after, expected, "{} {words:?}", point.name());
        }
    }
}

#[test]
fn a_clock_that_was_once_ahead_passes_over_nothing() {
    let wake = Wake::synced(&[("alpha", CHAT)]);
    wake.sync(NOW);
    wake.sync("2026-09-11T00:00:00Z");
    wake.sync("2026-09-12T00:00:00Z");
    wake.lark.seed("om_zqpa", "words", BASE + 3600, json!({}));
    let corrected = wake.sync("2026-09-10T01:05:00Z");
    assert_eq!(
        (&corrected["accepted_count"], &corrected["error_code"]),
        (&json!(1), &json!(null))
    );
    wake.lark.seed("om_zqpb", "words", BASE + 7200, json!({}));
    let later = wake.sync("2026-09-10T02:05:00Z");
    assert_eq!(
        (&later["accepted_count"], &later["duplicate_count"]),
        (&json!(1), &json!(0))
    );
}

#[test]
fn a_position_at_the_end_of_the_calendar_is_read_again() {
    let wake = Wake::synced(&[("alpha", CHAT)]);
    wake.sync("9999-12-31T23:59:59Z");
    wake.lark.seed("om_zqpa", "words", BASE - 60, json!({}));
    let corrected = wake.sync(NOW);
    assert_eq!(corrected["accepted_count"], 1, "{corrected}");
}

#[test]
fn nothing_is_written_through_links_that_lead_out() {
    for folder in [".turn-start", ".turn-start/alpha"] {
        let wake = Wake::synced(&[("alpha", CHAT)]);
        wake.lark.seed("om_zqpa", "words", BASE - 60, json!({}));
        let outside = tempfile::tempdir().expect("a folder");
        let link = wake
            .lark
            .sandbox
            .project()
            .join(".loopx/inbox")
            .join(folder);
        fs::create_dir_all(link.parent().expect("a parent")).expect("made");
        std::os::unix::fs::symlink(outside.path(), &link).expect("linked");
        let dispatch = wake.dispatch(NOW);
        let left = fs::read_dir(outside.path()).expect("readable").count();
        assert_eq!(left, 0, "{folder}: {dispatch}");
    }
}
