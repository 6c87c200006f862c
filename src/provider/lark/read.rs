//! Readers of successful answers, pure: typed values out, `PayloadInvalid` for anything else.
//!
//! A shown list that is null is an empty list. A listing says whether more follows, or it is not a listing.

use serde_json::Value;

use super::failure::unreadable;
use crate::contract::channel::ids::{AppId, ChatId, MarkId, MessageId, Opaque};
use crate::contract::channel::mention::MentionId;
use crate::contract::channel::observed::{MarkPage, Members, Observed, Page, SentWords};
use crate::contract::time::Timestamp;
use crate::port::channel::ProviderError;

type Read<T> = Result<T, ProviderError>;

/// Refuses an answer that was made under another identity than the one asked for.
pub(super) fn under(identity: &str, envelope: Value) -> Read<Value> {
    match envelope.get("identity") {
        None | Some(Value::Null) => Ok(envelope),
        Some(named) if named == identity => Ok(envelope),
        Some(_) => Err(unreadable()),
    }
}

/// Tells whether `auth status --verify` says that a person is signed in.
pub(super) fn is_user_ready(value: &Value) -> bool {
    let user = &value["identities"]["user"];
    ["available", "verified"]
        .iter()
        .all(|name| user.get(name).and_then(Value::as_bool) == Some(true))
}

/// What `auth status --verify` says of the bot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BotStatus {
    pub(super) is_ready: bool,
    pub(super) name: Option<String>,
    pub(super) app: Option<AppId>,
    pub(super) may_be_retried: bool,
}

pub(super) fn bot_status(value: &Value) -> BotStatus {
    let bot = &value["identities"]["bot"];
    let is_true = |name: &str| bot.get(name).and_then(Value::as_bool) == Some(true);
    BotStatus {
        is_ready: is_true("available") && is_true("verified"),
        name: bot
            .get("appName")
            .and_then(Value::as_str)
            .map(str::to_owned),
        app: app_id(value),
        may_be_retried: bot.get("status").and_then(Value::as_str) == Some("verify_failed"),
    }
}

/// The first application id under its two names.
pub(super) fn app_id(value: &Value) -> Option<AppId> {
    ["appId", "app_id"]
        .into_iter()
        .filter_map(|name| value.get(name).and_then(Value::as_str))
        .find_map(AppId::new)
}

/// Finds a text under one of `names`, own keys first, then children in their order.
pub(super) fn find_text<'a>(value: &'a Value, names: &[&str]) -> Option<&'a str> {
    match value {
        Value::Object(map) => names
            .iter()
            .filter_map(|name| map.get(*name).and_then(Value::as_str))
            .find(|text| !text.is_empty())
            .or_else(|| map.values().find_map(|inner| find_text(inner, names))),
        Value::Array(items) => items.iter().find_map(|item| find_text(item, names)),
        _ => None,
    }
}

pub(super) fn sent_message(envelope: &Value) -> Read<MessageId> {
    let id = find_text(&envelope["data"], &["message_id"]).and_then(MessageId::new);
    id.ok_or_else(unreadable)
}

pub(super) fn mark_id(envelope: &Value) -> Read<MarkId> {
    let id = find_text(&envelope["data"], &["reaction_id"]).and_then(MarkId::new);
    id.ok_or_else(unreadable)
}

/// Reads a member list; one of another chat proves nothing about this one.
pub(super) fn members(envelope: &Value, chat: &ChatId) -> Read<Members> {
    let data = envelope
        .get("data")
        .filter(|data| data.is_object() && names_chat(data, chat))
        .ok_or_else(unreadable)?;
    let mut found = Members::default();
    collect_ids(data, &mut found.ids);
    for bot in data
        .get("bots")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
    {
        let text = |name: &str| {
            bot.get(name)
                .and_then(Value::as_str)
                .filter(|text| !text.is_empty())
        };
        if let (Some(member), Some(app)) = (text("member_id"), text("app_id")) {
            found
                .bots
                .push((MentionId::new(member), MentionId::new(app)));
        }
    }
    let is_cut = data
        .get("truncations")
        .and_then(Value::as_array)
        .is_some_and(|cuts| !cuts.is_empty());
    found.is_complete = data.get("has_more").and_then(Value::as_bool) == Some(false) && !is_cut;
    Ok(found)
}

