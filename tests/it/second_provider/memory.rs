//! A chat provider that is a few lists: it shares no word, file or process with the real one.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use loopx::contract::channel::body::{ContentFormat, OutboundBody};
use loopx::contract::channel::ids::{AppId, ChatId, MarkId, MessageId, Opaque, ProfileName};
use loopx::contract::channel::mention::{MemberIdKind, MentionId};
use loopx::contract::channel::observed::{MarkPage, Members, Observed, Page, SentWords};
use loopx::contract::channel::outcome::ExternalWriteOutcome;
use loopx::contract::channel::route::{ResolvedRoute, VerifiedRoute};
use loopx::contract::inbox::live_event::LiveEvent;
use loopx::contract::time::Timestamp;
use loopx::flow::inbox::ports::{Channels, Chat};
use loopx::port::channel::{
    ChannelProvider, ChannelReader, HistoryRead, OutboundMessage, ProviderError, ProviderErrorKind,
    SearchRead, VerifyRefusal,
};
use loopx::port::tools::{ProgramAge, TooOld};
use serde_json::json;

/// What the provider does wrong, once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Slip {
    /// The message arrives, the answer does not.
    LoseAnswer,
    /// The post arrives as plain text of the same look.
    FlattenPost,
}

#[derive(Default)]
pub(crate) struct World {
    pub(crate) messages: Vec<Observed>,
    pub(crate) keys: BTreeMap<String, MessageId>,
    pub(crate) marks: BTreeMap<String, Vec<MarkId>>,
    pub(crate) members: Vec<MentionId>,
    /// What its stream will bring.
    pub(crate) said: Vec<LiveEvent>,
    pub(crate) slip: Option<Slip>,
    /// What was asked, in order.
    pub(crate) asked: Vec<&'static str>,
    made: usize,
}

/// A handle on one world.
#[derive(Clone, Default)]
pub(crate) struct Memory(Arc<Mutex<World>>);

pub(crate) const APP: &str = "cli_memory";

impl Memory {
    pub(crate) fn world(&self) -> MutexGuard<'_, World> {
        self.0.lock().expect("unpoisoned")
    }

    fn asked(&self, what: &'static str) -> MutexGuard<'_, World> {
        let mut world = self.world();
        world.asked.push(what);
        world
    }
}

impl Channels for Memory {
    fn open(&self, _: Option<String>) -> Chat {
        Chat {
            channel: Box::new(self.clone()),
            reader: Box::new(self.clone()),
            age: Box::new(self.clone()),
        }
    }
}

impl ProgramAge for Memory {
    fn outdated(&self) -> Option<TooOld> {
        None
    }
}

fn failed(kind: ProviderErrorKind, effect: ExternalWriteOutcome) -> ProviderError {
    ProviderError {
        kind,
        effect,
        code: None,
        exit: None,
    }
}

/// One message of a person, or of this application.
pub(crate) fn message(id: &str, words: &str, sender: (&str, &str)) -> Observed {
    Observed {
        message_id: MessageId::new(id),
        chat: ChatId::new("oc_memory"),
        message_type: "text".to_owned(),
        content: words.to_owned(),
        create_time: "2026-09-18T08:59:00Z".to_owned(),
        created: Timestamp::parse("2026-09-18T08:59:00Z"),
        sender_type: Some(sender.0.to_owned()),
        sender_id: Some(json!(sender.1)),
        ..Observed::default()
    }
}

/// The message a send makes: tags become names, as chats do.
fn made(id: &str, sent: &OutboundMessage<'_>) -> Observed {
    let mut mentions = Vec::new();
    let shown = match sent.body {
        OutboundBody::Post(post) => post.as_str().to_owned(),
        OutboundBody::Text(text) => text.tokenized(|id| format!("@{}", name_of(id))),
    };
    for (index, id) in sent.body.mentions().keys().enumerate() {
        mentions
            .push(json!({"key": format!("key-{index}"), "id": id.as_str(), "name": name_of(id)}));
    }
    Observed {
        message_type: match sent.body.format() {
            ContentFormat::Text => "text".to_owned(),
            ContentFormat::Markdown => "post".to_owned(),
        },
        parent_id: sent.source.cloned(),
        mentions: (!mentions.is_empty()).then(|| json!(mentions)),
        ..message(id, &shown, ("app", APP))
    }
}

fn name_of(id: &MentionId) -> String {
    format!("Name {}", id.as_str())
}

impl ChannelProvider for Memory {
    fn abandon(&self) {}

    fn verify(&self, route: &ResolvedRoute) -> Result<VerifiedRoute, VerifyRefusal> {
        drop(self.asked("verify"));
        match route.app.as_ref().map(AppId::as_str) {
            Some(APP) => Ok(VerifiedRoute::attest(route.clone())),
            _ => Err(VerifyRefusal::SenderIdentity(None)),
        }
    }

