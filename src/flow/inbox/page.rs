//! One page of history on its way into an inbox: read, its cut threads completed, decided, stored, read back.
//!
//! Both readers of history share it: the bounded catch-up, whose position is a file, and the sync at turn start, whose position is a row
//! in the transaction of the page. Nothing here knows where a window starts or what becomes of a failure.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::contract::channel::ids::{AppId, ChatId, Opaque, ProfileName};
use crate::contract::channel::observed::Observed;
use crate::contract::digest;
use crate::contract::inbox::history_packet::HistoryCounts;
use crate::contract::time::Timestamp;
use crate::failpoint;
use crate::failpoint::Point;
use crate::flow::inbox::context::BoundInbox;
use crate::flow::inbox::progress::{Progress, Step};
use crate::kernel::channel::readback::MAX_SHOWN_MENTIONS;
use crate::kernel::inbox::history_page::{self, ClassifiedPage, PageMessage};
use crate::port::channel::{
    ChannelProvider, HistoryRead, ProviderError, ProviderErrorKind as Kind,
};
use crate::store::StoreError;
use crate::store::inbox::{Exporter, Inbox, SyncPosition};

/// The most pages of one thread.
const MAX_THREAD_PAGES: usize = 200;

/// The inbox a history belongs to, and whom it is asked of.
pub(super) struct History<'a> {
    pub(super) route: &'a BoundInbox,
    pub(super) chat: &'a ChatId,
    pub(super) profile: &'a ProfileName,
    pub(super) channel: &'a dyn ChannelProvider,
    pub(super) now: Timestamp,
    pub(super) progress: &'a dyn Progress,
}

/// Which page is asked for.
pub(super) struct Span<'a> {
    pub(super) start: Timestamp,
    pub(super) end: Timestamp,
    pub(super) page_size: u32,
    pub(super) token: Option<&'a Opaque>,
}

/// Why a page is not taken.
pub(super) enum PageFault {
    Provider(ProviderError),
    /// So many messages without a valid id, or of another chat.
    Invalid(usize),
    Store(StoreError),
}

impl From<ProviderError> for PageFault {
    fn from(error: ProviderError) -> Self {
        Self::Provider(error)
    }
}

impl From<StoreError> for PageFault {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// One decided page, not stored yet.
pub(super) struct DecidedPage {
    pub(super) next: Option<Opaque>,
    pub(super) classified: ClassifiedPage,
    /// The texts that are newer than what is known, by message id.
    newer: BTreeMap<String, (u64, String)>,
    pub(super) counts: HistoryCounts,
}

impl DecidedPage {
    pub(super) fn ids(&self) -> Vec<&str> {
        ids(&self.classified)
    }
}

impl History<'_> {
    /// Reads one page and decides what of it is kept.
    pub(super) fn read(&self, store: &Inbox, span: &Span<'_>) -> Result<DecidedPage, PageFault> {
        let read = HistoryRead {
            chat: self.chat,
            start: span.start,
            end: Some(span.end),
            page_size: span.page_size,
            token: span.token,
        };
        let mut page = self.channel.history(self.profile, &read)?;
        let mut counts = HistoryCounts::default();
        self.complete_threads(&mut page.messages, &mut counts)?;
        let own = self.own_app(&page.messages);
        let into = self.route.ingest_into();
        let classified = history_page::classify(&page.messages, own.as_ref(), self.chat, into);
        if classified.invalid > 0 {
            return Err(PageFault::Invalid(classified.invalid));
        }
        let newer = self.newer_texts(store, &classified)?;
        let stored = store.stored(&ids(&classified))?;
        let stored = stored.into_iter().filter(|stored| *stored).count();
        counts.requested = classified.kept.len() + classified.repeated;
        counts.accepted = classified.kept.len() - stored;
        counts.duplicate = stored + classified.repeated;
        counts.revised = newer.len();
        counts.skipped = classified.skipped;
        counts.own = classified.own;
        Ok(DecidedPage {
            next: page.next,
            classified,
            newer,
            counts,
        })
    }

    /// Completes what the listing cut; only a missing permission refuses the whole page.
    fn complete_threads(
        &self,
        messages: &mut [Observed],
        counts: &mut HistoryCounts,
    ) -> Result<(), ProviderError> {
        let cut = history_page::cut_threads(messages);
        let of = cut.len();
        for (number, index) in cut.into_iter().enumerate() {
            let message = &mut messages[index];
            let root = message.message_id.clone();
            let Some(thread) = message
                .thread
                .as_ref()
                .map(Opaque::as_str)
                .or(root.as_ref().map(|id| id.as_str()))
            else {
                counts.incomplete_threads += 1;
                continue;
            };
            let thread = thread.to_owned();
            let mut read = Vec::new();
            match self.read_thread((&thread, number + 1, of), &mut read) {
                Ok(()) => {
                    // A thread that lacks what the listing showed contradicts it: nothing shown is dropped.
                    let shown = message.replies.take().unwrap_or_default();
                    let lacking = history_page::lacking(shown, &read);
                    match lacking.is_empty() {
                        true => counts.completed_threads += 1,
                        false => counts.incomplete_threads += 1,
                    }
                    read.extend(lacking);
                    message.replies = Some(read);
                }
                Err(error) if error.kind == Kind::GroupHistoryPermission => return Err(error),
                Err(_) => {
                    counts.incomplete_threads += 1;
                    message.replies.get_or_insert_default().extend(read);
                }
            }
            let replies = message.replies.get_or_insert_default();
            replies.retain(|reply| reply.message_id.is_none() || reply.message_id != root);
        }
        Ok(())
    }

