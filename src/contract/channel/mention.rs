//! Structured mentions: `<at KIND="ID">NAME</at>`. The identity alone counts; the name is decoration and never evidence.

use std::collections::BTreeMap;
use std::fmt;

use crate::contract::private::Private;

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
pub struct MentionId(Private<String>);

impl MentionId {
    /// Takes an identity as it was written.
    pub fn new(text: impl Into<String>) -> Self {
        Self(Private::new(text.into()))
    }

    /// Returns the text, for comparisons with provider answers.
    pub fn as_str(&self) -> &str {
        self.0.expose()
    }
}

impl fmt::Debug for MentionId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(out)
    }
}

/// A piece of a text.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Segment {
    Text(String),
    Mention(MentionId),
}

/// The pieces of a text and the family of each identity.
pub(super) type Split = (Vec<Segment>, BTreeMap<MentionId, MemberIdKind>);

/// One identity was written in two families.
pub(super) struct AmbiguousKind;

/// Splits a text at its whole tags.
pub(super) fn split_mentions(text: &str) -> Result<Split, AmbiguousKind> {
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
            return Err(AmbiguousKind);
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
