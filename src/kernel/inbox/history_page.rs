//! What a page of history brings: which messages become events, which are skipped, and what of it is a newer text.
//!
//! Replies nested in a message follow it as events of their own. One message without a valid id refuses the page
//! (`docs/spec/lark-inbox.md` 10.3).

use std::collections::BTreeSet;
use std::fmt;

use serde_json::{Map, Value, json};

use super::ingest::{self, Into as IngestInto, kept_text};
use crate::contract::channel::ids::{AppId, ChatId, MessageId};
use crate::contract::channel::observed::Observed;
use crate::contract::inbox::event::{EVENT_SCHEMA, MAX_CONTENT, StoredEvent};
use crate::contract::text;

/// The most replies a listing embeds on one page.
const MAX_EMBEDDED: usize = 500;

/// One message of a page that is kept.
#[derive(Clone)]
pub struct PageMessage {
    pub event: StoredEvent,
    /// The text before it was cut.
    pub whole_content: String,
    pub mentions: Value,
}

impl fmt::Debug for PageMessage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("<private message>")
    }
}

/// A page, classified.
#[derive(Clone, Debug, Default)]
pub struct ClassifiedPage {
    /// Each id once, in page order.
    pub kept: Vec<PageMessage>,
    /// Further copies of kept ids.
    pub repeated: usize,
    pub skipped: usize,
    pub own: usize,
    /// Messages without a valid id; any refuses the page.
    pub invalid: usize,
}

/// Tells whether any message of a page, nested ones included, comes from an application.
pub fn has_app_sender(messages: &[Observed]) -> bool {
    messages.iter().any(|message| {
        matches!(message.sender_type.as_deref(), Some("app" | "bot"))
            || message.replies.as_deref().is_some_and(has_app_sender)
    })
}

/// Names the listed messages whose threads are not shown whole.
pub fn cut_threads(messages: &[Observed]) -> Vec<usize> {
    let embedded: usize = messages
        .iter()
        .map(|message| message.replies.as_ref().map_or(0, Vec::len))
        .sum();
    let is_full = embedded >= MAX_EMBEDDED;
    let is_cut = |message: &Observed| {
        message.thread_is_cut || (is_full && message.thread.is_some() && message.replies.is_none())
    };
    messages
        .iter()
        .enumerate()
        .filter(|(_, message)| is_cut(message))
        .map(|(index, _)| index)
        .collect()
}

/// The shown replies that a thread read did not bring.
pub fn lacking(shown: Vec<Observed>, read: &[Observed]) -> Vec<Observed> {
    let is_there = |reply: &Observed| {
        read.iter()
            .any(|found| found.message_id == reply.message_id)
    };
    shown.into_iter().filter(|reply| !is_there(reply)).collect()
}

/// Turns a page into events.
pub fn classify(
    messages: &[Observed],
    own: Option<&AppId>,
    chat: &ChatId,
    into: IngestInto<'_>,
) -> ClassifiedPage {
    let mut page = Classifier {
        own,
        chat,
        into,
        seen: BTreeSet::new(),
        page: ClassifiedPage::default(),
    };
    for message in messages {
        page.add(message, None);
    }
    page.page
}

struct Classifier<'a> {
    own: Option<&'a AppId>,
    chat: &'a ChatId,
    into: IngestInto<'a>,
    seen: BTreeSet<MessageId>,
    page: ClassifiedPage,
}

impl Classifier<'_> {
    fn add(&mut self, message: &Observed, outermost: Option<&MessageId>) {
        // A row that names another chat proves that the answer is not about this one.
        let is_foreign = message.chat.as_ref().is_some_and(|chat| chat != self.chat);
        match &message.message_id {
            _ if is_foreign => self.page.invalid += 1,
            None => self.page.invalid += 1,
            Some(id) => self.add_valid(message, id, outermost),
        }
        let root = outermost.or(message.message_id.as_ref());
        for reply in message.replies.iter().flatten() {
            self.add(reply, root);
        }
    }

    fn add_valid(&mut self, message: &Observed, id: &MessageId, outermost: Option<&MessageId>) {
        if message.is_own(self.own) {
            self.page.own += 1;
            return;
        }
        if message.is_deleted || text::collapse(&message.content).is_empty() {
            self.page.skipped += 1;
            return;
        }
        let raw = raw_event(message, id, (self.chat, outermost));
        // A sender that is no id is left out: one message may not hold up its page for ever.
        let event = ingest::event(&raw, self.into)
            .or_else(|_| ingest::event(&without_sender(raw), self.into));
        let Ok(event) = event else {
            self.page.invalid += 1;
            return;
        };
        if !self.seen.insert(id.clone()) {
            self.page.repeated += 1;
            return;
        }
        self.page.kept.push(PageMessage {
            event,
            whole_content: message.content.clone(),
            mentions: message.mentions.clone().unwrap_or(Value::Null),
        });
    }
}

