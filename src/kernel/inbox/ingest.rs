//! What is stored of one incoming message, `docs/spec/lark-inbox.md` 4.1. Anything else is an invalid event: it is counted and not kept.

use serde_json::{Map, Value, json};

use super::addressing::{self, Addressing};
use crate::contract::channel::ids::{EventId, MessageId, RouteKey};
use crate::contract::inbox::config::{BotIdentity, CaptureScope};
use crate::contract::inbox::event::{EVENT_SCHEMA, MAX_CONTENT, StoredEvent};
use crate::contract::text;

/// What an inbox is, as far as storing needs it.
#[derive(Clone, Copy, Debug)]
pub struct Into<'a> {
    pub bot: &'a BotIdentity,
    pub scope: CaptureScope,
    pub route: Option<&'a RouteKey>,
}

/// An event that is not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InvalidEvent;

/// Builds the stored form of an event given as the ingest schema has it.
pub fn event(raw: &Value, into: Into<'_>) -> Result<StoredEvent, InvalidEvent> {
    let raw = raw.as_object().ok_or(InvalidEvent)?;
    if raw.get("schema_version").and_then(Value::as_str) != Some(EVENT_SCHEMA) {
        return Err(InvalidEvent);
    }
    build(raw, into)
}

fn build(raw: &Map<String, Value>, into: Into<'_>) -> Result<StoredEvent, InvalidEvent> {
    let message_id = some(raw, "message_id")
        .and_then(Value::as_str)
        .and_then(MessageId::new)
        .ok_or(InvalidEvent)?;
    let event_id = match some(raw, "event_id") {
        None => message_id.as_str().to_owned(),
        Some(given) => {
            let text = given.as_str().ok_or(InvalidEvent)?;
            EventId::new(text).ok_or(InvalidEvent)?.as_str().to_owned()
        }
    };
    let content = content(raw)?;
    let attachments = attachments(raw)?;
    if content.is_empty() && attachments == 0 {
        return Err(InvalidEvent);
    }
    let sender_id = sender_id(raw)?;
    let links = Links::read(raw);
    let addressing =
        addressing::decide(&Value::Object(raw.clone()), &content, into.bot, into.scope);
    let marks = Marks::read(raw, &links, addressing)?;

    let mut body = Map::new();
    let mut put = |name: &str, value: Value| drop(body.insert(name.to_owned(), value));
    put("schema_version", json!(EVENT_SCHEMA));
    put("event_id", json!(event_id));
    put("message_id", json!(message_id.as_str()));
    put("create_time", json!(create_time(raw)));
    put("content", json!(content));
    put("attachment_count", json!(attachments));
    if let Some(kind) = sender_type(raw) {
        put("sender_type", json!(kind));
    }
    if let Some(sender) = sender_id {
        put("sender_id", json!(sender));
    }
    if let Some(route) = into.route {
        put("route_key", json!(route));
    }
    links.put(&mut put);
    marks.put(&mut put, raw);
    Ok(StoredEvent::from_body(message_id, body))
}

fn some<'a>(raw: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    raw.get(name).filter(|value| !value.is_null())
}

/// Collapses and cuts a text the way it is stored.
pub fn kept_text(raw: &str) -> String {
    text::prefix(&text::collapse(raw), MAX_CONTENT).to_owned()
}

fn content(raw: &Map<String, Value>) -> Result<String, InvalidEvent> {
    match some(raw, "content") {
        None => Ok(String::new()),
        Some(Value::String(text)) => Ok(kept_text(text)),
        Some(_) => Err(InvalidEvent),
    }
}

fn attachments(raw: &Map<String, Value>) -> Result<i64, InvalidEvent> {
    match some(raw, "attachment_count") {
        None => Ok(0),
        Some(count) => count
            .as_i64()
            .filter(|count| (0..=50).contains(count))
            .ok_or(InvalidEvent),
    }
}

fn create_time(raw: &Map<String, Value>) -> String {
    match some(raw, "create_time") {
        Some(Value::String(text)) => text::prefix(text, 40).to_owned(),
        Some(Value::Number(number)) => text::prefix(&number.to_string(), 40).to_owned(),
        _ => String::new(),
    }
}

fn sender_type(raw: &Map<String, Value>) -> Option<String> {
    let kind = some(raw, "sender_type")?.as_str()?.to_ascii_lowercase();
    let mut bytes = kind.bytes();
    let valid = kind.len() <= 32
        && bytes.next().is_some_and(|byte| byte.is_ascii_lowercase())
        && bytes.all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || matches!(byte, b'_' | b'-')
        });
    valid.then_some(kind)
}

