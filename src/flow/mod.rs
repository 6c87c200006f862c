//! What happens, in order: one file per effectful command.
