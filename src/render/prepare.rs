//! Preparing one value for a reader: cleaning, redaction, white space, limit.
//!
//! Both renderers use this for every value, so a digest over either says the same about hostile
//! text (`docs/spec/report-design.md` 7, `docs/spec/periodic-report-core.md` 9). Escaping is not
//! done here.

use std::borrow::Cow;

use crate::contract::clean::clean;
use crate::contract::text;

const REDACTED: &str = "<local-path-redacted>";
const ROOTS: [&str; 5] = ["Users/", "home/", "private/", "tmp/", "var/"];

/// Cleans, trims, redacts local paths, collapses white space and cuts to `limit` scalar values.
pub(crate) fn prepare(value: &str, limit: usize) -> Cow<'_, str> {
    if is_plain(value) {
        return cut(Cow::Borrowed(value), limit);
    }
    let cleaned = clean(value);
    let redacted = redact(text::trim(&cleaned));
    cut(Cow::Owned(text::collapse(&redacted)), limit)
}

/// Most values: printable ASCII with single inner spaces and nothing that could be a path.
fn is_plain(value: &str) -> bool {
    let bytes = value.as_bytes();
    let edges = bytes.first() != Some(&b' ') && bytes.last() != Some(&b' ');
    edges
        && bytes.iter().all(|byte| (b' '..=b'~').contains(byte))
        && !value.contains("  ")
        && !bytes.contains(&b'/')
}

fn cut(value: Cow<'_, str>, limit: usize) -> Cow<'_, str> {
    if !text::is_longer_than(&value, limit) {
        return value;
    }
    let kept = text::prefix(&value, limit - 1).trim_end_matches(text::is_space);
    Cow::Owned(format!("{kept}..."))
}

fn redact(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.find('/') {
        let Some(length) = path_length(&rest[at + 1..]) else {
            out.push_str(&rest[..=at]);
            rest = &rest[at + 1..];
            continue;
        };
        out.push_str(&rest[..at]);
        out.push_str(REDACTED);
        rest = &rest[at + 1 + length..];
    }
    out.push_str(rest);
    out
}

/// Returns the bytes of a local path after its first slash, none when it is not one.
fn path_length(after_slash: &str) -> Option<usize> {
    let root = ROOTS.iter().find(|root| after_slash.starts_with(**root))?;
    let tail = &after_slash[root.len()..];
    let ends = |character: char| text::is_space(character) || "`|,)".contains(character);
    match tail.find(ends).unwrap_or(tail.len()) {
        0 => None,
        length => Some(root.len() + length),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::clean::{is_invisible_mark, is_steering};
    use proptest::prelude::*;

    #[test]
    fn ordinary_text_is_unchanged_and_not_copied() {
        assert!(matches!(prepare("Berth 4 is open.", 240), Cow::Borrowed(_)));
        assert_eq!(prepare("泊位 4：开放", 240), "泊位 4：开放");
    }

    #[test]
    fn steering_characters_show_and_marks_vanish() {
        assert_eq!(
            prepare("a\u{202e}b\u{2066}c\u{200f}d\u{feff}e\u{1b}f", 99),
            "a\u{fffd}b\u{fffd}cde\u{fffd}f"
        );
        assert_eq!(
            prepare("x\u{200d}y\u{85}z\u{9b}", 99),
            "x\u{200d}y z\u{fffd}"
        );
    }

    #[test]
    fn local_paths_are_redacted_up_to_their_end() {
        assert_eq!(
            prepare("see /home/ann/x.txt, /var/log|b /tmp/ /opt/x", 99),
            "see <local-path-redacted>, <local-path-redacted>|b /tmp/ /opt/x"
        );
    }

    #[test]
    fn a_long_value_keeps_one_less_than_its_limit_before_the_dots() {
        assert_eq!(prepare("abcdef", 6), "abcdef");
        assert_eq!(prepare("abcdefg", 6), "abcde...");
        assert_eq!(prepare("abcd fg", 6), "abcd...");
    }

    proptest! {
        #[test]
        fn no_prepared_text_can_steer_a_viewer(value in any::<String>()) {
            let prepared = prepare(&value, 100);
            prop_assert!(!prepared.chars().any(|c| is_steering(c) || is_invisible_mark(c)));
            prop_assert_eq!(text::trim(&prepared), &*prepared);
            prop_assert!(text::length(&prepared) <= 102);
        }

        #[test]
        fn the_quick_way_says_the_same(value in "[ a-z/]{0,20}") {
            let slow = text::collapse(&redact(text::trim(&clean(&value))));
            prop_assert_eq!(prepare(&value, 100), slow);
        }
    }
}
