//! Turns: the original decision, once-only settlement, and refusals that start nothing.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use serde_json::Value;

use crate::support::world::{GOAL, Kernel, World};

fn failed_once() -> (World, String, String) {
    let (world, todo) = World::with_todo();
    let host = world.host("fails.sh", "exit 3");
    let failed = world
        .turn_with("turn-1", &host, "[\"/bin/true\"]")
        .refusal();
    assert_eq!(failed["host_failure"]["kind"], "unknown");
    let key = world.turn_key();
    (world, todo, key)
}

/// What the hosts got on standard input.
fn request_texts(world: &World) -> Vec<String> {
    let entries = fs::read_dir(world.sandbox.project()).expect("the project");
    entries
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.to_string_lossy().contains("/request-"))
        .map(|path| fs::read_to_string(path).expect("a request"))
        .collect()
}

#[test]
fn a_turn_commits_once_and_replays_without_effects() {
    let (world, _) = World::with_todo();
    let done = world.turn("turn-1").packet();
    assert_eq!(done["status"], "committed");
    assert_eq!(done["effects"]["quota_spent"], true);
    for _ in 0..2 {
        let again = world.turn("turn-1").packet();
        assert_eq!(again["replayed"], true);
        assert_eq!(again["effects"]["host_invoked"], false);
        assert_eq!(again["quota_slot_spend_count"], 1);
    }
    assert_eq!(world.host_calls(), 1);
    assert_eq!(world.spent(), 1);
    assert_eq!(world.runs(), ["host_progress", "quota_slot_spent"]);
}

#[test]
fn the_first_observation_survives_a_changed_todo_and_a_more_urgent_one() {
    let (world, todo, key) = failed_once();
    let update = [
        "todo",
        "update",
        "--goal-id",
        GOAL,
        "--todo-id",
        &todo,
        "--text",
        "Changed",
    ];
    world.run(&update).packet();
    world.todo("urgent", &["--priority", "P0"]);
    let done = world.turn("turn-1").flag(&["--retry-failed-turn"]).packet();
    assert_eq!(done["resume_turn_key"], key.as_str());
    let attempts = request_texts(&world);
    let requests: Vec<Value> = attempts
        .iter()
        .map(|text| {
            let mut request: Value = serde_json::from_str(text).expect("JSON");
            let members = request.as_object_mut().expect("an object");
            members.remove("attempt");
            request
        })
        .collect();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0], requests[1]);
    let text = &requests[0]["turn_envelope"]["source"]["decision"]["selected_todo"]["text"];
    assert_eq!(text, "Measure the first step");
    assert_eq!(world.spent(), 1);
}

#[test]
fn a_missing_changed_or_foreign_capture_never_starts_a_host() {
    let (world, _, _) = failed_once();
    let path = world.captures().pop().expect("a capture");
    let good = fs::read(&path).expect("bytes");
    let retry = || world.turn("turn-1").flag(&["--retry-failed-turn"]);
    let broken: [(&str, &dyn Fn()); 4] = [
        ("turn_capture_missing", &|| {
            fs::remove_file(&path).expect("removed")
        }),
        ("turn_capture_corrupt", &|| {
            let mut bytes = good.clone();
            bytes[10] ^= 1;
            fs::write(&path, bytes).expect("written");
        }),
        ("turn_capture_corrupt", &|| {
            fs::write(&path, &good).expect("written");
            fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).expect("a mode");
        }),
        ("turn_capture_corrupt", &|| {
            fs::remove_file(&path).expect("removed");
            let elsewhere = world.sandbox.file("elsewhere", &good);
            std::os::unix::fs::symlink(elsewhere, &path).expect("a link");
        }),
    ];
    for (code, damage) in broken {
        damage();
        retry().refused(code);
        let _ = fs::remove_file(&path);
        fs::write(&path, &good).expect("written");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("a mode");
    }
    assert_eq!(world.host_calls(), 1);
    assert_eq!(world.spent(), 0);
    assert_eq!(retry().packet()["status"], "committed");
    assert_eq!(world.spent(), 1);
}

