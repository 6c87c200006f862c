//! What an outgoing message consists of: text with structured mentions, or a formatted post without any.
//!
//! A post cannot name a mentioned identity and has a limit of its own; what does not fit goes as text, and the result says so.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;
use serde_json::json;

use super::mention::{MemberIdKind, MentionId};
use super::outbound::{LengthRule, OutboundText, TextFault, check, trim_formatted};
use crate::contract::private::Private;

/// The largest body of a formatted post, in bytes.
const MAX_POST_BYTES: usize = 30_000;

/// How the words of a message are to be read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum ContentFormat {
    #[default]
    Text,
    Markdown,
}

/// Why a formatted message goes as text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FormatFallback {
    PostSizeLimit,
    StructuredMentions,
}

/// Formatted words without mentions; private.
#[derive(Clone, PartialEq, Eq)]
pub struct PostText(Private<String>);

impl PostText {
    /// Returns the words with their format.
    pub fn as_str(&self) -> &str {
        self.0.expose()
    }
}

impl fmt::Debug for PostText {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// The words of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OutboundBody {
    Text(OutboundText),
    Post(PostText),
}

impl OutboundBody {
    /// Checks the words of a message; tells also whether formatted words have to go as text.
    pub fn parse(
        raw: &str,
        format: ContentFormat,
        rule: LengthRule,
    ) -> Result<(Self, Option<FormatFallback>), TextFault> {
        let as_text = || OutboundText::parse(raw, rule).map(Self::Text);
        if format == ContentFormat::Text {
            return Ok((as_text()?, None));
        }
        let words = trim_formatted(raw);
        let (_, kinds) = check(&words, rule)?;
        let post = Self::Post(PostText(Private::new(words)));
        if !kinds.is_empty() {
            return Ok((as_text()?, Some(FormatFallback::StructuredMentions)));
        }
        match post.size() > MAX_POST_BYTES {
            true => Ok((as_text()?, Some(FormatFallback::PostSizeLimit))),
            false => Ok((post, None)),
        }
    }

    /// Returns the words as they are sent.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Text(text) => text.as_str(),
            Self::Post(post) => post.as_str(),
        }
    }

    /// Returns how the words are read at the other end.
    pub const fn format(&self) -> ContentFormat {
        match self {
            Self::Text(_) => ContentFormat::Text,
            Self::Post(_) => ContentFormat::Markdown,
        }
    }

    /// Returns the identities that have to be notified, each with its family.
    pub fn mentions(&self) -> &BTreeMap<MentionId, MemberIdKind> {
        static NOBODY: BTreeMap<MentionId, MemberIdKind> = BTreeMap::new();
        match self {
            Self::Text(text) => text.mentions(),
            Self::Post(_) => &NOBODY,
        }
    }

    /// Returns the families that occur, in the order of their names.
    pub fn kinds(&self) -> BTreeSet<MemberIdKind> {
        self.mentions().values().copied().collect()
    }

    /// The size of the words inside a JSON body; what the provider puts around them is small and the same for all.
    fn size(&self) -> usize {
        json!(self.as_str()).to_string().len() + POST_FRAME_BYTES
    }
}

/// What a post has around its words: locale, rows and one element.
const POST_FRAME_BYTES: usize = 46;

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(raw: &str) -> Result<(OutboundBody, Option<FormatFallback>), TextFault> {
        OutboundBody::parse(raw, ContentFormat::Markdown, LengthRule::Reply)
    }

    #[test]
    fn a_post_keeps_its_layout_and_loses_its_ends() {
        let (body, fallback) = reply("\r\n# Title\r\n\n  * a   b\n\n").expect("valid");
        assert_eq!(
            (body.as_str(), body.format(), fallback),
            ("# Title\n\n  * a   b", ContentFormat::Markdown, None)
        );
    }

    #[test]
    fn a_post_with_a_mention_goes_as_text() {
        let (body, fallback) = reply("**hi** <at open_id=\"ou_a\">A</at>").expect("valid");
        assert_eq!(body.mentions().len(), 1);
        assert_eq!(
            (body.format(), fallback),
            (
                ContentFormat::Text,
                Some(FormatFallback::StructuredMentions)
            )
        );
    }

    #[test]
    fn a_post_over_the_limit_goes_as_text() {
        let (body, fallback) = reply(&"x".repeat(29_000)).expect("valid");
        assert_eq!((body.format(), fallback), (ContentFormat::Markdown, None));
        let (body, fallback) = reply(&"x".repeat(30_001)).expect("valid");
        assert_eq!(
            (body.format(), fallback),
            (ContentFormat::Text, Some(FormatFallback::PostSizeLimit))
        );
    }

    #[test]
    fn the_rules_of_a_text_hold_for_a_post() {
        assert_eq!(reply(" \n"), Err(TextFault::Empty));
        assert_eq!(reply("hi @Name"), Err(TextFault::VisibleMention));
        let long = OutboundBody::parse(
            &"x".repeat(1201),
            ContentFormat::Markdown,
            LengthRule::ChatRoot,
        );
        assert_eq!(long, Err(TextFault::TooLong));
    }
}
