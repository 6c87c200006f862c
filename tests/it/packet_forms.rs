//! The forms of a packet that no story passes by: previews, unbound and empty ones, and the documents that owners and hosts write.
//! Every run holds its packet against `schemas/`.

use std::fs;

use serde_json::{Value, json};

use crate::support::lark::{CHAT, CHAT2, Lark, event};
use crate::support::schemas;
use crate::support::world::World;

/// Command lines in the order they are run; `TODO` is the one open todo.
const LINES: &[&str] = &[
    "bootstrap --goal-id other --title T --dry-run",
    "register-agent --goal-id demo-goal --agent-id lane-c",
    "configure-goal --goal-id demo-goal --focus-wait",
    "configure-goal --goal-id demo-goal --quota-compute 2 --quota-window-hours 12 --quota-allowed-slots 3",
    "configure-goal --goal-id demo-goal --waiting-on controller --operator-question Q --missing-gate g1",
    "configure-goal --goal-id demo-goal --agent-work-mode lane-a=monitor_only",
    "goal-lifecycle --goal-id demo-goal --operation pause --reason r",
    "todo add --goal-id demo-goal --role agent --text x --dry-run",
    "todo add --goal-id demo-goal --role user --task-class user_gate --global-gate --text x --dry-run",
    "todo add --goal-id demo-goal --role agent --task-class continuous_monitor --next-due-at 2026-09-19T00:00:00Z --text m --dry-run",
    "todo list --goal-id demo-goal",
    "todo claim --goal-id demo-goal --todo-id TODO --claimed-by lane-a --dry-run",
    "todo update --goal-id demo-goal --todo-id TODO --agent-id lane-a --priority P1 --dry-run",
    "todo complete --goal-id demo-goal --todo-id TODO --agent-id lane-a --evidence e --dry-run",
    "todo archive-completed --goal-id demo-goal --dry-run",
    "operator-gate --goal-id demo-goal --gate g1 --decision approve --dry-run",
    "task-lease inspect --goal-id demo-goal --todo-id TODO",
    "quota should-run --goal-id demo-goal",
    "quota should-run --goal-id demo-goal --agent-id lane-a --turn-envelope",
    "quota should-run --goal-id demo-goal --agent-id lane-a --turn-instance-id t1",
    "quota status",
    "quota plan --include-archived",
    "refresh-state --goal-id demo-goal --dry-run --recommended-action a --next-action b",
    "refresh-state --goal-id demo-goal --agent-id lane-a --dry-run --recommended-action a --next-action b --classification c",
    "refresh-state --goal-id demo-goal --agent-id lane-a --todo-id TODO --turn-instance-id t1 --classification c \
     --delivery-outcome outcome_progress --delivery-batch-scale implementation --vision-unchanged-reason z",
    "quota spend-slot --goal-id demo-goal --agent-id lane-a --todo-id TODO --turn-instance-id t1",
    "quota spend-slot --goal-id demo-goal --agent-id lane-a --todo-id TODO --turn-instance-id t1 --execute",
    "refresh-state --goal-id demo-goal --agent-id lane-a --recommended-action a --next-action b --classification c",
    "quota spend-slot --goal-id demo-goal --agent-id lane-a",
    "quota spend-slot --goal-id demo-goal --agent-id lane-a --execute",
    "status",
    "status --goal-id demo-goal",
    "turn plan --goal-id demo-goal --agent-id lane-a --include-transaction-detail",
    "turn managed-step --goal-id demo-goal --agent-id lane-a",
    "handoff inspect --goal-id demo-goal --todo-id TODO --agent-id lane-a --session-id s",
    "doctor",
    "capability list",
    "extension list",
    "lark-inbox drain --goal-id demo-goal",
];

