//! Killed at every named point, repeated, and compared with a run that was never killed.

use loopx::failpoint::Point;

use super::scenes::{Again, scenes};
use crate::support::world::{GOAL, World};

/// The kernel's own points; other families drive theirs.
const POINTS: [Point; 21] = [
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
    Point::HandoffCommitted,
    Point::PauseCommitted,
    Point::RegistryReplaced,
];

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
            // What cannot be repeated has to stand as it was when it was killed after its commit.
            if scene.again == Again::Repeat {
                (scene.run)(&world, &todo).packet();
            }
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

#[test]
fn every_point_and_every_command_of_the_kernel_is_in_the_matrix() {
    let scenes = scenes();
    for point in POINTS {
        for command in point.commands() {
            let is_played = scenes.iter().any(|scene| scene.name == *command);
            assert!(is_played, "{} of {command}", point.name());
        }
    }
}
