//! The progress of a long read on a terminal: one line on standard error that is written over and wiped at the end. Anywhere else nothing.

use std::cell::Cell;
use std::io::{self, IsTerminal, Write};

use crate::flow::inbox::progress::{Progress, Step};

/// Shows steps where a person looks.
pub(super) struct TerminalProgress {
    is_shown: bool,
    width: Cell<usize>,
}

impl TerminalProgress {
    /// Looks whether standard error is a terminal.
    pub(super) fn new() -> Self {
        Self {
            is_shown: io::stderr().is_terminal(),
            width: Cell::new(0),
        }
    }

    fn write_over(&self, text: &str) {
        let before = self.width.replace(text.len());
        // A terminal that is gone is no reason to stop reading.
        let mut out = io::stderr().lock();
        let _ = write!(out, "\r{text:<before$}").and_then(|()| out.flush());
    }
}

impl Progress for TerminalProgress {
    fn step(&self, step: Step) {
        if self.is_shown {
            self.write_over(&line(step));
        }
    }
}

impl Drop for TerminalProgress {
    fn drop(&mut self) {
        if self.width.get() > 0 {
            self.write_over("");
            let mut out = io::stderr().lock();
            let _ = out.write_all(b"\r").and_then(|()| out.flush());
        }
    }
}

fn line(step: Step) -> String {
    match step {
        Step::Page { pages, messages } => {
            format!("reading page {} ({messages} messages before it)", pages + 1)
        }
        Step::Thread { number, of, page } => {
            format!("reading thread {number} of {of}, page {page}")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_one_line_of_counts() {
        let page = Step::Page {
            pages: 2,
            messages: 100,
        };
        assert_eq!(line(page), "reading page 3 (100 messages before it)");
        let thread = Step::Thread {
            number: 1,
            of: 4,
            page: 7,
        };
        assert_eq!(line(thread), "reading thread 1 of 4, page 7");
    }
}
