//! A long-lived child whose lines go to a channel as they come.

use std::io::Read;
use std::process::Child;
use std::sync::mpsc::{self, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;

use super::call::{Ending, pipes_closed, read_some};
use super::invocation::{Invocation, SpawnError};

const STREAM_POLL: Duration = Duration::from_millis(20);

/// What a streaming child said or did; `tag` is the caller's name for it.
#[derive(Debug)]
pub(crate) struct StreamItem<T> {
    pub(crate) tag: T,
    pub(crate) what: StreamEvent,
}

#[derive(Debug)]
pub(crate) enum StreamEvent {
    /// One line of standard output without its line feed.
    Out(Vec<u8>),
    /// One line of standard error without its line feed.
    Err(Vec<u8>),
    /// The child ended and both pipes are read to their end.
    Ended(Ending),
}

/// A running child whose lines go to a channel. Dropping it ends the group.
#[derive(Debug)]
pub(crate) struct Streaming {
    pid: u32,
    state: Arc<Mutex<Option<Child>>>,
}

/// The longest line that is handed on; a longer one is dropped whole.
const MAX_LINE: usize = 4 << 20;

/// Starts a long-lived child and hands every line it prints to `sink`. The invocation's deadline does not apply.
pub(crate) fn stream<T>(
    invocation: &Invocation,
    tag: T,
    sink: Sender<StreamItem<T>>,
) -> Result<Streaming, SpawnError>
where
    T: Clone + Send + 'static,
{
    let mut child = invocation.spawn()?;
    let pid = child.id();
    let (done, pipes) = mpsc::channel();
    lines(
        child.stdout.take(),
        StreamEvent::Out,
        (tag.clone(), sink.clone()),
        done.clone(),
    );
    lines(
        child.stderr.take(),
        StreamEvent::Err,
        (tag.clone(), sink.clone()),
        done,
    );
    let state = Arc::new(Mutex::new(Some(child)));
    let watched = Arc::clone(&state);
    thread::spawn(move || {
        let ending = watch(&watched);
        let _ = pipes_closed(&pipes);
        let _ = sink.send(StreamItem {
            tag,
            what: StreamEvent::Ended(ending),
        });
    });
    Ok(Streaming { pid, state })
}

fn watch(state: &Mutex<Option<Child>>) -> Ending {
    loop {
        {
            let mut held = state.lock().unwrap_or_else(PoisonError::into_inner);
            let ended = match held.as_mut().map(Child::try_wait) {
                Some(Ok(None)) => None,
                Some(Ok(Some(status))) => Some(status.into()),
                Some(Err(_)) | None => Some(Ending::Signal(0)),
            };
            if let Some(ending) = ended {
                // Reaped: the pid may name another process from now on, so nothing signals it any more.
                *held = None;
                return ending;
            }
        }
        thread::sleep(STREAM_POLL);
    }
}

fn lines<T, R>(
    pipe: Option<R>,
    kind: fn(Vec<u8>) -> StreamEvent,
    to: (T, Sender<StreamItem<T>>),
    done: Sender<()>,
) where
    T: Clone + Send + 'static,
    R: Read + Send + 'static,
{
    thread::spawn(move || {
        let (tag, sink) = to;
        let mut splitter = Splitter::default();
        if let Some(mut pipe) = pipe {
            let mut buffer = vec![0; 64 << 10];
            while let Some(count) = read_some(&mut pipe, &mut buffer) {
                splitter.push(&buffer[..count], |line| {
                    let _ = sink.send(StreamItem {
                        tag: tag.clone(),
                        what: kind(line),
                    });
                });
            }
        }
        if let Some(line) = splitter.rest() {
            let _ = sink.send(StreamItem {
                tag,
                what: kind(line),
            });
        }
        let _ = done.send(());
    });
}

/// Cuts bytes at line feeds and at nothing else.
#[derive(Default)]
struct Splitter {
    partial: Vec<u8>,
    too_long: bool,
}

impl Splitter {
    fn push(&mut self, mut bytes: &[u8], mut emit: impl FnMut(Vec<u8>)) {
        while let Some(at) = bytes.iter().position(|byte| *byte == b'\n') {
            self.keep(&bytes[..at]);
            if let Some(line) = self.rest() {
                emit(line);
            }
            bytes = &bytes[at + 1..];
        }
        self.keep(bytes);
    }

    fn keep(&mut self, bytes: &[u8]) {
        self.too_long |= self.partial.len() + bytes.len() > MAX_LINE;
        if !self.too_long {
            self.partial.extend_from_slice(bytes);
        }
    }

    fn rest(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.partial);
        let too_long = std::mem::take(&mut self.too_long);
        (!too_long && !line.is_empty()).then_some(line)
    }
}

impl Streaming {
    pub(crate) fn pid(&self) -> u32 {
        self.pid
    }

    /// Asks the child's group to end.
    pub(crate) fn terminate(&self) {
        self.signal(Signal::SIGTERM);
    }

    /// Ends the child's group.
    pub(crate) fn kill(&self) {
        self.signal(Signal::SIGKILL);
    }

    fn signal(&self, signal: Signal) {
        let held = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if held.is_some() {
            let _ = killpg(Pid::from_raw(self.pid.cast_signed()), signal);
        }
    }
}

impl Drop for Streaming {
    fn drop(&mut self) {
        self.kill();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str) -> Invocation {
        Invocation::new("/bin/sh", ["-c", script])
    }

    #[test]
    fn a_stream_hands_on_lines_of_both_pipes_and_then_its_end() {
        let (sink, items) = mpsc::channel();
        let child = stream(
            &sh("printf 'a\\342\\200\\250b\\nc'; echo d >&2; exit 4"),
            7,
            sink,
        )
        .expect("sh starts");
        assert!(child.pid() > 1);
        let mut out = Vec::new();
        let mut err = Vec::new();
        let ending = loop {
            let item: StreamItem<i32> = items.recv().expect("the stream reports its end");
            assert_eq!(item.tag, 7);
            match item.what {
                StreamEvent::Out(line) => out.push(String::from_utf8(line).expect("text")),
                StreamEvent::Err(line) => err.push(line),
                StreamEvent::Ended(ending) => break ending,
            }
        };
        assert_eq!(
            (ending, out, err),
            (
                Ending::Exit(4),
                vec!["a\u{2028}b".to_owned(), "c".to_owned()],
                vec![b"d".to_vec()]
            )
        );
    }

    #[test]
    fn a_terminated_stream_reports_the_signal() {
        let (sink, items) = mpsc::channel();
        let child = stream(&sh("echo up; exec sleep 60"), (), sink).expect("sh starts");
        assert!(matches!(
            items.recv().map(|item| item.what),
            Ok(StreamEvent::Out(_))
        ));
        child.terminate();
        assert!(matches!(
            items.recv().map(|item| item.what),
            Ok(StreamEvent::Ended(Ending::Signal(15)))
        ));
    }

    #[test]
    fn an_overlong_line_is_dropped_and_the_next_one_kept() {
        let mut splitter = Splitter::default();
        let mut lines = Vec::new();
        splitter.push(&vec![b'x'; MAX_LINE + 1], |line| lines.push(line));
        splitter.push(b"\nnext\n", |line| lines.push(line));
        assert_eq!(lines, vec![b"next".to_vec()]);
    }
}
