//! Characters that would steer a viewer: what both renderers replace or drop before anything else
//! (`docs/spec/report-design.md` 7). Sources use it to see a text as a reader will.

use super::text::is_space;

/// What stands for a character that was replaced.
pub const REPLACEMENT: char = '\u{fffd}';

/// Replaces or drops the characters that would steer a viewer; white space becomes a space.
pub fn clean(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for character in value.chars() {
        if is_space(character) {
            out.push(' ');
        } else if is_steering(character) {
            out.push(REPLACEMENT);
        } else if !is_invisible_mark(character) {
            out.push(character);
        }
    }
    out
}

/// Tells whether a character steers a viewer: bidirectional controls, other controls and noncharacters.
pub fn is_steering(character: char) -> bool {
    let code = u32::from(character);
    matches!(
        character,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{7f}'..='\u{9f}' | '\u{fdd0}'..='\u{fdef}'
    ) || code < 0x20
        || code & 0xfffe == 0xfffe
}

/// Tells whether a character is an invisible mark, which cleaning drops.
pub fn is_invisible_mark(character: char) -> bool {
    matches!(character, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{feff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn controls_are_shown_marks_vanish_and_white_space_is_a_space() {
        assert_eq!(
            clean("a\u{202e}b\u{200e}c\td\u{1}"),
            "a\u{fffd}bc d\u{fffd}"
        );
        assert_eq!(clean("plain 潮汐 \u{200d}"), "plain 潮汐 \u{200d}");
    }
}
