//! `git_history_v0`: what happened in a repository during a window (`docs/spec/generate.md` 3).
//!
//! | file | does |
//! |---|---|
//! | `adapter` | the port: one walk for the newest fact and the snapshot |
//! | `reading` | at most four calls of git, then a snapshot |
//! | `call` | the hardened calls |
//! | `walk` | what git printed, as values |
//! | `message`, `side`, `select` | which commits count, and as what |
//! | `items`, `words` | groups, ranks, limits and wording |
//!
//! It never writes, fetches or runs hooks, and shows no author, mail address or path of the machine.

mod adapter;
mod call;
mod items;
mod message;
mod program;
mod reading;
mod select;
mod side;
mod walk;
mod words;

pub(crate) use adapter::GitHistory;
pub(crate) use program::find as find_program;
