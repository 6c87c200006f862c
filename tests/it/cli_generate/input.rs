//! Bad input: every one has a typed outcome, and nothing is written.

use std::fs;

use serde_json::{Value, json};

use super::files::{generate, project, refused};
use crate::support::Sandbox;

fn facts() -> Value {
    json!({"schema_version": "periodic_report_project_progress_projection_v0",
        "observed_at": "2026-09-17T09:00:00Z", "items": [
            {"item_id": "pumps", "title": "Quay pumps replaced", "summary": "All four run.", "content_kind": "outcome"},
            {"item_id": "silt", "title": "Silt near berth four", "summary": "A metre.", "content_kind": "risk"}]})
}

fn profile() -> Value {
    json!({"schema_version": "periodic_report_profile_v0", "enabled": true, "profile_id": "harbour",
        "profile_version": "v2",
        "source_bindings": [{"source_id": "p", "source_kind": "k", "adapter_id": "project_progress_v0"}],
        "renderer_bindings": [{"renderer_id": "md", "renderer_kind": "markdown", "adapter_id": "markdown_v0"}]})
}

#[test]
fn command_lines_that_cannot_be_are_exit_2() {
    let sandbox = project();
    let before = sandbox.tree();
    let cases: [&[&str]; 6] = [
        &["--preset", "monthly"],
        &["--preset", "weekly", "--profile-json", "p.json"],
        &["--source", "svn"],
        &["--source", "facts="],
        &["--language", "fr"],
        &["--agent-id", "1"],
    ];
    for case in cases {
        let mut args = vec!["periodic-report", "generate", "--format", "json"];
        args.extend(case);
        let finished = sandbox.loopx(args).run();
        assert_eq!(finished.code, Some(2), "{case:?}");
        assert_eq!(
            finished.json()["error_code"],
            "invalid_arguments",
            "{case:?}"
        );
    }
    assert_eq!(sandbox.tree(), before);
}

#[test]
fn windows_and_zones_that_cannot_be_are_refused_by_name() {
    let sandbox = project();
    let before = sandbox.tree();
    for window in [
        "2026-09-18/2026-09-16",
        "2026-09-16/2026-09-16",
        "2026-09-16/2026-09-19",
        "fortnight",
        "",
        "/",
        "-1/2026-09-16",
    ] {
        assert_eq!(
            refused(&sandbox, &[&format!("--window={window}")]),
            "report_window_invalid",
            "{window}"
        );
    }
    for zone in ["Mars/Base", "europe/paris", "", "Factory", "+02:00"] {
        let args = ["periodic-report", "generate", &format!("--timezone={zone}")];
        assert_eq!(
            sandbox.loopx(args).refusal()["error_code"],
            "report_timezone_unknown",
            "{zone}"
        );
    }
    let by_variable = sandbox
        .loopx(["periodic-report", "generate"])
        .env("TZ", "Mars/Base")
        .refusal();
    assert_eq!(by_variable["error_code"], "report_timezone_unknown");
    let by_epoch = sandbox
        .loopx(["periodic-report", "generate"])
        .env("SOURCE_DATE_EPOCH", "soon")
        .refusal();
    assert_eq!(by_epoch["error_code"], "report_window_invalid");
    assert_eq!(sandbox.tree(), before);
}

#[test]
fn the_profile_decides_whether_and_how() {
    let sandbox = project();
    let with = |change: fn(&mut Value)| {
        let mut value = profile();
        change(&mut value);
        let file = sandbox.file("p.json", value.to_string());
        file.to_string_lossy().into_owned()
    };
    let file = with(|profile| profile["enabled"] = json!(false));
    assert_eq!(
        refused(&sandbox, &["--profile-json", &file]),
        "report_generation_not_allowed"
    );
    let file =
        with(|profile| profile["trigger_policy"] = json!({"enabled_kinds": ["cadence_due"]}));
    assert_eq!(
        refused(&sandbox, &["--profile-json", &file]),
        "report_generation_not_allowed"
    );
    let file = with(|profile| profile["renderer_bindings"][0]["adapter_id"] = json!("pdf_v0"));
    assert_eq!(
        refused(&sandbox, &["--profile-json", &file]),
        "input_invalid"
    );
    let file = with(|_| ());
    let args = [
        "periodic-report",
        "generate",
        "--profile-json",
        &file,
        "--print",
        "html",
    ];
    assert_eq!(sandbox.loopx(args).run().code, Some(1));
    let packet = generate(&sandbox, &["--profile-json", &file, "--out", "one"]);
    assert_eq!(packet["artifacts"].as_array().map(Vec::len), Some(1));
    let found = fs::read_dir(sandbox.project().join("one"))
        .expect("made")
        .count();
    assert_eq!(found, 2);
}

