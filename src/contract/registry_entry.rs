//! Members of a registry entry, read strictly: an operator may have written them by hand.

use serde_json::{Map, Value};

use super::error::{ContractError, ErrorCode};
use super::parse::Label;

/// What was read, or where the registry cannot be used.
pub(super) type Parsed<T> = Result<T, ContractError>;

/// A registry that cannot be used, with the place of what is wrong.
pub(super) fn invalid(at: impl std::fmt::Display, reason: &'static str) -> ContractError {
    ContractError::coded(ErrorCode::RegistryInvalid, at, reason)
}

/// Reads an object.
pub(super) fn object<'a>(at: &Label, value: &'a Value) -> Parsed<&'a Map<String, Value>> {
    value
        .as_object()
        .ok_or_else(|| invalid(at, "must be an object"))
}

/// Reads a text that may be absent.
pub(super) fn text<'a>(
    at: &Label,
    map: &'a Map<String, Value>,
    name: &str,
) -> Parsed<Option<&'a str>> {
    match map.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(invalid(at.field(name), "must be a text")),
    }
}

/// Reads a list of texts; an absent one is empty.
pub(super) fn texts(at: &Label, value: Option<&Value>) -> Parsed<Vec<String>> {
    match value {
        None | Some(Value::Null) => Ok(Vec::new()),
        Some(Value::Array(items)) => items
            .iter()
            .map(|item| {
                item.as_str()
                    .map(str::to_owned)
                    .ok_or_else(|| invalid(at, "must hold texts"))
            })
            .collect(),
        Some(_) => Err(invalid(at, "must be a list")),
    }
}
