//! Who loopx talks to: one folder per provider, nothing shared between folders.
