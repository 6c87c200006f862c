//! What loopx needs from outside, as traits.

pub mod channel;
