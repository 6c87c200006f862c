//! What inbox flows need from outside; built once at the door and opened lazily.

use crate::port::channel::ChannelProvider;

/// Makes the providers of a command.
pub trait Providers {
    /// The chat provider behind the configured program, or the usual one.
    fn channel(&self, program: Option<String>) -> Box<dyn ChannelProvider>;
}
