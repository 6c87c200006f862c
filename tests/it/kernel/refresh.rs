//! Settlement and refresh: under its own identity, once, and paused sinks that stay paused.

use serde_json::json;

use crate::support::world::{GOAL, World};

fn admitted() -> (World, String) {
    let (world, todo) = World::with_todo();
    world.decide(&["--turn-instance-id", "turn-1", "--todo-id", &todo]);
    (world, todo)
}

#[test]
fn a_turn_settles_in_two_steps_or_one_and_every_repeat_is_a_replay() {
    let (world, todo) = admitted();
    assert_eq!(
        world.refresh(&todo, "turn-1", &[]).packet()["settlement_progress"]["next_step"],
        "quota_spend"
    );
    assert_eq!(
        world.spend(&todo, "turn-1").packet()["settlement_progress"]["state"],
        "settled"
    );
    assert_eq!(world.spend(&todo, "turn-1").packet()["appended"], false);
    assert_eq!(
        world.refresh(&todo, "turn-1", &["--settle-turn"]).packet()["appended"],
        false
    );
    assert_eq!(world.spent(), 1);
    let (world, todo) = admitted();
    let once = world.refresh(&todo, "turn-1", &["--settle-turn"]).packet();
    assert_eq!(once["settlement_progress"]["state"], "settled");
    assert!(once.get("settlement_owed").is_none());
}

#[test]
fn another_identity_another_content_and_no_admission_are_refused() {
    let (world, todo) = admitted();
    world.register("lane-b");
    let other = world.todo("other", &[]);
    world
        .refresh(&other, "turn-1", &[])
        .refused("identity_mismatch");
    world
        .refresh(&todo, "turn-9", &[])
        .refused("receipt_missing");
    world.spend(&todo, "turn-1").refused("writeback_missing");
    world.refresh(&todo, "turn-1", &[]).packet();
    world
        .refresh(&todo, "turn-1", &["--next-action", "Something else"])
        .refused("committed_writeback_payload_conflict");
    assert_eq!(world.runs(), ["step_done"]);
    world
        .refresh(&todo, "turn-1", &["--settle-turn"])
        .flag(&["--suppress-external-sinks", "--resume-external-sinks", "x"])
        .misused("invalid_arguments");
    let head = [
        "refresh-state",
        "--goal-id",
        GOAL,
        "--agent-id",
        "lane-a",
        "--settle-turn",
    ];
    world
        .run(&head)
        .misused("settle_turn_requires_turn_binding");
}

#[test]
fn a_full_window_refuses_writeback_and_spend_together() {
    let (world, todo) = admitted();
    world.configure(&["--quota-allowed-slots", "0"]);
    world
        .refresh(&todo, "turn-1", &["--settle-turn"])
        .refused("budget_rejected");
    assert!(world.runs().is_empty());
    world.configure(&["--quota-allowed-slots", "default"]);
    world.refresh(&todo, "turn-1", &["--settle-turn"]).packet();
    assert_eq!(world.spent(), 1);
}

#[test]
fn a_blocked_todo_closes_its_turn_without_a_spend() {
    let (world, todo) = admitted();
    let gap = |world: &World| {
        let head = [
            "refresh-state",
            "--goal-id",
            GOAL,
            "--agent-id",
            "lane-a",
            "--todo-id",
            &todo,
            "--turn-instance-id",
            "turn-1",
            "--delivery-outcome",
            "outcome_gap",
        ];
        world.run(&head).prepared().run()
    };
    assert_eq!(gap(&world).code, Some(1));
    let block = [
        "todo",
        "update",
        "--goal-id",
        GOAL,
        "--todo-id",
        &todo,
        "--status",
        "blocked",
        "--reason",
        "parts",
    ];
    world.run(&block).packet();
    assert_eq!(gap(&world).code, Some(0));
    assert_eq!(
        world.decide(&["--turn-instance-id", "turn-1"])["effective_action"],
        "heartbeat_settled_skip"
    );
    assert_eq!(world.spent(), 0);
}

#[test]
fn a_pause_holds_until_its_key() {
    let (world, todo) = admitted();
    let paused = world
        .refresh(&todo, "turn-1", &["--suppress-external-sinks"])
        .packet();
    let key = paused["external_delivery"]["resume_key"]
        .as_str()
        .expect("a key")
        .to_owned();
    let required = world
        .refresh(&todo, "turn-1", &[])
        .refused("external_delivery_resume_required");
    assert_eq!(required["external_delivery"]["resume_key"], key.as_str());
    let wrong = "0".repeat(64);
    world
        .refresh(&todo, "turn-1", &["--resume-external-sinks", &wrong])
        .refused("external_delivery_resume_mismatch");
    let resumed = world
        .refresh(&todo, "turn-1", &["--resume-external-sinks", &key])
        .packet();
    assert_eq!(resumed["external_sink_delivery_authorized"], true);
    assert_eq!(
        world.refresh(&todo, "turn-1", &[]).packet()["external_delivery"]["reason"],
        "resumed"
    );
    assert_eq!(world.runs(), ["step_done"]);
}