#[test]
fn a_capture_folder_others_may_open_never_starts_a_host_until_it_is_closed() {
    let mode = |path: &std::path::Path, mode: u32| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
    };
    let doctor = |world: &World, more: &[&str]| -> Value {
        let packet = world.run(&[&["doctor"], more].concat()).packet();
        let findings = packet["findings"].as_array().expect("findings").iter();
        let mut found = findings.filter(|finding| finding["check"] == "permissions");
        found.next().expect("a finding")["status"].clone()
    };
    let (world, _, _) = failed_once();
    let file = world.captures().pop().expect("a capture");
    let folder = file.parent().expect("a folder");
    let root = folder.parent().expect("a folder");
    let retry = || world.turn("turn-1").flag(&["--retry-failed-turn"]);
    for open in [folder, root] {
        for rights in [0o755, 0o750, 0o701] {
            mode(open, rights);
            let refused = retry().refused("turn_capture_corrupt");
            assert!(
                refused["error"].to_string().contains("chmod 700"),
                "{refused}"
            );
            assert_eq!(refused["effects"]["host_invoked"], false);
            let key = world.turn_key();
            let detail = ["turn", "detail", "--goal-id", GOAL, "--agent-id", "lane-a"];
            let read = world.run(&detail).flag(&["--turn-key", &key]);
            read.refused("turn_capture_corrupt");
        }
        mode(open, 0o700);
    }
    mode(root, 0o755);
    assert_eq!(doctor(&world, &[]), "warning");
    // A new Turn leaves nothing there either.
    let other = world.todo("urgent", &["--priority", "P0"]);
    let fresh = || world.turn("turn-2").flag(&["--todo-id", &other]);
    let refused = fresh().refused("turn_capture_write_failed");
    assert!(
        refused["error"].to_string().contains("chmod 700"),
        "{refused}"
    );
    assert_eq!((world.host_calls(), world.spent()), (1, 0));
    assert_eq!(world.captures().len(), 1);
    assert_eq!(doctor(&world, &["--execute"]), "ok");
    assert_eq!(retry().packet()["status"], "committed");
    assert_eq!(fresh().packet()["status"], "committed");
    assert_eq!(world.spent(), 2);
}

#[test]
fn a_terminal_turn_answers_without_its_capture() {
    let (world, _) = World::with_todo();
    world.turn("turn-1").packet();
    fs::remove_file(world.captures().pop().expect("a capture")).expect("removed");
    assert_eq!(world.turn("turn-1").packet()["replayed"], true);
}

#[test]
fn a_journal_file_that_differs_from_its_row_is_refused_and_kept() {
    let (world, _, key) = failed_once();
    let path = world.runtime().join(format!(
        "goals/{GOAL}/turns/{}.json",
        key.trim_start_matches("sha256:")
    ));
    let good = fs::read(&path).expect("bytes");
    let mut journal: Value = serde_json::from_slice(&good).expect("JSON");
    journal["plan"]["turn_envelope"]["authority"]["write_scope"] = serde_json::json!(["/**"]);
    fs::write(&path, journal.to_string()).expect("written");
    let kept = fs::read(&path).expect("bytes");
    world
        .turn("turn-1")
        .flag(&["--retry-failed-turn"])
        .refused("journal_inconsistent");
    assert_eq!(fs::read(&path).expect("bytes"), kept);
    let inspect = [
        "turn",
        "inspect-journal",
        "--goal-id",
        GOAL,
        "--agent-id",
        "lane-a",
        "--turn-key",
        &key,
    ];
    let seen = world.run(&inspect).packet();
    assert_eq!(seen["replay_legal"], false);
    let step = ["turn", "managed-step", "--goal-id", GOAL, "--agent-id"];
    world
        .run(&step)
        .flag(&["lane-a", "--turn-key", &key])
        .refused("journal_inconsistent");
    fs::write(&path, good).expect("written");
    world.turn("turn-1").flag(&["--retry-failed-turn"]).packet();
    assert_eq!(world.run(&inspect).packet()["replay_legal"], true);
}

