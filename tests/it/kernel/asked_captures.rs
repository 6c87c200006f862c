//! Copies of a decision that `quota should-run` was asked for (docs/spec/kernel.md 8.1).

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::support::world::{Kernel, World};

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("there").permissions().mode() & 0o777
}

fn ask<'a>(world: &'a World, more: &[&str]) -> Kernel<'a> {
    world
        .ask("lane-a", &["--turn-instance-id", "turn-1"])
        .flag(more)
}

fn decision_below(folder: &Path) -> Value {
    assert_eq!(mode(folder), 0o700);
    let file = folder.join("decision.json");
    assert_eq!(mode(&file), 0o600);
    serde_json::from_slice(&fs::read(file).expect("bytes")).expect("JSON")
}

fn admissions(world: &World) -> i64 {
    world
        .store()
        .query_row("SELECT COUNT(*) FROM admissions", [], |row| row.get(0))
        .expect("a count")
}

#[test]
fn a_new_folder_gets_the_complete_decision_for_its_owner_alone() {
    let (world, todo) = World::with_todo();
    let shown = ask(&world, &["--decision-output-dir", "kept"]).packet();
    let kept = decision_below(&world.sandbox.project().join("kept"));
    let decision = &kept["decision"];
    assert_eq!(decision["selected_todo"]["todo_id"], todo.as_str());
    assert_eq!(decision["effective_action"], shown["effective_action"]);
    assert_eq!(
        decision["interaction_contract"],
        shown["interaction_contract"]
    );
    let folder = fs::read_dir(world.sandbox.project().join("kept")).expect("a folder");
    assert_eq!(folder.count(), 1, "nothing temporary stays");
}

#[test]
fn an_existing_root_gets_one_fresh_folder_for_each_decision() {
    let (world, _) = World::with_todo();
    let root = world.sandbox.project().join("root");
    fs::create_dir(&root).expect("a folder");
    for _ in 0..2 {
        ask(&world, &["--decision-output-root", "root"]).packet();
    }
    let mut names = Vec::new();
    for entry in fs::read_dir(&root).expect("the root") {
        let path = entry.expect("an entry").path();
        decision_below(&path);
        names.push(path.file_name().expect("a name").to_owned());
    }
    assert_eq!(names.len(), 2);
    for name in names {
        assert!(name.to_string_lossy().starts_with("decision-"));
    }
}

#[test]
fn a_compact_answer_still_keeps_the_complete_decision() {
    let (world, todo) = World::with_todo();
    let flags = ["--turn-envelope", "--decision-output-dir", "kept"];
    let shown = ask(&world, &flags).packet();
    assert_eq!(shown["schema_version"], "loopx_turn_envelope_v1");
    let kept = decision_below(&world.sandbox.project().join("kept"));
    let decision = &kept["decision"];
    assert_eq!(decision["selected_todo"]["todo_id"], todo.as_str());
    assert!(decision["interaction_contract"].is_object());
}

#[test]
fn a_place_that_is_taken_missing_or_wrong_is_refused_before_the_turn_is_admitted() {
    let (world, _) = World::with_todo();
    world.sandbox.file("file", "mine");
    fs::create_dir(world.sandbox.project().join("folder")).expect("a folder");
    let link = world.sandbox.project().join("link");
    std::os::unix::fs::symlink("nowhere", link).expect("a link");
    for bad in [
        ["--decision-output-dir", "folder"],
        ["--decision-output-dir", "file"],
        ["--decision-output-dir", "link"],
        ["--decision-output-dir", "missing/below"],
        ["--decision-output-root", "missing"],
        ["--decision-output-root", "file"],
    ] {
        let before = world.sandbox.tree();
        ask(&world, &bad).refused("turn_capture_write_failed");
        assert_eq!(world.sandbox.tree(), before, "{bad:?}");
    }
    assert_eq!(admissions(&world), 0);
}

#[test]
fn a_place_without_a_turn_or_both_places_are_not_understood() {
    let (world, _) = World::with_todo();
    world
        .ask("lane-a", &["--decision-output-dir", "kept"])
        .misused("invalid_arguments");
    let both = [
        "--decision-output-dir",
        "kept",
        "--decision-output-root",
        ".",
    ];
    ask(&world, &both).misused("invalid_arguments");
    assert!(!world.sandbox.project().join("kept").exists());
    assert_eq!(admissions(&world), 0);
}

#[test]
fn a_decision_that_nobody_asked_to_keep_is_kept_nowhere() {
    let (world, _) = World::with_todo();
    let names = |world: &World| -> Vec<_> {
        let tree = world.sandbox.tree().into_iter();
        tree.map(|(path, _)| path)
            .filter(|path| !path.ends_with("rollout-event-log.jsonl"))
            .collect()
    };
    let before = names(&world);
    ask(&world, &[]).packet();
    ask(&world, &["--turn-envelope"]).packet();
    assert_eq!(names(&world), before);
    assert!(world.captures().is_empty());
    assert_eq!(admissions(&world), 1);
}