    fn read_thread(
        &self,
        (thread, number, of): (&str, usize, usize),
        into: &mut Vec<Observed>,
    ) -> Result<(), ProviderError> {
        let mut token: Option<Opaque> = None;
        for page in 1..=MAX_THREAD_PAGES {
            self.progress.step(Step::Thread { number, of, page });
            let page = self.channel.thread(self.profile, thread, token.as_ref())?;
            into.extend(page.messages);
            match page.next {
                None => return Ok(()),
                next => token = next,
            }
        }
        Err(ProviderError {
            kind: Kind::PayloadInvalid,
            effect: Default::default(),
            code: None,
            exit: None,
        })
    }

    fn own_app(&self, messages: &[Observed]) -> Option<AppId> {
        if !history_page::has_app_sender(messages) {
            return None;
        }
        self.channel
            .own_app(self.profile)
            .ok()
            .or_else(|| self.route.config.bot.app.clone())
    }

    /// The texts that are newer than what is known, by message id.
    fn newer_texts(
        &self,
        store: &Inbox,
        page: &ClassifiedPage,
    ) -> Result<BTreeMap<String, (u64, String)>, StoreError> {
        let mut newer = BTreeMap::new();
        for (message, stored) in page.kept.iter().zip(store.events(&ids(page))?) {
            let Some(stored) = stored else { continue };
            let id = message.event.message_id().as_str();
            let revisions = store.revisions(id)?;
            let known = revisions
                .last()
                .and_then(|row| content_of(row))
                .unwrap_or_else(|| stored.content().to_owned());
            if let Some(content) = self.newer_text(&known, message) {
                newer.insert(id.to_owned(), (revisions.len() as u64 + 1, content));
            }
        }
        Ok(newer)
    }

    fn newer_text(&self, known: &str, message: &PageMessage) -> Option<String> {
        let shown = message.event.content();
        if !history_page::is_newer_text(known, shown, &message.mentions) {
            return None;
        }
        if message.mentions.as_array().map_or(0, Vec::len) <= MAX_SHOWN_MENTIONS {
            return Some(shown.to_owned());
        }
        // So many mentions are shown differently from call to call: only the raw text can prove a change.
        let raw = self
            .channel
            .read_raw(self.profile, message.event.message_id())
            .ok()?;
        let text = history_page::text_of_raw(raw.body.as_ref()?.text()?, &message.mentions);
        history_page::is_newer_text(known, &text, &message.mentions).then_some(text)
    }

    /// Stores the page, with the position where that is a row, and reads every event of it back; false when one is not what it must be.
    pub(super) fn store(
        &self,
        store: &Inbox,
        (decided, position): (&DecidedPage, Option<&SyncPosition<'_>>),
        out: &mut Exporter,
    ) -> Result<bool, StoreError> {
        let (page, newer) = (&decided.classified, &decided.newer);
        let events: Vec<_> = page
            .kept
            .iter()
            .map(|message| message.event.clone())
            .collect();
        let observed_at = self.now.to_string();
        let revisions: Vec<(String, u64, String)> = newer
            .iter()
            .map(|(id, (number, content))| {
                (
                    id.clone(),
                    *number,
                    revision_row(*number, content, &observed_at),
                )
            })
            .collect();
        let has_news = store.stored(&ids(page))?.contains(&false);
        let has_change = has_news || !revisions.is_empty();
        let news = match (has_change, position) {
            (_, Some(position)) => store.store_page(&events, &revisions, position)?,
            (true, None) => store.store_events(&events, &revisions)?,
            (false, None) => vec![false; events.len()],
        };
        if has_change {
            failpoint!(Point::InboxBatchCommitted);
        }
        let added = events.iter().zip(&news).filter(|(_, is_new)| **is_new);
        store.export_events(
            out,
            added.map(|(event, _)| (event.message_id().as_str(), event.to_row())),
        );
        let revised: Vec<&str> = newer.keys().map(String::as_str).collect();
        // The page is committed: what cannot be read now is a readback that failed.
        let exported = store.export_revisions(out, &revised);
        let Ok(read) = exported.and_then(|()| store.events(&ids(page))) else {
            return Ok(false);
        };
        Ok(events
            .iter()
            .zip(&news)
            .zip(read)
            .all(|((event, is_new), stored)| {
                stored.is_some_and(|stored| {
                    stored.route_key() == event.route_key()
                        && (!is_new || stored.content() == event.content())
                })
            }))
    }
}

fn ids(page: &ClassifiedPage) -> Vec<&str> {
    page.kept
        .iter()
        .map(|message| message.event.message_id().as_str())
        .collect()
}

fn content_of(row: &str) -> Option<String> {
    let body: Value = serde_json::from_str(row).ok()?;
    body["content"].as_str().map(str::to_owned)
}

fn revision_row(number: u64, content: &str, observed_at: &str) -> String {
    let content_digest = digest::content_digest(content.as_bytes()).short(16);
    json!({"revision": number, "content": content, "content_digest": content_digest, "observed_at": observed_at}).to_string()
}