#[test]
fn todays_state_admits_or_refuses_whatever_was_observed() {
    let (world, todo, _) = failed_once();
    world.gate("Wait?", &["--global-gate"]);
    let retry = || world.turn("turn-1").flag(&["--retry-failed-turn"]);
    let refused = retry().refused("turn_admission_refused");
    assert_eq!(refused["reason"], "open_gate");
    assert_eq!(world.host_calls(), 1);
    world.configure(&["--quota-allowed-slots", "0"]);
    assert_eq!(
        retry().refused("turn_admission_refused")["reason"],
        "throttled"
    );
    // A refused retry leaves the Turn failed: it still has to be asked for.
    world.turn("turn-1").refused("failed_retry_not_requested");
    assert_eq!(world.host_calls(), 1);
    let _ = todo;
}

#[test]
fn a_host_completes_only_what_declares_how() {
    let (world, todo) = World::with_todo();
    let body = "printf '%s' \"$result\" | sed s/validated_progress/validated_completion/";
    let host = world.host("completes.sh", body);
    let refused = world
        .turn_with("turn-1", &host, "[\"/bin/true\"]")
        .refusal();
    assert_eq!(refused["error_code"], "completion_intent_missing");
    let declare = [
        "todo",
        "update",
        "--goal-id",
        GOAL,
        "--todo-id",
        &todo,
        "--completion-intent",
        "no_followup",
    ];
    world.run(&declare).packet();
    world.turn_with("turn-2", &host, "[\"/bin/true\"]").packet();
    let list = world.run(&["todo", "list", "--goal-id", GOAL]).packet();
    let record = &list["todos"][0];
    assert_eq!(record["completion_continuation"], "no_followup");
    assert_eq!(record["completion_recovery"], "same_turn_terminal_closeout");
    assert_eq!(world.spent(), 1);
}

#[test]
fn a_host_that_waits_stops_the_turn_without_writeback() {
    let (world, _) = World::with_todo();
    let body = "printf '{\"schema_version\":\"loopx_turn_result_v0\",\"turn_key\":\"%s\",\"result_kind\":\"wait\",\
                \"completed_phases\":[\"host_execute\",\"typed_result\"]}' \"$LOOPX_TURN_KEY\"";
    let host = world.host("waits.sh", body);
    let stopped = world.turn_with("turn-1", &host, "[\"/bin/true\"]").packet();
    assert_eq!(stopped["status"], "stopped");
    assert!(world.runs().is_empty());
    assert_eq!(world.turn("turn-2").packet()["status"], "committed");
}

#[test]
fn a_failed_validation_keeps_the_result_and_validates_again_without_the_host() {
    let (world, _) = World::with_todo();
    let host = world.host("good.sh", "printf '%s' \"$result\"");
    let failed = world
        .turn_with("turn-1", &host, "[\"/bin/false\"]")
        .refusal();
    assert_eq!(failed["validation_stage"], "task_postcondition");
    world.turn("turn-1").refused("failed_retry_not_requested");
    world.turn("turn-1").flag(&["--retry-failed-turn"]).packet();
    assert_eq!(world.host_calls(), 1);
    assert_eq!(world.spent(), 1);
}

#[test]
fn a_scheduler_outside_acknowledges_with_the_next_call() {
    let (world, _) = World::with_todo();
    let owner = ["--scheduler-owner", "host_automation"];
    let waiting = world.turn("turn-1").flag(&owner).packet();
    assert_eq!(waiting["status"], "scheduler_action_required");
    let done = world.turn("turn-1").flag(&owner).packet();
    assert_eq!(done["status"], "committed");
    assert_eq!(world.host_calls(), 1);
    assert_eq!(world.spent(), 1);
}

