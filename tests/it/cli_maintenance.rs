//! `doctor`, `backup`, `restore` through the binary.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::Value;

use crate::support::Sandbox;
use crate::support::world::{GOAL, World};

fn with_goal() -> Sandbox {
    World::with_todo().0.sandbox
}

fn todos(sandbox: &Sandbox) -> Value {
    sandbox.loopx(["todo", "list", "--goal-id", GOAL]).packet()["todos"].clone()
}

fn status_of(packet: &Value, check: &str) -> String {
    let findings = packet["findings"].as_array().expect("findings");
    let found = findings.iter().find(|finding| finding["check"] == check);
    found.unwrap_or_else(|| panic!("no finding {check}: {packet}"))["status"]
        .as_str()
        .expect("a status")
        .to_owned()
}

fn wipe(sandbox: &Sandbox) {
    fs::remove_dir_all(sandbox.project().join(".loopx")).expect("removed");
}

#[test]
fn a_lost_disk_comes_back_from_a_backup() {
    let sandbox = with_goal();
    let before = todos(&sandbox);
    let written = sandbox.loopx(["backup", "--out", "../copy"]).packet();
    assert_eq!(
        (written["verified"].as_bool(), written["action"].as_str()),
        (Some(true), Some("backup"))
    );
    wipe(&sandbox);
    let preview = sandbox.loopx(["restore", "--from", "../copy"]).packet();
    assert_eq!(preview["dry_run"], true);
    assert!(
        !sandbox.project().join(".loopx").exists(),
        "a preview writes nothing"
    );
    sandbox
        .loopx(["restore", "--from", "../copy", "--execute"])
        .packet();
    assert_eq!(todos(&sandbox), before);
    sandbox
        .loopx(["restore", "--from", "../copy", "--execute"])
        .packet();
    sandbox
        .loopx([
            "todo",
            "add",
            "--goal-id",
            GOAL,
            "--role",
            "agent",
            "--text",
            "More",
        ])
        .packet();
    assert_eq!(
        status_of(&sandbox.loopx(["doctor"]).packet(), "store"),
        "ok"
    );
}

/// A backup copies journals before rows, so a Turn that goes on meanwhile leaves journals several steps behind in it.
#[test]
fn a_turn_that_went_on_while_it_was_backed_up_goes_on_after_a_restore() {
    let (world, _) = World::with_todo();
    let host = world.host(
        "keeps.sh",
        "for f in \"$LOOPX_RUNTIME_ROOT\"/goals/*/turns/*.json; do cp \"$f\" kept.json; done; printf '%s' \"$result\"",
    );
    let killed = world
        .turn_with("turn-1", &host, "[\"/bin/true\"]")
        .env("LOOPX_FAILPOINT", "writeback_committed");
    killed.prepared().run();
    let key = world.turn_key();
    let journal = world.runtime().join("goals").join(GOAL).join("turns");
    let journal = journal.join(format!("{}.json", &key["sha256:".len()..]));
    let kept = fs::read(world.sandbox.project().join("kept.json")).expect("kept");
    assert_ne!(fs::read(&journal).expect("a journal"), kept);
    fs::write(&journal, kept).expect("several steps before");
    world.sandbox.loopx(["backup", "--out", "../copy"]).packet();
    wipe(&world.sandbox);
    let restore = ["restore", "--from", "../copy", "--execute"];
    world.sandbox.loopx(restore).packet();
    let done = world.turn_with("turn-1", &host, "[\"/bin/true\"]").packet();
    assert_eq!(done["status"], "committed", "{done}");
    assert_eq!((world.host_calls(), world.spent()), (1, 1));
}

#[test]
fn a_restore_never_replaces_other_state() {
    let sandbox = with_goal();
    sandbox.loopx(["backup", "--out", "../copy"]).packet();
    sandbox
        .loopx([
            "todo",
            "add",
            "--goal-id",
            GOAL,
            "--role",
            "agent",
            "--text",
            "Later",
        ])
        .packet();
    let before = sandbox.tree();
    let refused = sandbox
        .loopx(["restore", "--from", "../copy", "--execute"])
        .refusal();
    assert_eq!(refused["error_code"], "restore_target_not_empty");
    assert_eq!(sandbox.tree(), before);
}

