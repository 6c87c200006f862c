//! The strict reader of JSON from outside.
//!
//! Refused: anything but one value, duplicate keys at any depth, nesting beyond 127 levels,
//! numbers outside a 64-bit float, a byte-order mark, invalid UTF-8, lone surrogates. Numbers keep
//! the spelling they came with, so what is given back is what was read.

use std::fmt;

use serde::de::{Deserializer as _, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
use serde_json::{Map, Number, Value};

use super::canonical;

/// The largest document a command reads, in bytes.
pub const MAX_INPUT_BYTES: u64 = 16_777_216;
/// The deepest nesting that is read.
pub const MAX_DEPTH: usize = 127;
/// The deepest nesting of what we kept ourselves: the same, with room for the rows and journals around it.
const MAX_KEPT_DEPTH: usize = 160;

/// Why bytes are not the JSON we read. It never holds any of the input.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum JsonFault {
    /// Not one well-formed value in UTF-8.
    #[error("is not one well-formed JSON value in UTF-8")]
    Malformed,
    /// One key twice in one object.
    #[error("has the same key twice in one object")]
    DuplicateKey,
    /// Deeper than [`MAX_DEPTH`].
    #[error("is nested deeper than 127 levels")]
    TooDeep,
    /// A number whose value no 64-bit float holds.
    #[error("holds a number outside the range of a 64-bit float")]
    NumberRange,
    /// A value of another type where an object is needed.
    #[error("is not a JSON object")]
    NotAnObject,
}

/// Reads one JSON value.
pub fn parse(bytes: &[u8]) -> Result<Value, JsonFault> {
    let raw: &RawValue = serde_json::from_slice(bytes).map_err(|_| JsonFault::Malformed)?;
    convert(raw, MAX_DEPTH)
}

/// Reads one value that was kept by us: what came from outside lies some levels deeper in it than it came.
pub fn parse_kept_value(bytes: &[u8]) -> Result<Value, JsonFault> {
    let raw: &RawValue = serde_json::from_slice(bytes).map_err(|_| JsonFault::Malformed)?;
    convert(raw, MAX_KEPT_DEPTH)
}

/// Reads one object that was kept by us.
pub fn parse_kept(bytes: &[u8]) -> Result<Map<String, Value>, JsonFault> {
    match parse_kept_value(bytes)? {
        Value::Object(map) => Ok(map),
        _ => Err(JsonFault::NotAnObject),
    }
}

/// Reads one JSON object.
pub fn parse_object(bytes: &[u8]) -> Result<Map<String, Value>, JsonFault> {
    match parse(bytes)? {
        Value::Object(map) => Ok(map),
        _ => Err(JsonFault::NotAnObject),
    }
}

/// Serialises a packet for display: indented by two, non-ASCII as it is, a final newline.
pub fn pretty(value: &impl serde::Serialize) -> Result<String, serde_json::Error> {
    let mut text = serde_json::to_string_pretty(value)?;
    text.push('\n');
    Ok(text)
}

fn convert(raw: &RawValue, left: usize) -> Result<Value, JsonFault> {
    let text = raw.get();
    let first = text.as_bytes().first().copied().unwrap_or(b' ');
    match first {
        b'{' | b'[' if left == 0 => Err(JsonFault::TooDeep),
        b'{' => convert_object(text, left),
        b'[' => convert_array(text, left),
        b'"' => serde_json::from_str(text)
            .map(Value::String)
            .map_err(|_| JsonFault::Malformed),
        b't' => Ok(Value::Bool(true)),
        b'f' => Ok(Value::Bool(false)),
        b'n' => Ok(Value::Null),
        _ => convert_number(text),
    }
}

fn convert_number(text: &str) -> Result<Value, JsonFault> {
    // `RawValue` has validated the grammar; this keeps the spelling, which the usual path rewrites.
    let number = Number::from_string_unchecked(text.to_owned());
    canonical::number_text(&number).map_err(|_| JsonFault::NumberRange)?;
    Ok(Value::Number(number))
}

