//! A driver that is asked to stop takes its host along and leaves a Turn that goes on.

use std::io::Read;
use std::process::{Command, Stdio};

use crate::support::world::World;

#[test]
fn a_driver_that_is_asked_to_stop_ends_its_host_and_the_turn_goes_on() {
    for signal in ["-TERM", "-INT"] {
        let (world, _) = World::with_todo();
        // The host tells through a pipe that it runs; its end closes the pipe.
        let pipe = world.sandbox.project().join("alive");
        let made = Command::new("mkfifo").arg(&pipe).status().expect("mkfifo");
        assert!(made.success());
        let slow = world.host("host.sh", "exec 3>alive; echo up >&3; sleep 600");
        let run = world
            .turn_with("turn-1", &slow, "[\"/bin/true\"]")
            .prepared();
        let mut child = run
            .command()
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("it starts");
        let mut alive = std::fs::File::open(&pipe).expect("the host runs");
        let mut first = [0; 3];
        alive.read_exact(&mut first).expect("the host speaks");
        let id = child.id().to_string();
        Command::new("kill")
            .args([signal, &id])
            .status()
            .expect("kill");
        let mut rest = Vec::new();
        alive.read_to_end(&mut rest).expect("the host is gone");
        assert!(!child.wait().expect("it ends").success());
        assert_eq!(world.spent(), 0);
        world.host("host.sh", "printf '%s' \"$result\"");
        let again = world.turn_with("turn-1", &slow, "[\"/bin/true\"]").packet();
        assert_eq!(again["status"], "committed", "{again}");
        assert_eq!((world.spent(), world.host_calls()), (1, 2));
    }
}
