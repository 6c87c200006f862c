//! What loopx decides: pure functions and state machines over contract types.

pub mod channel;
pub mod checkpoint;
pub mod extension;
pub mod handoff;
pub mod hooks;
pub mod inbox;
pub mod intent;
pub mod lease;
pub mod periodic_report;
pub mod quota;
pub mod refresh;
pub mod replan;
pub mod todo;
pub mod turn;
pub mod write_scope;
pub mod zone;
