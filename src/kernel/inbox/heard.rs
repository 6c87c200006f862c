//! A live message with what could be looked up about it, and the form in which it is stored.

use serde_json::{Map, Value, json};

use crate::contract::channel::ids::{ChatId, MessageId};
use crate::contract::inbox::event::EVENT_SCHEMA;
use crate::contract::inbox::live_event::{Given, LiveMessage};

/// A live message that was looked at.
#[derive(Clone, Debug, PartialEq)]
pub struct Heard {
    pub live: LiveMessage,
    /// Whether the bot is mentioned, where the provider says it apart from the mentions.
    pub mentioned: Option<Value>,
    pub reply: ReplyFound,
}

/// What is known of the answered message.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReplyFound {
    pub is_verified: bool,
    pub is_to_bot: bool,
    pub context: Option<ReplyContext>,
}

/// The answered message.
#[derive(Clone, PartialEq)]
pub struct ReplyContext {
    pub message: MessageId,
    pub chat: ChatId,
    pub words: String,
}

impl std::fmt::Debug for ReplyContext {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("<private message>")
    }
}

impl Heard {
    /// A message nothing was looked up about.
    pub fn unasked(live: LiveMessage) -> Self {
        Self {
            live,
            mentioned: None,
            reply: ReplyFound::default(),
        }
    }

    /// Returns the evidence of whom the message speaks to.
    pub fn evidence(&self) -> Value {
        json!({"mentions": self.live.mentions, "mentioned": self.mentioned})
    }

    /// Returns the event as the ingest schema has it; none for a message of which a part cannot be read.
    pub fn ingest_form(&self) -> Option<Value> {
        let live = &self.live;
        let mut form = Map::new();
        let mut put = |name: &str, value: Value| drop(form.insert(name.to_owned(), value));
        put("schema_version", json!(EVENT_SCHEMA));
        put("message_id", json!(live.message.as_ref()?.as_str()));
        put("event_id", json!(sound(&live.event)?.map(|id| id.as_str())));
        put("create_time", json!(live.sent_at));
        put("content", json!(sound(&live.words)?));
        put("attachment_count", json!(sound(&live.attachments)?));
        put("chat_id", json!(live.chat.as_str()));
        put("sender_type", json!(live.sender_kind));
        put(
            "sender_id",
            json!(sound(&live.sender)?.map(|id| id.as_str())),
        );
        // A link that cannot be read is not known; the message is stored without it.
        put(
            "parent_id",
            json!(live.parent.value().map(MessageId::as_str)),
        );
        put("root_id", json!(live.root.value().map(MessageId::as_str)));
        put("mentions", json!(live.mentions));
        put("mentioned", json!(self.mentioned));
        put("reply_context_verified", json!(self.reply.is_verified));
        put("reply_to_bot", json!(self.reply.is_to_bot));
        if let Some(context) = &self.reply.context {
            put(
                "reply_context",
                json!({"message_id": context.message.as_str(), "conversation_id": context.chat.as_str(), "content": context.words}),
            );
        }
        Some(Value::Object(form))
    }
}

/// The value of a field that is not malformed.
fn sound<T>(field: &Given<T>) -> Option<Option<&T>> {
    match field {
        Given::Malformed => None,
        field => Some(field.value()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::channel::ids::{EventId, SenderId};
    use crate::contract::inbox::config::{BotIdentity, CaptureScope};
    use crate::kernel::inbox::ingest::{self, Into};

    fn heard() -> Heard {
        let chat = ChatId::new("oc_1").expect("a chat");
        Heard::unasked(LiveMessage {
            message: MessageId::new("om_1"),
            event: Given::read(EventId::new("ev_1")),
            sent_at: "17".to_owned(),
            words: Given::Value(" a  b ".to_owned()),
            attachments: Given::Value(0),
            sender_kind: Some("User".to_owned()),
            sender: Given::read(SenderId::new("ou_1")),
            mentions: Some(json!([{"id": "ou_2"}])),
            ..LiveMessage::of(chat)
        })
    }

    fn stored(raw: &Value) -> Option<String> {
        let bot = BotIdentity::default();
        let into = Into {
            bot: &bot,
            scope: CaptureScope::ConfiguredChatAll,
            route: None,
        };
        ingest::event(raw, into).ok().map(|event| event.to_row())
    }

    /// What the inbox keeps is what it kept of the line itself.
    #[test]
    fn the_stored_row_is_the_row_of_the_line() {
        let line = json!({"schema_version": EVENT_SCHEMA, "event_id": "ev_1", "message_id": "om_1", "create_time": 17, "content": " a  b ",
            "parent_id": null, "root_id": null, "mentions": [{"id": "ou_2"}], "thread_id": null, "attachment_count": 0,
            "sender_type": "User", "sender_id": "ou_1", "chat_id": "oc_1"});
        let form = heard().ingest_form().expect("sound");
        assert_eq!(stored(&form), stored(&line));
        assert!(stored(&form).is_some());
        let mut bare = heard();
        bare.live.event = Given::Absent;
        bare.live.sender = Given::Absent;
        bare.live.sender_kind = None;
        bare.live.mentions = None;
        bare.live.parent = Given::Malformed;
        let line = json!({"schema_version": EVENT_SCHEMA, "event_id": null, "message_id": "om_1", "create_time": "17",
            "content": " a  b ", "parent_id": "x", "attachment_count": 0, "sender_type": null, "sender_id": "", "chat_id": "oc_1"});
        assert_eq!(
            bare.ingest_form().and_then(|form| stored(&form)),
            stored(&line)
        );
    }

    #[test]
    fn what_cannot_be_read_is_not_stored() {
        let changes: [fn(&mut LiveMessage); 5] = [
            |live| live.message = None,
            |live| live.event = Given::Malformed,
            |live| live.words = Given::Malformed,
            |live| live.attachments = Given::Malformed,
            |live| live.sender = Given::Malformed,
        ];
        for change in changes {
            let mut odd = heard();
            change(&mut odd.live);
            assert_eq!(odd.ingest_form(), None);
        }
    }
}