fn convert_object(text: &str, left: usize) -> Result<Value, JsonFault> {
    let members = serde_json::Deserializer::from_str(text)
        .deserialize_map(Members)
        .map_err(|_| JsonFault::Malformed)?;
    let mut map = Map::with_capacity(members.len());
    for (key, raw) in members {
        if map.insert(key, convert(raw, left - 1)?).is_some() {
            return Err(JsonFault::DuplicateKey);
        }
    }
    Ok(Value::Object(map))
}

fn convert_array(text: &str, left: usize) -> Result<Value, JsonFault> {
    let items = serde_json::Deserializer::from_str(text)
        .deserialize_seq(Items)
        .map_err(|_| JsonFault::Malformed)?;
    items
        .into_iter()
        .map(|raw| convert(raw, left - 1))
        .collect::<Result<Vec<_>, _>>()
        .map(Value::Array)
}

struct Members;

impl<'de> Visitor<'de> for Members {
    type Value = Vec<(String, &'de RawValue)>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut members = Vec::new();
        while let Some(member) = map.next_entry()? {
            members.push(member);
        }
        Ok(members)
    }
}

struct Items;

impl<'de> Visitor<'de> for Items {
    type Value = Vec<&'de RawValue>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let mut items = Vec::new();
        while let Some(item) = seq.next_element()? {
            items.push(item);
        }
        Ok(items)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn numbers_keep_their_spelling() {
        let text = r#"{"a":[1E+2,1.0,-0,1.50,12345678901234567890123456789]}"#;
        let value = parse(text.as_bytes()).expect("valid");
        assert_eq!(serde_json::to_string(&value).expect("serialises"), text);
    }

    #[test]
    fn what_is_not_one_strict_value_is_refused() {
        let deep = format!("{}{}", "[".repeat(128), "]".repeat(128));
        let cases: [(&[u8], JsonFault); 12] = [
            (b"", JsonFault::Malformed),
            (b"{} {}", JsonFault::Malformed),
            (b"NaN", JsonFault::Malformed),
            (b"\xef\xbb\xbf{}", JsonFault::Malformed),
            (b"\"\\ud800\"", JsonFault::Malformed),
            (b"\"\xff\"", JsonFault::Malformed),
            (b"{\"a\":1,\"a\":2}", JsonFault::DuplicateKey),
            (
                b"[{\"a\":{\"b\":1,\"\\u0062\":2}}]",
                JsonFault::DuplicateKey,
            ),
            (b"1e400", JsonFault::NumberRange),
            (b"01", JsonFault::Malformed),
            (b"[1,]", JsonFault::Malformed),
            (deep.as_bytes(), JsonFault::TooDeep),
        ];
        for (bytes, fault) in cases {
            assert_eq!(
                parse(bytes),
                Err(fault),
                "{:?}",
                String::from_utf8_lossy(bytes)
            );
        }
        assert_eq!(parse_object(b"[]"), Err(JsonFault::NotAnObject));
    }

    #[test]
    fn the_deepest_allowed_nesting_is_read() {
        let text = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
        assert!(parse(text.as_bytes()).is_ok());
    }

    #[test]
    fn a_stranger_cannot_forge_a_number() {
        let value = parse(br#"{"$serde_json::private::Number":"7"}"#).expect("an object");
        assert!(value.is_object());
    }

    proptest! {
        #[test]
        fn any_bytes_give_a_value_or_a_fault(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = parse(&bytes);
        }

        #[test]
        fn what_serde_accepts_with_unique_keys_reads_equal(text in "[\\[\\]{}:,\"a-c0-9.eE+\\- ]{0,40}") {
            if let (Ok(ours), Ok(theirs)) = (parse(text.as_bytes()), serde_json::from_str::<Value>(&text)) {
                prop_assert_eq!(canonical::compact(&ours), canonical::compact(&theirs));
            }
        }
    }
}
