//! The rows of the state store, one file per kind: append with compare, load.

pub mod gate;
pub mod hook;
pub mod lease;
pub mod receipt;
pub mod run;
pub mod settlement;
pub mod todo;
pub mod turn;
pub mod vision;