#[test]
fn another_agent_goal_or_host_kind_is_refused_even_on_a_finished_turn() {
    let (world, _) = World::with_todo();
    world.register("lane-b");
    world.turn("turn-1").packet();
    let key = world.turn_key();
    let run = |agent: &str, more: &[&str]| {
        let head = [
            "turn",
            "run-once",
            "--goal-id",
            GOAL,
            "--agent-id",
            agent,
            "--project",
            ".",
            "--resume-turn-key",
            &key,
            "--execute",
        ];
        world.run(&[&head[..], more].concat())
    };
    let generic = ["--host-command-json", "[\"/bin/true\"]"];
    run("lane-b", &generic).refused("owner_mismatch");
    run("lane-a", &["--host", "codex-cli"]).refused("host_mismatch");
    assert_eq!(run("lane-a", &generic).packet()["replayed"], true);
    let detail = [
        "turn",
        "detail",
        "--goal-id",
        GOAL,
        "--agent-id",
        "lane-b",
        "--turn-key",
        &key,
    ];
    world.run(&detail).refused("owner_mismatch");
}

#[test]
fn plans_previews_and_readers_leave_every_byte() {
    let (world, _) = World::with_todo();
    world.turn("turn-1").packet();
    let key = world.turn_key();
    let before = world.sandbox.tree();
    let host = "[\"/bin/true\"]";
    let reads: [&[&str]; 6] = [
        &[
            "turn",
            "plan",
            "--goal-id",
            GOAL,
            "--agent-id",
            "lane-a",
            "--include-transaction-detail",
        ],
        &[
            "turn",
            "run-once",
            "--goal-id",
            GOAL,
            "--agent-id",
            "lane-a",
            "--project",
            ".",
            "--host-command-json",
            host,
        ],
        &[
            "turn",
            "detail",
            "--goal-id",
            GOAL,
            "--agent-id",
            "lane-a",
            "--turn-key",
            &key,
        ],
        &[
            "turn",
            "inspect-journal",
            "--goal-id",
            GOAL,
            "--agent-id",
            "lane-a",
            "--turn-key",
            &key,
        ],
        &[
            "turn",
            "managed-step",
            "--goal-id",
            GOAL,
            "--agent-id",
            "lane-a",
            "--turn-key",
            &key,
        ],
        &["status", "--goal-id", GOAL],
    ];
    for read in reads {
        world.run(read).packet();
        assert_eq!(world.sandbox.tree(), before, "{read:?}");
    }
}

#[test]
fn unknown_facts_and_number_spellings_reach_the_host_and_the_reader() {
    let (world, _) = World::with_todo();
    let registry = world.sandbox.project().join(".loopx/registry.json");
    let text = fs::read_to_string(&registry).expect("the registry");
    let text = text.replacen(
        "\"status\"",
        "\"weight\": {\"n\": 1E+2, \"m\": 1.50}, \"status\"",
        1,
    );
    fs::write(&registry, text).expect("written");
    let vision = r#"{"schema_version":"goal_vision_replan_contract_v0","state":"open","reach":{"n":3.250},
        "vision_patch":{"vision_summary":"See it all","acceptance_summary":"Measured twice"}}"#;
    world.sandbox.file("vision.json", vision);
    let write = ["refresh-state", "--goal-id", GOAL, "--agent-id", "lane-a"];
    world
        .run(&write)
        .flag(&["--agent-vision-json", "vision.json", "--project", "."])
        .packet();
    let widen = "UPDATE todos SET body_json='{\"size\":{\"n\":7E+1},'||substr(body_json,2)";
    world.store().execute(widen, []).expect("an unknown member");
    world.turn("turn-1").packet();
    let key = world.turn_key();
    let detail = world
        .run(&[
            "turn",
            "detail",
            "--goal-id",
            GOAL,
            "--agent-id",
            "lane-a",
            "--turn-key",
            &key,
            "--format",
            "json",
        ])
        .prepared()
        .run();
    let asked = request_texts(&world).pop().expect("one request");
    for spelling in ["1E+2", "1.50", "3.250", "7E+1"] {
        assert!(detail.text().contains(spelling), "{spelling} at the reader");
        assert!(asked.contains(spelling), "{spelling} at the host");
    }
}

