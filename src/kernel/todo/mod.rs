//! What may happen to a todo: pure transitions of one record (docs/spec/kernel.md 4.1, 4.4, 5.2).

mod change;
mod complete;
mod lease;
mod rules;

use crate::contract::packet::Refusal;

pub use change::{Update, archive, claim, supersede, update};
pub use complete::{Completion, Continuation, closed_out, complete};
pub use lease::{LeaseProof, check_lease, require_unleased};
pub use rules::{check_new, not_open, require_meant_for, require_not_anothers, touch};

type Outcome<T> = Result<T, Refusal>;
