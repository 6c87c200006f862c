//! What happens, in order: one file per effectful command.

pub mod extension;
pub mod inbox;
mod mode;
pub mod place;
pub mod report_contract;

pub use mode::Mode;
