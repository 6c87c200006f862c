//! One route at a turn start: pages up to now, each stored together with the position behind it.

use crate::contract::inbox::collector::TurnStartSync;
use crate::contract::inbox::turn_start::{SyncCounts, SyncCursor, SyncFault};
use crate::contract::time::Timestamp;
use crate::flow::inbox::catch_up::Bound;
use crate::flow::inbox::context::{BoundCollector, BoundInbox, Located};
use crate::flow::inbox::page::{History, PageFault, Span};
use crate::flow::inbox::progress::Silent;
use crate::kernel::inbox::turn_start;
use crate::port::channel::{ChannelProvider, ProviderError, ProviderErrorKind as Kind};
use crate::store::StoreError;
use crate::store::inbox::{Exporter, Inbox, SyncFile, SyncPosition};

/// The most pages of one route at one turn start; the next one goes on.
const MAX_PAGES: usize = 4;

/// One route that is read up to now.
pub(super) struct RouteSync<'a> {
    pub(super) located: &'a Located,
    pub(super) collector: &'a BoundCollector,
    pub(super) route: &'a BoundInbox,
    pub(super) channel: &'a dyn ChannelProvider,
    pub(super) sync: &'a TurnStartSync,
    pub(super) now: Timestamp,
}

impl RouteSync<'_> {
    /// Reads until nothing is new, or as many pages as one turn start may.
    pub(super) fn run(&self, counts: &mut SyncCounts, out: &mut Exporter) -> Result<(), SyncFault> {
        let failed = |_| SyncFault::StoreFailed;
        let store = self.route.store().map_err(failed)?;
        let bound = Bound::of(self.collector, self.route).map_err(failed)?;
        let configured = self.route.route.as_ref().ok_or(SyncFault::StoreFailed)?;
        let history = History {
            route: self.route,
            chat: &configured.chat,
            profile: &bound.profile,
            channel: self.channel,
            now: self.now,
            progress: &Silent,
        };
        let file = bound.sync_file(&self.located.project);
        let binding = file.binding;
        for _ in 0..MAX_PAGES {
            let stored = store
                .sync_position(binding)
                .map_err(|error| store_fault(&error))?;
            let newest = self.newest(&store, stored.as_ref())?;
            let Some(window) = turn_start::window(stored.as_ref(), newest, self.sync, self.now)
            else {
                return Ok(());
            };
            self.page((&store, &history, &file), &window, (counts, out))?;
        }
        match store.sync_position(binding) {
            Ok(Some(position)) if position.last_end.is_some_and(|end| end >= self.now) => Ok(()),
            Ok(_) => Err(SyncFault::WindowIncomplete),
            Err(error) => Err(store_fault(&error)),
        }
    }

    /// The newest message that is stored, asked for only when the position does not say up to when the route is read.
    fn newest(
        &self,
        store: &Inbox,
        stored: Option<&SyncCursor>,
    ) -> Result<Option<Timestamp>, SyncFault> {
        let is_ahead =
            stored.is_some_and(|stored| turn_start::is_ahead(stored, self.sync, self.now));
        let (true, Some(key)) = (is_ahead, self.route.route_key()) else {
            return Ok(None);
        };
        let times = store
            .newest_times(key.as_str())
            .map_err(|error| store_fault(&error))?;
        Ok(turn_start::newest(&times))
    }

    fn page(
        &self,
        (store, history, file): (&Inbox, &History<'_>, &SyncFile<'_>),
        window: &SyncCursor,
        (counts, out): (&mut SyncCounts, &mut Exporter),
    ) -> Result<(), SyncFault> {
        let span = Span {
            start: window.window_start,
            end: window.window_end,
            page_size: self.sync.page_size,
            token: window.token.as_ref(),
        };
        let page = match history.read(store, &span) {
            Ok(page) => page,
            Err(fault) => {
                counts.has_read |= was_called(&fault);
                if window.token.is_some() && !is_passing(&fault) {
                    self.give_up((store, file), window, (counts, out));
                }
                return Err(fault_of(&fault));
            }
        };
        counts.has_read = true;
        counts.pages += 1;
        counts.requested += page.counts.requested;
        counts.accepted += page.counts.accepted;
        counts.duplicate += page.counts.duplicate;
        counts.revised += page.counts.revised;
        let is_whole = page.counts.incomplete_threads == 0;
        let cursor = turn_start::after_page(window, page.next.clone());
        let position = SyncPosition {
            binding: file.binding,
            cursor: &cursor,
        };
        let position = is_whole.then_some(&position);
        let broken = |error| store_fault(&error);
        counts.has_written |= is_whole || page.counts.accepted + page.counts.revised > 0;
        if !history
            .store(store, (&page, position), out)
            .map_err(broken)?
        {
            return Err(SyncFault::InboxReadbackFailed);
        }
        if !is_whole {
            return Err(SyncFault::ThreadIncomplete);
        }
        if store.sync_position(file.binding).map_err(broken)?.as_ref() != Some(&cursor) {
            return Err(SyncFault::CursorReadbackFailed);
        }
        store.export_sync(out, file).map_err(broken)
    }

    /// The provider does not know the next page any more: the window is read again at the next turn start.
    fn give_up(
        &self,
        (store, file): (&Inbox, &SyncFile<'_>),
        window: &SyncCursor,
        (counts, out): (&mut SyncCounts, &mut Exporter),
    ) {
        let cursor = turn_start::without_token(window);
        let position = SyncPosition {
            binding: file.binding,
            cursor: &cursor,
        };
        counts.has_written |=
            store.store_page(&[], &[], &position).is_ok() && store.export_sync(out, file).is_ok();
    }
}

fn was_called(fault: &PageFault) -> bool {
    !matches!(fault, PageFault::Provider(error) if error.kind == Kind::NotStarted)
}

/// Faults that the same call may not meet again.
fn is_passing(fault: &PageFault) -> bool {
    use Kind::{
        AuthorizationMissing, GroupHistoryPermission, NotStarted, PermissionMissing, RateLimited,
        Unavailable,
    };
    match fault {
        PageFault::Store(_) => true,
        PageFault::Invalid(_) => false,
        PageFault::Provider(error) => matches!(
            error.kind,
            NotStarted
                | Unavailable
                | RateLimited
                | GroupHistoryPermission
                | PermissionMissing
                | AuthorizationMissing
        ),
    }
}

fn fault_of(fault: &PageFault) -> SyncFault {
    match fault {
        PageFault::Store(error) => store_fault(error),
        PageFault::Invalid(_) => SyncFault::ProviderContract,
        PageFault::Provider(ProviderError { kind, .. }) => match kind {
            Kind::NotStarted | Kind::Unavailable => SyncFault::ProviderUnavailable,
            Kind::GroupHistoryPermission => SyncFault::PermissionRequired,
            Kind::AuthorizationMissing => SyncFault::AuthorizationRequired,
            Kind::PayloadInvalid => SyncFault::ProviderContract,
            _ => SyncFault::ProviderFailed,
        },
    }
}

/// Says what a failing store means for a route.
pub(super) fn store_fault(error: &StoreError) -> SyncFault {
    match error {
        StoreError::Busy | StoreError::LockTimeout(_) => SyncFault::StoreBusy,
        StoreError::SchemaUnsupported { .. } => SyncFault::StoreNewer,
        _ => SyncFault::StoreFailed,
    }
}
