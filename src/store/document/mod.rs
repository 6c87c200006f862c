//! Documents whose place and mode the contracts fix: written whole, owner-only.

pub mod binding;
pub mod capture;
pub mod collector_config;
pub mod collector_log;
pub mod collector_service;
pub mod collector_state;
pub mod extension_state;
mod file;
pub mod history_cursor;
pub mod registry;
pub mod target;