#[test]
fn a_bad_facts_file_fails_by_name_and_the_other_source_carries_the_report() {
    let sandbox = project();
    let mut unknown = facts();
    unknown["schema_version"] = json!("x_v9");
    let mut secret = facts();
    secret["items"][0]["title"] = json!("token=zqcanary0123456789");
    for (name, content) in [
        ("unknown", unknown.to_string()),
        ("secret", secret.to_string()),
        ("twice", "{\"a\":1,\"a\":2}".to_owned()),
        ("text", "not json".to_owned()),
        ("empty", String::new()),
    ] {
        let file = sandbox.file("facts.json", content);
        let source = format!("facts={}", file.display());
        assert_eq!(
            refused(&sandbox, &["--source", &source]),
            "report_sources_failed",
            "{name}"
        );
        let packet = generate(
            &sandbox,
            &["--source", "git", "--source", &source, "--preview"],
        );
        assert_eq!(packet["sources"][1]["reason"], "facts_invalid", "{name}");
        assert_eq!(packet["sources"][0]["status"], "complete", "{name}");
    }
}

#[test]
fn facts_become_the_report_in_its_own_language() {
    let sandbox = Sandbox::new();
    let file = sandbox.file("facts.json", facts().to_string());
    let source = format!("facts={}", file.display());
    let packet = generate(
        &sandbox,
        &["--source", &source, "--language", "zh-CN", "--out", "zh"],
    );
    assert_eq!(
        packet["summary"],
        "本期进展：Quay pumps replaced。 当前风险：Silt near berth four。"
    );
    let text = fs::read_to_string(sandbox.project().join("zh/report.md")).expect("there");
    assert!(text.contains("## 进展与成果") && !text.contains("Progress"));
}

#[test]
fn a_folder_without_anything_to_report_names_both_ways_forward() {
    let sandbox = Sandbox::new();
    let refusal = sandbox.loopx(["periodic-report", "generate"]).refusal();
    assert_eq!(refusal["error_code"], "report_source_missing");
    let text = refusal["error"].as_str().expect("a text");
    assert!(
        text.contains("--source git") && text.contains("bootstrap"),
        "{text}"
    );
    assert_eq!(
        refused(&sandbox, &["--source", "project-progress"]),
        "report_source_missing"
    );
    assert_eq!(
        refused(
            &sandbox,
            &["--source", "project-progress", "--goal-id", "nobody"]
        ),
        "report_sources_failed"
    );
}

#[test]
fn an_empty_window_names_the_newest_fact_and_the_command_that_covers_it() {
    let sandbox = project();
    let packet = generate(&sandbox, &["--window", "last-week", "--preview"]);
    assert_eq!(packet["newest_fact_at"], "2026-09-16T10:00:00Z");
    let text = sandbox
        .loopx([
            "periodic-report",
            "generate",
            "--window",
            "last-week",
            "--timezone",
            "UTC",
        ])
        .run();
    let text = text.text();
    assert!(
        text.contains("2026-09-16") && text.contains("--window latest"),
        "{text}"
    );
    let latest = generate(&sandbox, &["--window", "latest", "--preview"]);
    assert_eq!(latest["period_window"]["start_at"], "2026-09-14T00:00:00Z");
}

