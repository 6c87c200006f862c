//! What happens with messages, in order: one file per command.