#[test]
fn a_missing_vision_decision_can_be_brought_later_and_never_spends() {
    let (world, todo) = World::with_todo();
    let vision = ["--vision-state", "open", "--vision-acceptance", "Every row"];
    let head = ["refresh-state", "--goal-id", GOAL, "--agent-id", "lane-a"];
    world.run(&head).flag(&vision).packet();
    world.decide(&["--turn-instance-id", "turn-1", "--todo-id", &todo]);
    let close = ["--delivery-boundary", "semantic_closeout"];
    let missing = world.refresh(&todo, "turn-1", &close).packet();
    assert_eq!(missing["vision_checkpoint"]["decision"], "missing_required");
    let late = [
        "--delivery-boundary",
        "semantic_closeout",
        "--vision-unchanged-reason",
        "Scope stays",
    ];
    let brought = world.refresh(&todo, "turn-1", &late).packet();
    assert_eq!(
        brought["vision_checkpoint"]["decision"],
        "unchanged_with_reason"
    );
    assert_eq!(world.spent(), 0);
    world.refresh(&todo, "turn-1", &late).packet();
    let other = [
        "--delivery-boundary",
        "semantic_closeout",
        "--vision-unchanged-reason",
        "Another reason",
    ];
    world
        .refresh(&todo, "turn-1", &other)
        .refused("committed_vision_decision_conflict");
}

#[test]
fn the_state_file_stays_in_the_project() {
    let (world, _) = World::with_todo();
    let outside = world.sandbox.root().join("outside.md");
    std::os::unix::fs::symlink(&outside, world.sandbox.project().join("link.md")).expect("a link");
    let head = ["refresh-state", "--goal-id", GOAL, "--state-file"];
    for file in [
        "../outside.md",
        "/etc/hostname",
        "~/notes.md",
        "",
        "link.md",
    ] {
        world
            .run(&head)
            .flag(&[file])
            .refused("state_file_outside_project");
    }
    world.run(&head).flag(&[".loopx/state.md"]).packet();
}

#[test]
fn a_void_is_made_once_and_reopens_nothing() {
    let (world, todo) = admitted();
    world.refresh(&todo, "turn-1", &["--settle-turn"]).packet();
    let spend = world.spend(&todo, "turn-1").packet();
    let at = spend["generated_at"]
        .as_str()
        .expect("an instant")
        .to_owned();
    let void = [
        "quota",
        "void-slot",
        "--goal-id",
        GOAL,
        "--void-generated-at",
        &at,
        "--reason-summary",
        "wrong",
        "--execute",
    ];
    assert_eq!(world.run(&void).packet()["changed"], true);
    assert_eq!(world.run(&void).packet()["changed"], false);
    assert_eq!(world.spent(), 0);
    assert_eq!(world.spend(&todo, "turn-1").packet()["appended"], false);
}

#[test]
fn a_blocked_todo_is_closed_without_a_spend_also_by_settle_turn() {
    let (world, todo) = World::with_todo();
    world.decide(&["--turn-instance-id", "turn-1", "--todo-id", &todo]);
    let block = ["todo", "update", "--goal-id", GOAL, "--todo-id", &todo];
    let how = [
        "--agent-id",
        "lane-a",
        "--status",
        "blocked",
        "--reason",
        "stuck",
    ];
    world.run(&block).flag(&how).packet();
    let close = || {
        let args = ["refresh-state", "--goal-id", GOAL, "--agent-id", "lane-a"];
        let turn = ["--todo-id", &todo, "--turn-instance-id", "turn-1"];
        let gap = ["--delivery-outcome", "outcome_gap", "--settle-turn"];
        world.run(&args).flag(&turn).flag(&gap).packet()
    };
    let closed = close();
    assert_eq!(closed["appended"], true, "{closed}");
    assert_eq!(close()["appended"], false);
    assert_eq!(world.spent(), 0);
    assert_eq!(world.runs().len(), 1);
}

#[test]
fn half_of_an_effect_is_an_unknown_outcome_and_never_an_internal_error() {
    let (world, todo) = World::with_todo();
    world.decide(&["--turn-instance-id", "turn-1", "--todo-id", &todo]);
    let settle = || world.refresh(&todo, "turn-1", &["--settle-turn"]);
    settle().packet();
    world
        .store()
        .execute("DELETE FROM writebacks", [])
        .expect("deleted");
    let code = settle().refusal()["error_code"].clone();
    assert_ne!(code, "internal_error");
}

