//! `lark-inbox history-catch-up`: one ascending page of one route.
//!
//! 1. configuration, rights, route, source fingerprint  2. the stored position: drift is refused before any read  3. the window decides:
//!    replayed without a read, or one page  4. the page, cut threads completed  5. messages decided; one invalid message refuses the page
//! 6. preview returns here  7. one transaction, exports, every event read back  8. only then the position, read back too  9. holes of the
//!    live stream that are covered now go away

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::contract::channel::ids::{AppId, Opaque, ProfileName, RouteKey};
use crate::contract::channel::observed::{Observed, Page};
use crate::contract::digest;
use crate::contract::extension::{Activation, Permission};
use crate::contract::inbox::cursor::{HistoryCursor, SourceBinding};
use crate::contract::inbox::fault::InboxFault;
use crate::contract::inbox::history_packet::{
    HistoryCounts, HistoryFailure, HistoryReadback, HistoryRefusal, HistorySuccess,
};
use crate::contract::inbox::link_evidence::{LinkEvidence, LinkSource};
use crate::contract::time::Timestamp;
use crate::failpoint;
use crate::failpoint::Point;
use crate::flow::Mode;
use crate::flow::inbox::ack::claim;
use crate::flow::inbox::context::{BoundCollector, BoundInbox, ContextArgs, Desk, Located};
use crate::flow::inbox::error::InboxError;
use crate::flow::inbox::ports::Providers;
use crate::kernel::channel::readback::MAX_SHOWN_MENTIONS;
use crate::kernel::inbox::gaps;
use crate::kernel::inbox::history_page::{self, ClassifiedPage, PageMessage};
use crate::kernel::inbox::history_window::{self, HistoryRequest, OpenWindow, Step, Transition};
use crate::port::channel::{
    ChannelProvider, HistoryRead, ProviderError, ProviderErrorKind as Kind,
};
use crate::store::document::history_cursor::HistoryCursorFile;
use crate::store::inbox::{Exporter, Inbox};

/// The most pages of one thread.
const MAX_THREAD_PAGES: usize = 200;

/// What is asked for.
#[derive(Clone, Debug)]
pub struct CatchUpRequest<'a> {
    pub context: &'a ContextArgs,
    pub route_key: &'a str,
    pub start: &'a str,
    pub page_size: u32,
    pub mode: Mode,
}

/// Runs the command.
pub fn run(
    desk: &Desk<'_>,
    providers: &dyn Providers,
    request: &CatchUpRequest<'_>,
) -> Result<(Value, Activation), InboxError> {
    let start = read_start(request.start)?;
    let permissions = [Permission::CollectorManage, Permission::InboxWrite];
    let (located, activation, collector) = desk.open_collector(request.context, &permissions)?;
    let route = collector
        .route(request.route_key)?
        .ok_or(InboxFault::RouteKeyUnknown)?;
    let binding = Bound::of(&located, &collector, route)?;
    let file = HistoryCursorFile::of_route(&located.project, &binding.key);
    let now = desk.now.to_string();
    // A preview takes no lock and leaves no trace.
    let _held = match request.mode {
        Mode::Preview => None,
        Mode::Execute => Some(file.lock(&claim("history-catch-up", &now))?),
    };
    let window_request = HistoryRequest {
        route_key: &binding.key,
        fingerprint: &binding.fingerprint,
        start,
        now: desk.now,
    };
    let step = history_window::resolve(file.read()?, &window_request)?;
    let (packet, cursor) = match step {
        Step::Replayed(cursor) => (replayed(&binding.key, &cursor, request.mode), Some(cursor)),
        Step::Read(transition, window) => {
            let channel = providers.channel(Some(collector.config.program.clone()));
            let call = PageCall {
                binding: &binding,
                route,
                channel: channel.as_ref(),
                request,
                transition,
                window: &window,
                now: desk.now,
            };
            call.run(&file, _held.as_ref())?
        }
    };
    if let (Mode::Execute, Some(cursor)) = (request.mode, cursor) {
        close_covered(&route.store()?, &binding.key, &cursor)?;
    }
    Ok((packet, activation))
}

