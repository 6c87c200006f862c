//! `handoff prepare|inspect|adopt`: a Todo passes from one session or agent to the next.
//!
//! prepare: 1. replay by operation id  2. actor, Todo, owner  3. revision guard  4. note, event and receipt in
//! one transaction  5. read the note back. adopt: 1. replay by operation id, then look at the present state
//! 2. agents, Todo  3. revision guard  4. note, session, artifacts  5. owner, event and receipt in one
//! transaction  6. read the Todo back. The grant of a transfer is made here and never taken from a caller.

mod adopt;
mod inspect;
mod operation;
mod prepare;

pub use adopt::{Target, adopt};
pub use inspect::inspect;
pub use operation::{Operation, Subject};
pub use prepare::prepare;
