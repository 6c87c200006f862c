//! What loopx decides: pure functions and state machines over contract types.

pub mod channel;
pub mod extension;
pub mod handoff;
pub mod inbox;
pub mod lease;
pub mod periodic_report;
pub mod quota;
pub mod replan;
pub mod todo;
pub mod zone;
pub mod zones;
