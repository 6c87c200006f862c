//! `lark-inbox history-catch-up`: one ascending page of one route.
//!
//! 1. configuration, rights, route, source fingerprint  2. the stored position: drift is refused before any read  3. the window decides:
//!    replayed without a read, or one page  4. the page, cut threads completed  5. messages decided; one invalid message refuses the page
//! 6. preview returns here  7. one transaction, exports, every event read back  8. only then the position, read back too  9. holes of the
//!    live stream that are covered now go away

use std::path::Path;

use serde_json::Value;

use crate::contract::channel::ids::{ProfileName, RouteKey};
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
use crate::flow::inbox::context::{BoundCollector, BoundInbox, ContextArgs, Desk};
use crate::flow::inbox::error::InboxError;
use crate::flow::inbox::page::{DecidedPage, History, PageFault, Span};
use crate::flow::inbox::ports::{Channels, Chat};
use crate::flow::inbox::progress::{Progress, Step as Progressed};
use crate::kernel::inbox::gaps;
use crate::kernel::inbox::history_window::{self, HistoryRequest, OpenWindow, Step, Transition};
use crate::port::channel::ProviderErrorKind as Kind;
use crate::store::StoreError;
use crate::store::document::history_cursor::HistoryCursorFile;
use crate::store::inbox::{Exporter, Inbox, SyncFile};
use crate::store::lock::{Cursor, Held};

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
    (providers, progress): (&dyn Channels, &dyn Progress),
    request: &CatchUpRequest<'_>,
) -> Result<(Value, Activation), InboxError> {
    let start = read_start(request.start)?;
    let permissions = [Permission::CollectorManage, Permission::InboxWrite];
    let (located, activation, collector) = desk.open_collector(request.context, &permissions)?;
    let route = collector
        .route(request.route_key)?
        .ok_or(InboxFault::RouteKeyUnknown)?;
    let binding = Bound::of(&collector, route)?;
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
            let chat = providers.open(Some(collector.config.program.clone()));
            let configured = route.route.as_ref().ok_or(InboxFault::RouteKeyUnknown)?;
            let call = PageCall {
                binding: &binding,
                history: History {
                    route,
                    chat: &configured.chat,
                    profile: &binding.profile,
                    channel: chat.channel.as_ref(),
                    now: desk.now,
                    progress,
                },
                page_size: request.page_size,
                transition,
                window: &window,
                provider: &chat,
            };
            call.run(&file, _held.as_ref())?
        }
    };
    if let (Mode::Execute, Some(cursor)) = (request.mode, cursor) {
        match close_covered(&route.store()?, (&binding.key, desk.now), &cursor) {
            // The page is committed and its receipt is due; the row goes with the next call.
            Err(InboxError::Store(StoreError::Busy)) => {}
            closed => closed?,
        }
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
fn close_covered(
    store: &Inbox,
    (key, now): (&RouteKey, Timestamp),
    cursor: &HistoryCursor,
) -> Result<(), InboxError> {
    let end = cursor.coverage_end.min(now);
    if cursor.is_complete && !store.gaps(key.as_str())?.is_empty() {
        store.change_gaps(key.as_str(), |rows| {
            gaps::without_covered(rows, cursor.coverage_start, end)
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
pub(super) struct Bound {
    pub(super) key: RouteKey,
    pub(super) profile: ProfileName,
    pub(super) fingerprint: String,
}

impl Bound {
    pub(super) fn of(collector: &BoundCollector, route: &BoundInbox) -> Result<Self, InboxFault> {
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

    /// Where the position of turn starts is exported.
    pub(super) fn sync_file<'a>(&'a self, project: &'a Path) -> SyncFile<'a> {
        SyncFile {
            project,
            route: self.key.as_str(),
            binding: self.fingerprint.trim_start_matches("sha256:"),
        }
    }
}

struct PageCall<'a> {
    binding: &'a Bound,
    history: History<'a>,
    page_size: u32,
    transition: Transition,
    window: &'a OpenWindow,
    provider: &'a Chat,
}

type Answer = (Value, Option<HistoryCursor>);

impl PageCall<'_> {
    fn run(
        &self,
        file: &HistoryCursorFile,
        held: Option<&Held<Cursor>>,
    ) -> Result<Answer, InboxError> {
        let store = self.history.route.store()?;
        let span = Span {
            start: self.window.start(),
            end: self.window.end(),
            page_size: self.page_size,
            token: self.window.token(),
        };
        let (pages, messages) = self.window.read_before();
        self.history
            .progress
            .step(Progressed::Page { pages, messages });
        let page = match self.history.read(&store, &span) {
            Ok(page) => page,
            Err(fault) => {
                self.provider.refuse_old()?;
                return Ok((self.failed(fault)?.packet(), None));
            }
        };
        match held {
            Some(held) => self.commit((file, held), (&store, &page)),
            None if page.counts.incomplete_threads > 0 => {
                Ok((self.incomplete(&page, false).packet(), None))
            }
            None => Ok((self.success(&page, None).packet(), None)),
        }
    }

    /// Stores the page, and only then moves the cursor behind it.
    fn commit(
        &self,
        (file, held): (&HistoryCursorFile, &Held<Cursor>),
        (store, page): (&Inbox, &DecidedPage),
    ) -> Result<Answer, InboxError> {
        let refuse = |refusal: HistoryRefusal<'_>| Ok((refusal.packet(), None));
        let refusal = |failure| HistoryRefusal::of(&self.binding.key, failure);
        let inbox_mutated = page.counts.accepted + page.counts.revised > 0;
        let mut out = Exporter::default();
        if !self.history.store(store, (page, None), &mut out)? {
            return refuse(HistoryRefusal {
                inbox_mutated,
                ..refusal(HistoryFailure::InboxReadbackFailed)
            });
        }
        if page.counts.incomplete_threads > 0 {
            return refuse(self.incomplete(page, inbox_mutated));
        }
        failpoint!(Point::HistoryPageReadBack);
        let cursor = self.window.after_page(&page.ids(), page.next.clone());
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
        let mut success = self.success(page, Some(&cursor));
        success.export_pending = out.is_pending();
        Ok((success.packet(), Some(cursor)))
    }

    fn incomplete(&self, page: &DecidedPage, inbox_mutated: bool) -> HistoryRefusal<'_> {
        HistoryRefusal {
            partial: Some(page.counts),
            inbox_mutated,
            ..HistoryRefusal::of(&self.binding.key, HistoryFailure::ThreadIncomplete)
        }
    }

    fn failed(&self, fault: PageFault) -> Result<HistoryRefusal<'_>, InboxError> {
        let refusal = |failure| HistoryRefusal::of(&self.binding.key, failure);
        let error = match fault {
            PageFault::Store(error) => return Err(error.into()),
            PageFault::Invalid(count) => {
                return Ok(HistoryRefusal {
                    invalid_messages: Some(count),
                    ..refusal(HistoryFailure::PayloadInvalid)
                });
            }
            PageFault::Provider(error) => error,
        };
        let failure = match error.kind {
            Kind::GroupHistoryPermission => HistoryFailure::PermissionRequired,
            Kind::AuthorizationMissing => HistoryFailure::AuthorizationRequired,
            Kind::NotStarted | Kind::Unavailable => HistoryFailure::ProviderUnavailable,
            Kind::PayloadInvalid => HistoryFailure::PayloadInvalid,
            _ => HistoryFailure::ProviderFailed,
        };
        Ok(HistoryRefusal {
            exit: error.exit,
            ..refusal(failure)
        })
    }

    fn success<'a>(
        &'a self,
        page: &DecidedPage,
        cursor: Option<&HistoryCursor>,
    ) -> HistorySuccess<'a> {
        let kept = &page.classified.kept;
        let sources = kept.iter().map(|message| LinkSource {
            message_id: message.event.message_id().as_str(),
            create_time: message.event.create_time(),
            content: &message.whole_content,
        });
        HistorySuccess {
            route_key: &self.binding.key,
            transition: transition_name(self.transition),
            is_preview: cursor.is_none(),
            is_complete: page.next.is_none(),
            counts: page.counts,
            links: LinkEvidence::collect(&self.binding.key, sources),
            readback: HistoryReadback {
                cursor_state: cursor.map(|_| "committed"),
                cursor_digest: cursor.map(HistoryCursor::digest),
                events_verified: cursor.map_or(0, |_| kept.len()),
            },
            export_pending: false,
        }
    }
}
