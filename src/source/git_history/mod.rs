//! `git_history_v0`: what happened in a repository during a window (`docs/spec/generate.md` 3).
//!
//! | file | does |
//! |---|---|
//! | `adapter` | the port: one walk for the newest fact and the snapshot |
//! | `reading` | at most four calls of git, then a snapshot |
//! | `call`, `program` | the hardened calls; which git is there |
//! | `placement` | whether a private file is kept out of version control |
//! | `walk`, `objects` | what git printed, as values |
//! | `message`, `side`, `select` | which commits count, and as what |
//! | `group`, `items` | what belongs together, ranks and limits |
//! | `tags`, `shown`, `words` | wording, and whether a text may be shown |
//!
//! It never writes, fetches or runs hooks, and shows no author, mail address or path of the machine.

mod adapter;
mod call;
mod group;
mod items;
mod message;
mod objects;
mod placement;
mod program;
mod reading;
mod select;
mod shown;
mod side;
mod tags;
mod walk;
mod words;

pub(crate) use adapter::GitHistory;
pub(crate) use placement::GitPlacement;
pub(crate) use program::find as find_program;
