//! Killed at every named point, repeated, and compared with a run that was never killed.

use loopx::failpoint::Point;

use super::world::{GOAL, Kernel, World};

/// The kernel's own points; other families drive theirs.
const POINTS: [Point; 20] = [
    Point::DecisionComposed,
    Point::CaptureTempWritten,
    Point::CapturePublished,
    Point::CaptureRowCommitted,
    Point::JournalOpened,
    Point::AdmissionCommitted,
    Point::HostStarted,
    Point::HostExited,
    Point::TypedResultStored,
    Point::ValidationStored,
    Point::WritebackCommitted,
    Point::SpendCommitted,
    Point::SpendCheckpointed,
    Point::HookDispatched,
    Point::HookReturned,
    Point::HookReceiptCommitted,
    Point::SinkCalled,
    Point::ExportWritten,
    Point::PauseCommitted,
    Point::RegistryReplaced,
];

/// One command, and the world it runs in.
struct Scene {
    name: &'static str,
    make: fn() -> (World, String),
    run: for<'a> fn(&'a World, &str) -> Kernel<'a>,
}

fn subscribed() -> (World, String) {
    let (world, todo) = World::with_todo();
    let settings = r#"{"enabled":true,"profile_preset":"weekly-progress","route_ref":"report-channel","timezone":"UTC"}"#;
    world.sandbox.file("report.json", settings);
    let head = [
        "configure-goal",
        "--goal-id",
        GOAL,
        "--periodic-report-json",
        "report.json",
    ];
    let plan = world.run(&head).packet();
    let revision = plan["plan_revision"]
        .as_str()
        .expect("a revision")
        .to_owned();
    world
        .run(&head)
        .flag(&["--expected-plan-revision", &revision])
        .execute()
        .packet();
    (world, todo)
}

fn gated() -> (World, String) {
    let (world, todo) = World::with_todo();
    world.configure(&["--waiting-on", "controller", "--missing-gate", "release"]);
    (world, todo)
}

fn admitted() -> (World, String) {
    let (world, todo) = subscribed();
    world.decide(&["--turn-instance-id", "turn-1", "--todo-id", &todo]);
    (world, todo)
}

fn written_back() -> (World, String) {
    let (world, todo) = admitted();
    world.refresh(&todo, "turn-1", &[]).packet();
    (world, todo)
}

fn settled() -> (World, String) {
    let (world, todo) = written_back();
    world.spend(&todo, "turn-1").packet();
    (world, todo)
}

fn watched() -> (World, String) {
    let world = World::new();
    let todo = world.todo("watch", &["--task-class", "continuous_monitor"]);
    (world, todo)
}

fn finished() -> (World, String) {
    let (world, todo) = World::with_todo();
    world
        .run(&[
            "todo",
            "complete",
            "--goal-id",
            GOAL,
            "--todo-id",
            &todo,
            "--agent-id",
            "lane-a",
        ])
        .packet();
    (world, todo)
}

fn scenes() -> Vec<Scene> {
    let scene = |name, make, run| Scene { name, make, run };
    vec![
        scene("bootstrap", World::with_todo, |world, _| {
            world.run(&["bootstrap", "--goal-id", "second", "--title", "Second"])
        }),
        scene("register-agent", World::with_todo, |world, _| {
            world.run(&[
                "register-agent",
                "--goal-id",
                GOAL,
                "--agent-id",
                "lane-b",
                "--execute",
            ])
        }),
        scene("configure-goal", World::with_todo, |world, _| {
            world.run(&[
                "configure-goal",
                "--goal-id",
                GOAL,
                "--quota-compute",
                "0.5",
                "--execute",
            ])
        }),
        scene("goal-lifecycle", World::with_todo, |world, _| {
            world.run(&[
                "goal-lifecycle",
                "--goal-id",
                GOAL,
                "--operation",
                "pause",
                "--execute",
            ])
        }),
        scene("operator-gate", gated, |world, _| {
            world.run(&[
                "operator-gate",
                "--goal-id",
                GOAL,
                "--gate",
                "release",
                "--decision",
                "approve",
            ])
        }),
        scene("todo claim", World::with_todo, |world, todo| {
            world.run(&[
                "todo",
                "claim",
                "--goal-id",
                GOAL,
                "--todo-id",
                todo,
                "--claimed-by",
                "lane-a",
            ])
        }),
        scene("todo update", World::with_todo, |world, todo| {
            world.run(&[
                "todo",
                "update",
                "--goal-id",
                GOAL,
                "--todo-id",
                todo,
                "--note",
                "seen",
            ])
        }),
        scene("todo complete", World::with_todo, |world, todo| {
            let turn = ["--agent-id", "lane-a", "--turn-instance-id", "turn-1"];
            world
                .run(&["todo", "complete", "--goal-id", GOAL, "--todo-id", todo])
                .flag(&turn)
        }),
        scene("todo archive-completed", finished, |world, _| {
            world.run(&["todo", "archive-completed", "--goal-id", GOAL])
        }),
        scene("task-lease acquire", World::with_todo, |world, todo| {
            let lease = ["--owner", "lane-a", "--idempotency-key", "key-1"];
            world
                .run(&[
                    "task-lease",
                    "acquire",
                    "--goal-id",
                    GOAL,
                    "--todo-id",
                    todo,
                ])
                .flag(&lease)
        }),
        scene("quota should-run", subscribed, |world, todo| {
            world.ask(
                "lane-a",
                &["--turn-instance-id", "turn-1", "--todo-id", todo],
            )
        }),
        scene("refresh-state", admitted, |world, todo| {
            world.refresh(
                todo,
                "turn-1",
                &["--settle-turn", "--suppress-external-sinks"],
            )
        }),
        scene("quota spend-slot", written_back, |world, todo| {
            world.spend(todo, "turn-1")
        }),
        scene("quota void-slot", settled, |world, _| {
            let list = world.store();
            let at: String = list
                .query_row("SELECT run_generated_at FROM spends", [], |row| row.get(0))
                .expect("a spend");
            let void = ["--void-generated-at", &at, "--reason-summary", "wrong"];
            world
                .run(&["quota", "void-slot", "--goal-id", GOAL, "--execute"])
                .flag(&void)
        }),
        scene("quota monitor-poll", watched, |world, todo| {
            let poll = [
                "--agent-id",
                "lane-a",
                "--result",
                "unchanged",
                "--next-due-at",
                "2027-01-01T00:00:00Z",
            ];
            world
                .run(&[
                    "quota",
                    "monitor-poll",
                    "--goal-id",
                    GOAL,
                    "--todo-id",
                    todo,
                    "--execute",
                ])
                .flag(&poll)
        }),
        scene("turn run-once", subscribed, |world, _| world.turn("turn-1")),
    ]
}

