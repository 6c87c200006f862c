//! What is decided about messages that go out: whether what was read back is what was sent.

pub mod inbound;
mod placing;
mod post;
pub mod preview;
pub mod readback;