#[test]
fn a_damaged_backup_or_a_full_folder_is_refused() {
    let sandbox = with_goal();
    sandbox.loopx(["backup", "--out", "../copy"]).packet();
    let again = sandbox.loopx(["backup", "--out", "../copy"]).refusal();
    assert_eq!(again["error_code"], "backup_target_not_empty");
    sandbox.loopx(["backup", "--verify", "../copy"]).packet();
    let store = sandbox.root().join("copy/runtime/state.sqlite3");
    let mut bytes = fs::read(&store).expect("the copied store");
    bytes[40] ^= 1;
    fs::write(&store, bytes).expect("changed");
    for args in [
        vec!["backup", "--verify", "../copy"],
        vec!["restore", "--from", "../copy", "--execute"],
    ] {
        assert_eq!(
            sandbox.loopx(args).refusal()["error_code"],
            "backup_corrupt"
        );
    }
    let both = sandbox
        .loopx(["backup", "--out", "a", "--verify", "b", "--format", "json"])
        .run();
    assert_eq!(both.code, Some(2));
}

#[test]
fn everything_of_a_backup_is_owner_only() {
    let sandbox = with_goal();
    sandbox.loopx(["backup", "--out", "../copy"]).packet();
    let mut queue = vec![sandbox.root().join("copy")];
    while let Some(path) = queue.pop() {
        let metadata = fs::metadata(&path).expect("there");
        assert_eq!(
            metadata.permissions().mode() & 0o077,
            0,
            "{}",
            path.display()
        );
        if metadata.is_dir() {
            queue.extend(
                fs::read_dir(&path)
                    .expect("a folder")
                    .map(|entry| entry.expect("an entry").path()),
            );
        }
    }
}

#[test]
fn doctor_finds_loose_rights_and_mends_them_only_when_asked() {
    let sandbox = with_goal();
    let store = sandbox.project().join(".loopx/runtime/state.sqlite3");
    loosen(&store);
    let looked = sandbox.loopx(["doctor"]).packet();
    assert_eq!(status_of(&looked, "permissions"), "warning");
    assert_eq!(looked["repairs"][0]["done"], false);
    assert_eq!(mode(&store), 0o644);
    let mended = sandbox.loopx(["doctor", "--execute"]).packet();
    assert_eq!(status_of(&mended, "permissions"), "ok");
    assert_eq!(mode(&store), 0o600);
}

#[test]
fn doctor_says_what_is_wrong_and_leaves_every_byte() {
    let sandbox = with_goal();
    let store = sandbox.project().join(".loopx/runtime/state.sqlite3");
    let mut bytes = fs::read(&store).expect("a store");
    bytes[..16].fill(0);
    fs::write(&store, &bytes).expect("damaged");
    let looked = sandbox.loopx(["doctor", "--execute"]).refusal();
    assert_eq!(status_of(&looked, "store"), "failed");
    assert_eq!(fs::read(&store).expect("a store"), bytes);
}

#[test]
fn doctor_names_the_programs_that_are_not_there_and_the_versions_needed() {
    let sandbox = Sandbox::new();
    let looked = sandbox.loopx(["doctor"]).env("PATH", "").packet();
    let said = looked["findings"].to_string();
    for needed in ["`git` 2.31", "`lark-cli` 1.0.69"] {
        assert!(said.contains(needed), "{needed}: {said}");
    }
    assert_eq!(status_of(&looked, "channel_program"), "warning");
}

#[test]
fn doctor_names_the_versions_at_work() {
    let versions = Sandbox::new().loopx(["doctor"]).packet()["versions"].clone();
    assert_eq!(versions["loopx"], env!("CARGO_PKG_VERSION"));
    assert!(
        versions["zone_database"]
            .as_str()
            .is_some_and(|text| text.starts_with("20"))
    );
    assert!(versions["sqlite"].is_string() && versions["git"].is_string());
}

fn loosen(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o644)).expect("a mode");
}

fn mode(path: &Path) -> u32 {
    fs::metadata(path).expect("there").permissions().mode() & 0o777
}