fn read_start(text: &str) -> Result<Timestamp, InboxFault> {
    let without_zone = || Timestamp::parse(&format!("{text}Z")).is_some();
    Timestamp::parse(text).ok_or_else(|| {
        if without_zone() {
            InboxFault::StartZone
        } else {
            InboxFault::StartInvalid
        }
    })
}

/// Holes that a complete history covers go away; an open one stays.
fn close_covered(store: &Inbox, key: &RouteKey, cursor: &HistoryCursor) -> Result<(), InboxError> {
    if cursor.is_complete && !store.gaps(key.as_str())?.is_empty() {
        store.change_gaps(key.as_str(), |rows| {
            gaps::without_covered(rows, cursor.coverage_start, cursor.coverage_end)
        })?;
    }
    Ok(())
}

fn transition_name(transition: Transition) -> &'static str {
    match transition {
        Transition::Initialized => "initialized",
        Transition::Resumed => "resumed",
        Transition::Replayed => "replayed",
        Transition::EarlierWindowInitialized => "earlier_window_initialized",
        Transition::ForwardWindowInitialized => "forward_window_initialized",
    }
}

fn replayed(key: &RouteKey, cursor: &HistoryCursor, mode: Mode) -> Value {
    let readback = HistoryReadback {
        cursor_state: Some("replayed"),
        cursor_digest: Some(cursor.digest()),
        events_verified: 0,
    };
    HistorySuccess {
        route_key: key,
        transition: transition_name(Transition::Replayed),
        is_preview: mode == Mode::Preview,
        is_complete: true,
        counts: HistoryCounts::default(),
        links: LinkEvidence::collect(key, []),
        readback,
        export_pending: false,
    }
    .packet()
}

/// What a history is bound to.
struct Bound {
    key: RouteKey,
    profile: ProfileName,
    fingerprint: String,
}

impl Bound {
    fn of(
        _located: &Located,
        collector: &BoundCollector,
        route: &BoundInbox,
    ) -> Result<Self, InboxFault> {
        let configured = route.route.as_ref().ok_or(InboxFault::RouteKeyUnknown)?;
        let profile = collector
            .profile
            .as_ref()
            .ok_or(InboxFault::CollectorRule("a profile is required"))?;
        let binding = SourceBinding {
            route_key: configured.key.as_str(),
            profile: profile.profile.as_str(),
            chat: configured.chat.as_str(),
            config: &configured.config.0,
            inbox: &route.folder_ref,
            capture_scope: route.config.capture_scope.as_str(),
        };
        Ok(Self {
            fingerprint: binding.fingerprint(),
            key: configured.key.clone(),
            profile: profile.profile.clone(),
        })
    }
}

struct PageCall<'a> {
    binding: &'a Bound,
    route: &'a BoundInbox,
    channel: &'a dyn ChannelProvider,
    request: &'a CatchUpRequest<'a>,
    transition: Transition,
    window: &'a OpenWindow,
    now: Timestamp,
}

type Answer = (Value, Option<HistoryCursor>);

/// One page on its way into the inbox.
struct StoredPage<'a> {
    store: &'a Inbox,
    page: &'a Page,
    classified: &'a ClassifiedPage,
    newer: &'a BTreeMap<String, (u64, String)>,
    counts: HistoryCounts,
}

