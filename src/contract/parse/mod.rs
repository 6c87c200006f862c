//! One typed cursor over an object from outside.
//!
//! `Fields` hands out members by name, says exactly where a fault is, and refuses what it was not
//! asked for when the object is closed. A fault never repeats the offending value.

mod fields;
mod label;
mod read;

use super::error::ContractError;

pub use fields::Fields;
pub use label::Label;
pub use read::{
    at_most, read_boolean, read_choice, read_integer, read_list, read_text, read_timestamp,
    read_token, read_version,
};

type Parsed<T> = Result<T, ContractError>;
