//! The canonical text forms of a JSON value: the bytes that are hashed.
//!
//! Object keys are sorted by code point at every level. An integer keeps its digits; any other
//! number is read exactly into an `f64` and written with the shortest digits that read back, in
//! the layout `1e-05`, `1e+16`, `100.0`. Display JSON is not made here.

use serde_json::{Map, Number, Value};

/// A value that has no canonical form.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("holds a number outside the range of a 64-bit float")]
pub struct NotCanonical;

/// How a text form separates members and escapes strings.
#[derive(Clone, Copy)]
struct Form {
    item: &'static str,
    key: &'static str,
    ascii: bool,
}

const COMPACT: Form = Form {
    item: ",",
    key: ":",
    ascii: false,
};
const COMPACT_ASCII: Form = Form {
    ascii: true,
    ..COMPACT
};
const SPACED_ASCII: Form = Form {
    item: ", ",
    key: ": ",
    ascii: true,
};

/// Returns the compact form with non-ASCII characters as they are.
pub fn compact(value: &Value) -> Result<String, NotCanonical> {
    write_form(value, COMPACT)
}

/// Returns the compact form with every character outside U+0020..U+007E escaped.
pub fn compact_ascii(value: &Value) -> Result<String, NotCanonical> {
    write_form(value, COMPACT_ASCII)
}

/// Returns the spaced ASCII form, which event ids and exported event lines use.
pub fn spaced_ascii(value: &Value) -> Result<String, NotCanonical> {
    write_form(value, SPACED_ASCII)
}

fn write_form(value: &Value, form: Form) -> Result<String, NotCanonical> {
    let mut out = String::new();
    write_value(&mut out, value, form)?;
    Ok(out)
}

fn write_value(out: &mut String, value: &Value, form: Form) -> Result<(), NotCanonical> {
    match value {
        Value::Null => out.push_str("null"),
        Value::Bool(true) => out.push_str("true"),
        Value::Bool(false) => out.push_str("false"),
        Value::Number(number) => out.push_str(&number_text(number)?),
        Value::String(text) => write_string(out, text, form),
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    out.push_str(form.item);
                }
                write_value(out, item, form)?;
            }
            out.push(']');
        }
        Value::Object(map) => write_object(out, map, form)?,
    }
    Ok(())
}

fn write_object(
    out: &mut String,
    map: &Map<String, Value>,
    form: Form,
) -> Result<(), NotCanonical> {
    let mut members: Vec<(&String, &Value)> = map.iter().collect();
    members.sort_unstable_by(|left, right| left.0.cmp(right.0));
    out.push('{');
    for (index, (key, value)) in members.into_iter().enumerate() {
        if index > 0 {
            out.push_str(form.item);
        }
        write_string(out, key, form);
        out.push_str(form.key);
        write_value(out, value, form)?;
    }
    out.push('}');
    Ok(())
}

fn write_string(out: &mut String, text: &str, form: Form) {
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\u{8}' => out.push_str("\\b"),
            '\u{c}' => out.push_str("\\f"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            '\0'..='\u{1f}' => push_unit(out, character as u16),
            '\u{7f}'.. if form.ascii => {
                for unit in character.encode_utf16(&mut [0; 2]) {
                    push_unit(out, *unit);
                }
            }
            _ => out.push(character),
        }
    }
    out.push('"');
}

fn push_unit(out: &mut String, unit: u16) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push_str("\\u");
    for shift in [12, 8, 4, 0] {
        out.push(char::from(HEX[usize::from(unit >> shift & 0xf)]));
    }
}

/// Returns the canonical text of a number.
pub fn number_text(number: &Number) -> Result<String, NotCanonical> {
    let lexeme = number.as_str();
    if is_integer_lexeme(lexeme) {
        return Ok(lexeme.to_owned());
    }
    match lexeme.parse::<f64>() {
        Ok(float) if float.is_finite() => Ok(float_text(float)),
        _ => Err(NotCanonical),
    }
}

/// Tells whether a JSON number is written as an integer: no fraction and no exponent.
pub fn is_integer_lexeme(lexeme: &str) -> bool {
    !lexeme.contains(['.', 'e', 'E'])
}

fn float_text(float: f64) -> String {
    let mut buffer = zmij::Buffer::new();
    let shortest = buffer.format_finite(float);
    let (sign, unsigned) = match shortest.strip_prefix('-') {
        Some(rest) => ("-", rest),
        None => ("", shortest),
    };
    let (digits, exponent) = digits_and_exponent(unsigned);
    let body = match exponent {
        -4..=15 => plain_layout(&digits, exponent),
        _ => exponent_layout(&digits, exponent),
    };
    format!("{sign}{body}")
}

