//! Who loopx talks to: one folder per provider, nothing shared between folders.

pub(crate) mod lark;