#[test]
fn a_turn_that_was_written_back_by_hand_starts_no_host() {
    let (world, todo) = World::with_todo();
    world.decide(&["--turn-instance-id", "turn-1", "--todo-id", &todo]);
    world.refresh(&todo, "turn-1", &[]).packet();
    world
        .turn("turn-1")
        .refused("committed_writeback_payload_conflict");
    assert_eq!(world.host_calls(), 0);
    world.spend(&todo, "turn-1").packet();
    assert_eq!(world.runs(), ["quota_slot_spent", "step_done"]);
}

#[test]
fn a_failed_turn_that_was_settled_by_hand_is_not_tried_again() {
    let (world, todo, _) = failed_once();
    world.refresh(&todo, "turn-1", &["--settle-turn"]).packet();
    let calls = world.host_calls();
    world
        .turn("turn-1")
        .flag(&["--retry-failed-turn"])
        .refused("committed_writeback_payload_conflict");
    assert_eq!(world.host_calls(), calls);
    assert_eq!(world.spent(), 1);
}

#[test]
fn inspection_says_that_a_retry_without_its_capture_is_blocked() {
    let (world, _, key) = failed_once();
    for capture in world.captures() {
        fs::remove_file(capture).expect("removed");
    }
    let args = [
        "turn",
        "inspect-journal",
        "--goal-id",
        GOAL,
        "--agent-id",
        "lane-a",
        "--turn-key",
        &key,
        "--retry-failed-turn",
    ];
    let found = world.run(&args).packet();
    assert_eq!(found["recovery_decision"]["action"], "blocked");
    assert_eq!(found["recovery_decision"]["reason"], "turn_capture_missing");
    assert_eq!(found["decision_capture"]["valid"], false);
}

#[test]
fn what_is_read_as_deep_as_it_may_be_is_kept_captured_and_replayed() {
    let (world, _) = World::with_todo();
    let deep = format!("{}1{}", "[".repeat(126), "]".repeat(126));
    let vision =
        format!(r#"{{"state":"open","vision_patch":{{"vision_summary":"All"}},"zz":{deep}}}"#);
    world.sandbox.file("deep.json", vision);
    let head = ["refresh-state", "--goal-id", GOAL, "--agent-id", "lane-a"];
    let write = || world.run(&[&head[..], &["--agent-vision-json", "deep.json"]].concat());
    // The packets hold it too, deeper than this test's own reader goes: they are looked at as text.
    let text = |command: Kernel<'_>| {
        let done = command.prepared().json_run();
        assert_eq!(done.code, Some(0), "{}", done.errors());
        done.text()
    };
    text(write());
    text(write());
    assert!(text(world.turn("turn-1")).contains("\"status\": \"committed\""));
    assert!(text(world.turn("turn-1")).contains("\"replayed\": true"));
    text(world.ask("lane-a", &[]));
    let key = world.turn_key();
    let detail = ["turn", "detail", "--goal-id", GOAL, "--agent-id", "lane-a"];
    text(world.run(&[&detail[..], &["--turn-key", &key]].concat()));
    let doctor = world.run(&["doctor"]).packet();
    assert_eq!(doctor["findings"][1]["status"], "ok", "{doctor}");
    world.sandbox.file(
        "deeper.json",
        format!(r#"{{"state":"open","zz":[{deep}]}}"#),
    );
    let deeper = world.run(&[&head[..], &["--agent-vision-json", "deeper.json"]].concat());
    deeper.refused("input_unreadable");
}
