//! One value from outside, read into a type that cannot be wrong.

use std::ops::RangeInclusive;

use serde_json::Value;

use super::{Label, Parsed};
use crate::contract::canonical::is_integer_lexeme;
use crate::contract::error::ContractError;
use crate::contract::ids::{Token, Version};
use crate::contract::text;
use crate::contract::time::Timestamp;

/// Reads a trimmed text whose length lies in `1..=max`.
pub fn read_text(at: &Label, value: &Value, max: usize) -> Parsed<String> {
    let trimmed = text::trim(as_str(at, value)?);
    if trimmed.is_empty() {
        return Err(ContractError::invalid(at, "must not be empty"));
    }
    if text::is_longer_than(trimmed, max) {
        let reason = format!("must be at most {max} characters long");
        return Err(ContractError::invalid(at, reason));
    }
    Ok(trimmed.to_owned())
}

/// Reads a token, trimmed and lower-cased.
pub fn read_token(at: &Label, value: &Value) -> Parsed<Token> {
    let reason = "must be a token: a letter, then letters, digits, _ . or -, at most 128";
    Token::normalize(as_str(at, value)?).ok_or_else(|| ContractError::invalid(at, reason))
}

/// Reads a version, trimmed and lower-cased.
pub fn read_version(at: &Label, value: &Value) -> Parsed<Version> {
    let reason = "must be a version: letters, digits, _ . + or -, at most 128";
    Version::normalize(as_str(at, value)?).ok_or_else(|| ContractError::invalid(at, reason))
}

/// Reads an instant.
pub fn read_timestamp(at: &Label, value: &Value) -> Parsed<Timestamp> {
    let text = read_text(at, value, 80)?;
    let reason = "must be a date and time with a UTC offset, such as 2026-05-08T09:30:00Z";
    Timestamp::parse(&text).ok_or_else(|| ContractError::invalid(at, reason))
}

/// Reads a JSON boolean.
pub fn read_boolean(at: &Label, value: &Value) -> Parsed<bool> {
    value
        .as_bool()
        .ok_or_else(|| ContractError::invalid(at, "must be true or false"))
}

/// Reads an integer: a JSON integer, a float without fraction, or decimal digits in a text.
pub fn read_integer(at: &Label, value: &Value, range: RangeInclusive<i64>) -> Parsed<i64> {
    let wrong = || ContractError::invalid(at, "must be an integer");
    let outside = || {
        let reason = format!("must lie between {} and {}", range.start(), range.end());
        ContractError::invalid(at, reason)
    };
    let number = match value {
        Value::Number(number) if is_integer_lexeme(number.as_str()) => {
            number.as_str().parse().map_err(|_| outside())?
        }
        Value::Number(number) => whole_float(number.as_str()).ok_or_else(wrong)?,
        Value::String(digits) => parse_digits(text::trim(digits)).ok_or_else(wrong)?,
        _ => return Err(wrong()),
    };
    if range.contains(&number) {
        return Ok(number);
    }
    Err(outside())
}

fn whole_float(lexeme: &str) -> Option<i64> {
    // Below 2^53 every whole float is an exact integer; all our ranges end far below it.
    const EXACT: f64 = 9_007_199_254_740_992.0;
    let float: f64 = lexeme.parse().ok()?;
    let is_whole = float.fract() == 0.0 && float.abs() < EXACT;
    #[allow(clippy::cast_possible_truncation)]
    is_whole.then_some(float as i64)
}

fn parse_digits(text: &str) -> Option<i64> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_decimal = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    is_decimal.then(|| text.parse().ok()).flatten()
}

/// Reads one of the named choices, spelled exactly.
pub fn read_choice<T: Copy>(at: &Label, value: &Value, choices: &[(&str, T)]) -> Parsed<T> {
    let found = as_str(at, value)?;
    if let Some((_, choice)) = choices.iter().find(|(name, _)| *name == found) {
        return Ok(*choice);
    }
    let names: Vec<&str> = choices.iter().map(|(name, _)| *name).collect();
    let reason = format!("must be one of: {}", names.join(", "));
    Err(ContractError::invalid(at, reason))
}

/// Returns the items of a list, each with its place.
pub fn read_list<'a>(at: &Label, value: &'a Value) -> Parsed<Vec<(Label, &'a Value)>> {
    let Value::Array(items) = value else {
        return Err(ContractError::invalid(at, "must be a list"));
    };
    let labelled = items.iter().enumerate();
    Ok(labelled
        .map(|(index, item)| (at.item(index), item))
        .collect())
}

/// Requires a list to hold at most `max` entries.
pub fn at_most<T>(at: &Label, items: &[T], max: usize) -> Parsed<()> {
    if items.len() <= max {
        return Ok(());
    }
    let reason = format!("must hold at most {max} entries");
    Err(ContractError::invalid(at, reason))
}

fn as_str<'a>(at: &Label, value: &'a Value) -> Parsed<&'a str> {
    value
        .as_str()
        .ok_or_else(|| ContractError::invalid(at, "must be a text"))
}

pub(super) fn must_be(at: Label, expected: &str) -> ContractError {
    ContractError::invalid(at, format!("must be {expected}"))
}
