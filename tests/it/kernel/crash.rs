//! Killed at every named point, repeated, and compared with a run that was never killed.

use loopx::failpoint::Point;

use super::scenes::{Again, scenes};
use crate::support::world::{GOAL, World};

/// Families with points of their own, which they drive in their own worlds.
const OTHER_FAMILIES: [&str; 2] = ["lark-inbox ", "periodic-report "];

/// Every point but those that a command of another family reaches too; a new one has to be driven here.
fn points() -> impl Iterator<Item = Point> {
    let is_foreign = |command: &&str| OTHER_FAMILIES.iter().any(|name| command.starts_with(name));
    let own = move |point: &Point| !point.commands().iter().any(is_foreign);
    Point::ALL.iter().copied().filter(own)
}

#[test]
fn a_command_killed_anywhere_and_repeated_ends_like_one_that_was_not() {
    for scene in scenes() {
        let (world, todo) = (scene.make)();
        (scene.run)(&world, &todo).packet();
        let expected = world.outcome();
        for point in points().filter(|point| point.commands().contains(&scene.name)) {
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
        for point in points().filter(|point| !point.commands().contains(&scene.name)) {
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
    let reached: Vec<&str> = points()
        .flat_map(|point| point.commands())
        .copied()
        .collect();
    for scene in &scenes {
        assert!(reached.contains(&scene.name), "{} has no point", scene.name);
    }
    for point in points() {
        for command in point.commands() {
            let is_played = scenes.iter().any(|scene| scene.name == *command);
            assert!(is_played, "{} of {command}", point.name());
        }
    }
}

#[test]
fn no_reader_and_no_preview_reaches_a_point() {
    let (world, _) = World::with_todo();
    world.turn("turn-1").packet();
    let key = world.turn_key();
    let goal = ["--goal-id", GOAL];
    let own = ["--goal-id", GOAL, "--agent-id", "lane-a"];
    let turn = ["--turn-key", key.as_str()];
    let host = ["--project", ".", "--host-command-json", "[\"/bin/true\"]"];
    for point in points() {
        let readers = [
            world.run(&["status"]).flag(&goal),
            world.run(&["todo", "list"]).flag(&goal),
            world.run(&["quota", "should-run"]).flag(&own),
            world.run(&["turn", "plan"]).flag(&own),
            world.run(&["turn", "detail"]).flag(&own).flag(&turn),
            world
                .run(&["turn", "inspect-journal"])
                .flag(&own)
                .flag(&turn),
            world.run(&["turn", "run-once"]).flag(&own).flag(&host),
            world.run(&["doctor"]),
        ];
        for reader in readers {
            reader.env("LOOPX_FAILPOINT", point.name()).packet();
        }
    }
}
