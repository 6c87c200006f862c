//! The worked sequence of docs/spec/kernel.md 5.4, field by field.

use serde_json::{Value, json};

use crate::support::world::{GOAL, World};

struct Sequence {
    world: World,
    todo: String,
}

fn begin(complete: &[&str]) -> (Sequence, Value) {
    let world = World::new();
    let settings = json!({"enabled": true, "profile_preset": "weekly-progress", "route_ref": "report-channel", "timezone": "Asia/Shanghai"});
    world.sandbox.file("report.json", settings.to_string());
    let head = [
        "configure-goal",
        "--goal-id",
        GOAL,
        "--periodic-report-json",
        "report.json",
    ];
    let plan = world.run(&head).packet();
    assert_eq!(plan["dry_run"], true);
    world
        .run(&head)
        .execute()
        .refused("registry_revision_mismatch");
    let revision = plan["plan_revision"].as_str().expect("a revision");
    world
        .run(&head)
        .flag(&["--expected-plan-revision", revision])
        .execute()
        .packet();
    let todo = world.todo(
        "Measure the first step",
        &["--task-class", "advancement_task"],
    );
    let open = json!({"schema_version": "goal_vision_replan_contract_v0", "state": "open",
        "vision_patch": {"vision_summary": "See the whole table", "acceptance_summary": "Every row measured twice"}});
    let mut closed = open.clone();
    closed["state"] = json!("vision_closed");
    closed["path_delta"] = json!({"schema_version": "goal_path_delta_v0", "outcome": "continue", "prior_assumption": "One pass is not enough",
        "observed_reality": "Two passes agree", "retained": ["the method"], "evidence_refs": ["evidence:rows-1-40"]});
    world.sandbox.file("v1.json", open.to_string());
    world.sandbox.file("v1-closed.json", closed.to_string());
    let refresh = [
        "refresh-state",
        "--goal-id",
        GOAL,
        "--agent-id",
        "lane-a",
        "--agent-vision-json",
        "v1.json",
        "--project",
        ".",
    ];
    let written = world.run(&refresh).now("2026-09-18T08:30:00Z").packet();
    assert_eq!(written["agent_vision"]["state"], "open");
    assert_eq!(written["vision_checkpoint"]["required"], false);
    let admitted = world.decide(&["--turn-instance-id", "turn-1", "--todo-id", &todo]);
    assert_eq!(admitted["effective_action"], "normal_run");
    assert_eq!(
        admitted["heartbeat_receipt"]["settlement_identity"]["todo_id"],
        todo.as_str()
    );
    world
        .run(&[
            "todo",
            "claim",
            "--goal-id",
            GOAL,
            "--todo-id",
            &todo,
            "--claimed-by",
            "lane-a",
            "--agent-id",
            "lane-a",
        ])
        .packet();
    let done = [
        "todo",
        "complete",
        "--goal-id",
        GOAL,
        "--todo-id",
        &todo,
        "--agent-id",
        "lane-a",
        "--turn-instance-id",
        "turn-1",
    ];
    world
        .run(&done)
        .flag(&["--evidence", "rows 1-40 measured"])
        .flag(complete)
        .packet();
    let sequence = Sequence { world, todo };
    let closed = sequence.close();
    (sequence, closed)
}

impl Sequence {
    fn close(&self) -> Value {
        let head = [
            "refresh-state",
            "--goal-id",
            GOAL,
            "--agent-id",
            "lane-a",
            "--todo-id",
            &self.todo,
            "--turn-instance-id",
            "turn-1",
            "--classification",
            "stage_accepted",
            "--recommended-action",
            "Plan the next stage",
            "--next-action",
            "Plan the next stage",
            "--delivery-batch-scale",
            "implementation",
            "--delivery-outcome",
            "primary_goal_outcome",
            "--delivery-boundary",
            "semantic_closeout",
            "--agent-vision-json",
            "v1-closed.json",
            "--project",
            ".",
            "--settle-turn",
        ];
        self.world.run(&head).packet()
    }

    fn replan(&self, obligation: &str) -> Value {
        let head = [
            "refresh-state",
            "--goal-id",
            GOAL,
            "--agent-id",
            "lane-a",
            "--replan-obligation-id",
            obligation,
            "--turn-instance-id",
            "turn-2",
            "--classification",
            "stage_replanned",
            "--recommended-action",
            "Measure the second step",
            "--next-action",
            "Measure the second step",
            "--delivery-batch-scale",
            "single_surface",
            "--delivery-outcome",
            "outcome_progress",
            "--delivery-boundary",
            "semantic_closeout",
            "--autonomous-replan-recorded",
            "--repair-delta-kind",
            "goal_vision_patch",
            "--agent-vision-json",
            "v2.json",
            "--project",
            ".",
            "--settle-turn",
        ];
        self.world.run(&head).now("2026-09-18T09:20:00Z").packet()
    }
}