#[test]
fn previews_and_unbound_forms_are_as_their_schemas_say() {
    let (world, todo) = World::with_todo();
    let mut faults = Vec::new();
    for line in LINES {
        let words: Vec<String> = line
            .split_whitespace()
            .map(|word| word.replace("TODO", &todo))
            .collect();
        let finished = world.sandbox.loopx(&words).json_run();
        let packet: Value = serde_json::from_slice(&finished.stdout).expect("a packet");
        let found = schemas::faults(&packet);
        faults.extend(found.into_iter().map(|fault| format!("{line}: {fault}")));
        // What is refused proves nothing about the form of an answer.
        if packet["ok"] != true {
            let why = packet["error_code"].as_str().unwrap_or("no code");
            faults.push(format!("{line}: refused, {why}"));
        }
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn what_a_host_reads_and_answers_is_as_its_schemas_say() {
    let (world, _todo) = World::with_todo();
    let host = world.host("keeps.sh", "printf '%s' \"$result\" | tee result-kept.json");
    world.turn_with("t1", &host, "[\"/bin/true\"]").packet();
    let folder = world.sandbox.project();
    let request = fs::read_dir(&folder)
        .expect("the project")
        .filter_map(|entry| entry.ok().map(|entry| entry.path()))
        .find(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("request-")
        })
        .expect("a request");
    for path in [request, folder.join("result-kept.json")] {
        let document: Value =
            serde_json::from_slice(&fs::read(&path).expect("read")).expect("one object");
        schemas::check(&document);
    }
}

#[test]
fn a_result_that_the_contract_refuses_is_refused_by_its_schema() {
    let sound = json!({
        "schema_version": "loopx_turn_result_v0", "turn_key": format!("sha256:{}", "0".repeat(64)),
        "result_kind": "validated_progress", "completed_phases": ["host_execute", "typed_result"], "classification": "c",
        "recommended_action": "r", "next_action": "n", "delivery_batch_scale": "implementation",
        "delivery_outcome": "outcome_progress", "path_delta_mode": "unchanged", "vision_unchanged_reason": "same",
    });
    assert_eq!(schemas::faults(&sound), Vec::<String>::new());
    for (name, value) in [
        ("vision_unchanged_reason", json!("")),
        ("path_delta_mode", json!("material_replan")),
        ("result_kind", json!("wait")),
        ("result_kind", json!("host_failure")),
        ("quota_spent", json!(true)),
        ("classification", json!("x".repeat(121))),
    ] {
        let mut changed = sound.clone();
        changed[name] = value;
        assert_ne!(schemas::faults(&changed), Vec::<String>::new(), "{name}");
    }
}

#[test]
fn the_private_documents_of_an_inbox_are_as_their_schemas_say() {
    let lark = Lark::new();
    let config = lark.collector(
        &[("alpha", CHAT), ("beta", CHAT2)],
        json!({"operation_callbacks": {"enabled": false}, "consume_timeout": "30m"}),
    );
    let mut addressed = event("om_zqpone", json!({}));
    addressed["chat_id"] = json!(CHAT);
    let packet = lark
        .inbox(&["ingest", "--execute"], &config)
        .stdin(addressed.to_string())
        .packet();
    assert_eq!(packet["accepted_count"], 1, "{packet}");
    let mut seen = Vec::new();
    let mut open = vec![lark.sandbox.project().join(".loopx")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                open.push(path);
                continue;
            }
            let Ok(document) = serde_json::from_slice::<Value>(&fs::read(&path).expect("read"))
            else {
                continue;
            };
            let name = document["schema_version"].as_str().unwrap_or_default();
            if schemas::all().contains_key(name) {
                schemas::check(&document);
                seen.push(name.to_owned());
            }
        }
    }
    for name in [
        "lark_event_inbox_config_v0",
        "lark_event_collector_config_v1",
        "lark_event_inbox_event_v0",
    ] {
        assert!(seen.iter().any(|one| one == name), "{name}: {seen:?}");
    }
}

#[test]
fn a_provider_names_the_scopes_to_ask_for_and_no_application() {
    let lark = Lark::new();
    let packet = lark.run(["extension", "doctor", "loopx-lark"]).packet();
    let groups = packet["recommended_scopes"].as_array().expect("groups");
    let asked: Vec<&str> = groups
        .iter()
        .flat_map(|group| group["scopes"].as_array().expect("scopes"))
        .filter_map(Value::as_str)
        .collect();
    let url = packet["scope_apply_url"].as_str().expect("a page");
    assert!(url.contains("clientID=<app_id>"), "{url}");
    assert!(url.ends_with(&asked.join("%2C")), "{url}");
    assert_eq!((groups.len(), asked.len()), (3, 19));
}
