//! Messages and members as a provider shows them. Nothing here prints or serialises.
//!
//! A shown message lacks a good part of what was sent: mentions are names, parents of thread replies are missing. What is absent stays
//! absent here; the rules that fill gaps from a raw read are the flows' (`docs/spec/lark-cli.md` 5).

use std::collections::BTreeMap;
use std::fmt;

use serde_json::Value;

use super::ids::{AppId, ChatId, MarkId, MessageId, Opaque};
use super::mention::MentionId;
use crate::contract::time::Timestamp;

/// Application id to member id, as a chat's own member list pairs them.
pub type Aliases = BTreeMap<MentionId, MentionId>;

/// One message of a listing, a readback or a thread.
#[derive(Clone, Default)]
pub struct Observed {
    /// None when the provider's id is not one.
    pub message_id: Option<MessageId>,
    pub chat: Option<ChatId>,
    /// `text`, `post`, `interactive`, or a word of the provider for what cannot be read here.
    pub message_type: String,
    /// The shown text; empty when there is none.
    pub content: String,
    /// The words as they were sent, where the provider gives them.
    pub body: Option<SentWords>,
    /// The time as the provider writes it; kept as it is.
    pub create_time: String,
    /// The same instant, down to what the provider shows of it: perhaps the minute.
    pub created: Option<Timestamp>,
    pub is_deleted: bool,
    pub sender_type: Option<String>,
    pub sender_id: Option<Value>,
    pub parent_id: Option<MessageId>,
    pub root_id: Option<MessageId>,
    pub thread: Option<Opaque>,
    pub mentions: Option<Value>,
    pub mentioned: Option<Value>,
    /// More replies exist than are nested here.
    pub thread_is_cut: bool,
    pub replies: Option<Vec<Observed>>,
}

impl fmt::Debug for Observed {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("<private message>")
    }
}

impl Observed {
    /// Returns the sender's id where it is a plain text.
    pub fn sender(&self) -> Option<&str> {
        self.sender_id.as_ref().and_then(Value::as_str)
    }

    /// Tells whether this application wrote the message.
    pub fn is_own(&self, app: Option<&AppId>) -> bool {
        let by_app = matches!(self.sender_type.as_deref(), Some("app" | "bot"));
        by_app && app.is_some_and(|app| self.sender() == Some(app.as_str()))
    }

    /// Returns the number of listed mentions; a list that is no list counts as none.
    pub fn mention_count(&self) -> usize {
        self.mentions
            .as_ref()
            .and_then(Value::as_array)
            .map_or(0, Vec::len)
    }
}

/// The words of a body as they are sent, decoded from the provider's own form.
#[derive(Clone, PartialEq, Eq)]
pub enum SentWords {
    Text(String),
    /// A post of one formatted element.
    Post(String),
    Other,
}

impl SentWords {
    /// Returns the words of a plain text.
    pub fn text(&self) -> Option<&str> {
        match self {
            Self::Text(words) => Some(words),
            Self::Post(_) | Self::Other => None,
        }
    }
}

impl fmt::Debug for SentWords {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("<private words>")
    }
}

/// One page of a listing.
#[derive(Clone, Debug, Default)]
pub struct Page {
    pub messages: Vec<Observed>,
    /// The token of the next page; none on the last one.
    pub next: Option<Opaque>,
}

/// The members of a chat under one identity family.
#[derive(Clone, Default)]
pub struct Members {
    /// Every identity found.
    pub ids: Vec<MentionId>,
    /// The provider's own pairs of a bot's member id and application id.
    pub bots: Vec<(MentionId, MentionId)>,
    /// All pages were read and nothing was cut.
    pub is_complete: bool,
}

impl fmt::Debug for Members {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("<private members>")
    }
}

impl Members {
    /// Returns application id to member id, for pairs that are one to one.
    pub fn aliases(&self) -> Aliases {
        let is_one_to_one = |(member, app): &&(MentionId, MentionId)| {
            let mut sharing = self
                .bots
                .iter()
                .filter(|(other, other_app)| other == member || other_app == app);
            sharing.all(|(other, other_app)| other == member && other_app == app)
        };
        let pairs = self.bots.iter().filter(is_one_to_one);
        pairs
            .map(|(member, app)| (app.clone(), member.clone()))
            .collect()
    }
}

/// One page of the marks on a message.
#[derive(Clone, Debug, Default)]
pub struct MarkPage {
    pub marks: Vec<MarkId>,
    pub next: Option<Opaque>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bot_pair_that_is_not_one_to_one_is_no_alias() {
        let pair = |member: &str, app: &str| (MentionId::new(member), MentionId::new(app));
        let members = Members {
            bots: vec![
                pair("ou_a", "cli_a"),
                pair("ou_b", "cli_b"),
                pair("ou_c", "cli_b"),
            ],
            ..Members::default()
        };
        assert_eq!(
            members.aliases(),
            BTreeMap::from([(MentionId::new("cli_a"), MentionId::new("ou_a"))])
        );
    }

    #[test]
    fn only_an_app_sender_with_the_own_id_is_own() {
        let app = AppId::new("cli_a");
        let from = |kind: &str, id: &str| Observed {
            sender_type: Some(kind.to_owned()),
            sender_id: Some(Value::from(id)),
            ..Observed::default()
        };
        assert!(from("app", "cli_a").is_own(app.as_ref()));
        assert!(!from("user", "cli_a").is_own(app.as_ref()));
        assert!(!from("app", "cli_b").is_own(app.as_ref()) && !from("app", "cli_a").is_own(None));
    }
}
