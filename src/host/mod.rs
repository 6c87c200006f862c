//! Who runs a turn.

pub(crate) mod codex_cli;
pub(crate) mod exec;
pub(crate) mod supervisor;