fn sender_id(raw: &Map<String, Value>) -> Result<Option<String>, InvalidEvent> {
    let Some(given) = some(raw, "sender_id") else {
        return Ok(None);
    };
    let id = given.as_str().ok_or(InvalidEvent)?;
    let is_safe =
        |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':' | b'@');
    match id {
        "" => Ok(None),
        id if id.len() <= 200 && id.bytes().all(is_safe) => Ok(Some(id.to_owned())),
        _ => Err(InvalidEvent),
    }
}

/// What a message answers, as far as it is known.
struct Links {
    parent: Option<String>,
    root: Option<String>,
    is_verified: bool,
    context: Option<Value>,
}

impl Links {
    fn read(raw: &Map<String, Value>) -> Self {
        let id = |name: &str| {
            let id = some(raw, name)?.as_str().and_then(MessageId::new)?;
            Some(id.as_str().to_owned())
        };
        Self {
            parent: id("parent_id"),
            root: id("root_id"),
            is_verified: raw.get("reply_context_verified") == Some(&Value::Bool(true)),
            context: some(raw, "reply_context").and_then(reply_context),
        }
    }

    fn put(&self, put: &mut impl FnMut(&str, Value)) {
        for (name, id) in [("parent_id", &self.parent), ("root_id", &self.root)] {
            if let Some(id) = id {
                put(name, json!(id));
            }
        }
    }
}

/// The longest kept text of an answered message, in characters.
const MAX_CONTEXT: usize = 16_000;

fn reply_context(given: &Value) -> Option<Value> {
    let text = |name: &str, max: usize| {
        given
            .get(name)
            .and_then(Value::as_str)
            .map(|text| text::prefix(text, max).to_owned())
    };
    let whole = given.get("content").and_then(Value::as_str).unwrap_or("");
    let was_cut = given.get("content_truncated") == Some(&Value::Bool(true));
    Some(json!({
        "message_id": text("message_id", 200)?,
        "conversation_id": text("conversation_id", 200)?,
        "content": text::prefix(whole, MAX_CONTEXT),
        "content_truncated": was_cut || text::is_longer_than(whole, MAX_CONTEXT),
    }))
}

/// The sources an addressed event can name.
const SOURCES: [&str; 3] = ["verified_reply", "provider_mention", "legacy_text"];

struct Marks {
    is_verified: bool,
    is_reply_to_bot: bool,
    is_addressed: bool,
    is_historical: bool,
    source: String,
    addressing: Addressing,
    context: Option<Value>,
}

impl Marks {
    fn read(
        raw: &Map<String, Value>,
        links: &Links,
        addressing: Addressing,
    ) -> Result<Self, InvalidEvent> {
        let stored = match some(raw, "addressing_source") {
            None => None,
            Some(Value::String(source)) if SOURCES.contains(&source.as_str()) => {
                Some(source.clone())
            }
            Some(_) => return Err(InvalidEvent),
        };
        let says_reply = raw.get("reply_to_bot") == Some(&Value::Bool(true));
        let is_reply_to_bot = says_reply && links.is_verified && links.parent.is_some();
        let source = match (is_reply_to_bot, addressing.target_mentions) {
            (true, _) => SOURCES[0].to_owned(),
            (false, 1..) => SOURCES[1].to_owned(),
            _ => stored.unwrap_or_else(|| SOURCES[2].to_owned()),
        };
        Ok(Self {
            is_verified: links.is_verified,
            is_reply_to_bot,
            is_addressed: addressing.is_addressed || is_reply_to_bot,
            is_historical: raw.get("historical_context_only") == Some(&Value::Bool(true)),
            source,
            addressing,
            context: links.context.clone(),
        })
    }