#[test]
fn a_pipe_nobody_writes_to_ends_the_command_and_one_that_is_written_to_is_read() {
    let (world, _) = admitted();
    let pipe = world.sandbox.project().join("pipe");
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).expect("a pipe");
    let head = ["refresh-state", "--goal-id", GOAL, "--agent-id", "lane-a"];
    let refresh = || world.run(&[&head[..], &["--agent-vision-json", "pipe"]].concat());
    refresh().refused("input_unreadable");
    let target = pipe.clone();
    let writer = std::thread::spawn(move || {
        std::fs::write(
            target,
            r#"{"state":"open","vision_patch":{"vision_summary":"All of it"}}"#,
        )
    });
    assert_eq!(refresh().packet()["agent_vision"]["state"], "open");
    writer.join().expect("a writer").expect("was read");
}

#[test]
fn a_mode_that_does_not_spend_has_one_price_in_whichever_order_it_is_asked_for() {
    let world = World::new();
    let todo = world.todo("fetch", &["--required-capability", "network"]);
    let decision = world.decide(&["--turn-instance-id", "turn-1", "--todo-id", &todo]);
    assert_eq!(decision["effective_action"], "capability_bridge_repair");
    let settle = || world.refresh(&todo, "turn-1", &["--settle-turn"]);
    settle().refused("settle_turn_not_spendable");
    let plain = world.refresh(&todo, "turn-1", &[]).packet();
    assert_eq!(plain["settlement_progress"]["state"], "settled", "{plain}");
    assert_eq!(
        plain["settlement_progress"]["closeout_kind"],
        "non_spendable_mode_no_spend"
    );
    settle().refused("settle_turn_not_spendable");
    world.spend(&todo, "turn-1").refused("quota_spend_rejected");
    assert_eq!(world.spent(), 0);
}

#[test]
fn a_later_vision_supersedes_a_checkpoint_though_the_clock_went_back() {
    let (world, todo) = admitted();
    let write = |hour: &str, summary: &str| {
        let vision =
            format!(r#"{{"state":"open","vision_patch":{{"vision_summary":"{summary}"}}}}"#);
        world.sandbox.file("vision.json", vision);
        let head = ["refresh-state", "--goal-id", GOAL, "--agent-id", "lane-a"];
        world
            .run(&[&head[..], &["--agent-vision-json", "vision.json"]].concat())
            .now(hour)
            .packet()
    };
    let close = |more: &[&str]| {
        let head = [
            "refresh-state",
            "--goal-id",
            GOAL,
            "--agent-id",
            "lane-a",
            "--todo-id",
            &todo,
            "--turn-instance-id",
            "turn-1",
            "--recommended-action",
            "P",
            "--next-action",
            "P",
            "--delivery-batch-scale",
            "implementation",
            "--delivery-outcome",
            "outcome_progress",
            "--delivery-boundary",
            "semantic_closeout",
            "--settle-turn",
        ];
        world
            .run(&[&head[..], more].concat())
            .now("2026-09-10T11:00:00Z")
    };
    write("2026-09-10T10:00:00Z", "one");
    close(&[]).packet();
    write("2026-09-10T10:30:00Z", "two");
    close(&["--vision-unchanged-reason", "same"]).refused("checkpoint_superseded_by_later_vision");
}

#[test]
fn an_obligation_follows_the_order_of_runs_though_the_clock_went_back() {
    let world = World::new();
    let vision = |state: &str, outcome: &str| {
        json!({"schema_version": "goal_vision_replan_contract_v0", "state": state,
            "vision_patch": {"vision_summary": "See the table", "acceptance_summary": "Every row measured twice"},
            "path_delta": {"schema_version": "goal_path_delta_v0", "outcome": outcome, "prior_assumption": "One pass is enough",
                "observed_reality": "Two passes differ", "changed": ["the method"], "evidence_refs": ["evidence:rows"]}})
    };
    let closed = vision("vision_closed", "continue");
    world.sandbox.file("closed.json", closed.to_string());
    world
        .sandbox
        .file("open.json", vision("open", "replan").to_string());
    let head = ["refresh-state", "--goal-id", GOAL, "--agent-id", "lane-a"];
    let close = || {
        world
            .run(&head)
            .flag(&["--agent-vision-json", "closed.json", "--project", "."])
    };
    let obligation = || world.decide(&[])["autonomous_replan_obligation"]["obligation_id"].clone();
    close().packet();
    let first = obligation();
    let id = first.as_str().expect("an obligation");
    let turn = ["--replan-obligation-id", id, "--turn-instance-id", "turn-1"];
    world.decide(&turn);
    let words = [
        "--classification",
        "replanned",
        "--delivery-outcome",
        "outcome_progress",
        "--project",
        ".",
    ];
    let replan = [
        "--autonomous-replan-recorded",
        "--repair-delta-kind",
        "goal_vision_patch",
    ];
    let vision = ["--agent-vision-json", "open.json", "--settle-turn"];
    let all = [&head[..], &turn, &words, &replan, &vision].concat();
    world.run(&all).packet();
    assert!(obligation().is_null());
    close().now("2026-08-18T09:00:00Z").packet();
    let second = obligation();
    assert!(second.is_string() && second != first, "{second}");
}
