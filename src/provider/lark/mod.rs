//! The Lark provider: pure argument vectors and pure readers around one place that calls the program.

mod argv;
mod call;
mod channel;
mod failure;
mod read;

pub(crate) use channel::Lark;
