//! What is looked up about a live message before it is stored: who wrote it, what it answers.
//!
//! Trouble here never drops a message: it is stored with both flags false. Without a verified application of the profile nothing is claimed
//! (`docs/spec/lark-inbox.md` 8.2).

use std::time::Duration;

use serde_json::{Value, json};

use crate::contract::channel::ids::{AppId, ChatId, MessageId, ProfileName};
use crate::contract::channel::observed::Observed;
use crate::contract::inbox::config::InboxConfig;
use crate::kernel::inbox::addressing;
use crate::port::channel::{ChannelProvider, ProviderErrorKind};

/// How often a message is asked for, with the pauses between.
const PAUSES: [Duration; 2] = [Duration::from_millis(500), Duration::from_secs(1)];

/// The profile's own application: asked once a run, even if that failed.
#[derive(Debug, Default)]
pub(super) struct OwnApp {
    asked: bool,
    app: Option<AppId>,
}

impl OwnApp {
    pub(super) fn get(
        &mut self,
        channel: &dyn ChannelProvider,
        profile: &ProfileName,
    ) -> Option<&AppId> {
        if !self.asked {
            self.asked = true;
            self.app = channel.own_app(profile).ok();
        }
        self.app.as_ref()
    }

    pub(super) fn was_asked(&self) -> bool {
        self.asked
    }

    pub(super) fn is_known(&self) -> bool {
        self.app.is_some()
    }
}

/// A live message, looked at.
pub(super) enum Looked {
    /// Our own application wrote it.
    Own,
    /// The event to store.
    Event(Value),
}

/// Who looks.
pub(super) struct Lookup<'a> {
    pub(super) channel: &'a dyn ChannelProvider,
    pub(super) profile: &'a ProfileName,
    pub(super) chat: &'a ChatId,
    pub(super) pause: &'a dyn Fn(Duration),
}

impl Lookup<'_> {
    /// Completes one event.
    pub(super) fn complete(&self, mut raw: Value, inbox: &InboxConfig, own: &mut OwnApp) -> Looked {
        // The stream says these only after a lookup of ours.
        for name in [
            "reply_context_verified",
            "reply_to_bot",
            "reply_context",
            "historical_context_only",
            "addressing_source",
        ] {
            raw.as_object_mut().map(|event| event.remove(name));
        }
        let is_bot = is_bot(raw.get("sender_type"));
        if is_bot {
            let app = own.get(self.channel, self.profile);
            if app.is_some_and(|app| raw["sender_id"] == app.as_str()) {
                return Looked::Own;
            }
        }
        let Some(id) = raw["message_id"].as_str().and_then(MessageId::new) else {
            return Looked::Event(raw);
        };
        let content = raw["content"].as_str().unwrap_or("");
        let is_addressed =
            addressing::decide(&raw, content, &inbox.bot, inbox.capture_scope).is_addressed;
        let has_open_id = is_bot && raw["sender_id"].as_str().and_then(AppId::new).is_none();
        let needs_lookup = raw["parent_id"].is_string() || !is_addressed || has_open_id;
        if !needs_lookup {
            return Looked::Event(raw);
        }
        let Some(app) = own.get(self.channel, self.profile).cloned() else {
            return Looked::Event(raw);
        };
        let Some(shown) = self.read(&id) else {
            return Looked::Event(raw);
        };
        if shown.is_own(Some(&app)) {
            return Looked::Own;
        }
        self.enrich(&mut raw, (&id, &shown), &app);
        Looked::Event(raw)
    }

    fn enrich(&self, raw: &mut Value, (id, shown): (&MessageId, &Observed), app: &AppId) {
        if !shown.content.trim().is_empty() {
            raw["content"] = json!(shown.content);
        }
        for (name, given) in [
            ("mentions", &shown.mentions),
            ("mentioned", &shown.mentioned),
        ] {
            if let Some(value) = given {
                raw[name] = value.clone();
            }
        }
        if let Some(kind) = &shown.sender_type {
            raw["sender_type"] = json!(kind);
        }
        if let Some(sender) = shown.sender() {
            raw["sender_id"] = json!(sender);
        }
        let Some(parent) = self.parent(raw, id, shown) else {
            return;
        };
        let Some(parent) = parent else {
            raw["reply_context_verified"] = json!(true);
            return;
        };
        raw["parent_id"] = json!(parent.as_str());
        let Some(answered) = self.read(&parent) else {
            return;
        };
        let by_user = raw["sender_type"] == "user";
        raw["reply_context"] = json!({
            "message_id": parent.as_str(),
            "conversation_id": self.chat.as_str(),
            "content": visible_text(&answered),
        });
        raw["reply_context_verified"] = json!(true);
        raw["reply_to_bot"] = json!(by_user && answered.is_own(Some(app)));
    }

    /// What a message answers: none when nobody can say, an empty answer when it is proved to answer nothing.
    fn parent(
        &self,
        raw: &mut Value,
        id: &MessageId,
        shown: &Observed,
    ) -> Option<Option<MessageId>> {
        if let Some(parent) = raw["parent_id"].as_str().and_then(MessageId::new) {
            return Some(Some(parent));
        }
        if let Some(parent) = &shown.parent_id {
            return Some(Some(parent.clone()));
        }
        if shown.thread.is_none() && !raw["thread_id"].is_string() {
            return Some(None);
        }
        // A message in a thread does not show what it answers: only the raw one does.
        let sent = self.tried(|| self.channel.read_raw(self.profile, id))?;
        if sent.chat.as_ref() != Some(self.chat) {
            return None;
        }
        if let Some(root) = sent.root_id {
            raw["root_id"] = json!(root.as_str());
        }
        Some(sent.parent_id)
    }

    /// Reads one message of this chat; an answer without its chat proves nothing.
    fn read(&self, id: &MessageId) -> Option<Observed> {
        let read = self.tried(|| self.channel.read_back(self.profile, &[id]))?;
        let found = read
            .into_iter()
            .find(|message| message.message_id.as_ref() == Some(id))?;
        (found.chat.as_ref() == Some(self.chat)).then_some(found)
    }

    fn tried<T>(
        &self,
        call: impl Fn() -> Result<T, crate::port::channel::ProviderError>,
    ) -> Option<T> {
        for pause in PAUSES.iter().map(Some).chain([None]) {
            match call() {
                Ok(answer) => return Some(answer),
                Err(error) if error.kind == ProviderErrorKind::GroupHistoryPermission => {
                    return None;
                }
                Err(_) => {}
            }
            if let Some(pause) = pause {
                (self.pause)(*pause);
            }
        }
        None
    }
}

fn is_bot(kind: Option<&Value>) -> bool {
    kind.and_then(Value::as_str)
        .is_some_and(|kind| matches!(kind.to_ascii_lowercase().as_str(), "app" | "bot"))
}

/// The words of an answered message: text, post and card alone.
fn visible_text(message: &Observed) -> &str {
    match message.message_type.as_str() {
        "text" | "post" | "interactive" => &message.content,
        _ => "",
    }
}
