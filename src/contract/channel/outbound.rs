//! The text of an outgoing message and the rules that keep a plain `@name` from posing as a mention.
//!
//! Everything is checked before any call, also in a plain preview (`docs/spec/lark-inbox.md` 6.1).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::json;

use super::mention::{MemberIdKind, MentionId, Segment, Split, split_mentions};
use crate::contract::text;

/// The longest text without a source, in characters.
const MAX_ROOT_CHARS: usize = 1200;
/// The longest argument that a program is started with.
const MAX_ARGUMENT_BYTES: usize = 131_071;
/// The longest JSON body of a text message.
const MAX_BODY_BYTES: usize = 150_000;

/// Why a text cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextFault {
    #[error("a message requires non-empty text")]
    Empty,
    #[error(
        "the message text is too long; send takes at most 1200 characters, reply at most 131071 bytes (150000 as the provider's JSON)"
    )]
    TooLong,
    #[error("the message text must not be '-' or start with '@'")]
    ReservedStart,
    #[error("the message text holds a literal backslash-n; use a real line break")]
    LiteralNewline,
    #[error("the message text holds an incomplete mention tag")]
    BrokenMention,
    #[error(
        "the message text holds a plain @name, which notifies nobody; use a structured mention"
    )]
    VisibleMention,
    #[error("the mention identity kind is ambiguous")]
    AmbiguousKind,
}

impl TextFault {
    /// Returns the machine code.
    pub const fn error_code(self) -> &'static str {
        match self {
            Self::Empty => "text_empty",
            Self::TooLong => "text_too_long",
            Self::ReservedStart => "text_reserved_start",
            Self::LiteralNewline => "text_literal_newline",
            Self::BrokenMention => "text_broken_mention",
            Self::VisibleMention => "text_visible_mention",
            Self::AmbiguousKind => "text_ambiguous_mention_kind",
        }
    }
}

/// A text that may be sent; its words are private.
#[derive(Clone, PartialEq, Eq)]
pub struct OutboundText {
    text: String,
    segments: Vec<Segment>,
    kinds: BTreeMap<MentionId, MemberIdKind>,
}

impl fmt::Debug for OutboundText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("<private>")
    }
}

/// Whether a message answers a captured one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LengthRule {
    /// 1200 characters.
    ChatRoot,
    /// What the provider and the system take.
    Reply,
}

impl OutboundText {
    /// Normalises and checks a text.
    pub fn parse(raw: &str, rule: LengthRule) -> Result<Self, TextFault> {
        let text = normalize(raw);
        let (segments, kinds) = check(&text, rule)?;
        Ok(Self {
            text,
            segments,
            kinds,
        })
    }

    /// Returns the normalised text with its tags, for the call.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns the identities that have to be notified, each with its family.
    pub fn mentions(&self) -> &BTreeMap<MentionId, MemberIdKind> {
        &self.kinds
    }

    /// Returns the families that occur, in the order of their names.
    pub fn kinds(&self) -> BTreeSet<MemberIdKind> {
        self.kinds.values().copied().collect()
    }

    /// Returns the text with every mention replaced by `token` of its identity.
    pub fn tokenized(&self, token: impl Fn(&MentionId) -> String) -> String {
        self.segments
            .iter()
            .map(|segment| match segment {
                Segment::Text(text) => text.clone(),
                Segment::Mention(id) => token(id),
            })
            .collect()
    }
}

/// Folds line ends, collapses white space in each line and drops blank lines at both ends.
pub fn normalize(raw: &str) -> String {
    let folded = raw.replace("\r\n", "\n").replace('\r', "\n");
    let lines: Vec<String> = folded.split('\n').map(text::collapse).collect();
    let first = lines.iter().position(|line| !line.is_empty());
    let last = lines.iter().rposition(|line| !line.is_empty());
    match (first, last) {
        (Some(first), Some(last)) => lines[first..=last].join("\n"),
        _ => String::new(),
    }
}

/// Folds line ends and trims both ends; the layout inside stays, since it is the format.
pub fn trim_formatted(raw: &str) -> String {
    let folded = raw.replace("\r\n", "\n").replace('\r', "\n");
    text::trim(&folded).to_owned()
}

/// Checks a normalised text and splits it at its mentions.
pub(super) fn check(text: &str, rule: LengthRule) -> Result<Split, TextFault> {
    if text.is_empty() {
        return Err(TextFault::Empty);
    }
    if text == "-" || text.starts_with('@') {
        return Err(TextFault::ReservedStart);
    }
    check_length(text, rule)?;
    let (segments, kinds) = split_mentions(text).map_err(|_| TextFault::AmbiguousKind)?;
    check_visible(&segments)?;
    Ok((segments, kinds))
}

