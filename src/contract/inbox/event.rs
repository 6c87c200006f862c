//! One stored message, `docs/spec/lark-inbox.md` 4.1.
//!
//! The first stored copy wins and never changes. The raw mentions of a provider are inputs only and are not kept. The text form is the
//! row and the export alike: compact, in the order of the contract.

use std::fmt;

use serde_json::{Map, Value};

use crate::contract::channel::ids::{EventId, MessageId};
use crate::contract::json;

/// The schema of a stored event.
pub const EVENT_SCHEMA: &str = "lark_event_inbox_event_v0";
/// The longest kept text, in characters.
pub const MAX_CONTENT: usize = 1200;

/// A stored message. Its text and ids are private: no debug text, no public serialisation.
#[derive(Clone, PartialEq)]
pub struct StoredEvent {
    message_id: MessageId,
    body: Map<String, Value>,
}

impl fmt::Debug for StoredEvent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("<private event>")
    }
}

/// Why an event raises attention, as far as counts need it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attention {
    pub is_addressed: bool,
    pub is_question: bool,
    pub is_mention: bool,
    pub is_reply_to_bot: bool,
    pub has_attachment: bool,
}

impl StoredEvent {
    /// Takes a body that the ingest rules have made.
    pub fn from_body(message_id: MessageId, body: Map<String, Value>) -> Self {
        Self { message_id, body }
    }

    /// Reads a row back; none when it is not what was written.
    pub fn from_row(message_id: &str, text: &str) -> Option<Self> {
        let body = json::parse_kept(text.trim_end().as_bytes()).ok()?;
        let message_id = MessageId::new(message_id)?;
        let event = Self { message_id, body };
        let text = |name: &str| event.body.get(name).and_then(Value::as_str);
        let count = |name: &str| event.body.get(name).and_then(Value::as_i64);
        let (target, provider) = (
            count("target_mention_count")?,
            count("provider_mention_count")?,
        );
        let sound = text("schema_version") == Some(EVENT_SCHEMA)
            && text("message_id") == Some(event.message_id.as_str())
            && text("content").is_some()
            && text("create_time").is_some()
            && (0..=provider).contains(&target)
            && provider <= 50;
        sound.then_some(event)
    }

    /// Returns the text of the row and the export, without its final line feed.
    pub fn to_row(&self) -> String {
        Value::Object(self.body.clone()).to_string()
    }

    /// Returns the message id.
    pub fn message_id(&self) -> &MessageId {
        &self.message_id
    }

    /// Returns the id that effects refer to.
    pub fn event_id(&self) -> Option<EventId> {
        self.text("event_id").and_then(EventId::new)
    }

    /// Returns the sort text of arrival at the provider.
    pub fn create_time(&self) -> &str {
        self.text("create_time").unwrap_or("")
    }

    /// Returns the kept text.
    pub fn content(&self) -> &str {
        self.text("content").unwrap_or("")
    }

    /// Returns the stamped route; empty without one.
    pub fn route_key(&self) -> &str {
        self.text("route_key").unwrap_or("")
    }

    /// Returns the message this one answers.
    pub fn parent_id(&self) -> Option<MessageId> {
        self.text("parent_id").and_then(MessageId::new)
    }

    /// Returns the first message of the thread.
    pub fn root_id(&self) -> Option<MessageId> {
        self.text("root_id").and_then(MessageId::new)
    }

    /// Tells whether the message speaks to the bot.
    pub fn is_addressed(&self) -> bool {
        self.flag("addressed_to_bot")
    }

    /// Returns the body for the one packet that shows it.
    pub fn body(&self) -> &Map<String, Value> {
        &self.body
    }

    /// Returns what the counts need.
    pub fn attention(&self) -> Attention {
        let is_addressed = self.is_addressed();
        let count = |name: &str| self.body.get(name).and_then(Value::as_i64).unwrap_or(0);
        Attention {
            is_addressed,
            is_question: is_addressed && is_question(self.content()),
            is_mention: is_addressed && count("target_mention_count") > 0,
            is_reply_to_bot: self.flag("reply_to_bot"),
            has_attachment: count("attachment_count") > 0,
        }
    }

    fn text(&self, name: &str) -> Option<&str> {
        self.body.get(name).and_then(Value::as_str)
    }

    fn flag(&self, name: &str) -> bool {
        self.body.get(name) == Some(&Value::Bool(true))
    }
}

/// The words that make an addressed message a direct question.
const QUESTION_WORDS: [&str; 14] = [
    "?",
    "？",
    "请问",
    "怎么",
    "怎样",
    "为何",
    "为什么",
    "是不是",
    "是否",
    "能否",
    "可以吗",
    "行吗",
    "结论呢",
    "回复吗",
];

fn is_question(text: &str) -> bool {
    QUESTION_WORDS.iter().any(|word| text.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROW: &str = r#"{"schema_version":"lark_event_inbox_event_v0","event_id":"e","message_id":"om_1","create_time":"1","content":"hi?","attachment_count":0,"addressed_to_bot":true,"provider_mention_count":2,"target_mention_count":1}"#;

    #[test]
    fn a_row_comes_back_as_its_own_bytes() {
        let event = StoredEvent::from_row("om_1", ROW).expect("sound");
        assert_eq!(event.to_row(), ROW);
        assert_eq!(
            event.attention(),
            Attention {
                is_addressed: true,
                is_question: true,
                is_mention: true,
                is_reply_to_bot: false,
                has_attachment: false
            }
        );
    }

    #[test]
    fn a_row_with_impossible_counts_or_another_id_is_damage() {
        assert!(StoredEvent::from_row("om_2", ROW).is_none());
        assert!(
            StoredEvent::from_row(
                "om_1",
                &ROW.replace("\"target_mention_count\":1", "\"target_mention_count\":3")
            )
            .is_none()
        );
        assert!(StoredEvent::from_row("om_1", "{half").is_none());
    }
}
