//! One printed line of a message stream into the message it is. The projection that shapes the line is in `events`.

use serde_json::{Map, Value};

use crate::contract::channel::ids::{ChatId, EventId, MessageId, SenderId};
use crate::contract::inbox::event::EVENT_SCHEMA;
use crate::contract::inbox::live_event::{Given, LiveEvent, LiveMessage};

/// The most attachments that are counted.
const MAX_ATTACHMENTS: i64 = 50;

/// Reads a message; what names no chat is none.
pub(super) fn message(line: &Map<String, Value>) -> LiveEvent {
    let text = |name: &str| line.get(name).and_then(Value::as_str);
    let Some(chat) = text("chat_id").and_then(ChatId::new) else {
        return LiveEvent::Other;
    };
    // Another schema than the one that was asked for is nothing that could be stored.
    let is_ours = text("schema_version") == Some(EVENT_SCHEMA);
    LiveEvent::Message(Box::new(LiveMessage {
        message: text("message_id")
            .and_then(MessageId::new)
            .filter(|_| is_ours),
        event: given(line, "event_id", |value| {
            value.as_str().and_then(EventId::new)
        }),
        sent_at: match line.get("create_time") {
            Some(Value::String(text)) => text.clone(),
            Some(Value::Number(number)) => number.to_string(),
            _ => String::new(),
        },
        words: given(line, "content", |value| value.as_str().map(str::to_owned)),
        attachments: given(line, "attachment_count", |value| {
            let count = value.as_i64()?;
            (0..=MAX_ATTACHMENTS).contains(&count).then_some(count)
        }),
        sender_kind: text("sender_type").map(str::to_owned),
        sender: match line.get("sender_id") {
            Some(Value::String(id)) if id.is_empty() => Given::Absent,
            _ => given(line, "sender_id", |value| {
                value.as_str().and_then(SenderId::new)
            }),
        },
        parent: linked(text("parent_id")),
        root: linked(text("root_id")),
        is_in_thread: text("thread_id").is_some(),
        mentions: line.get("mentions").filter(|list| !list.is_null()).cloned(),
        chat,
    }))
}

fn given<T>(line: &Map<String, Value>, name: &str, read: impl Fn(&Value) -> Option<T>) -> Given<T> {
    match line.get(name) {
        None | Some(Value::Null) => Given::Absent,
        Some(value) => Given::read(read(value)),
    }
}

fn linked(id: Option<&str>) -> Given<MessageId> {
    id.map_or(Given::Absent, |id| Given::read(MessageId::new(id)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn read(change: &Value) -> LiveEvent {
        let mut line = json!({"schema_version": EVENT_SCHEMA, "event_id": "ev_1", "message_id": "om_1", "create_time": 17,
            "content": "words", "parent_id": null, "root_id": null, "mentions": [], "thread_id": null, "attachment_count": 0,
            "sender_type": "user", "sender_id": "ou_1", "chat_id": "oc_1"});
        for (name, value) in change.as_object().into_iter().flatten() {
            line[name.as_str()] = value.clone();
        }
        message(line.as_object().expect("an object"))
    }

    fn of(change: &Value) -> LiveMessage {
        match read(change) {
            LiveEvent::Message(message) => *message,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_printed_line_becomes_a_message_of_named_parts() {
        let message = of(&json!({"root_id": "om_r", "thread_id": "omt_1"}));
        assert_eq!(message.chat, ChatId::new("oc_1").expect("a chat"));
        assert_eq!(message.message, MessageId::new("om_1"));
        assert_eq!(message.event, Given::read(EventId::new("ev_1")));
        assert_eq!(
            (message.sent_at.as_str(), message.is_in_thread),
            ("17", true)
        );
        assert_eq!(message.root, Given::read(MessageId::new("om_r")));
        assert_eq!(message.parent, Given::Absent);
        assert_eq!(message.mentions, Some(json!([])));
    }

    #[test]
    fn what_is_malformed_is_told_from_what_is_absent() {
        let odd = of(
            &json!({"content": 5, "sender_id": {"open_id": "x"}, "attachment_count": 51, "event_id": "a b", "parent_id": "x"}),
        );
        assert_eq!(odd.words, Given::Malformed);
        assert_eq!(odd.sender, Given::Malformed);
        assert_eq!(odd.attachments, Given::Malformed);
        assert_eq!(odd.event, Given::Malformed);
        assert_eq!(odd.parent, Given::Malformed);
        let bare = of(
            &json!({"content": null, "sender_id": "", "attachment_count": null, "event_id": null}),
        );
        assert_eq!((bare.words, bare.sender), (Given::Absent, Given::Absent));
        assert_eq!(
            (bare.attachments, bare.event),
            (Given::Absent, Given::Absent)
        );
    }

    #[test]
    fn another_schema_and_another_chat_are_never_stored() {
        assert_eq!(of(&json!({"schema_version": "x"})).message, None);
        for chat in [Value::Null, json!("x"), json!(7)] {
            assert_eq!(read(&json!({"chat_id": chat})), LiveEvent::Other);
        }
    }
}
