//! What is said about an inbox: its configuration, its events, its packets.
//!
//! An inbox holds private message text and never leaves its owner's machine. One packet shows that text on purpose ([`drained`]); every
//! other one shows counts, states and public keys.

pub mod collector;
pub mod collector_log;
pub mod comment;
pub mod comment_packet;
pub mod config;
pub mod cursor;
pub mod drained;
pub mod event;
pub mod fault;
pub mod gap;
pub mod guidance;
pub mod history_packet;
pub mod link_evidence;
pub mod listener;
pub mod live_event;
pub mod mark_packet;
pub mod notification_packet;
pub mod outbound_packet;
pub mod packet;
pub mod run_packet;
pub mod sentence;
pub mod service_packet;
pub mod stream;
pub mod turn_start;
pub mod urgency;
pub mod words;