#[test]
fn from_an_empty_folder_to_a_stage_intent() {
    let (sequence, closed) = begin(&[]);
    let world = &sequence.world;
    assert_eq!(
        closed["agent_vision"]["generated_at"],
        "2026-09-18T09:00:00Z"
    );
    assert_eq!(closed["vision_checkpoint"]["decision"], "patched");
    assert_eq!(
        closed["vision_checkpoint"]["triggers"][0]["kind"],
        "material_delivery_outcome"
    );
    assert_eq!(closed["settlement_progress"]["state"], "settled");
    assert_eq!(closed["post_writeback_hooks"]["intent_count"], 0);
    let decided = world.decide(&[]);
    assert_eq!(decided["decision"], "autonomous_replan_required");
    assert_eq!(decided["interaction_contract"]["mode"], "autonomous_replan");
    assert_eq!(decided["goal_frontier_projection"]["replan_required"], true);
    let obligation = decided["autonomous_replan_obligation"]["obligation_id"]
        .as_str()
        .expect("an id")
        .to_owned();
    assert_eq!(obligation, "replan-90740ca02eede1e1");
    let bound = world.decide(&[
        "--turn-instance-id",
        "turn-2",
        "--replan-obligation-id",
        &obligation,
    ]);
    let identity = &bound["heartbeat_receipt"]["settlement_identity"];
    assert_eq!(
        identity["effect_id"],
        format!("{GOAL}:lane-a:autonomous_replan:{obligation}:turn-2")
    );
    let more = [
        "--task-class",
        "advancement_task",
        "--claimed-by",
        "lane-a",
        "--replan-obligation-id",
        &obligation,
    ];
    let successor = world.todo("Measure the second step", &more);
    let vision = json!({"schema_version": "goal_vision_replan_contract_v0", "state": "open",
        "vision_patch": {"vision_summary": "See the second table", "acceptance_summary": "Rows 41-80 measured twice"},
        "path_delta": {"schema_version": "goal_path_delta_v0", "outcome": "replan", "prior_assumption": "The first table was the whole job",
            "observed_reality": "A second table exists", "changed": ["the table"], "evidence_refs": ["evidence:second-table"]}});
    world.sandbox.file("v2.json", vision.to_string());
    let replanned = sequence.replan(&obligation);
    let delta = &replanned["autonomous_replan_ack"]["semantic_delta"];
    assert_eq!(
        delta["outcomes"],
        json!(["new_runnable_successor", "fresh_vision_path_outcome"])
    );
    assert_eq!(delta["trigger_kinds"], json!(["vision_successor_required"]));
    let hooks = &replanned["post_writeback_hooks"];
    assert_eq!(
        hooks["intents"][0]["idempotency_key"],
        "periodic-report:stage-09b253db07499b3a"
    );
    let again = sequence.replan(&obligation);
    assert_eq!(again["appended"], false);
    assert_eq!(again["post_writeback_hooks"]["invoked_count"], 0);
    assert_eq!(again["post_writeback_hooks"]["intent_count"], 1);
    capability_action(world);
    lost_stage(&sequence, (&obligation, &successor));
}

/// The event of a stage comes back whole, though the todo that proved it is finished by now.
fn lost_stage(sequence: &Sequence, (obligation, successor): (&str, &str)) {
    let world = &sequence.world;
    let head = ["goal-lifecycle", "--goal-id", GOAL, "--operation", "resume"];
    world.run(&head).execute().packet();
    let head = [
        "todo",
        "complete",
        "--goal-id",
        GOAL,
        "--todo-id",
        successor,
    ];
    world
        .run(&head)
        .flag(&["--agent-id", "lane-a", "--no-follow-up", "--evidence", "e"])
        .packet();
    let event = || -> Option<(String, String)> {
        let sql = "SELECT event_id,body_json FROM events WHERE event_kind='refresh_state' AND run_id='turn-2'";
        let read = |row: &rusqlite::Row<'_>| Ok((row.get(0)?, row.get(1)?));
        world.store().query_row(sql, [], read).ok()
    };
    let before = event();
    let sql = "DELETE FROM events WHERE event_kind='refresh_state' AND run_id='turn-2'";
    assert_eq!(world.store().execute(sql, []).expect("deleted"), 1);
    let repaired = sequence.replan(obligation);
    assert_eq!(repaired["receipt_repaired"], true);
    assert_eq!(repaired["post_writeback_hooks"]["intent_count"], 1);
    assert_eq!(event(), before);
}

/// The pending intent is an action of its capability: no host is started, and its command is bound for the caller.
fn capability_action(world: &World) {
    let decided = world.decide(&[]);
    assert_eq!(decided["effective_action"], "governed_capability_intent");
    let neutral = format!(
        "loopx periodic-report consume-pending --goal-id {GOAL} --agent-id lane-a --execute"
    );
    assert_eq!(
        decided["pending_capability_intent"]["command"],
        neutral.as_str()
    );
    let run = world.turn("turn-3").packet();
    assert_eq!(run["status"], "capability_action_required");
    assert_eq!(run["executed"], false);
    assert_eq!(run["capability_action"]["command_argv"][1], "--registry");
    assert_eq!(
        run["turn_envelope"]["writeback"]["next_cli_actions"],
        json!([neutral])
    );
    assert_eq!(run["turn_envelope"]["replan_action_packet"], Value::Null);
    assert_eq!(world.host_calls(), 0);
    world
        .run(&[
            "goal-lifecycle",
            "--goal-id",
            GOAL,
            "--operation",
            "pause",
            "--execute",
        ])
        .packet();
    assert_eq!(world.decide(&[])["effective_action"], "quota_skip");
}

#[test]
fn the_terminal_form_yields_the_intent_at_once() {
    let (sequence, closed) = begin(&["--no-follow-up"]);
    let intent = &closed["post_writeback_hooks"]["intents"][0];
    assert_eq!(
        intent["idempotency_key"],
        "periodic-report:stage-08010bc6fe67d246"
    );
    assert_eq!(
        intent["payload"]["stage_completion"]["transition"],
        "goal_terminal"
    );
    assert_eq!(
        sequence.world.decide(&[])["effective_action"],
        "governed_capability_intent"
    );
}
