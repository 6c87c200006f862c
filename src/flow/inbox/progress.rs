//! Who is told how far a long read is. Counts only.

/// How far a read is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// A page of history is asked for, after so many pages and messages of its window.
    Page { pages: u64, messages: u64 },
    /// A cut thread is read: which one of how many, and which page of it.
    Thread {
        number: usize,
        of: usize,
        page: usize,
    },
}

/// Is told how far a long read is.
pub trait Progress {
    /// Takes one step.
    fn step(&self, step: Step);
}

/// Tells nobody.
#[derive(Clone, Copy, Debug)]
pub struct Silent;

impl Progress for Silent {
    fn step(&self, _step: Step) {}
}
