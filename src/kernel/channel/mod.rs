//! What is decided about messages that go out: whether what was read back is what was sent.

mod placing;
mod post;
pub mod preview;
pub mod readback;
