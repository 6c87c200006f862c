//! What is said about an inbox: its configuration, its events, its packets.
//!
//! An inbox holds private message text and never leaves its owner's machine. One packet shows that text on purpose ([`drained`]); every
//! other one shows counts, states and public keys.

pub mod collector;
pub mod config;
pub mod cursor;
pub mod event;
pub mod fault;
pub mod words;
