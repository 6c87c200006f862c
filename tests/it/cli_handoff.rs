//! `handoff` through the binary: revision-guarded, moved once, replayed harmlessly.

use std::process::{Child, Stdio};

use serde_json::{Value, json};

use crate::support::world::{GOAL, World};
use crate::support::{Run, Sandbox};

struct Goal {
    sandbox: Sandbox,
    todo: String,
}

impl Goal {
    fn owned_by_lane_a() -> Self {
        let world = World::new();
        world.register("lane-b");
        world.register("lane-c");
        let todo = world.todo("carry on", &[]);
        let sandbox = world.sandbox;
        let goal = Self { sandbox, todo };
        let claim = ["--claimed-by", "lane-a", "--agent-id", "lane-a"];
        goal.todo_command("claim", &claim).packet();
        let context = json!({"work_summary": "half done", "next_steps": ["the rest"], "source_refs": ["table-1"]});
        goal.sandbox.file("note.json", context.to_string());
        goal
    }

    fn todo_command(&self, word: &str, more: &[&str]) -> Run<'_> {
        let head = [
            "todo",
            word,
            "--goal-id",
            GOAL,
            "--todo-id",
            self.todo.as_str(),
        ];
        self.sandbox.loopx(head.iter().chain(more).copied())
    }

    fn revision(&self) -> String {
        let list = self
            .sandbox
            .loopx(["todo", "list", "--goal-id", GOAL])
            .packet();
        list["provider_revision"]
            .as_str()
            .expect("a revision")
            .to_owned()
    }

    fn owner(&self) -> Value {
        let list = self
            .sandbox
            .loopx(["todo", "list", "--goal-id", GOAL])
            .packet();
        let todos = list["todos"].as_array().expect("todos").clone();
        let found = todos
            .iter()
            .find(|todo| todo["todo_id"] == self.todo.as_str());
        found.expect("the todo")["claimed_by"].clone()
    }

    fn handoff(&self, word: &str, agent: &str, session: &str, more: &[&str]) -> Run<'_> {
        let todo = self.todo.as_str();
        let head = [
            "handoff",
            word,
            "--goal-id",
            GOAL,
            "--todo-id",
            todo,
            "--agent-id",
            agent,
            "--session-id",
            session,
        ];
        self.sandbox.loopx(head.iter().chain(more).copied())
    }

    fn prepare(&self, operation: &str, revision: &str) -> Run<'_> {
        let more = [
            "--operation-id",
            operation,
            "--expected-revision",
            revision,
            "--from-context",
            "note.json",
        ];
        self.handoff("prepare", "lane-a", "s1", &more)
    }

    fn adopt(&self, agent: &str, operation: &str, revision: &str) -> Run<'_> {
        let more = ["--operation-id", operation, "--expected-revision", revision];
        self.handoff("adopt", agent, "s2", &more)
    }
}

