//! A driver that is asked to stop takes its host along and leaves a Turn that goes on.

use std::fs::File;
use std::io::Read;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command, Stdio};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::support::world::World;

const GOOD: &str = "[\"/bin/true\"]";

/// A driver whose host runs, and the pipe that closes when the host ends.
fn driven(world: &World, around: &[&str]) -> (Child, File) {
    let pipe = world.sandbox.project().join("alive");
    let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    let slow = world.host("host.sh", "exec 3>alive; echo up >&3; sleep 600");
    let run = world.turn_with("turn-1", &slow, GOOD).prepared();
    let child = run
        .around(around)
        .command()
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    let mut alive = File::open(&pipe).expect("the host runs");
    let mut first = [0; 3];
    alive.read_exact(&mut first).expect("the host speaks");
    (child, alive)
}

fn signal(child: &Child, signal: Signal) {
    let id = Pid::from_raw(child.id().cast_signed());
    kill(id, signal).expect("it lives");
}

#[test]
fn a_driver_that_is_asked_to_stop_ends_its_host_and_the_turn_goes_on() {
    for asked in [Signal::SIGTERM, Signal::SIGINT, Signal::SIGHUP] {
        let (world, _) = World::with_todo();
        // Whoever runs these tests under `nohup` has SIGHUP ignored.
        let (mut child, mut alive) = driven(&world, &["env", "--default-signal=HUP"]);
        signal(&child, asked);
        let mut rest = Vec::new();
        alive.read_to_end(&mut rest).expect("the host is gone");
        let ended = child.wait().expect("it ends");
        assert_eq!(ended.signal(), Some(asked as i32), "as it was asked to");
        assert_eq!(world.spent(), 0);
        let host = world.host("host.sh", "printf '%s' \"$result\"");
        let again = world.turn_with("turn-1", &host, GOOD).packet();
        assert_eq!(again["status"], "committed", "{asked}: {again}");
        assert_eq!((world.spent(), world.host_calls()), (1, 2));
    }
}

#[test]
fn a_driver_that_was_started_to_outlive_its_terminal_does() {
    let (world, _) = World::with_todo();
    let (mut child, mut alive) = driven(&world, &["nohup"]);
    signal(&child, Signal::SIGHUP);
    // Had the first signal been taken, the driver would have ended by it and not by this one.
    signal(&child, Signal::SIGTERM);
    let mut rest = Vec::new();
    alive.read_to_end(&mut rest).expect("the host is gone");
    let ended = child.wait().expect("it ends");
    assert_eq!(ended.signal(), Some(Signal::SIGTERM as i32));
    assert_eq!(world.spent(), 0);
}
