//! The one escaping function of the page.
//!
//! The spelling of the five entities is part of the contract (`docs/spec/periodic-report-core.md`
//! 9.2); the template engine's own escaper writes numeric ones.

use std::fmt;

/// Escapes a value for element text and double-quoted attributes alike.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct PageEscaper;

impl askama::filters::Escaper for PageEscaper {
    fn write_escaped_str<W: fmt::Write>(&self, mut out: W, text: &str) -> fmt::Result {
        let mut rest = text;
        while let Some(at) = rest.find(['&', '<', '>', '"', '\'']) {
            out.write_str(&rest[..at])?;
            out.write_str(entity(rest.as_bytes()[at]))?;
            rest = &rest[at + 1..];
        }
        out.write_str(rest)
    }
}

fn entity(byte: u8) -> &'static str {
    match byte {
        b'&' => "&amp;",
        b'<' => "&lt;",
        b'>' => "&gt;",
        b'"' => "&quot;",
        _ => "&#x27;",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use askama::filters::Escaper as _;

    #[test]
    fn the_five_characters_have_the_spelling_of_the_contract() {
        let mut out = String::new();
        PageEscaper
            .write_escaped_str(&mut out, "a&b<c>d\"e'f é")
            .expect("a string takes everything");
        assert_eq!(out, "a&amp;b&lt;c&gt;d&quot;e&#x27;f é");
    }
}