impl PageCall<'_> {
    fn run(
        &self,
        file: &HistoryCursorFile,
        held: Option<&crate::store::lock::Held<crate::store::lock::Cursor>>,
    ) -> Result<Answer, InboxError> {
        let refuse = |refusal: HistoryRefusal<'_>| Ok((refusal.packet(), None));
        let refusal = |failure| HistoryRefusal::of(&self.binding.key, failure);
        let mut page = match self.read_page() {
            Ok(page) => page,
            Err(error) => return refuse(self.failed(error)),
        };
        let mut counts = HistoryCounts::default();
        if let Err(error) = self.complete_threads(&mut page.messages, &mut counts) {
            return refuse(self.failed(error));
        }
        let own = self.own_app(&page.messages);
        let Some(chat) = self.route.route.as_ref().map(|route| &route.chat) else {
            return Err(InboxFault::RouteKeyUnknown.into());
        };
        let classified =
            history_page::classify(&page.messages, own.as_ref(), chat, self.route.ingest_into());
        if classified.invalid > 0 {
            let invalid_messages = Some(classified.invalid);
            return refuse(HistoryRefusal {
                invalid_messages,
                ..refusal(HistoryFailure::PayloadInvalid)
            });
        }
        let store = self.route.store()?;
        let newer = self.newer_texts(&store, &classified)?;
        self.count(&store, (&classified, &newer), &mut counts)?;
        let Some(held) = held else {
            return match counts.incomplete_threads {
                0 => Ok((
                    self.success(&page, (&classified, counts), None).packet(),
                    None,
                )),
                _ => refuse(HistoryRefusal {
                    partial: Some(counts),
                    ..refusal(HistoryFailure::ThreadIncomplete)
                }),
            };
        };
        let work = StoredPage {
            store: &store,
            page: &page,
            classified: &classified,
            newer: &newer,
            counts,
        };
        self.commit((file, held), &work)
    }

    /// Stores the page, and only then moves the cursor behind it.
    fn commit(
        &self,
        (file, held): (
            &HistoryCursorFile,
            &crate::store::lock::Held<crate::store::lock::Cursor>,
        ),
        work: &StoredPage<'_>,
    ) -> Result<Answer, InboxError> {
        let refuse = |refusal: HistoryRefusal<'_>| Ok((refusal.packet(), None));
        let refusal = |failure| HistoryRefusal::of(&self.binding.key, failure);
        let (classified, counts) = (work.classified, work.counts);
        let inbox_mutated = counts.accepted + counts.revised > 0;
        let mut out = Exporter::default();
        if !self.store_page(work.store, (classified, work.newer), &mut out)? {
            return refuse(HistoryRefusal {
                inbox_mutated,
                ..refusal(HistoryFailure::InboxReadbackFailed)
            });
        }
        if counts.incomplete_threads > 0 {
            return refuse(HistoryRefusal {
                partial: Some(counts),
                inbox_mutated,
                ..refusal(HistoryFailure::ThreadIncomplete)
            });
        }
        failpoint!(Point::HistoryPageReadBack);
        let cursor = self
            .window
            .after_page(&ids(classified), work.page.next.clone());
        let is_committed = file.write(held, &cursor).is_ok()
            && file.read().ok().flatten().as_ref() == Some(&cursor);
        if !is_committed {
            let cursor_mutated = file.exists();
            return refuse(HistoryRefusal {
                inbox_mutated,
                cursor_mutated,
                ..refusal(HistoryFailure::CursorCommitFailed)
            });
        }
        let mut success = self.success(work.page, (classified, counts), Some(&cursor));
        success.export_pending = out.is_pending();
        Ok((success.packet(), Some(cursor)))
    }

    fn read_page(&self) -> Result<Page, ProviderError> {
        let chat = self.route.route.as_ref().map(|route| &route.chat);
        let Some(chat) = chat else {
            return Ok(Page::default());
        };
        let read = HistoryRead {
            chat,
            start: self.window.start(),
            end: Some(self.window.end()),
            page_size: self.request.page_size,
            token: self.window.token(),
        };
        self.channel.history(&self.binding.profile, &read)
    }

    fn failed(&self, error: ProviderError) -> HistoryRefusal<'_> {
        let failure = match error.kind {
            Kind::GroupHistoryPermission => HistoryFailure::PermissionRequired,
            Kind::AuthorizationMissing => HistoryFailure::AuthorizationRequired,
            Kind::NotStarted | Kind::Unavailable => HistoryFailure::ProviderUnavailable,
            Kind::PayloadInvalid => HistoryFailure::PayloadInvalid,
            _ => HistoryFailure::ProviderFailed,
        };
        HistoryRefusal {
            exit: error.exit,
            ..HistoryRefusal::of(&self.binding.key, failure)
        }
    }

    /// Completes what the listing cut; only a missing permission refuses the whole page.
    fn complete_threads(
        &self,
        messages: &mut [Observed],
        counts: &mut HistoryCounts,
    ) -> Result<(), ProviderError> {
        for index in history_page::cut_threads(messages) {
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
            match self.read_thread(&thread, &mut read) {
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

    fn read_thread(&self, thread: &str, into: &mut Vec<Observed>) -> Result<(), ProviderError> {
        let mut token: Option<Opaque> = None;
        for _ in 0..MAX_THREAD_PAGES {
            let page = self
                .channel
                .thread(&self.binding.profile, thread, token.as_ref())?;
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
            .own_app(&self.binding.profile)
            .ok()
            .or_else(|| self.route.config.bot.app.clone())
    }

    /// The texts that are newer than what is known, by message id.
    fn newer_texts(
        &self,
        store: &Inbox,
        page: &ClassifiedPage,
    ) -> Result<BTreeMap<String, (u64, String)>, InboxError> {
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
            .read_raw(&self.binding.profile, message.event.message_id())
            .ok()?;
        let text = history_page::text_of_raw(raw.body.as_deref()?, &message.mentions)?;
        history_page::is_newer_text(known, &text, &message.mentions).then_some(text)
    }

    fn count(
        &self,
        store: &Inbox,
        (page, newer): (&ClassifiedPage, &BTreeMap<String, (u64, String)>),
        counts: &mut HistoryCounts,
    ) -> Result<(), InboxError> {
        let stored = store
            .stored(&ids(page))?
            .into_iter()
            .filter(|stored| *stored)
            .count();
        counts.requested = page.kept.len() + page.repeated;
        counts.accepted = page.kept.len() - stored;
        counts.duplicate = stored + page.repeated;
        counts.revised = newer.len();
        counts.skipped = page.skipped;
        counts.own = page.own;
        Ok(())
    }

    /// Stores the page and reads every event of it back; false when one is not what it must be.
    fn store_page(
        &self,
        store: &Inbox,
        (page, newer): (&ClassifiedPage, &BTreeMap<String, (u64, String)>),
        out: &mut Exporter,
    ) -> Result<bool, InboxError> {
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
        let news = match has_news || !revisions.is_empty() {
            true => store.store_events(&events, &revisions)?,
            false => vec![false; events.len()],
        };
        if has_news || !revisions.is_empty() {
            failpoint!(Point::InboxBatchCommitted);
        }
        let added = events.iter().zip(&news).filter(|(_, is_new)| **is_new);
        store.export_events(
            out,
            added.map(|(event, _)| (event.message_id().as_str(), event.to_row())),
        );
        let revised: Vec<&str> = newer.keys().map(String::as_str).collect();
        store.export_revisions(out, &revised)?;
        let read = store.events(&ids(page))?;
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

    fn success<'a>(
        &'a self,
        page: &Page,
        (classified, counts): (&ClassifiedPage, HistoryCounts),
        cursor: Option<&HistoryCursor>,
    ) -> HistorySuccess<'a> {
        let sources = classified.kept.iter().map(|message| LinkSource {
            message_id: message.event.message_id().as_str(),
            create_time: message.event.create_time(),
            content: &message.whole_content,
        });
        HistorySuccess {
            route_key: &self.binding.key,
            transition: transition_name(self.transition),
            is_preview: cursor.is_none(),
            is_complete: page.next.is_none(),
            counts,
            links: LinkEvidence::collect(&self.binding.key, sources),
            readback: HistoryReadback {
                cursor_state: cursor.map(|_| "committed"),
                cursor_digest: cursor.map(HistoryCursor::digest),
                events_verified: cursor.map_or(0, |_| classified.kept.len()),
            },
            export_pending: false,
        }
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
