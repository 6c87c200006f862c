//! The text of an outgoing message: structured mentions, the rules that keep a plain `@name` from posing as one, the payload digest.
//!
//! A mention is `<at KIND="ID">NAME</at>`; the name is decoration and never evidence. Everything is checked before any call, also in a
//! plain preview (`docs/spec/lark-inbox.md` 6.1).

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde_json::json;

use crate::contract::digest;
use crate::contract::text;

/// The longest text without a source, in characters.
const MAX_ROOT_CHARS: usize = 1200;
/// The longest argument that a program is started with.
const MAX_ARGUMENT_BYTES: usize = 131_071;
/// The longest JSON body of a text message.
const MAX_BODY_BYTES: usize = 150_000;

/// The identity family a mention is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MemberIdKind {
    Open,
    Union,
    User,
}

impl MemberIdKind {
    /// Returns the provider's name of the family.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user_id",
            Self::Open => "open_id",
            Self::Union => "union_id",
        }
    }

    fn parse(name: &str) -> Option<Self> {
        [Self::User, Self::Open, Self::Union]
            .into_iter()
            .find(|kind| kind.as_str().eq_ignore_ascii_case(name))
    }
}

/// The identity a mention asks for; private.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MentionId(String);

impl MentionId {
    /// Takes an identity as it was written.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// Returns the text, for comparisons with provider answers.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for MentionId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("<private>")
    }
}

/// Why a text cannot be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TextFault {
    #[error("lark inbox reply requires non-empty text")]
    Empty,
    #[error("lark inbox reply text is too long")]
    TooLong,
    #[error("lark inbox reply text must not be '-' or start with '@'")]
    ReservedStart,
    #[error("lark inbox reply text holds a literal backslash-n; use a real line break")]
    LiteralNewline,
    #[error("lark inbox reply text holds an incomplete mention tag")]
    BrokenMention,
    #[error(
        "lark inbox reply text holds a plain @name, which notifies nobody; use a structured mention"
    )]
    VisibleMention,
    #[error("Lark mention identity kind is ambiguous")]
    AmbiguousKind,
}

#[derive(Clone, PartialEq, Eq)]
enum Segment {
    Text(String),
    Mention(MentionId),
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
        if text.is_empty() {
            return Err(TextFault::Empty);
        }
        if text == "-" || text.starts_with('@') {
            return Err(TextFault::ReservedStart);
        }
        check_length(&text, rule)?;
        let (segments, kinds) = split_mentions(&text)?;
        check_visible(&segments)?;
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

/// Where a message is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    ChatRoot,
    SourceThread,
}

impl Placement {
    const fn as_str(self) -> &'static str {
        match self {
            Self::ChatRoot => "chat_root",
            Self::SourceThread => "source_thread",
        }
    }
}

/// The identity of one intended message: everything that must be equal for two sends to be the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboundKey(String);

impl OutboundKey {
    /// Derives the key of a text at a place.
    pub fn derive(source: Option<&str>, placement: Placement, text: &OutboundText) -> Self {
        let payload = json!({
            "message_id": source.unwrap_or(""),
            "placement": placement.as_str(),
            "text": text.as_str(),
        });
        // A payload of three texts always has a canonical form.
        Self(digest::digest_hex(&payload).unwrap_or_default())
    }

    /// Returns what a packet shows.
    pub fn public(&self) -> String {
        format!("sha256:{}", self.0)
    }

    /// Returns the key the provider joins repeats by.
    pub fn provider_key(&self) -> String {
        format!("loopx-{}", self.attempt())
    }

    /// Returns the 32 digits that name the attempt.
    pub fn attempt(&self) -> &str {
        self.0.get(..32).unwrap_or(&self.0)
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

type Split = (Vec<Segment>, BTreeMap<MentionId, MemberIdKind>);

fn split_mentions(text: &str) -> Result<Split, TextFault> {
    let mut segments = Vec::new();
    let mut kinds: BTreeMap<MentionId, MemberIdKind> = BTreeMap::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        plain.push_str(&rest[..at]);
        rest = &rest[at..];
        let Some((kind, id, after)) = read_tag(rest) else {
            plain.push('<');
            rest = &rest[1..];
            continue;
        };
        if kinds
            .insert(id.clone(), kind)
            .is_some_and(|known| known != kind)
        {
            return Err(TextFault::AmbiguousKind);
        }
        segments.push(Segment::Text(std::mem::take(&mut plain)));
        segments.push(Segment::Mention(id));
        rest = after;
    }
    plain.push_str(rest);
    segments.push(Segment::Text(plain));
    Ok((segments, kinds))
}

/// Reads one whole tag at the start of `text`.
fn read_tag(text: &str) -> Option<(MemberIdKind, MentionId, &str)> {
    let head = text
        .get(..3)
        .filter(|head| head.eq_ignore_ascii_case("<at"))?;
    let attributes = text[head.len()..].strip_prefix(' ')?;
    let (name, rest) = attributes.split_once('=')?;
    let kind = MemberIdKind::parse(name.trim())?;
    let (id, rest) = rest.trim_start().strip_prefix('"')?.split_once('"')?;
    if id.is_empty() || id.contains(['<', '>']) {
        return None;
    }
    let body = rest.trim_start().strip_prefix('>')?;
    let end = body.find('<')?;
    let close = body[end..]
        .get(..5)
        .filter(|close| close.eq_ignore_ascii_case("</at>"))?;
    Some((kind, MentionId::new(id), &body[end + close.len()..]))
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

    #[test]
    fn the_key_binds_source_placement_and_text() {
        let text = root("plain words").expect("valid");
        let key = OutboundKey::derive(None, Placement::ChatRoot, &text);
        let payload = "{\"message_id\":\"\",\"placement\":\"chat_root\",\"text\":\"plain words\"}";
        let hex = digest::content_digest(payload.as_bytes()).hex();
        assert_eq!(key.public(), format!("sha256:{hex}"));
        assert_eq!(key.provider_key(), format!("loopx-{}", &hex[..32]));
        assert_ne!(
            key,
            OutboundKey::derive(Some("om_1"), Placement::SourceThread, &text)
        );
    }
}
