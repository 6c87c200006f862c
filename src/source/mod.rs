//! Where facts come from: one file or folder per source adapter.

pub(crate) mod git_history;
