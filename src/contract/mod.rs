//! What loopx says: typed packets and journal events, ids, parsing, canonical JSON and digests.
//!
//! Nothing here reads a clock, a file or the environment, and nothing here decides. Outside data
//! enters through [`json`] (strict reading) and [`parse`] (one typed cursor per object); every
//! digest leaves through [`digest`].

pub mod canonical;
pub mod channel;
pub mod clean;
pub mod digest;
pub mod error;
pub mod event;
pub mod extension;
pub mod extension_scopes;
pub mod goal;
pub mod handoff;
pub mod ids;
pub mod inbox;
pub mod json;
pub mod lease;
pub mod maintenance;
pub mod packet;
pub mod parse;
pub mod periodic_report;
pub mod private;
pub mod public_safety;
pub mod quota_policy;
mod registry_entry;
pub mod scope;
pub mod settlement;
pub mod text;
pub mod time;
pub mod todo;
pub mod todo_timing;
pub mod turn;
pub mod vision;
pub mod web_address;
