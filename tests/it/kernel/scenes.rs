//! The effectful commands of the kernel, each with a world it can be killed in.

use crate::support::world::{GOAL, Kernel, World};

/// Whether a killed command is given again as it was.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Again {
    Repeat,
    Never,
}

/// One command, and the world it runs in.
pub(super) struct Scene {
    pub(super) name: &'static str,
    pub(super) again: Again,
    pub(super) make: fn() -> (World, String),
    pub(super) run: for<'a> fn(&'a World, &str) -> Kernel<'a>,
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

/// Every effectful command of the kernel.
pub(super) fn scenes() -> Vec<Scene> {
    let scene = |name, make, run| Scene {
        name,
        again: Again::Repeat,
        make,
        run,
    };
    let once = |name, make, run| Scene {
        name,
        again: Again::Never,
        make,
        run,
    };
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
        once("todo add", World::with_todo, |world, _| {
            world
                .run(&["todo", "add", "--goal-id", GOAL, "--role", "agent"])
                .flag(&["--text", "more"])
        }),
        once("todo supersede", World::with_todo, |world, todo| {
            world
                .run(&["todo", "supersede", "--goal-id", GOAL, "--todo-id", todo])
                .flag(&["--reason", "done elsewhere"])
        }),
        once("task-lease renew", leased, |world, todo| {
            lease(world, "renew", todo)
        }),
        once("task-lease transfer", leased, |world, todo| {
            lease(world, "transfer", todo).flag(&[
                "--new-owner",
                "lane-b",
                "--new-idempotency-key",
                "key-2",
            ])
        }),
        once("task-lease release", leased, |world, todo| {
            lease(world, "release", todo)
        }),
        scene("handoff prepare", owned, |world, todo| {
            handoff(world, "prepare", todo).flag(&[
                "--session-id",
                "s1",
                "--from-context",
                "note.json",
            ])
        }),
        scene("handoff adopt", prepared, |world, todo| {
            handoff(world, "adopt", todo).flag(&[
                "--session-id",
                "s2",
                "--target-agent-id",
                "lane-b",
            ])
        }),
        scene("doctor", unexported, |world, _| {
            world.run(&["doctor", "--execute"])
        }),
    ]
}

fn lease<'a>(world: &'a World, action: &str, todo: &str) -> Kernel<'a> {
    let lease = ["task-lease", action, "--goal-id", GOAL, "--todo-id", todo];
    let proof = ["--owner", "lane-a", "--idempotency-key", "key-1"];
    world
        .run(&[&lease[..], &proof].concat())
        .flag(&["--expected-version", "1"])
}

/// A handoff under the revision the world was left at when the scene was set.
pub(super) fn handoff<'a>(world: &'a World, action: &str, todo: &str) -> Kernel<'a> {
    let revision = world.sandbox.project().join("revision");
    let revision = std::fs::read_to_string(revision).expect("a revision");
    let handoff = ["handoff", action, "--goal-id", GOAL, "--todo-id", todo];
    let actor = [
        "--agent-id",
        if action == "adopt" {
            "lane-b"
        } else {
            "lane-a"
        },
    ];
    world.run(&[&handoff[..], &actor].concat()).flag(&[
        "--operation-id",
        action,
        "--expected-revision",
        &revision,
    ])
}

fn keep_revision(world: &World) {
    let list = world.run(&["todo", "list", "--goal-id", GOAL]).packet();
    let revision = list["provider_revision"].as_str().expect("a revision");
    world.sandbox.file("revision", revision);
}

fn leased() -> (World, String) {
    let (world, todo) = World::with_todo();
    world.register("lane-b");
    let acquire = [
        "task-lease",
        "acquire",
        "--goal-id",
        GOAL,
        "--todo-id",
        &todo,
    ];
    let holder = ["--owner", "lane-a", "--idempotency-key", "key-1"];
    world.run(&[&acquire[..], &holder].concat()).packet();
    (world, todo)
}

pub(super) fn owned() -> (World, String) {
    let (world, todo) = World::with_todo();
    world.register("lane-b");
    let claim = ["todo", "claim", "--goal-id", GOAL, "--todo-id", &todo];
    world
        .run(&[&claim[..], &["--claimed-by", "lane-a"]].concat())
        .packet();
    world
        .sandbox
        .file("note.json", r#"{"work_summary":"half done"}"#);
    keep_revision(&world);
    (world, todo)
}

pub(super) fn prepared() -> (World, String) {
    let (world, todo) = owned();
    handoff(&world, "prepare", &todo)
        .flag(&["--session-id", "s1", "--from-context", "note.json"])
        .packet();
    keep_revision(&world);
    (world, todo)
}

fn unexported() -> (World, String) {
    let (world, todo) = settled();
    let log = world
        .runtime()
        .join("goals")
        .join(GOAL)
        .join("rollout-event-log.jsonl");
    std::fs::write(log, "").expect("an emptied export");
    (world, todo)
}