fn collect_ids(value: &Value, ids: &mut Vec<MentionId>) {
    match value {
        Value::Object(map) => {
            for (name, inner) in map {
                let is_id = matches!(
                    name.as_str(),
                    "member_id" | "open_id" | "user_id" | "union_id"
                );
                match inner.as_str() {
                    Some(id) if is_id && !id.is_empty() => ids.push(MentionId::new(id)),
                    _ => collect_ids(inner, ids),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_ids(item, ids)),
        _ => {}
    }
}

/// Tells whether an answer about a chat does not name another one.
pub(super) fn names_chat(data: &Value, chat: &ChatId) -> bool {
    match data.get("chat_id") {
        None | Some(Value::Null) => true,
        Some(named) => named.as_str() == Some(chat.as_str()),
    }
}

/// The decoded body of every previewed call; older answers list them at the top.
pub(super) fn previewed(value: &Value) -> Vec<SentWords> {
    let calls = value["data"]["api"]
        .as_array()
        .or_else(|| value["api"].as_array());
    calls.into_iter().flatten().map(previewed_body).collect()
}

fn previewed_body(call: &Value) -> SentWords {
    let body = &call["body"];
    let content = body["content"].as_str();
    content.map_or(SentWords::Other, |content| {
        sent_words(body["msg_type"].as_str(), content)
    })
}

/// Decodes the words of an encoded body; its type tells text and post apart, where it is given.
fn sent_words(kind: Option<&str>, content: &str) -> SentWords {
    let Ok(value) = serde_json::from_str::<Value>(content) else {
        return SentWords::Other;
    };
    if let (Some(text), None | Some("text")) = (value["text"].as_str(), kind) {
        return SentWords::Text(text.to_owned());
    }
    let mut elements = Vec::new();
    formatted(&value, &mut elements);
    match (elements.as_slice(), kind) {
        ([words], Some("post")) => SentWords::Post((*words).to_owned()),
        _ => SentWords::Other,
    }
}

/// Finds the formatted elements of a post, whatever language they stand under.
fn formatted<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
    match value {
        Value::Object(map) => {
            if map.get("tag").and_then(Value::as_str) == Some("md") {
                found.extend(map.get("text").and_then(Value::as_str));
            }
            map.values().for_each(|inner| formatted(inner, found));
        }
        Value::Array(items) => items.iter().for_each(|item| formatted(item, found)),
        _ => {}
    }
}

/// Reads a page of a chat or thread.
pub(super) fn page(envelope: &Value, sent: Option<&Opaque>) -> Read<Page> {
    let data = envelope
        .get("data")
        .filter(|data| data.is_object())
        .ok_or_else(unreadable)?;
    let messages = match data.get("messages") {
        Some(Value::Null) => Vec::new(),
        Some(Value::Array(items)) if items.iter().all(Value::is_object) => {
            items.iter().map(observed).collect()
        }
        _ => return Err(unreadable()),
    };
    let next = next_token(data, sent)?;
    // The client says itself when its own paging stopped short.
    let is_short = envelope["meta"]["pagination"]["complete"] == false;
    if next.is_none() && is_short {
        return Err(unreadable());
    }
    Ok(Page { messages, next })
}

fn next_token(data: &Value, sent: Option<&Opaque>) -> Read<Option<Opaque>> {
    match data.get("has_more") {
        Some(Value::Bool(false)) => Ok(None),
        Some(Value::Bool(true)) => {
            let token = data
                .get("page_token")
                .and_then(Value::as_str)
                .filter(|token| !token.trim().is_empty());
            let token = token.map(Opaque::new).ok_or_else(unreadable)?;
            if Some(&token) == sent {
                Err(unreadable())
            } else {
                Ok(Some(token))
            }
        }
        _ => Err(unreadable()),
    }
}

pub(super) fn mark_page(envelope: &Value, sent: Option<&Opaque>) -> Read<MarkPage> {
    let data = envelope
        .get("data")
        .filter(|data| data.is_object())
        .ok_or_else(unreadable)?;
    let items = match data.get("items") {
        Some(Value::Array(items)) => items.as_slice(),
        Some(Value::Null) => &[],
        // Without the list there is no proof that a mark is absent.
        _ => return Err(unreadable()),
    };
    let ids = items
        .iter()
        .map(|item| item["reaction_id"].as_str().and_then(MarkId::new));
    let marks = ids.collect::<Option<Vec<_>>>().ok_or_else(unreadable)?;
    Ok(MarkPage {
        marks,
        next: next_token(data, sent)?,
    })
}

/// Every message of a readback, those nested in threads included.
pub(super) fn read_back(envelope: &Value) -> Read<Vec<Observed>> {
    let data = envelope
        .get("data")
        .filter(|data| data.is_object())
        .ok_or_else(unreadable)?;
    let mut found = Vec::new();
    collect_messages(data, &mut found);
    Ok(found)
}

fn collect_messages(value: &Value, found: &mut Vec<Observed>) {
    match value {
        Value::Object(map) => {
            if map.get("message_id").is_some_and(Value::is_string) {
                found.push(observed(value));
            }
            map.values()
                .for_each(|inner| collect_messages(inner, found));
        }
        Value::Array(items) => items.iter().for_each(|item| collect_messages(item, found)),
        _ => {}
    }
}

/// The one message of a raw read.
pub(super) fn raw_message(envelope: &Value, id: &MessageId) -> Read<Observed> {
    let items = envelope["data"]["items"].as_array();
    items
        .into_iter()
        .flatten()
        .map(observed)
        .find(|message| message.message_id.as_ref() == Some(id))
        .ok_or_else(unreadable)
}

/// Reads one message in either shape.
pub(super) fn observed(value: &Value) -> Observed {
    let text = |name: &str| {
        value
            .get(name)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    };
    let message = |name: &str| text(name).and_then(MessageId::new);
    let flag = |name: &str| value.get(name).and_then(Value::as_bool) == Some(true);
    let kind = text("msg_type").or_else(|| text("message_type"));
    let sender = &value["sender"];
    let sender_type = sender
        .get("sender_type")
        .or_else(|| value.get("sender_type"));
    Observed {
        message_id: message("message_id"),
        chat: text("chat_id").and_then(ChatId::new),
        message_type: kind.unwrap_or("").to_owned(),
        content: text("content").unwrap_or("").to_owned(),
        body: body_words(value, kind),
        create_time: text("create_time").unwrap_or("").to_owned(),
        created: text("create_time").and_then(instant),
        is_deleted: flag("deleted"),
        sender_type: sender_type
            .and_then(Value::as_str)
            .map(str::to_ascii_lowercase),
        sender_id: sender
            .get("id")
            .or_else(|| sender.get("sender_id"))
            .or_else(|| value.get("sender_id"))
            .cloned(),
        parent_id: message("parent_id").or_else(|| message("reply_to")),
        root_id: message("root_id"),
        thread: text("thread_id").map(Opaque::new),
        mentions: value.get("mentions").cloned(),
        mentioned: value.get("mentioned").cloned(),
        thread_is_cut: flag("thread_has_more") || flag("thread_replies_error"),
        replies: value
            .get("thread_replies")
            .and_then(Value::as_array)
            .map(|replies| replies.iter().map(observed).collect()),
    }
}

/// Reads a time as the program shows it: local, which is UTC here, to the minute or second; raw messages have milliseconds.
fn instant(text: &str) -> Option<Timestamp> {
    if let Ok(millis) = text.parse::<i64>() {
        return Timestamp::from_unix(millis.div_euclid(1000));
    }
    let (date, time) = text.split_once(' ')?;
    let seconds = time
        .get(5..)
        .filter(|rest| !rest.is_empty())
        .unwrap_or(":00");
    Timestamp::parse(&format!("{date}T{}{seconds}Z", time.get(..5)?))
}

fn body_words(value: &Value, kind: Option<&str>) -> Option<SentWords> {
    match value.get("body")?.get("content")? {
        Value::String(text) => Some(sent_words(kind, text)),
        object @ Value::Object(_) => Some(sent_words(kind, &object.to_string())),
        _ => None,
    }
}
