//! `quota should-run`: what may happen next for one agent of one goal, and why (docs/spec/kernel.md 6).
//!
//! A decision is a function of one snapshot, one question and the clock. It grants nothing by itself: admission, leases and
//! settlement are checked against the state of their own moment.

pub mod cooldown;
pub mod frontier;
pub mod interaction;
pub mod packet;
pub mod places;
pub mod policy;
pub mod refusal;
pub mod refused_gate;
pub mod row;
pub mod snapshot;
pub mod summary;
pub mod user;
pub mod verdict;