#[test]
fn a_goal_and_its_todos_speak_in_the_next_report() {
    let sandbox = project();
    let ok = |args: &[&str]| sandbox.loopx(args.iter().copied()).packet();
    ok(&[
        "bootstrap",
        "--goal-id",
        "harbour",
        "--title",
        "Dredge the harbour",
        "--objective",
        "Open fairway",
        "--project",
        ".",
    ]);
    let todo = ok(&[
        "todo",
        "add",
        "--goal-id",
        "harbour",
        "--role",
        "agent",
        "--task-class",
        "advancement_task",
        "--text",
        "Replace the pumps",
    ]);
    let id = todo["todo_id"].as_str().expect("an id").to_owned();
    ok(&[
        "todo",
        "complete",
        "--goal-id",
        "harbour",
        "--todo-id",
        &id,
        "--agent-id",
        "lane-a",
        "--evidence",
        "all four run",
    ]);
    ok(&[
        "todo",
        "add",
        "--goal-id",
        "harbour",
        "--role",
        "user",
        "--task-class",
        "user_gate",
        "--text",
        "Approve the budget",
    ]);
    let packet = sandbox
        .loopx([
            "periodic-report",
            "generate",
            "--timezone",
            "UTC",
            "--out",
            "weekly",
        ])
        .now("2026-09-18T10:00:00Z")
        .packet();
    let summary = packet["summary"].as_str().expect("a summary");
    assert_eq!(
        summary,
        "Outcome: Replace the pumps. Next: Approve the budget."
    );
    let text = fs::read_to_string(sandbox.project().join("weekly/report.md")).expect("there");
    assert!(
        text.starts_with("# Dredge the harbour, 2026-09-14 – 2026-09-18\n"),
        "{text}"
    );
    assert!(text.contains(&format!("todo:{id}")) && text.contains("all four run"));
    assert_eq!(packet.get("next_step"), None);
}

#[test]
fn a_registry_that_cannot_be_read_is_said_and_is_no_absence() {
    let sandbox = project();
    let folder = sandbox.project().join(".loopx");
    fs::create_dir_all(&folder).expect("made");
    fs::write(folder.join("registry.json"), "{ not json").expect("written");
    let packet = generate(&sandbox, &["--out", "weekly"]);
    assert_eq!(packet["sources"][0]["reason"], "goal_todos_unreadable");
    assert_eq!(packet["sources"][1]["status"], "complete");
    let page = fs::read_to_string(sandbox.project().join("weekly/report.html")).expect("there");
    assert!(page.contains("href=\"#appendix\""));
}

#[test]
fn the_next_command_repeats_what_was_asked_for_and_no_place_of_the_machine() {
    let sandbox = project();
    let other = sandbox.root().join("other");
    std::fs::create_dir(&other).expect("made");
    let args = [
        "periodic-report",
        "generate",
        "--window",
        "last-week",
        "--timezone",
        "Asia/Tokyo",
        "--language",
        "zh-CN",
        "--preview",
        "--source",
        "git=../project",
    ];
    let packet = sandbox.loopx(args).folder(&other).packet();
    let command = "loopx periodic-report generate --source git=../project --timezone Asia/Tokyo --language zh-CN --window latest";
    assert_eq!(packet["next_step"]["commands"], json!([command]));
    let source = format!("git={}", sandbox.project().display());
    let args = [
        "periodic-report",
        "generate",
        "--window",
        "last-week",
        "--preview",
        "--source",
        &source,
    ];
    let packet = sandbox.loopx(args).folder(&other).packet();
    assert!(
        packet["next_step"]["commands"][0]
            .as_str()
            .expect("a command")
            .contains("--source git=PATH")
    );
}

#[test]
fn a_source_that_says_itself_that_it_is_partial_has_a_line_in_the_text() {
    let sandbox = Sandbox::new();
    let mut value = facts();
    value["warnings"] = json!(["Half was read."]);
    let file = sandbox.file("facts.json", value.to_string());
    let source = format!("facts={}", file.display());
    let args = [
        "periodic-report",
        "generate",
        "--preview",
        "--source",
        &source,
    ];
    let text = sandbox.loopx(args).run().text();
    assert!(
        text.contains("Source project_progress: partial\n"),
        "{text}"
    );
    value["status"] = json!("failed");
    sandbox.file("facts.json", value.to_string());
    let refusal = sandbox.loopx(args).refusal();
    assert_eq!(refusal["error_code"], "report_sources_failed");
    assert!(
        !refusal["error"].as_str().expect("a text").contains("()"),
        "{refusal}"
    );
}

#[test]
fn a_facts_file_that_is_no_regular_file_is_refused_and_not_waited_for() {
    let sandbox = project();
    let pipe = sandbox.root().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.is_ok_and(|status| status.success()));
    let source = format!("facts={}", pipe.display());
    assert_eq!(
        refused(&sandbox, &["--source", &source]),
        "report_sources_failed"
    );
}
