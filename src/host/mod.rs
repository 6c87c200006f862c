//! Who runs a turn.

pub(crate) mod exec;
pub(crate) mod supervisor;
