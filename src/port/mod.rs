//! What loopx needs from outside, as traits.