#[test]
fn doctor_sees_changed_rows_and_lost_tables() {
    for change in [
        "UPDATE todos SET body_json='garbage'",
        "DROP TABLE leases",
        "UPDATE events SET body_json='{}'",
    ] {
        let sandbox = with_goal();
        let store = sandbox.project().join(".loopx/runtime/state.sqlite3");
        rusqlite::Connection::open(&store)
            .expect("opens")
            .execute(change, [])
            .expect("changed");
        let looked = sandbox.loopx(["doctor"]).refusal();
        assert_eq!(status_of(&looked, "store"), "failed", "{change}");
    }
}

#[test]
fn a_backup_never_lies_inside_what_it_copies() {
    let sandbox = with_goal();
    for out in [".loopx/runtime/copy", ".loopx/copy"] {
        let refused = sandbox.loopx(["backup", "--out", out]).refusal();
        assert_eq!(refused["error_code"], "backup_target_not_empty", "{out}");
    }
    sandbox.loopx(["backup", "--out", "../copy"]).packet();
    let inside = sandbox.loopx(["backup", "--out", "../copy/more"]).refusal();
    assert_eq!(inside["error_code"], "backup_target_not_empty");
    sandbox.loopx(["backup", "--verify", "../copy"]).packet();
}

#[test]
fn a_restore_replaces_no_document() {
    let sandbox = with_goal();
    sandbox.file(".loopx/notes.md", "v1");
    sandbox.loopx(["backup", "--out", "../copy"]).packet();
    sandbox.file(".loopx/notes.md", "v2");
    for end in ["", "-wal", "-shm"] {
        let _ = fs::remove_file(
            sandbox
                .project()
                .join(format!(".loopx/runtime/state.sqlite3{end}")),
        );
    }
    let refused = sandbox
        .loopx(["restore", "--from", "../copy", "--execute"])
        .refusal();
    assert_eq!(refused["error_code"], "restore_target_not_empty");
    assert_eq!(
        fs::read(sandbox.project().join(".loopx/notes.md")).expect("there"),
        b"v2"
    );
}

#[test]
fn no_backup_is_made_or_proved_without_the_store_of_a_known_goal() {
    let sandbox = with_goal();
    let store = sandbox.project().join(".loopx/runtime/state.sqlite3");
    let elsewhere = sandbox.project().join("kept.sqlite3");
    sandbox.loopx(["backup", "--out", "../whole"]).packet();
    fs::rename(&store, &elsewhere).expect("moved");
    for side in ["-wal", "-shm"] {
        let _ = fs::remove_file(store.with_file_name(format!("state.sqlite3{side}")));
    }
    assert_eq!(
        sandbox.loopx(["backup", "--out", "../a"]).refusal()["error_code"],
        "store_corrupt"
    );
    std::os::unix::fs::symlink(&elsewhere, &store).expect("linked");
    assert_eq!(
        sandbox.loopx(["backup", "--out", "../a"]).refusal()["error_code"],
        "store_corrupt"
    );
    fs::remove_file(&store).expect("removed");
    fs::create_dir(&store).expect("made");
    assert_eq!(
        sandbox.loopx(["backup", "--out", "../a"]).refusal()["error_code"],
        "store_corrupt"
    );
    assert!(!sandbox.project().join("../a").exists());
    sandbox.loopx(["backup", "--verify", "../whole"]).packet();
}

#[test]
fn a_file_where_a_backup_folder_is_meant_is_named_as_such() {
    let sandbox = with_goal();
    sandbox.file("plain", "x");
    assert_eq!(
        sandbox.loopx(["backup", "--out", "plain"]).refusal()["error_code"],
        "backup_target_not_empty"
    );
    assert_eq!(
        sandbox.loopx(["backup", "--verify", "plain"]).refusal()["error_code"],
        "backup_corrupt"
    );
    assert_eq!(
        sandbox.loopx(["restore", "--from", "plain"]).refusal()["error_code"],
        "backup_corrupt"
    );
}

