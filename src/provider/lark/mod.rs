//! The Lark provider: pure argument vectors and pure readers around one place that calls the program.

mod argv;
mod call;
mod channel;
mod failure;
mod program;
mod read;

pub(crate) use channel::Lark;
pub(crate) use program::find as find_program;