fn without_sender(mut raw: Value) -> Value {
    if let Value::Object(raw) = &mut raw {
        raw.remove("sender_id");
    }
    raw
}

fn raw_event(
    message: &Observed,
    id: &MessageId,
    (chat, outermost): (&ChatId, Option<&MessageId>),
) -> Value {
    let mut raw = Map::new();
    let mut put = |name: &str, value: Value| drop(raw.insert(name.to_owned(), value));
    put("schema_version", json!(EVENT_SCHEMA));
    put("message_id", json!(id.as_str()));
    put("create_time", json!(message.create_time));
    put("content", json!(message.content));
    put(
        "chat_id",
        json!(message.chat.as_ref().unwrap_or(chat).as_str()),
    );
    if let Some(kind) = &message.sender_type {
        put("sender_type", json!(kind));
    }
    if let Some(sender) = message.sender() {
        put("sender_id", json!(sender));
    }
    if let Some(parent) = &message.parent_id {
        put("parent_id", json!(parent.as_str()));
    }
    if let Some(root) = message.root_id.as_ref().or(outermost) {
        put("root_id", json!(root.as_str()));
    }
    // An empty list and a false flag are evidence and pass through.
    for (name, given) in [
        ("mentions", &message.mentions),
        ("mentioned", &message.mentioned),
    ] {
        if let Some(value) = given {
            put(name, value.clone());
        }
    }
    Value::Object(raw)
}

/// Tells whether a shown text says something else than the newest known one, whatever way its mentions are rendered.
pub fn is_newer_text(known: &str, shown: &str, mentions: &Value) -> bool {
    let forms = renderings(mentions);
    let (one, other) = (folded(known, &forms), folded(shown, &forms));
    let is_cut = [known, shown]
        .iter()
        .any(|text| text::length(text) >= MAX_CONTENT);
    if !is_cut {
        return one != other;
    }
    let shorter = text::length(&one).min(text::length(&other));
    text::prefix(&one, shorter) != text::prefix(&other, shorter)
}

/// The text of a raw message with its keys shown as names, as it would be kept.
pub fn text_of_raw(words: &str, mentions: &Value) -> String {
    let mut shown = words.to_owned();
    let mut named = keyed(mentions);
    named.sort_by_key(|(key, _)| std::cmp::Reverse(key.len()));
    for (key, name) in named {
        shown = shown.replace(key, &format!("@{name}"));
    }
    kept_text(&shown)
}

fn keyed(mentions: &Value) -> Vec<(&str, &str)> {
    let items = mentions.as_array().into_iter().flatten();
    let text = |item: &'_ Value, name: &str| item.get(name).and_then(Value::as_str).map(str::len);
    items
        .filter(|item| text(item, "key").is_some_and(|len| len > 0))
        .filter_map(|item| Some((item["key"].as_str()?, item["name"].as_str().unwrap_or(""))))
        .collect()
}

/// Every way a mention can be shown, longest first.
fn renderings(mentions: &Value) -> Vec<String> {
    let all = keyed(mentions);
    let mut forms = BTreeSet::new();
    for (key, name) in &all {
        forms.insert((*key).to_owned());
        if !name.is_empty() {
            forms.insert(format!("@{name}"));
        }
        for (shorter, other) in all.iter().filter(|(other_key, _)| other_key != key) {
            if let Some(rest) = key.strip_prefix(shorter) {
                forms.insert(format!("@{other}{rest}"));
            }
        }
    }
    let mut forms: Vec<String> = forms.into_iter().collect();
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    forms
}

