//! What a live stream brings, in words that no provider owns. A provider reads its own form into these; nothing behind the port looks at
//! what it printed. Private: no debug text, no serialisation.

use std::fmt;

use serde_json::Value;

use crate::contract::channel::ids::{ChatId, EventId, MessageId, SenderId};

/// One field as the stream gave it. A malformed one is no absent one: what cannot be read is not stored.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Given<T> {
    #[default]
    Absent,
    Value(T),
    Malformed,
}

impl<T> Given<T> {
    /// Reads a field that is given: malformed where there is no such value.
    pub fn read(value: Option<T>) -> Self {
        value.map_or(Self::Malformed, Self::Value)
    }

    /// Returns the value.
    pub fn value(&self) -> Option<&T> {
        match self {
            Self::Value(value) => Some(value),
            Self::Absent | Self::Malformed => None,
        }
    }

    /// Tells whether the stream gave anything.
    pub const fn is_given(&self) -> bool {
        !matches!(self, Self::Absent)
    }
}

/// One event of a stream.
#[derive(Clone, Debug, PartialEq)]
pub enum LiveEvent {
    Message(Box<LiveMessage>),
    Click(LiveClick),
    /// Readable, and nothing of these: a sign of life alone.
    Other,
}

/// A message as it arrived.
#[derive(Clone, PartialEq)]
pub struct LiveMessage {
    pub chat: ChatId,
    /// None when it is no id of a message: such an event is never stored.
    pub message: Option<MessageId>,
    pub event: Given<EventId>,
    /// The time as the provider writes it; kept as it is.
    pub sent_at: String,
    pub words: Given<String>,
    pub attachments: Given<i64>,
    /// `user`, `app`, `bot`, or a word of the provider.
    pub sender_kind: Option<String>,
    pub sender: Given<SenderId>,
    /// The message this one answers, and the first of its thread.
    pub parent: Given<MessageId>,
    pub root: Given<MessageId>,
    pub is_in_thread: bool,
    /// The mentions as they are shown, as in a message that is read.
    pub mentions: Option<Value>,
}

impl fmt::Debug for LiveMessage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("<private message>")
    }
}

impl LiveMessage {
    /// An empty message of a chat.
    pub fn of(chat: ChatId) -> Self {
        Self {
            chat,
            message: None,
            event: Given::Absent,
            sent_at: String::new(),
            words: Given::Absent,
            attachments: Given::Absent,
            sender_kind: None,
            sender: Given::Absent,
            parent: Given::Absent,
            root: Given::Absent,
            is_in_thread: false,
            mentions: None,
        }
    }

    /// Tells whether a program wrote it.
    pub fn is_by_bot(&self) -> bool {
        let kind = self.sender_kind.as_deref().unwrap_or_default();
        kind.eq_ignore_ascii_case("app") || kind.eq_ignore_ascii_case("bot")
    }
}

/// A click on a card: read, or why not, and what it looked like without any value.
#[derive(Clone, Debug, PartialEq)]
pub struct LiveClick {
    pub read: Result<Click, ClickRefused>,
    pub shape: Value,
}

/// A refusal: what is wrong, and how far the click came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClickRefused {
    pub code: &'static str,
    pub stage: &'static str,
}

/// The operation a click speaks about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Click {
    pub operation: String,
    pub is_confirmed: bool,
}
