//! Documents whose place and mode the contracts fix: written whole, owner-only.

pub mod capture;
pub mod extension_state;
mod file;
pub mod registry;