fn text(packet: &Value, name: &str) -> String {
    packet[name].as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_prepared_todo_is_adopted_once_and_replays_write_nothing() {
    let goal = Goal::owned_by_lane_a();
    let prepared = goal.prepare("op-1", &goal.revision()).packet();
    assert_eq!(prepared["note_readback_verified"], true);
    let revision = text(&prepared, "provider_revision");
    assert_eq!(revision, goal.revision());
    let before = goal.sandbox.tree();
    let seen = goal.handoff("inspect", "lane-b", "s2", &[]).packet();
    assert_eq!(
        (seen["note_state"].as_str(), seen["can_adopt"].as_bool()),
        (Some("current"), Some(true))
    );
    assert_eq!(
        goal.handoff("inspect", "lane-b", "s1", &[]).packet()["can_adopt"],
        false
    );
    assert_eq!(goal.sandbox.tree(), before);
    let adopted = goal.adopt("lane-b", "op-2", &revision).packet();
    assert_eq!(
        (
            adopted["current_authority_verified"].as_bool(),
            adopted["result"].as_str()
        ),
        (Some(true), Some("applied"))
    );
    assert_eq!(goal.owner(), "lane-b");
    let after = goal.revision();
    let again = goal.adopt("lane-b", "op-2", &revision).packet();
    assert_eq!(
        (again["result"].as_str(), goal.revision()),
        (Some("replayed"), after)
    );
}

#[test]
fn a_change_of_the_todo_refuses_and_an_unrelated_one_does_not() {
    let goal = Goal::owned_by_lane_a();
    let prepared = text(
        &goal.prepare("op-1", &goal.revision()).packet(),
        "provider_revision",
    );
    goal.todo_command("update", &["--agent-id", "lane-a", "--priority", "P0"])
        .packet();
    let refused = goal.adopt("lane-b", "op-2", &prepared).refusal();
    assert_eq!(refused["error_code"], "provider_revision_mismatch");
    assert_eq!(refused["command"], "handoff adopt");
    assert_eq!(text(&refused, "provider_revision"), goal.revision());
    assert_eq!(goal.owner(), "lane-a");
    let prepared = text(
        &goal.prepare("op-3", &goal.revision()).packet(),
        "provider_revision",
    );
    goal.sandbox
        .loopx([
            "todo",
            "add",
            "--goal-id",
            GOAL,
            "--role",
            "agent",
            "--text",
            "another",
        ])
        .packet();
    goal.adopt("lane-b", "op-4", &prepared).packet();
    let refused = goal.adopt("lane-c", "op-5", &prepared).refusal();
    assert_eq!(refused["error_code"], "provider_revision_mismatch");
    assert_eq!(goal.owner(), "lane-b");
}

#[test]
fn a_hand_edit_of_the_roster_makes_a_handoff_stale() {
    let goal = Goal::owned_by_lane_a();
    let prepared = text(
        &goal.prepare("op-1", &goal.revision()).packet(),
        "provider_revision",
    );
    let registry = goal.sandbox.project().join(".loopx/registry.json");
    let edited = std::fs::read_to_string(&registry)
        .expect("a registry")
        .replace("\"title\": \"Demo\"", "\"title\": \"edited\"");
    std::fs::write(&registry, edited).expect("written");
    let refused = goal.adopt("lane-b", "op-2", &prepared).refusal();
    assert_eq!(refused["error_code"], "provider_revision_mismatch");
    let seen = goal.handoff("inspect", "lane-b", "s2", &[]).packet();
    let shown = text(&seen, "provider_revision");
    assert_eq!(shown, text(&refused, "provider_revision"));
    goal.adopt("lane-b", "op-4", &shown).packet();
}

#[test]
fn an_operation_id_is_for_one_request() {
    let goal = Goal::owned_by_lane_a();
    let prepared = text(
        &goal.prepare("op-1", &goal.revision()).packet(),
        "provider_revision",
    );
    let refused = goal.adopt("lane-b", "op-1", &prepared).refusal();
    assert_eq!(refused["error_code"], "operation_id_conflict");
}

#[test]
fn a_replay_after_the_todo_moved_on_says_so() {
    let goal = Goal::owned_by_lane_a();
    let prepared = text(
        &goal.prepare("op-1", &goal.revision()).packet(),
        "provider_revision",
    );
    goal.adopt("lane-b", "op-2", &prepared).packet();
    let done = ["--agent-id", "lane-b", "--evidence", "done"];
    goal.todo_command("complete", &done).packet();
    let replay = goal.adopt("lane-b", "op-2", &prepared).refusal();
    assert_eq!(
        (
            replay["result"].as_str(),
            replay["current_authority_verified"].as_bool()
        ),
        (Some("replayed"), Some(false))
    );
}

#[test]
fn preconditions_are_typed() {
    let goal = Goal::owned_by_lane_a();
    let revision = goal.revision();
    let more = [
        "--operation-id",
        "o",
        "--expected-revision",
        revision.as_str(),
        "--rationale",
        "why",
    ];
    let refused = goal.handoff("prepare", "lane-b", "s1", &more).refusal();
    assert_eq!(refused["error_code"], "continuation_owner_required");
    assert_eq!(
        goal.adopt("lane-b", "o", &revision).refusal()["error_code"],
        "continuation_not_ready"
    );
    let unknown = goal.handoff("inspect", "lane-z", "s1", &[]).refusal();
    assert_eq!(unknown["error_code"], "actor_not_registered");
    let prepared = text(
        &goal.prepare("op-1", &revision).packet(),
        "provider_revision",
    );
    let missing = [
        "--operation-id",
        "o",
        "--expected-revision",
        prepared.as_str(),
        "--artifact",
        "gone.txt",
    ];
    let refused = goal.handoff("adopt", "lane-b", "s2", &missing).refusal();
    assert_eq!(refused["error_code"], "continuation_not_ready");
    let escaping = goal
        .handoff(
            "inspect",
            "lane-b",
            "s2",
            &["--artifact", "../x", "--format", "json"],
        )
        .run();
    assert_eq!(
        (
            escaping.code,
            escaping.json()["error_code"].as_str().map(str::to_owned)
        ),
        (Some(2), Some("invalid_continuation_request".to_owned()))
    );
}

#[test]
fn a_leased_todo_does_not_change_its_owner() {
    let goal = Goal::owned_by_lane_a();
    let todo = goal.todo.as_str();
    let acquire = [
        "task-lease",
        "acquire",
        "--goal-id",
        GOAL,
        "--todo-id",
        todo,
        "--owner",
        "lane-a",
        "--idempotency-key",
        "k1",
    ];
    goal.sandbox.loopx(acquire).packet();
    let prepared = text(
        &goal.prepare("op-1", &goal.revision()).packet(),
        "provider_revision",
    );
    let refused = goal.adopt("lane-b", "op-2", &prepared).refusal();
    assert_eq!(refused["error_code"], "continuation_lease_unsupported");
    let more = [
        "--operation-id",
        "op-3",
        "--expected-revision",
        prepared.as_str(),
        "--task-lease-idempotency-key",
        "k1",
    ];
    let kept = goal.handoff("adopt", "lane-a", "s2", &more).packet();
    assert_eq!(
        (kept["claim"].as_str(), goal.revision()),
        (Some("already_owned"), prepared)
    );
}

#[test]
fn a_preview_writes_nothing() {
    let goal = Goal::owned_by_lane_a();
    let prepared = text(
        &goal.prepare("op-1", &goal.revision()).packet(),
        "provider_revision",
    );
    let before = goal.sandbox.tree();
    let more = [
        "--operation-id",
        "op-2",
        "--expected-revision",
        prepared.as_str(),
        "--dry-run",
    ];
    let shown = goal.handoff("adopt", "lane-b", "s2", &more).packet();
    assert_eq!(
        (shown["dry_run"].as_bool(), shown["claim"].as_str()),
        (Some(true), Some("transferred"))
    );
    assert_eq!(goal.sandbox.tree(), before);
}

#[test]
fn a_killed_handoff_is_finished_by_its_repetition() {
    let goal = Goal::owned_by_lane_a();
    let revision = goal.revision();
    let killed = goal
        .prepare("op-1", &revision)
        .env("LOOPX_FAILPOINT", "handoff_committed")
        .run();
    assert_eq!(killed.code, None, "killed by a signal");
    let again = goal.prepare("op-1", &revision).packet();
    assert_eq!(
        (
            again["result"].as_str(),
            again["note_readback_verified"].as_bool()
        ),
        (Some("replayed"), Some(true))
    );
    let prepared = text(&again, "provider_revision");
    let killed = goal
        .adopt("lane-b", "op-2", &prepared)
        .env("LOOPX_FAILPOINT", "handoff_committed")
        .run();
    assert_eq!((killed.code, goal.owner()), (None, Value::from("lane-b")));
    let again = goal.adopt("lane-b", "op-2", &prepared).packet();
    assert_eq!(
        (
            again["result"].as_str(),
            again["current_authority_verified"].as_bool()
        ),
        (Some("replayed"), Some(true))
    );
}

#[test]
fn equal_requests_at_once_are_applied_once_and_replayed() {
    let goal = Goal::owned_by_lane_a();
    let revision = goal.revision();
    let more = [
        "--operation-id",
        "op-1",
        "--expected-revision",
        revision.as_str(),
        "--from-context",
        "note.json",
        "--format",
        "json",
    ];
    let start = |_| {
        goal.handoff("prepare", "lane-a", "s1", &more)
            .command()
            .spawn()
            .expect("starts")
    };
    let children: Vec<_> = (0..6).map(start).collect();
    let mut words = Vec::new();
    for child in children {
        let output = child.wait_with_output().expect("ends");
        let packet: Value = serde_json::from_slice(&output.stdout).expect("a packet");
        words.push(text(&packet, "result"));
    }
    words.sort();
    assert_eq!(
        words,
        [
            "applied", "replayed", "replayed", "replayed", "replayed", "replayed"
        ]
    );
}

#[test]
fn racing_calls_of_one_adoption_make_one_transfer_and_answer_alike() {
    let goal = Goal::owned_by_lane_a();
    let prepared = goal.prepare("op-1", &goal.revision()).packet();
    let revision = text(&prepared, "provider_revision");
    // The first round races to adopt, the second replays what it did.
    for applied in [1, 0] {
        let start = |_| {
            let adopt = goal.adopt("lane-b", "op-2", &revision);
            let mut command = adopt.command();
            command.args(["--format", "json"]).stdout(Stdio::piped());
            command.spawn().expect("starts")
        };
        let children: Vec<Child> = (0..6).map(start).collect();
        let answer = |child: Child| {
            let done = child.wait_with_output().expect("ends");
            let packet: Value = serde_json::from_slice(&done.stdout).expect("a packet");
            assert_eq!(done.status.code(), Some(0), "{packet}");
            packet
        };
        let packets: Vec<Value> = children.into_iter().map(answer).collect();
        let count = |word: &str| {
            packets
                .iter()
                .filter(|packet| packet["result"] == word)
                .count()
        };
        assert_eq!(
            (count("applied"), count("replayed")),
            (applied, 6 - applied)
        );
        for packet in &packets {
            assert_eq!(packet["claim"], "transferred");
            assert_eq!(packet["current_authority_verified"], true);
            assert_eq!(packet["claimed_by"], "lane-b");
        }
    }
    let log = goal
        .sandbox
        .project()
        .join(".loopx/runtime/goals/demo-goal/rollout-event-log.jsonl");
    let log = std::fs::read_to_string(log).expect("the events");
    assert_eq!(log.matches("todo handed over").count(), 1);
    assert_eq!(goal.owner(), "lane-b");
}

/// Each event of the goal since the named revision would be read and checked: one that is not about the handoff is not.
#[test]
fn a_guard_reads_no_event_of_another_todo() {
    let goal = Goal::owned_by_lane_a();
    let revision = goal.revision();
    let add = ["todo", "add", "--goal-id", GOAL, "--role", "agent"];
    let other = goal.sandbox.loopx(add.iter().chain(&["--text", "busy"]));
    other.packet();
    let store = goal.sandbox.project().join(".loopx/runtime/state.sqlite3");
    let store = rusqlite::Connection::open(store).expect("the store");
    let sql = "UPDATE events SET body_sha='' WHERE seq=(SELECT MAX(seq) FROM events)";
    assert_eq!(store.execute(sql, []).expect("changed"), 1);
    let prepared = goal.prepare("op-1", &revision).packet();
    assert_eq!(prepared["note_readback_verified"], true);
}

#[test]
fn a_replayed_adoption_is_no_authority_that_was_lost_since() {
    let lease = |goal: &Goal, owner: &str| {
        let head = ["task-lease", "acquire", "--goal-id", GOAL, "--todo-id"];
        let holder = ["--owner", owner, "--idempotency-key", "k1"];
        let todo = [goal.todo.as_str()];
        goal.sandbox
            .loopx(head.iter().chain(&todo).chain(&holder))
            .packet();
    };
    let adopted = || {
        let goal = Goal::owned_by_lane_a();
        let prepared = goal.prepare("op-1", &goal.revision()).packet();
        let revision = text(&prepared, "provider_revision");
        goal.adopt("lane-b", "op-2", &revision).packet();
        (goal, revision)
    };
    let (goal, revision) = adopted();
    lease(&goal, "lane-b");
    let own = goal.adopt("lane-b", "op-2", &revision).packet();
    assert_eq!(own["current_authority_verified"], true, "{own}");
    let (goal, revision) = adopted();
    lease(&goal, "lane-a");
    let lost = goal.adopt("lane-b", "op-2", &revision).refusal();
    assert_eq!(lost["result"], "replayed", "{lost}");
    assert_eq!(lost["current_authority_verified"], false, "{lost}");
    let (goal, revision) = adopted();
    let mode = ["--agent-work-mode", "lane-b=monitor_only", "--execute"];
    let configure = ["configure-goal", "--goal-id", GOAL];
    goal.sandbox.loopx(configure.iter().chain(&mode)).packet();
    let changed = goal.adopt("lane-b", "op-2", &revision).refusal();
    assert_eq!(changed["current_authority_verified"], false, "{changed}");
}
