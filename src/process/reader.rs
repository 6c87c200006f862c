//! Whether anybody still reads what this process prints.

use std::io;
use std::os::fd::AsFd;
use std::time::Duration;

use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};

/// Waits, unless the reader of standard output leaves before; false when it left.
pub(crate) fn wait_while_read(pause: Duration) -> bool {
    let stdout = io::stdout();
    // No event is asked for: only a pipe without a reader answers before its time.
    let mut watched = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
    let pause = PollTimeout::try_from(pause).unwrap_or(PollTimeout::MAX);
    match poll(&mut watched, pause) {
        Ok(answered) => answered == 0,
        Err(error) => error == Errno::EINTR,
    }
}
