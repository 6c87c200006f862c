//! Who runs a turn.