/// Splits `12.5e3` into its significant digits and the decimal exponent of the first of them.
fn digits_and_exponent(text: &str) -> (String, i32) {
    let (mantissa, written) = match text.split_once(['e', 'E']) {
        // Proof of the fallback: the float writer prints a decimal exponent of at most 3 digits.
        Some((mantissa, exponent)) => (mantissa, exponent.parse::<i32>().unwrap_or(0)),
        None => (text, 0),
    };
    let (whole, fraction) = mantissa.split_once('.').unwrap_or((mantissa, ""));
    let all = format!("{whole}{fraction}");
    let leading = all.len() - all.trim_start_matches('0').len();
    let digits = all.trim_matches('0');
    if digits.is_empty() {
        return ("0".to_owned(), 0);
    }
    let point = i32::try_from(whole.len()).unwrap_or(i32::MAX);
    let skipped = i32::try_from(leading).unwrap_or(i32::MAX);
    (digits.to_owned(), written + point - 1 - skipped)
}

fn plain_layout(digits: &str, exponent: i32) -> String {
    let Ok(point) = usize::try_from(exponent) else {
        let zeros = usize::try_from(-exponent - 1).unwrap_or(0);
        return format!("0.{}{digits}", "0".repeat(zeros));
    };
    if digits.len() <= point + 1 {
        return format!("{digits}{}.0", "0".repeat(point + 1 - digits.len()));
    }
    let (whole, fraction) = digits.split_at(point + 1);
    format!("{whole}.{fraction}")
}

fn exponent_layout(digits: &str, exponent: i32) -> String {
    let (first, rest) = digits.split_at(1);
    let point = if rest.is_empty() { "" } else { "." };
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{first}{point}{rest}e{sign}{:02}", exponent.unsigned_abs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::json;

    fn read(text: &str) -> Value {
        json::parse(text.as_bytes()).expect("test input is JSON")
    }

    #[test]
    fn keys_are_sorted_by_code_point_at_every_level() {
        let value = read("{\"b\":{\"\u{ff5e}\":1,\"\u{1f600}\":2,\"a\":3},\"a\":[ 1 , 2 ]}");
        assert_eq!(
            compact(&value).as_deref(),
            Ok("{\"a\":[1,2],\"b\":{\"a\":3,\"\u{ff5e}\":1,\"\u{1f600}\":2}}")
        );
    }

    #[test]
    fn floats_are_written_in_the_python_layout() {
        let cases = [
            ("1.50", "1.5"),
            ("1e3", "1000.0"),
            ("1E+2", "100.0"),
            ("1e-5", "1e-05"),
            ("0.0001", "0.0001"),
            ("1e16", "1e+16"),
            ("123456789012345678.5", "1.2345678901234568e+17"),
            ("1e15", "1000000000000000.0"),
            ("1.5e300", "1.5e+300"),
            ("-0.0", "-0.0"),
            ("0e9", "0.0"),
            ("1059438285926254.25", "1059438285926254.2"),
            ("-2.5e-7", "-2.5e-07"),
            ("100.0", "100.0"),
        ];
        for (lexeme, expected) in cases {
            assert_eq!(compact(&read(lexeme)).as_deref(), Ok(expected), "{lexeme}");
        }
    }

    #[test]
    fn an_integer_keeps_its_digits_whatever_their_number() {
        let digits = "123456789012345678901234567890";
        assert_eq!(compact(&read(digits)).as_deref(), Ok(digits));
    }

    #[test]
    fn a_float_that_overflows_has_no_canonical_form() {
        let number = Number::from_string_unchecked("1e400".to_owned());
        assert_eq!(compact(&Value::Number(number)), Err(NotCanonical));
    }

    #[test]
    fn the_ascii_forms_escape_delete_and_astral_characters() {
        let value = read("{\"k\":\"\u{7f}\u{e9}\u{1f600}/\\u0001\"}");
        assert_eq!(
            compact_ascii(&value).as_deref(),
            Ok("{\"k\":\"\\u007f\\u00e9\\ud83d\\ude00/\\u0001\"}")
        );
        assert_eq!(
            spaced_ascii(&read("{\"b\":[1,2],\"a\":null}")).as_deref(),
            Ok("{\"a\": null, \"b\": [1, 2]}")
        );
    }
}