    fn members(&self, _: &VerifiedRoute, _: MemberIdKind) -> Result<Members, ProviderError> {
        Ok(Members {
            ids: self.asked("members").members.clone(),
            is_complete: true,
            ..Members::default()
        })
    }

    fn preview(
        &self,
        _: &VerifiedRoute,
        message: &OutboundMessage<'_>,
    ) -> Result<Vec<SentWords>, ProviderError> {
        drop(self.asked("preview"));
        let words = message.body.as_str().to_owned();
        Ok(vec![match message.body.format() {
            ContentFormat::Text => SentWords::Text(words),
            ContentFormat::Markdown => SentWords::Post(words),
        }])
    }

    fn send(
        &self,
        _: &VerifiedRoute,
        message: &OutboundMessage<'_>,
    ) -> Result<MessageId, ProviderError> {
        let mut world = self.asked("send");
        if let Some(known) = world.keys.get(message.key) {
            return Ok(known.clone());
        }
        world.made += 1;
        let id = format!("om_made{}", world.made);
        let mut stored = made(&id, message);
        let slip = world.slip.take();
        if slip == Some(Slip::FlattenPost) {
            stored.message_type = "text".to_owned();
        }
        let id = MessageId::new(id).expect("an id");
        world.keys.insert(message.key.to_owned(), id.clone());
        world.messages.push(stored);
        match slip {
            Some(Slip::LoseAnswer) => Err(failed(
                ProviderErrorKind::Unavailable,
                ExternalWriteOutcome::Unknown,
            )),
            _ => Ok(id),
        }
    }

    fn read_back(
        &self,
        _: &ProfileName,
        ids: &[&MessageId],
    ) -> Result<Vec<Observed>, ProviderError> {
        let world = self.asked("read_back");
        let wanted = world.messages.iter().filter(|message| {
            message
                .message_id
                .as_ref()
                .is_some_and(|id| ids.contains(&id))
        });
        Ok(wanted.cloned().collect())
    }

    fn read_raw(&self, profile: &ProfileName, id: &MessageId) -> Result<Observed, ProviderError> {
        let found = self.read_back(profile, &[id])?.into_iter().next();
        found.ok_or_else(|| failed(ProviderErrorKind::NotFound, ExternalWriteOutcome::None))
    }

    fn history(&self, _: &ProfileName, read: &HistoryRead<'_>) -> Result<Page, ProviderError> {
        let world = self.asked("history");
        let size = usize::try_from(read.page_size).expect("small");
        let start: usize = read
            .token
            .map_or(0, |token| token.as_str().parse().expect("our token"));
        let end = (start + size).min(world.messages.len());
        Ok(Page {
            messages: world.messages[start..end].to_vec(),
            next: (end < world.messages.len()).then(|| Opaque::new(end.to_string())),
        })
    }

    fn thread(
        &self,
        _: &ProfileName,
        thread: &str,
        _: Option<&Opaque>,
    ) -> Result<Page, ProviderError> {
        let world = self.asked("thread");
        let below = world.messages.iter().filter(|message| {
            message
                .parent_id
                .as_ref()
                .is_some_and(|id| id.as_str() == thread)
        });
        Ok(Page {
            messages: below.cloned().collect(),
            next: None,
        })
    }

    fn add_mark(
        &self,
        _: &ProfileName,
        id: &MessageId,
        emoji: &str,
    ) -> Result<MarkId, ProviderError> {
        let mark = MarkId::new(format!("mark-{emoji}")).expect("an id");
        let mut world = self.asked("add_mark");
        let marks = world.marks.entry(id.as_str().to_owned()).or_default();
        marks.push(mark.clone());
        Ok(mark)
    }

    fn remove_mark(
        &self,
        _: &ProfileName,
        id: &MessageId,
        mark: &MarkId,
    ) -> Result<(), ProviderError> {
        let mut world = self.asked("remove_mark");
        let marks = world.marks.entry(id.as_str().to_owned()).or_default();
        marks.retain(|known| known != mark);
        Ok(())
    }

    fn marks(
        &self,
        _: &ProfileName,
        id: &MessageId,
        _: Option<&Opaque>,
    ) -> Result<MarkPage, ProviderError> {
        let world = self.asked("marks");
        Ok(MarkPage {
            marks: world.marks.get(id.as_str()).cloned().unwrap_or_default(),
            next: None,
        })
    }

    fn own_app(&self, _: &ProfileName) -> Result<AppId, ProviderError> {
        AppId::new(APP).ok_or_else(|| failed(ProviderErrorKind::Failed, ExternalWriteOutcome::None))
    }
}

impl ChannelReader for Memory {
    fn is_signed_in(&self, _: &ProfileName) -> Result<bool, ProviderError> {
        Ok(true)
    }

    fn search(&self, _: &ProfileName, read: &SearchRead<'_>) -> Result<Page, ProviderError> {
        let world = self.asked("search");
        let hits = world
            .messages
            .iter()
            .filter(|message| message.content.contains(read.words));
        Ok(Page {
            messages: hits.cloned().collect(),
            next: None,
        })
    }
}
