//! `todo add|list|claim|update|complete|supersede|archive-completed`: plain bookkeeping, one transaction each.

mod add;
mod archive;
mod change;
mod complete;
mod store;

pub use add::{NewTodo, add, list};
pub use archive::archive_completed;
pub use change::{claim, supersede, update};
pub use complete::{Complete, complete, completion_event};
pub use store::{revision_text, store_change, unknown_todo};
