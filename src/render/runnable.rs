//! Which references a viewer of Markdown would run instead of follow.
//!
//! A viewer undoes entities and backslashes, ignores white space and control characters, and finds
//! further links inside a broken one. All of that is undone here before the scheme is looked at
//! (`docs/spec/generate.md` 5).

use crate::contract::clean::{REPLACEMENT, is_invisible_mark, is_steering};
use crate::contract::text;

const SCHEMES: [&str; 3] = ["javascript:", "data:", "vbscript:"];
/// Entities that stand for characters of a scheme or for what is ignored in one.
const NAMED: [(&str, char); 7] = [
    ("colon", ':'),
    ("Tab", '\t'),
    ("NewLine", '\n'),
    ("nbsp", '\u{a0}'),
    ("lpar", '('),
    ("lt", '<'),
    ("shy", '\u{200e}'),
];

/// Tells whether a reference, or a link hidden in it, has a scheme that runs.
pub(crate) fn is_runnable(reference: &str) -> bool {
    let plain = undone(reference);
    let starts = |text: &str| SCHEMES.iter().any(|scheme| text.starts_with(scheme));
    let inner = plain
        .match_indices(['(', '<'])
        .any(|(at, mark)| starts(&plain[at + mark.len()..]));
    starts(&plain) || inner
}

/// The reference as a viewer understands it: lower case, without what it ignores.
fn undone(reference: &str) -> String {
    let mut out = String::with_capacity(reference.len());
    let mut rest = reference;
    while let Some(character) = rest.chars().next() {
        let (found, length) = entity(rest).unwrap_or((character, character.len_utf8()));
        rest = &rest[length..];
        let is_ignored = text::is_space(found)
            || is_steering(found)
            || is_invisible_mark(found)
            || found == REPLACEMENT
            || found == '\\';
        if !is_ignored {
            out.extend(found.to_lowercase());
        }
    }
    out
}

/// Reads an entity at the start of a text: its character and its length.
fn entity(text: &str) -> Option<(char, usize)> {
    let body = text.strip_prefix('&')?;
    let end = body.find(';').filter(|end| *end <= 10)?;
    let name = &body[..end];
    let numeric = name.strip_prefix('#').and_then(|digits| {
        match digits.strip_prefix(['x', 'X']) {
            Some(hex) => u32::from_str_radix(hex, 16).ok(),
            None => digits.parse().ok(),
        }
        .and_then(char::from_u32)
    });
    let named = NAMED
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, character)| *character);
    numeric.or(named).map(|character| (character, end + 2))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn schemes_that_can_run_are_seen_through_every_disguise() {
        for reference in [
            "javascript:alert(1)",
            " JaVa\tScript\u{0}:x",
            "\u{202e}data:text/html,x",
            "VBSCRIPT:x",
            "&#106;avascript:alert(1)",
            "&#x6A;avascript:alert(1)",
            "javascript&colon;alert(1)",
            "java&Tab;script:alert(1)",
            "javascript\\:alert(1)",
            "<javascript:alert(1)>",
            "x) [evil](javascript:alert(1)",
            "x) <java&NewLine;script:alert(1)>",
        ] {
            assert!(is_runnable(reference), "{reference:?}");
        }
    }

    #[test]
    fn ordinary_references_are_followed() {
        for reference in [
            "https://a.example/javascript:x",
            "ledger:data:1",
            "metadata:7",
            "https://evil.example/<x>",
            "https://evil.example\\@good.example/",
            "a&b;c",
            "&",
        ] {
            assert!(!is_runnable(reference), "{reference:?}");
        }
    }

    proptest! {
        #[test]
        fn any_reference_is_judged(reference in "\\PC{0,40}") {
            let _ = is_runnable(&reference);
        }
    }
}
