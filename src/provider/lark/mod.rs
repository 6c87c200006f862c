//! The Lark provider: pure argument vectors and pure readers around one place that calls the program.

mod argv;
mod call;
mod channel;
mod click;
mod comment;
mod diagnostics;
mod events;
mod failure;
mod live;
mod oddity;
mod program;
mod read;
#[cfg(test)]
mod recorded;
mod scopes;
mod version;

pub(crate) use channel::Lark;
pub(crate) use comment::LarkComments;
pub(crate) use events::LarkStreams;
pub(crate) use program::find as find_program;
pub(crate) use scopes::recommended as recommended_scopes;
pub(crate) use version::{is_compatible, located};
