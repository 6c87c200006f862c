//! Ids and digests of report packets: the recipes of the contract over serialisable values.

use serde::Serialize;
use serde_json::Value;

use crate::contract::digest;
use crate::contract::error::{ContractError, ErrorCode};

/// Returns a packet as the JSON value it prints.
pub fn value_of(packet: &impl Serialize) -> Result<Value, ContractError> {
    serde_json::to_value(packet).map_err(|_| {
        let reason = "could not be written as JSON; report this as a defect";
        ContractError::coded(ErrorCode::InternalError, "the packet", reason)
    })
}

/// `prefix_` and 24 hex digits over the canonical form.
pub fn id_of(prefix: &str, recipe: &impl Serialize) -> Result<String, ContractError> {
    digest::short_id(prefix, &value_of(recipe)?).map_err(not_canonical)
}

/// `sha256:` and 64 hex digits over the canonical form.
pub fn digest_of(packet: &impl Serialize) -> Result<String, ContractError> {
    digest_of_value(&value_of(packet)?)
}

/// As [`digest_of`], of a value that was read.
pub fn digest_of_value(value: &Value) -> Result<String, ContractError> {
    let digest = digest::digest(value).map_err(not_canonical)?;
    Ok(digest.to_string())
}

/// `sha256:` and 64 hex digits of a text as it stands.
pub fn content_digest(text: &str) -> String {
    digest::content_digest(text.as_bytes()).to_string()
}

fn not_canonical(fault: crate::contract::canonical::NotCanonical) -> ContractError {
    ContractError::invalid("the input", fault.to_string())
}

/// Requires a value the caller supplied to equal the derived one.
pub fn require_derived(
    at: impl std::fmt::Display,
    given: Option<&str>,
    derived: &str,
) -> Result<(), ContractError> {
    match given {
        Some(given) if given != derived => Err(ContractError::mismatch(
            at,
            "differs from the value derived from this input",
        )),
        _ => Ok(()),
    }
}
