//! Documents whose place and mode the contracts fix: written whole, owner-only.

pub mod extension_state;
mod file;
pub mod capture;
pub mod registry;
