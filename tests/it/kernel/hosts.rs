//! Hosts that hang, and the budget of their retries (docs/spec/kernel.md 9.4, 10.3).

use std::fs;

use loopx::contract::digest::content_digest;
use serde_json::{Value, json};

use crate::support::world::{GOAL, Kernel, World};

/// A host that starts a child of its own and then waits for ever.
const HANGS: &str = "tail -f /dev/null & echo $! >> children\nwait";

fn hung(world: &World, host: &str) -> Value {
    again(world, host).refusal()
}

fn again<'a>(world: &'a World, host: &str) -> Kernel<'a> {
    world.turn_with("turn-1", host, "[\"/bin/true\"]").flag(&[
        "--timeout-seconds",
        "1",
        "--retry-failed-turn",
    ])
}

/// True unless the process is gone or only waits to be reaped.
fn is_alive(pid: &str) -> bool {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    let state = stat.rsplit(") ").next().unwrap_or("");
    !state.is_empty() && !state.starts_with('Z') && !state.starts_with('X')
}

#[test]
fn a_host_that_hangs_is_stopped_with_its_children_and_may_be_tried_once_more() {
    let (world, _) = World::with_todo();
    let host = world.host("hangs.sh", HANGS);
    let first = hung(&world, &host);
    let failure = &first["host_failure"];
    assert_eq!(failure["kind"], "executor_timeout");
    assert_eq!(failure["retryable"], true);
    assert_eq!(failure["retry"]["max_attempts"], 2);
    let children = fs::read_to_string(world.sandbox.project().join("children")).expect("a child");
    assert!(children.lines().all(|pid| !is_alive(pid)), "{children}");
    assert_eq!(hung(&world, &host)["host_failure"]["attempt"], 2);
    again(&world, &host).refused("host_retry_budget_exhausted");
    assert_eq!(world.host_calls(), 2);
    assert_eq!(world.spent(), 0);
    assert!(world.runs().is_empty());
}

#[test]
fn a_host_that_hung_once_and_then_answers_is_paid_once() {
    let (world, _) = World::with_todo();
    hung(&world, &world.host("hangs.sh", HANGS));
    let done = world.turn("turn-1").flag(&["--retry-failed-turn"]).packet();
    assert_eq!(done["status"], "committed");
    assert_eq!(world.host_calls(), 2);
    assert_eq!(world.spent(), 1);
    assert_eq!(world.turn("turn-1").packet()["replayed"], true);
    assert_eq!(world.spent(), 1);
}

#[test]
fn a_failure_record_that_does_not_fit_its_journal_starts_no_host() {
    let (world, _) = World::with_todo();
    let host = world.host("fails.sh", "exit 3");
    world
        .turn_with("turn-1", &host, "[\"/bin/true\"]")
        .refusal();
    let key = world.turn_key();
    let broken = [
        json!({"kind": "unknown", "attempt": 7}),
        json!({"kind": "unknown", "attempt": 0}),
        json!({"kind": "unheard_of", "attempt": 1}),
        json!({"kind": "unknown"}),
    ];
    for failure in broken {
        let journal = with_failure(&world, &key, &failure);
        let seen = again(&world, &host).refused("host_retry_contract_invalid");
        assert_eq!(seen["effects"]["host_invoked"], false);
        let file = journal_file(&world, &key);
        assert_eq!(fs::read_to_string(file).expect("kept"), journal);
    }
    assert_eq!(world.host_calls(), 1);
}

fn journal_file(world: &World, key: &str) -> std::path::PathBuf {
    let name = format!(
        "goals/{GOAL}/turns/{}.json",
        key.trim_start_matches("sha256:")
    );
    world.runtime().join(name)
}

/// Puts another failure into the journal and its row, as a foreign writer would.
fn with_failure(world: &World, key: &str, failure: &Value) -> String {
    let file = journal_file(world, key);
    let text = fs::read_to_string(&file).expect("a journal");
    let mut journal: Value = serde_json::from_str(&text).expect("JSON");
    journal["host_failure"] = failure.clone();
    let text = journal.to_string();
    fs::write(&file, &text).expect("written");
    world
        .store()
        .execute(
            "UPDATE turns SET journal_json=?1, journal_sha256=?2",
            [&text, &content_digest(text.as_bytes()).hex()],
        )
        .expect("updated");
    text
}

