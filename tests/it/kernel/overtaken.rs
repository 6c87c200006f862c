//! Commands that another writer overtakes between their first look and their transaction (docs/spec/kernel.md 15).

use std::fs;
use std::process::Child;

use rusqlite::Connection;
use serde_json::Value;

use super::scenes;
use crate::support::world::{GOAL, Kernel, World};

/// Starts a command while another writer holds the store, and lets that writer commit `change` when the command has
/// made its first look and wants to write.
pub(super) fn overtaken(
    world: &World,
    command: Kernel<'_>,
    change: impl FnOnce(&Connection),
) -> Value {
    let store = world.store();
    store.execute_batch("BEGIN IMMEDIATE").expect("held");
    let command = command.flag(&["--format", "json"]).prepared();
    let mut child = command.command().spawn().expect("starts");
    drop(child.stdin.take());
    while !wants_to_write(&child) && child.try_wait().expect("a state").is_none() {
        std::thread::yield_now();
    }
    change(&store);
    store.execute_batch("COMMIT").expect("committed");
    let done = child.wait_with_output().expect("ends");
    serde_json::from_slice(&done.stdout).expect("a packet")
}

/// True when the process has the store open for writing: it looked through a handle that only reads.
fn wants_to_write(child: &Child) -> bool {
    let root = format!("/proc/{}", child.id());
    let Ok(files) = fs::read_dir(format!("{root}/fd")) else {
        return false;
    };
    let mut numbers = files.flatten().filter(|file| {
        fs::read_link(file.path()).is_ok_and(|path| path.ends_with("state.sqlite3"))
    });
    numbers.any(|file| {
        let info = format!("{root}/fdinfo/{}", file.file_name().to_string_lossy());
        let info = fs::read_to_string(info).unwrap_or_default();
        let mut lines = info.lines();
        let flags = lines.find_map(|line| line.strip_prefix("flags:"));
        flags.is_some_and(|flags| flags.trim().ends_with('2'))
    })
}

/// The registry and its recorded digest before and after a command changed the entry, put back to before.
struct Change {
    registry: std::path::PathBuf,
    after: (Vec<u8>, String),
}

impl Change {
    fn of(world: &World) -> Self {
        let registry = world.sandbox.project().join(".loopx/registry.json");
        let state = || {
            let sql = "SELECT registry_entry_digest FROM goal_heads";
            let digest = world.store().query_row(sql, [], |row| row.get(0));
            (
                fs::read(&registry).expect("bytes"),
                digest.expect("a digest"),
            )
        };
        let before: (Vec<u8>, String) = state();
        world.configure(&["--quota-compute", "0.5"]);
        let after = state();
        assert_ne!(before, after);
        fs::write(&registry, &before.0).expect("put back");
        put_digest(&world.store(), &before.1);
        Self { registry, after }
    }
}

fn put_digest(store: &Connection, digest: &str) {
    let sql = "UPDATE goal_heads SET registry_entry_digest=?1";
    store.execute(sql, [digest]).expect("put");
}

fn hand_edits(world: &World) -> i64 {
    let sql = "SELECT COUNT(*) FROM events WHERE event_kind='goal_config' AND status='edited'";
    let count = world.store().query_row(sql, [], |row| row.get(0));
    count.expect("a number")
}

#[test]
fn a_change_another_command_made_is_no_edit_by_hand_in_a_handoff() {
    for action in ["prepare", "adopt"] {
        let (world, todo) = if action == "adopt" {
            scenes::prepared()
        } else {
            scenes::owned()
        };
        let change = Change::of(&world);
        let command = scenes::handoff(&world, action, &todo);
        let command = match action {
            "prepare" => command.flag(&["--session-id", "s1", "--from-context", "note.json"]),
            _ => command.flag(&["--session-id", "s2", "--target-agent-id", "lane-b"]),
        };
        let done = overtaken(&world, command, |store| {
            fs::write(&change.registry, &change.after.0).expect("changed");
            put_digest(store, &change.after.1);
        });
        assert_eq!(done["ok"], true, "{action}: {done}");
        assert_eq!(hand_edits(&world), 0, "{action}");
    }
}

#[test]
fn a_change_that_was_seen_before_its_command_recorded_it_is_no_edit_by_hand() {
    let (world, _) = World::with_todo();
    let change = Change::of(&world);
    let head = [
        "configure-goal",
        "--goal-id",
        GOAL,
        "--quota-compute",
        "0.5",
    ];
    let done = overtaken(&world, world.run(&head).execute(), |store| {
        while fs::read(&change.registry).expect("bytes") != change.after.0 {
            std::thread::yield_now();
        }
        put_digest(store, &change.after.1);
    });
    assert_eq!(done["ok"], true, "{done}");
    assert_eq!(hand_edits(&world), 0);
}