#[test]
fn counts_that_are_not_those_of_the_todos_are_taken_again_from_them() {
    let (world, todo) = World::with_todo();
    let doctor = |more: &[&str]| {
        let words = [&["doctor"], more].concat();
        world.run(&words).prepared().json_run().json()
    };
    assert_eq!(status_of(&doctor(&[]), "todo_counts"), "ok");
    let counts = || -> Vec<(String, String, i64)> {
        let store = world.store();
        let sql = "SELECT role,status,n FROM todo_counts WHERE n<>0 ORDER BY 1,2";
        let mut statement = store.prepare(sql).expect("SQL");
        let rows = statement
            .query_map([], |row| Ok((row.get(0)?, row.get(1)?, row.get(2)?)))
            .expect("rows");
        rows.collect::<Result<_, _>>().expect("counts")
    };
    let sound = counts();
    let repairs = || {
        let is_repair = |event: &serde_json::Value| event["event_kind"] == "store_repair";
        world.events().into_iter().filter(is_repair).count()
    };
    let spoils = [
        "UPDATE todo_counts SET n=-3 WHERE status='open'",
        "UPDATE todo_counts SET n=0 WHERE status='open'",
        "UPDATE todo_counts SET n=2 WHERE status='open'",
        "DELETE FROM todo_counts",
        "INSERT INTO todo_counts VALUES('demo-goal','user','done',7)",
    ];
    for (before, spoil) in spoils.into_iter().enumerate() {
        world.store().execute(spoil, []).expect("changed");
        let spoiled = counts();
        let found = doctor(&[]);
        assert_eq!(status_of(&found, "todo_counts"), "warning", "{spoil}");
        assert_eq!(found["ok"], true, "{spoil}");
        assert_eq!(counts(), spoiled, "a preview changes nothing");
        let mended = doctor(&["--execute"]);
        assert_eq!(status_of(&mended, "todo_counts"), "ok", "{spoil}");
        let done = serde_json::json!({"check": "todo_counts", "done": true});
        let told = mended["repairs"].as_array().expect("repairs");
        assert!(told.contains(&done), "{mended}");
        assert_eq!(counts(), sound, "{spoil}");
        assert_eq!(repairs(), before + 1, "{spoil}");
        assert_eq!(doctor(&["--execute"])["repairs"], serde_json::json!([]));
    }
    let complete = [
        "todo",
        "complete",
        "--goal-id",
        "demo-goal",
        "--todo-id",
        &todo,
    ];
    world
        .run(&complete)
        .flag(&["--agent-id", "lane-a"])
        .packet();
    assert_eq!(status_of(&doctor(&[]), "todo_counts"), "ok");
    assert_eq!(world.outcome().3, "ok");
}

#[test]
fn doctor_finds_a_turn_that_could_not_go_on() {
    let (world, _) = World::with_todo();
    let host = world.host("fails.sh", "exit 3");
    let run = || world.turn_with("turn-1", &host, "[\"/bin/true\"]");
    run().refusal();
    let sandbox = &world.sandbox;
    let sound = sandbox.loopx(["doctor"]).packet();
    assert_eq!(status_of(&sound, "turns"), "ok");
    let key = world.turn_key();
    let journal = world.runtime().join("goals").join(GOAL).join("turns");
    let journal = journal.join(format!("{}.json", &key["sha256:".len()..]));
    let capture = world.captures().remove(0);
    for (file, damage, code) in [
        (&capture, None, "turn_capture_missing"),
        (&capture, Some("x"), "turn_capture_corrupt"),
        (&journal, Some("{}"), "journal_inconsistent"),
    ] {
        let bytes = fs::read(file).expect("bytes");
        match damage {
            None => fs::remove_file(file).expect("removed"),
            Some(damage) => fs::write(file, damage).expect("changed"),
        }
        let looked = sandbox.loopx(["doctor"]).refusal();
        assert_eq!(status_of(&looked, "turns"), "failed", "{looked}");
        assert_eq!(looked["error_code"], code);
        assert!(
            looked["error"]
                .as_str()
                .is_some_and(|text| text.contains(&key))
        );
        run().flag(&["--retry-failed-turn"]).refused(code);
        fs::write(file, bytes).expect("restored");
        fs::set_permissions(file, fs::Permissions::from_mode(0o600)).expect("a mode");
        assert_eq!(
            status_of(&sandbox.loopx(["doctor"]).packet(), "turns"),
            "ok"
        );
    }
}
