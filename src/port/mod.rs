//! What loopx needs from outside, as traits.

pub mod channel;
pub mod clock;
pub mod comments;
pub mod events;
pub mod host;
pub mod ids;
pub mod placement;
pub mod source;
pub mod supervisor;
pub mod tools;
