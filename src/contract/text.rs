//! Bounded text: white space, trimming, cutting and the two token grammars.
//!
//! Limits count Unicode scalar values. The white space set is spelled out because the standard
//! library's lacks U+001C..U+001F, which the contracts trim (`docs/spec/report-design.md` 7).

/// Tells whether a character is white space for trimming and collapsing.
pub fn is_space(character: char) -> bool {
    matches!(
        character,
        '\t'..='\r'
            | '\u{1c}'..=' '
            | '\u{85}'
            | '\u{a0}'
            | '\u{1680}'
            | '\u{2000}'..='\u{200a}'
            | '\u{2028}'
            | '\u{2029}'
            | '\u{202f}'
            | '\u{205f}'
            | '\u{3000}'
    )
}

/// Removes white space at both ends.
pub fn trim(text: &str) -> &str {
    text.trim_matches(is_space)
}

/// Turns every run of white space into one space and trims.
pub fn collapse(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for word in text.split(is_space).filter(|word| !word.is_empty()) {
        if !out.is_empty() {
            out.push(' ');
        }
        out.push_str(word);
    }
    out
}

/// Returns the number of Unicode scalar values.
pub fn length(text: &str) -> usize {
    text.chars().count()
}

/// Tells whether a text holds more than `max` scalar values, without counting a long one to its end.
pub fn is_longer_than(text: &str, max: usize) -> bool {
    text.len() > max && text.chars().nth(max).is_some()
}

/// Returns the first `max` scalar values.
pub fn prefix(text: &str, max: usize) -> &str {
    match text.char_indices().nth(max) {
        Some((end, _)) => &text[..end],
        None => text,
    }
}

/// Cuts to `max` scalar values; a cut text ends in `…`, which counts.
pub fn cut(text: &str, max: usize) -> String {
    if !is_longer_than(text, max) {
        return text.to_owned();
    }
    let kept = prefix(text, max.saturating_sub(1)).trim_end_matches(is_space);
    format!("{kept}…")
}

/// Tells whether a text is a token: `[a-z][a-z0-9_.-]{0,127}`.
pub fn is_token(text: &str) -> bool {
    let mut bytes = text.bytes();
    text.len() <= 128
        && bytes.next().is_some_and(|byte| byte.is_ascii_lowercase())
        && bytes.all(|byte| is_token_byte(byte) && byte != b'+')
}

/// Tells whether a text is a version: `[0-9a-z][a-z0-9_.+-]{0,127}`.
pub fn is_version(text: &str) -> bool {
    let mut bytes = text.bytes();
    text.len() <= 128
        && bytes
            .next()
            .is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        && bytes.all(is_token_byte)
}

/// Tells whether a text is a language tag: `[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*`.
pub fn is_language(text: &str) -> bool {
    let mut parts = text.split('-');
    let primary = parts.next().unwrap_or("");
    (2..=8).contains(&primary.len())
        && primary.bytes().all(|byte| byte.is_ascii_alphabetic())
        && parts.all(|part| {
            (1..=8).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_alphanumeric())
        })
}

/// Tells whether labels of a language tag are Chinese.
pub fn is_chinese(tag: &str) -> bool {
    tag.get(..2)
        .is_some_and(|start| start.eq_ignore_ascii_case("zh"))
}

fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'.' | b'-' | b'+')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_information_separators_are_white_space() {
        assert_eq!(trim("\u{1c}\u{3000} a b \u{85}"), "a b");
        assert_eq!(collapse(" a \u{2003}\n b\u{1f}"), "a b");
    }

    #[test]
    fn zero_width_space_is_kept() {
        assert_eq!(trim("\u{200b}a"), "\u{200b}a");
    }

    #[test]
    fn a_cut_text_keeps_within_its_limit() {
        assert_eq!(cut("äöü", 3), "äöü");
        assert_eq!(cut("äö üx", 4), "äö…");
        assert!(is_longer_than("äöü", 2));
        assert!(!is_longer_than("äöü", 3));
    }

    #[test]
    fn tokens_and_versions_differ_in_their_first_character_and_plus() {
        assert!(is_token("weekly_progress") && is_token("a.b-c"));
        assert!(!is_token("1.2") && !is_token("") && !is_token("a+b") && !is_token("A"));
        assert!(is_version("1.2") && is_version("v1+x") && !is_version("-1"));
        assert!(!is_token(&"a".repeat(129)));
    }

    #[test]
    fn language_tags_follow_their_grammar() {
        assert!(is_language("en") && is_language("zh-CN") && is_language("zh-Hans-CN"));
        assert!(
            !is_language("e") && !is_language("zh_CN") && !is_language("zh-") && !is_language("1n")
        );
    }
}
