//! One Turn: from a decision to a settled result (docs/spec/kernel.md 7, 9, 10).
//!
//! | file | decides |
//! |---|---|
//! | `source` | what the complete source is and whether it may be executed |
//! | `project`, `envelope` | how the source is shown: action, identity, authority, settlement and their digests |
//! | `plan` | the route, the session and the transaction |
//! | `dispatch` | whether envelope, plan and request still agree |
//! | `admit` | whether today's state admits the Turn |
//! | `journal`, `recover` | the status that follows from each event, and where a broken Turn goes on |

pub mod admit;
pub mod controls;
pub mod dispatch;
pub mod envelope;
pub mod journal;
pub mod plan;
pub mod project;
pub mod recover;
pub mod source;