#[test]
fn a_command_killed_anywhere_and_repeated_ends_like_one_that_was_not() {
    for scene in scenes() {
        let (world, todo) = (scene.make)();
        (scene.run)(&world, &todo).packet();
        let expected = world.outcome();
        for point in POINTS
            .iter()
            .filter(|point| point.commands().contains(&scene.name))
        {
            let (world, todo) = (scene.make)();
            let killed = (scene.run)(&world, &todo)
                .env("LOOPX_FAILPOINT", point.name())
                .prepared()
                .run();
            assert_eq!(
                killed.code,
                None,
                "{} at {}: {}",
                scene.name,
                point.name(),
                killed.text()
            );
            (scene.run)(&world, &todo).packet();
            assert_eq!(
                world.outcome(),
                expected,
                "{} at {}",
                scene.name,
                point.name()
            );
        }
    }
}

#[test]
fn no_command_dies_at_a_point_it_does_not_name() {
    for scene in scenes() {
        for point in POINTS
            .iter()
            .filter(|point| !point.commands().contains(&scene.name))
        {
            let (world, todo) = (scene.make)();
            let run = (scene.run)(&world, &todo)
                .env("LOOPX_FAILPOINT", point.name())
                .prepared()
                .run();
            assert_eq!(
                run.code,
                Some(0),
                "{} at {}: {}",
                scene.name,
                point.name(),
                run.text()
            );
        }
    }
}

#[test]
fn a_kill_between_registry_and_event_is_recorded_by_the_next_change() {
    let (world, _) = World::with_todo();
    let killed = world
        .run(&[
            "configure-goal",
            "--goal-id",
            GOAL,
            "--severity",
            "high",
            "--execute",
        ])
        .env("LOOPX_FAILPOINT", "registry_replaced")
        .prepared()
        .run();
    assert_eq!(killed.code, None);
    assert_eq!(world.decide(&[])["state"], "blocked_health");
    world.todo("next", &[]);
    let edited = world
        .events()
        .into_iter()
        .filter(|event| event["event_kind"] == "goal_config" && event["status"] == "edited")
        .count();
    assert_eq!(edited, 1);
}

#[test]
fn a_kill_while_the_host_runs_counts_the_attempt_and_runs_the_original_again() {
    let (world, todo) = World::with_todo();
    let killed = world
        .turn("turn-1")
        .env("LOOPX_FAILPOINT", "host_exited")
        .prepared()
        .run();
    assert_eq!(killed.code, None);
    world
        .run(&[
            "todo",
            "update",
            "--goal-id",
            GOAL,
            "--todo-id",
            &todo,
            "--text",
            "Another text",
        ])
        .packet();
    let done = world.turn("turn-1").packet();
    assert_eq!(done["status"], "committed");
    assert_eq!(world.host_calls(), 2);
    assert_eq!(world.spent(), 1);
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
        ])
        .flag(&["--select", "/decision/selected_todo/text"])
        .packet();
    assert_eq!(detail["selections"][0]["value"], "Measure the first step");
}