#[test]
fn a_codex_host_is_its_program_with_one_request_in_and_one_answer_out() {
    let (world, _) = World::with_todo();
    world.host(
        "codex.sh",
        "printf '%s\\n' \"$@\" > words\nprintf '%s' \"$result\"",
    );
    let program = world.sandbox.project().join("codex.sh");
    let head = [
        "turn",
        "run-once",
        "--goal-id",
        GOAL,
        "--agent-id",
        "lane-a",
    ];
    let done = world
        .run(&head)
        .flag(&["--turn-instance-id", "turn-1", "--project", "."])
        .flag(&["--host", "codex-cli", "--codex-bin"])
        .flag(&[&program.to_string_lossy(), "--codex-model", "m-1"])
        .flag(&["--codex-sandbox", "workspace-write"])
        .flag(&["--validation-command-json", "[\"/bin/true\"]", "--execute"])
        .packet();
    assert_eq!(done["status"], "committed");
    assert_eq!(done["host"], "codex-cli");
    let words = fs::read_to_string(world.sandbox.project().join("words")).expect("words");
    let words: Vec<&str> = words.lines().collect();
    let expected = [
        "exec",
        "--model",
        "m-1",
        "--sandbox",
        "workspace-write",
        "-",
    ];
    assert_eq!(words, expected);
    assert_eq!(world.host_calls(), 1);
    assert_eq!(world.spent(), 1);
}

#[test]
fn a_codex_program_that_is_not_there_fails_the_turn_and_may_be_tried_again() {
    let (world, _) = World::with_todo();
    let head = [
        "turn",
        "run-once",
        "--goal-id",
        GOAL,
        "--agent-id",
        "lane-a",
    ];
    let failed = world
        .run(&head)
        .flag(&["--turn-instance-id", "turn-1", "--project", "."])
        .flag(&["--host", "codex-cli", "--codex-bin", "./not-there"])
        .execute()
        .refusal();
    assert_eq!(failed["host_failure"]["kind"], "unknown");
    assert_eq!(world.spent(), 0);
}

#[test]
fn what_a_host_or_an_agent_says_is_fit_for_others() {
    for (said, word) in [
        ("see /home/joe/x", "/home/joe"),
        ("use sk-ant-api03-abcdefgh", "sk-ant"),
    ] {
        let (world, todo) = World::with_todo();
        let body = format!("printf '%s' \"$result\" | sed 's#Read on#{said}#'");
        let host = world.host("says.sh", &body);
        let failed = world
            .turn_with("turn-1", &host, "[\"/bin/true\"]")
            .refusal();
        assert_eq!(failed["host_failure"]["kind"], "contract_rejected");
        assert_eq!(failed["host_failure"]["cause"], "answer_unsafe", "{failed}");
        assert!(!failed.to_string().contains(word), "{failed}");
        assert!(world.runs().is_empty());
        world.decide(&["--turn-instance-id", "turn-2", "--todo-id", &todo]);
        for flag in ["--recommended-action", "--next-action", "--vision-summary"] {
            let refresh = world.refresh(&todo, "turn-2", &[flag, said]);
            let finished = refresh.flag(&["--format", "json"]).prepared().run();
            assert_eq!(finished.code, Some(2), "{flag}");
            assert_eq!(finished.json()["error_code"], "invalid_arguments");
            assert!(!finished.text().contains(word), "{}", finished.text());
        }
        assert!(world.runs().is_empty());
    }
}

#[test]
fn relative_paths_and_common_programs_may_be_named() {
    let (world, _) = World::with_todo();
    let said = "src/home/page.rs, ./tmp/a and /usr/bin/env";
    let body = format!("printf '%s' \"$result\" | sed 's#Read on#{said}#'");
    let host = world.host("says.sh", &body);
    let done = world.turn_with("turn-1", &host, "[\"/bin/true\"]").packet();
    assert_eq!(done["status"], "committed", "{done}");
    let todo = world.todo("Another", &[]);
    world.decide(&["--turn-instance-id", "turn-2", "--todo-id", &todo]);
    let refresh = world.refresh(&todo, "turn-2", &["--next-action", said]);
    assert_eq!(refresh.packet()["next_action"], said);
}