    fn put(&self, put: &mut impl FnMut(&str, Value), raw: &Map<String, Value>) {
        let live = |flag: bool| json!(flag && !self.is_historical);
        put("reply_context_verified", live(self.is_verified));
        put("reply_to_bot", live(self.is_reply_to_bot));
        if let Some(context) = &self.context {
            put("reply_context", context.clone());
        }
        put("addressed_to_bot", live(self.is_addressed));
        if raw
            .get("historical_context_only")
            .is_some_and(Value::is_boolean)
        {
            put("historical_context_only", json!(self.is_historical));
        }
        put(
            "provider_mention_count",
            json!(self.addressing.provider_mentions),
        );
        put(
            "target_mention_count",
            json!(self.addressing.target_mentions),
        );
        if self.is_historical {
            put("historical_was_addressed_to_bot", json!(self.is_addressed));
            put("historical_was_reply_to_bot", json!(self.is_reply_to_bot));
        }
        if self.is_addressed {
            let name = if self.is_historical {
                "historical_addressing_source"
            } else {
                "addressing_source"
            };
            put(name, json!(self.source));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn stored(raw: Value) -> Result<StoredEvent, InvalidEvent> {
        let bot = BotIdentity {
            display_name: Some("Bot".to_owned()),
            ..BotIdentity::default()
        };
        event(
            &raw,
            Into {
                bot: &bot,
                scope: CaptureScope::AddressedOnly,
                route: None,
            },
        )
    }

    fn raw() -> Value {
        json!({"schema_version": EVENT_SCHEMA, "message_id": "om_1", "create_time": 17, "content": " a \n b ",
            "sender_type": "User", "sender_id": "ou_1", "secret": "not kept", "mentions": [{"id": "ou_2"}]})
    }

    #[test]
    fn the_stored_form_has_the_order_and_content_of_the_contract() {
        let event = stored(raw()).expect("valid");
        assert_eq!(
            event.to_row(),
            "{\"schema_version\":\"lark_event_inbox_event_v0\",\"event_id\":\"om_1\",\"message_id\":\"om_1\",\"create_time\":\"17\",\
             \"content\":\"a b\",\"attachment_count\":0,\"sender_type\":\"user\",\"sender_id\":\"ou_1\",\"reply_context_verified\":false,\
             \"reply_to_bot\":false,\"addressed_to_bot\":false,\"provider_mention_count\":1,\"target_mention_count\":0}"
        );
    }

    #[test]
    fn what_breaks_the_contract_is_not_stored() {
        for (name, value) in [
            ("schema_version", json!("other_v0")),
            ("message_id", json!("bad id")),
            ("content", json!(" \n ")),
            ("content", json!({"a": 1})),
            ("attachment_count", json!(51)),
            ("attachment_count", json!(true)),
            ("sender_id", json!({"open_id": "x"})),
            ("sender_id", json!("a\nb")),
            ("event_id", json!("a b")),
            ("addressing_source", json!("guess")),
        ] {
            let mut event = raw();
            event[name] = value.clone();
            assert_eq!(stored(event), Err(InvalidEvent), "{name} {value}");
        }
        assert!(stored(json!([])).is_err());
    }

    #[test]
    fn an_attachment_alone_is_a_message() {
        let mut event = raw();
        event["content"] = json!("");
        event["attachment_count"] = json!(2);
        assert!(stored(event).is_ok());
    }

    #[test]
    fn a_reply_to_the_bot_counts_only_when_verified_and_with_a_parent() {
        let mut event = raw();
        event["reply_to_bot"] = json!(true);
        assert!(!stored(event.clone()).expect("valid").is_addressed());
        event["reply_context_verified"] = json!(true);
        event["parent_id"] = json!("om_0");
        let event = stored(event).expect("valid");
        assert!(event.is_addressed());
        assert_eq!(event.body()["addressing_source"], "verified_reply");
    }

    #[test]
    fn historical_context_never_raises_attention() {
        let mut event = raw();
        event["content"] = json!("@Bot hi");
        event["mentions"] = Value::Null;
        event["historical_context_only"] = json!(true);
        let event = stored(event).expect("valid");
        assert!(!event.is_addressed());
        assert_eq!(event.body()["historical_was_addressed_to_bot"], true);
        assert_eq!(event.body()["historical_addressing_source"], "legacy_text");
    }

    #[test]
    fn a_long_text_is_cut() {
        let mut event = raw();
        event["content"] = json!("ä".repeat(1300));
        assert_eq!(
            stored(event).expect("valid").content().chars().count(),
            1200
        );
    }

    proptest! {
        #[test]
        fn whatever_is_stored_reads_back(content in "\\PC{0,40}", create in "\\PC{0,60}", count in -2_i64..60) {
            let mut event = raw();
            event["content"] = json!(content);
            event["create_time"] = json!(create);
            event["attachment_count"] = json!(count);
            if let Ok(event) = stored(event) {
                prop_assert_eq!(StoredEvent::from_row("om_1", &event.to_row()), Some(event));
            }
        }
    }
}