fn check_length(text: &str, rule: LengthRule) -> Result<(), TextFault> {
    let fits = match rule {
        LengthRule::ChatRoot => !text::is_longer_than(text, MAX_ROOT_CHARS),
        LengthRule::Reply => {
            text.len() <= MAX_ARGUMENT_BYTES
                && json!({ "text": text }).to_string().len() <= MAX_BODY_BYTES
        }
    };
    if fits {
        Ok(())
    } else {
        Err(TextFault::TooLong)
    }
}

/// Refuses what only looks like a mention, outside code fences.
fn check_visible(segments: &[Segment]) -> Result<(), TextFault> {
    let text: String = segments
        .iter()
        .map(|segment| match segment {
            Segment::Text(text) => text.as_str(),
            // A mention is removed; what stands beside it stays apart.
            Segment::Mention(_) => " ",
        })
        .collect();
    for part in text.split("```").step_by(2) {
        if part.contains("\\n") {
            return Err(TextFault::LiteralNewline);
        }
        let lower = part.to_ascii_lowercase();
        if lower.contains("</at>") || has_tag_start(&lower) {
            return Err(TextFault::BrokenMention);
        }
        if has_visible_mention(part) {
            return Err(TextFault::VisibleMention);
        }
    }
    Ok(())
}

fn has_tag_start(lower: &str) -> bool {
    lower.match_indices("<at").any(|(at, _)| {
        // `<at` is a tag only where the name ends; `<attribute` is a word.
        !lower[at + 3..]
            .chars()
            .next()
            .is_some_and(|next| next.is_alphanumeric() || next == '_' || next == '-')
    })
}

/// Finds `@` and a name, where neither a word character nor another `@` stands before it.
fn has_visible_mention(text: &str) -> bool {
    let mut before: Option<char> = None;
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        let starts = character == '@'
            && !before.is_some_and(|before| is_word(before) || before == '@')
            && characters
                .peek()
                .is_some_and(|next| !text::is_space(*next) && !matches!(next, '@' | '<' | '>'));
        if starts {
            return true;
        }
        before = Some(character);
    }
    false
}

fn is_word(character: char) -> bool {
    character.is_alphanumeric() || character == '_'
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(text: &str) -> Result<OutboundText, TextFault> {
        OutboundText::parse(text, LengthRule::ChatRoot)
    }

    #[test]
    fn lines_are_collapsed_and_blank_ends_dropped() {
        assert_eq!(normalize("\r\n  a\t b \r\n\n c\r\n\r\n"), "a b\n\nc");
    }

    #[test]
    fn mentions_are_read_by_identity_whatever_their_name_says() {
        let text = root("<AT Open_Id=\"ou_a\">Any  Name</at> and <at union_id=\"on_b\"></at>: go")
            .expect("valid");
        let kinds: Vec<_> = text
            .mentions()
            .iter()
            .map(|(id, kind)| (id.as_str(), *kind))
            .collect();
        assert_eq!(
            kinds,
            vec![("on_b", MemberIdKind::Union), ("ou_a", MemberIdKind::Open)]
        );
        assert_eq!(
            text.tokenized(|id| format!("[{}]", id.as_str())),
            "[ou_a] and [on_b]: go"
        );
    }

    #[test]
    fn one_identity_in_two_families_is_refused() {
        let text = "<at open_id=\"x\">a</at> <at user_id=\"x\">a</at>";
        assert_eq!(root(text), Err(TextFault::AmbiguousKind));
    }

    #[test]
    fn what_only_looks_like_a_mention_is_refused() {
        let cases = [
            ("hi @Example look", TextFault::VisibleMention),
            ("(@x)", TextFault::VisibleMention),
            ("<at open_id=ou_a>A</at> x", TextFault::BrokenMention),
            ("text </at>", TextFault::BrokenMention),
            ("text <at>", TextFault::BrokenMention),
            ("a\\nb", TextFault::LiteralNewline),
            ("@Example", TextFault::ReservedStart),
            ("-", TextFault::ReservedStart),
            (" \n ", TextFault::Empty),
        ];
        for (text, fault) in cases {
            assert_eq!(root(text), Err(fault), "{text}");
        }
    }

    #[test]
    fn addresses_words_and_fences_pass() {
        for text in [
            "mail a@b.example",
            "a @ b",
            "``` @Example \\n <at> ```",
            "- item",
            "a < b",
            "@",
        ] {
            let expected = if text == "@" {
                Err(TextFault::ReservedStart)
            } else {
                Ok(())
            };
            assert_eq!(root(text).map(drop), expected, "{text}");
        }
    }

    #[test]
    fn a_text_without_a_source_holds_1200_characters() {
        assert!(root(&"ä".repeat(1200)).is_ok());
        assert_eq!(root(&"ä".repeat(1201)), Err(TextFault::TooLong));
        assert!(OutboundText::parse(&"ä".repeat(1201), LengthRule::Reply).is_ok());
        let long = "x".repeat(MAX_ARGUMENT_BYTES + 1);
        assert_eq!(
            OutboundText::parse(&long, LengthRule::Reply),
            Err(TextFault::TooLong)
        );
    }
}
