//! Who runs a turn.

pub(crate) mod exec;