fn admitted() -> (World, String) {
    let (world, todo) = World::with_todo();
    world.decide(&["--turn-instance-id", "turn-1", "--todo-id", &todo]);
    (world, todo)
}

type Link = (String, i64, String, String, String, String);

const LINKS: &str =
    "SELECT effect_id,seq,goal_id,state,resume_key,event_id FROM external_deliveries ORDER BY seq";

fn links(store: &Connection) -> Vec<Link> {
    let mut statement = store.prepare(LINKS).expect("a statement");
    let rows = statement.query_map([], |row| {
        Ok((
            row.get(0)?,
            row.get(1)?,
            row.get(2)?,
            row.get(3)?,
            row.get(4)?,
            row.get(5)?,
        ))
    });
    rows.expect("rows").map(|row| row.expect("a row")).collect()
}

fn put(store: &Connection, links: &[Link]) {
    let sql = "INSERT INTO external_deliveries(effect_id,seq,goal_id,state,resume_key,event_id) VALUES(?1,?2,?3,?4,?5,?6)";
    for link in links {
        store.execute(sql, link.clone()).expect("put");
    }
}

/// Records a pause or its end and dies before anything else is written.
fn chain(world: &World, todo: &str, flags: &[&str]) {
    let call = world.refresh(todo, "turn-1", flags);
    let call = call.env("LOOPX_FAILPOINT", "pause_committed");
    assert_eq!(call.prepared().run().code, None);
}

#[test]
fn a_plain_refresh_does_not_pass_a_pause_recorded_meanwhile() {
    let (world, todo) = admitted();
    chain(&world, &todo, &["--suppress-external-sinks"]);
    let paused = links(&world.store());
    world
        .store()
        .execute("DELETE FROM external_deliveries", [])
        .expect("taken back");
    let plain = world.refresh(&todo, "turn-1", &[]);
    let refused = overtaken(&world, plain, |store| put(store, &paused));
    assert_eq!(
        refused["error_code"], "external_delivery_resume_required",
        "{refused}"
    );
    assert!(world.runs().is_empty(), "nothing is written back");
}

#[test]
fn an_end_of_a_pause_is_never_put_behind_a_later_pause() {
    let (world, todo) = admitted();
    let pause = ["--suppress-external-sinks"];
    chain(&world, &todo, &pause);
    let first = links(&world.store())[0].4.clone();
    let resume = ["--resume-external-sinks", first.as_str()];
    chain(&world, &todo, &resume);
    chain(&world, &todo, &pause);
    let all = links(&world.store());
    assert_eq!(all.len(), 3);
    world
        .store()
        .execute("DELETE FROM external_deliveries WHERE seq>1", [])
        .expect("taken back");
    let late = world.refresh(&todo, "turn-1", &resume);
    let refused = overtaken(&world, late, |store| put(store, &all[1..]));
    assert_eq!(
        refused["error_code"], "external_delivery_resume_mismatch",
        "{refused}"
    );
    assert_eq!(links(&world.store()), all);
    let second = ["--resume-external-sinks", all[2].4.as_str()];
    let done = world.refresh(&todo, "turn-1", &second).packet();
    assert_eq!(done["external_sink_delivery_authorized"], true);
}

#[test]
fn a_todo_that_was_opened_again_is_not_closed_for_nothing() {
    let (world, todo) = admitted();
    let update = ["todo", "update", "--goal-id", GOAL, "--todo-id", &todo];
    let blocked = ["--status", "blocked", "--reason", "Waiting for the vendor"];
    world.run(&[&update[..], &blocked].concat()).packet();
    let gap = ["--delivery-outcome", "outcome_gap", "--settle-turn"];
    let closeout = closeout(&world, &todo, &gap);
    let refused = overtaken(&world, closeout, |store| {
        let sql = "UPDATE todos SET status='open', body_json=json_set(body_json,'$.status','open')";
        store.execute(sql, []).expect("opened again");
    });
    assert_eq!(refused["error_code"], "writeback_rejected", "{refused}");
    assert!(world.runs().is_empty(), "nothing is written back");
}

fn closeout<'a>(world: &'a World, todo: &str, more: &[&str]) -> Kernel<'a> {
    let head = ["refresh-state", "--goal-id", GOAL, "--agent-id", "lane-a"];
    let turn = ["--todo-id", todo, "--turn-instance-id", "turn-1"];
    world.run(&[&head[..], &turn, more].concat())
}