fn folded(text: &str, forms: &[String]) -> String {
    let mut folded = text.to_owned();
    for form in forms {
        folded = folded.replace(text::collapse(form).as_str(), "\u{1}");
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::inbox::config::{BotIdentity, CaptureScope};

    fn message(id: &str, content: &str) -> Observed {
        Observed {
            message_id: MessageId::new(id),
            content: content.to_owned(),
            ..Observed::default()
        }
    }

    fn classified(messages: &[Observed]) -> ClassifiedPage {
        let bot = BotIdentity::default();
        let chat = ChatId::new("oc_1").expect("id");
        let own = AppId::new("cli_own");
        classify(
            messages,
            own.as_ref(),
            &chat,
            IngestInto {
                bot: &bot,
                scope: CaptureScope::ConfiguredChatAll,
                route: None,
            },
        )
    }

    #[test]
    fn nested_replies_follow_their_message_and_hang_under_its_root() {
        let inner = Observed {
            replies: Some(vec![message("om_3", "c")]),
            ..message("om_2", "b")
        };
        let root = Observed {
            replies: Some(vec![inner]),
            ..message("om_1", "a")
        };
        let page = classified(&[root, message("om_2", "again")]);
        let rows: Vec<_> = page
            .kept
            .iter()
            .map(|kept| {
                (
                    kept.event.message_id().as_str(),
                    kept.event.root_id().map(|id| id.as_str().to_owned()),
                )
            })
            .collect();
        assert_eq!(
            rows,
            vec![
                ("om_1", None),
                ("om_2", Some("om_1".into())),
                ("om_3", Some("om_1".into()))
            ]
        );
        assert_eq!(page.repeated, 1);
    }

    #[test]
    fn debug_text_shows_no_word_of_a_message() {
        let page = classified(&[message("om_1", "secret")]);
        assert_eq!(page.kept.len(), 1);
        assert!(!format!("{page:?}").contains("secret"), "{page:?}");
    }

    #[test]
    fn own_deleted_blank_and_broken_messages_are_told_apart() {
        let own = Observed {
            sender_type: Some("app".into()),
            sender_id: Some(json!("cli_own")),
            ..message("om_1", "a")
        };
        let deleted = Observed {
            is_deleted: true,
            ..message("om_2", "a")
        };
        let page = classified(&[own, deleted, message("om_3", " \n"), message("bad id", "a")]);
        assert_eq!(
            (page.own, page.skipped, page.invalid, page.kept.len()),
            (1, 2, 1, 0)
        );
    }

    #[test]
    fn a_thread_is_cut_when_it_says_so_or_when_the_page_is_full() {
        let cut = Observed {
            thread_is_cut: true,
            ..message("om_1", "a")
        };
        let silent = Observed {
            thread: Some(crate::contract::channel::ids::Opaque::new("omt_1")),
            ..message("om_2", "a")
        };
        assert_eq!(cut_threads(&[cut.clone(), silent.clone()]), vec![0]);
        let full = Observed {
            replies: Some(vec![message("om_9", "x"); 500]),
            ..message("om_3", "a")
        };
        assert_eq!(cut_threads(&[cut, silent, full]), vec![0, 1]);
    }

    #[test]
    fn the_same_mention_shown_in_another_way_is_no_newer_text() {
        let mentions =
            json!([{"key": "@_user_1", "name": "Ann"}, {"key": "@_user_10", "name": "Eve"}]);
        for shown in ["@Eve hi", "@Ann0 hi", "@_user_10 hi"] {
            assert!(!is_newer_text("@Eve hi", shown, &mentions), "{shown}");
        }
        assert!(is_newer_text("@Eve hi", "@Eve bye", &mentions));
    }

    #[test]
    fn a_cut_text_is_compared_as_far_as_it_goes() {
        let long = "ä".repeat(1200);
        assert!(!is_newer_text(&long, &long.clone(), &Value::Null));
        assert!(is_newer_text(
            &long,
            &format!("b{}", "ä".repeat(1199)),
            &Value::Null
        ));
    }

    #[test]
    fn a_raw_text_shows_names_in_place_of_keys() {
        let mentions =
            json!([{"key": "@_user_1", "name": "Ann"}, {"key": "@_user_10", "name": "Eve"}]);
        let words = "@_user_10  and @_user_1";
        assert_eq!(text_of_raw(words, &mentions), "@Eve and @Ann");
    }
}
