//! Reads one file an operator names. A regular file is read as it lies; a pipe or a device is read while bytes keep
//! coming, so that `<(command)` works and a pipe nobody writes to ends the command instead of holding it for ever.
//!
//! Stored files are not read here: their owner refuses anything but a regular file.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::mpsc::{self, RecvTimeoutError, SyncSender};
use std::time::Duration;

/// How long a pipe may stay silent.
const SILENCE: Duration = Duration::from_secs(5);
const CHUNK: usize = 65_536;

/// Reads at most `limit` bytes.
pub fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    if std::fs::metadata(path)?.is_file() {
        let mut bytes = Vec::new();
        File::open(path)?.take(limit).read_to_end(&mut bytes)?;
        return Ok(bytes);
    }
    read_flowing(path, limit, SILENCE)
}

/// Reads what flows in. Opening a pipe waits for its writer, so it is left to a thread that ends with the process.
fn read_flowing(path: &Path, limit: u64, silence: Duration) -> io::Result<Vec<u8>> {
    let (sender, receiver) = mpsc::sync_channel(1);
    let path = path.to_path_buf();
    std::thread::spawn(move || {
        let ended = File::open(path).and_then(|file| send_chunks(file.take(limit), &sender));
        // Nobody listens any more when the wait was given up.
        let _ = sender.send(ended.map(|()| Vec::new()));
    });
    let mut bytes = Vec::new();
    loop {
        match receiver.recv_timeout(silence) {
            Ok(Ok(chunk)) if chunk.is_empty() => return Ok(bytes),
            Ok(Ok(chunk)) => bytes.extend(chunk),
            Ok(Err(error)) => return Err(error),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => {
                let text = "nothing was written to the pipe";
                return Err(io::Error::new(io::ErrorKind::TimedOut, text));
            }
        }
    }
}

fn send_chunks(mut from: impl Read, to: &SyncSender<io::Result<Vec<u8>>>) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = from.read(&mut chunk)?;
        if count == 0 || to.send(Ok(chunk[..count].to_vec())).is_err() {
            return Ok(());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fifo(folder: &tempfile::TempDir) -> std::path::PathBuf {
        let path = folder.path().join("pipe");
        nix::unistd::mkfifo(&path, nix::sys::stat::Mode::S_IRWXU).unwrap();
        path
    }

    #[test]
    fn a_pipe_without_a_writer_is_given_up() {
        let folder = tempfile::tempdir().unwrap();
        let given_up = read_flowing(&fifo(&folder), 10, Duration::from_millis(50));
        assert_eq!(given_up.unwrap_err().kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn a_pipe_that_is_written_to_is_read_to_its_end_or_its_limit() {
        for (limit, expected) in [(100, "abcdef"), (3, "abc")] {
            let folder = tempfile::tempdir().unwrap();
            let path = fifo(&folder);
            let target = path.clone();
            let writer = std::thread::spawn(move || std::fs::write(target, "abcdef"));
            assert_eq!(read_bounded(&path, limit).unwrap(), expected.as_bytes());
            let _ = writer.join().unwrap();
        }
    }

    #[test]
    fn a_device_ends_at_the_limit_and_a_folder_is_no_input() {
        assert_eq!(read_bounded(Path::new("/dev/zero"), 9).unwrap(), [0; 9]);
        assert!(read_bounded(Path::new("/"), 9).is_err());
        assert!(read_bounded(Path::new("/absent"), 9).is_err());
    }
}
