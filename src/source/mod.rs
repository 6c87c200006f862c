//! Where facts come from: one file or folder per source adapter.

pub(crate) mod facts_file;
pub(crate) mod git_history;
pub(crate) mod project_progress;
