//! What is looked up about a live message before it is stored: who wrote it, what it answers.
//!
//! Trouble here never drops a message: it is stored with both flags false. Without a verified application of the profile nothing is claimed
//! (`docs/spec/lark-inbox.md` 8.2).

use std::time::Duration;

use crate::contract::channel::ids::{AppId, ChatId, MessageId, ProfileName, SenderId};
use crate::contract::channel::observed::Observed;
use crate::contract::inbox::config::InboxConfig;
use crate::contract::inbox::live_event::{Given, LiveMessage};
use crate::kernel::inbox::addressing;
use crate::kernel::inbox::heard::{Heard, ReplyContext, ReplyFound};
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
    /// What is to be stored.
    Message(Box<Heard>),
}

impl Looked {
    fn message(heard: Heard) -> Self {
        Self::Message(Box::new(heard))
    }
}

/// Who looks.
pub(super) struct Lookup<'a> {
    pub(super) channel: &'a dyn ChannelProvider,
    pub(super) profile: &'a ProfileName,
    pub(super) chat: &'a ChatId,
    pub(super) pause: &'a dyn Fn(Duration),
}

impl Lookup<'_> {
    /// Completes one message.
    pub(super) fn complete(
        &self,
        live: LiveMessage,
        inbox: &InboxConfig,
        own: &mut OwnApp,
    ) -> Looked {
        let is_bot = live.is_by_bot();
        let sender = live.sender.value().map(|id| id.as_str());
        if is_bot {
            let app = own.get(self.channel, self.profile);
            if app.is_some_and(|app| sender == Some(app.as_str())) {
                return Looked::Own;
            }
        }
        let has_open_id = is_bot && sender.and_then(AppId::new).is_none();
        let mut heard = Heard::unasked(live);
        let Some(id) = heard.live.message.clone() else {
            return Looked::message(heard);
        };
        let words = heard.live.words.value().map_or("", String::as_str);
        let evidence = heard.evidence();
        let is_addressed =
            addressing::decide(&evidence, words, &inbox.bot, inbox.capture_scope).is_addressed;
        let needs_lookup = heard.live.parent.is_given() || !is_addressed || has_open_id;
        if !needs_lookup {
            return Looked::message(heard);
        }
        let Some(app) = own.get(self.channel, self.profile).cloned() else {
            return Looked::message(heard);
        };
        let Some(shown) = self.read(&id) else {
            return Looked::message(heard);
        };
        if shown.is_own(Some(&app)) {
            return Looked::Own;
        }
        if shown.is_deleted {
            // Recalled meanwhile: the platform shows a placeholder, the stream had the words.
            return Looked::message(heard);
        }
        self.enrich(&mut heard, (&id, &shown), &app);
        Looked::message(heard)
    }

    fn enrich(&self, heard: &mut Heard, (id, shown): (&MessageId, &Observed), app: &AppId) {
        let live = &mut heard.live;
        if !shown.content.trim().is_empty() {
            live.words = Given::Value(shown.content.clone());
        }
        live.mentions = shown.mentions.clone().or(live.mentions.take());
        heard.mentioned = shown.mentioned.clone().or(heard.mentioned.take());
        live.sender_kind = shown.sender_type.clone().or(live.sender_kind.take());
        match shown.sender() {
            None => {}
            Some("") => live.sender = Given::Absent,
            // One that is no id leaves the sender that the stream named.
            Some(sender) => {
                if let Some(sender) = SenderId::new(sender) {
                    live.sender = Given::Value(sender);
                }
            }
        }
        let Some(parent) = self.parent(live, id, shown) else {
            return;
        };
        let Some(parent) = parent else {
            heard.reply.is_verified = true;
            return;
        };
        live.parent = Given::Value(parent.clone());
        let Some(answered) = self.read(&parent) else {
            return;
        };
        let by_user = live.sender_kind.as_deref() == Some("user");
        heard.reply = ReplyFound {
            is_verified: true,
            is_to_bot: by_user && answered.is_own(Some(app)),
            context: Some(ReplyContext {
                message: parent,
                chat: self.chat.clone(),
                words: visible_text(&answered).to_owned(),
            }),
        };
    }

    /// What a message answers: none when nobody can say, an empty answer when it is proved to answer nothing.
    fn parent(
        &self,
        live: &mut LiveMessage,
        id: &MessageId,
        shown: &Observed,
    ) -> Option<Option<MessageId>> {
        if let Some(parent) = live.parent.value() {
            return Some(Some(parent.clone()));
        }
        if let Some(parent) = &shown.parent_id {
            return Some(Some(parent.clone()));
        }
        if shown.thread.is_none() && !live.is_in_thread {
            return Some(None);
        }
        // A message in a thread does not show what it answers: only the raw one does.
        let sent = self.tried(|| self.channel.read_raw(self.profile, id))?;
        if sent.chat.as_ref() != Some(self.chat) {
            return None;
        }
        if let Some(root) = sent.root_id {
            live.root = Given::Value(root);
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

/// The words of an answered message: text, post and card alone.
fn visible_text(message: &Observed) -> &str {
    match message.message_type.as_str() {
        _ if message.is_deleted => "",
        "text" | "post" | "interactive" => &message.content,
        _ => "",
    }
}
