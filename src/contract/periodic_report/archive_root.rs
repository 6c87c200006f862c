//! The root of an archive: `viking://resources/` and at least one safe path segment.

use serde_json::Value;

use crate::contract::error::ContractError;
use crate::contract::parse::{Label, read_text};

/// A root that cannot lead out of the resource space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArchiveRoot(String);

impl ArchiveRoot {
    /// Reads a root; trailing slashes are dropped.
    pub fn parse(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let text = read_text(at, value, 500)?;
        let trimmed = text.trim_end_matches('/');
        match is_root(trimmed) {
            true => Ok(Self(trimmed.to_owned())),
            false => Err(ContractError::invalid(
                at,
                "must be viking://resources/ and a path without dot segments, query or fragment",
            )),
        }
    }

    /// Returns the root without a trailing slash.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_root(text: &str) -> bool {
    let Some((scheme, rest)) = text.split_once("://") else {
        return false;
    };
    let Some((host, path)) = rest.split_once('/') else {
        return false;
    };
    scheme.eq_ignore_ascii_case("viking")
        && host == "resources"
        && !path.is_empty()
        && path.split('/').all(is_safe_segment)
}

/// A segment that stays one segment after decoding, and cannot be decoded further.
fn is_safe_segment(segment: &str) -> bool {
    let has_mark = |text: &str| text.contains(['/', '\\', '?', '#']);
    if segment.is_empty() || has_mark(segment) || segment.chars().any(char::is_whitespace) {
        return false;
    }
    let Some(decoded) = percent_decode(segment) else {
        return false;
    };
    let is_stable = percent_decode(&decoded).as_deref() == Some(decoded.as_str());
    is_stable
        && decoded != "."
        && decoded != ".."
        && !has_mark(&decoded)
        && !decoded.chars().any(char::is_control)
}

/// Decodes `%xx`; a percent sign that starts no code stays, bytes that are no UTF-8 are none.
fn percent_decode(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let code = (bytes[at] == b'%')
            .then(|| text.get(at + 1..at + 3))
            .flatten()
            .filter(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()))
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        match code {
            Some(byte) => {
                out.push(byte);
                at += 3;
            }
            None => {
                out.push(bytes[at]);
                at += 1;
            }
        }
    }
    String::from_utf8(out).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(text: &str) -> Option<String> {
        ArchiveRoot::parse(&Label::root(), &Value::from(text))
            .ok()
            .map(|root| root.0)
    }

    #[test]
    fn a_plain_root_loses_its_trailing_slash() {
        let expected = Some("viking://resources/harbor/reports".to_owned());
        assert_eq!(root("viking://resources/harbor/reports/"), expected);
        assert!(root("viking://resources/caf%C3%A9").is_some());
    }

    #[test]
    fn whatever_could_leave_the_space_is_refused() {
        for text in [
            "http://resources/a",
            "viking://other/a",
            "viking://resources",
            "viking://resources/",
            "viking://resources/../a",
            "viking://resources/%2e%2e/a",
            "viking://resources/%252e%252e/a",
            "viking://resources/a%2Fb",
            "viking://resources/a?b",
            "viking://resources/a#b",
            "viking://resources/a\\b",
            "viking://resources/a//b",
            "viking://user@resources/a",
            "viking://resources:80/a",
            "viking://resources/%ff",
        ] {
            assert_eq!(root(text), None, "{text}");
        }
    }
}
