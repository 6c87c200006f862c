//! `lark-inbox document-comment-status`, `-capture` and `-ack`: the comments of one configured document.
//!
//! capture: 1. configuration, rights  2. preview returns here  3. the program is new enough  4. one page at the stored position, of cards
//! or of replies  5. events and the next position in one transaction  6. exports. After the last card the scan starts again; stable ids
//! make every reply count once.

use std::collections::BTreeSet;
use std::path::PathBuf;

use serde_json::Value;

use crate::contract::channel::ids::Opaque;
use crate::contract::extension::{Activation, Permission};
use crate::contract::inbox::comment::{
    COMMENT_CONFIG, CommentCard, CommentConfig, CommentCursor, CommentEvent, ShownReply,
    is_comment_event_id,
};
use crate::contract::inbox::comment_packet::{
    CaptureCounts, CapturePacket, CommentBlocker, StatusPacket, ack_packet,
};
use crate::contract::inbox::fault::InboxFault;
use crate::failpoint;
use crate::failpoint::Point;
use crate::flow::Mode;
use crate::flow::inbox::ack::settle;
use crate::flow::inbox::context::{ContextArgs, Desk, Located, read_document, resolve_inside};
use crate::flow::inbox::error::InboxError;
use crate::flow::inbox::ports::Providers;
use crate::port::channel::{ProviderError, ProviderErrorKind as Kind};
use crate::port::comments::{CommentSource, RightsFault};
use crate::store::StoreError;
use crate::store::inbox::{Exporter, Inbox};

/// The code of a document that may not be read, which the program leaves untyped.
const FORBIDDEN_CODE: i64 = 1_069_303;

/// One configured document with its inbox.
pub(super) struct Document {
    pub(super) config: CommentConfig,
    pub(super) store: Inbox,
}

impl Document {
    pub(super) fn open(
        desk: &Desk<'_>,
        args: &ContextArgs,
        permissions: &[Permission],
    ) -> Result<(Self, Activation), InboxError> {
        let located = desk.locate(args)?.ok_or(InboxFault::NotConfigured)?;
        let activation = desk.require(permissions)?;
        let value = read_document(&located.config)?;
        let (document, _) = Self::of(&located, &value)?;
        Ok((document, activation))
    }

    /// Reads a located configuration; the folder comes with it.
    pub(super) fn of(located: &Located, value: &Value) -> Result<(Self, PathBuf), InboxError> {
        let config = CommentConfig::parse(value).map_err(InboxFault::Config)?;
        let folder = resolve_inside(&located.project, std::path::Path::new(&config.inbox_dir))?;
        Ok((
            Self {
                config,
                store: Inbox::at(&folder),
            },
            folder,
        ))
    }

    pub(super) fn require_enabled(&self) -> Result<(), InboxFault> {
        if self.config.enabled {
            Ok(())
        } else {
            Err(InboxFault::CommentDisabled)
        }
    }
}

/// Tells whether a document is a comment configuration.
pub(super) fn is_comment_config(value: &Value) -> bool {
    value.get("schema_version").and_then(Value::as_str) == Some(COMMENT_CONFIG)
}

/// Says what a failed call means for the caller.
pub(super) fn blocker_of(error: &ProviderError, otherwise: CommentBlocker) -> CommentBlocker {
    match error.kind {
        Kind::PermissionMissing | Kind::GroupHistoryPermission => {
            CommentBlocker::PermissionRequired
        }
        Kind::AuthorizationMissing => CommentBlocker::AuthorizationRequired,
        Kind::PayloadInvalid => CommentBlocker::ResponseInvalid,
        _ if error.code == Some(FORBIDDEN_CODE) => CommentBlocker::PermissionRequired,
        _ => otherwise,
    }
}

/// Runs `document-comment-status`.
pub fn status(
    desk: &Desk<'_>,
    providers: &dyn Providers,
    args: &ContextArgs,
) -> Result<(Value, Activation), InboxError> {
    let (document, activation) = Document::open(desk, args, &[Permission::InboxRead])?;
    let counts = document.store.counts()?;
    let mut packet = StatusPacket {
        source_ref: &document.config.source_ref,
        enabled: document.config.enabled,
        supported: false,
        may_read: false,
        may_create: false,
        responds: document.config.responds,
        captured: counts.captured,
        pending: counts.pending,
        blocker: None,
    };
    let source = providers.comments(&document.config);
    packet.supported = source.is_supported();
    packet.blocker = match (document.config.addressed_only, packet.supported) {
        (true, _) => Some(CommentBlocker::AddressFilterUnsupported),
        (false, false) => Some(CommentBlocker::ProgramUnsupported),
        (false, true) => probe(source.as_ref(), &mut packet),
    };
    Ok((packet.packet(), activation))
}

fn probe(source: &dyn CommentSource, packet: &mut StatusPacket<'_>) -> Option<CommentBlocker> {
    match source.rights() {
        Ok(rights) => {
            packet.may_read = rights.may_read;
            packet.may_create = rights.may_create;
            let is_enough = rights.may_read && (rights.may_create || !packet.responds);
            (!is_enough).then_some(CommentBlocker::PermissionRequired)
        }
        Err(RightsFault::Unknown) => Some(CommentBlocker::RightsUnknown),
        Err(RightsFault::Invalid) => Some(CommentBlocker::RightsInvalid),
        Err(RightsFault::IdentityMismatch) => Some(CommentBlocker::IdentityMismatch),
    }
}

/// Runs `document-comment-capture`.
pub fn capture(
    desk: &Desk<'_>,
    providers: &dyn Providers,
    args: &ContextArgs,
    mode: Mode,
) -> Result<(Value, Activation), InboxError> {
    let permissions = [Permission::CollectorManage, Permission::InboxWrite];
    let (document, activation) = Document::open(desk, args, &permissions)?;
    document.require_enabled()?;
    let packet = |status, blocker| capture_packet(&document, status, blocker);
    if document.config.addressed_only {
        return Ok((
            packet("blocked", Some(CommentBlocker::AddressFilterUnsupported)).packet(),
            activation,
        ));
    }
    if mode == Mode::Preview {
        return Ok((packet("preview_ready", None).packet(), activation));
    }
    let source = providers.comments(&document.config);
    if !source.is_supported() {
        return Ok((
            packet("blocked", Some(CommentBlocker::ProgramUnsupported)).packet(),
            activation,
        ));
    }
    let cursor = stored_cursor(&document)?;
    let own = document.store.own_comment_replies()?;
    let page = match read_page((&document.config, &own), source.as_ref(), &cursor) {
        Ok(page) => page,
        Err(blocker) => {
            let refused = CapturePacket {
                read_performed: true,
                ..packet("blocked", Some(blocker))
            };
            return Ok((refused.packet(), activation));
        }
    };
    let mut out = Exporter::default();
    let counts = store_page(&document, &page, &mut out)?;
    let done = CapturePacket {
        counts,
        committed: true,
        read_performed: true,
        export_pending: out.is_pending(),
        ..packet(
            if page.is_last {
                "scan_complete"
            } else {
                "page_captured"
            },
            None,
        )
    };
    Ok((done.packet(), activation))
}

fn capture_packet<'a>(
    document: &'a Document,
    status: &'static str,
    blocker: Option<CommentBlocker>,
) -> CapturePacket<'a> {
    CapturePacket {
        source_ref: &document.config.source_ref,
        status,
        counts: CaptureCounts::default(),
        committed: false,
        read_performed: false,
        blocker,
        export_pending: false,
    }
}

fn stored_cursor(document: &Document) -> Result<CommentCursor, InboxError> {
    match document
        .store
        .comment_cursor(document.config.source_ref.as_str())?
    {
        None => Ok(CommentCursor::start()),
        Some(row) => CommentCursor::from_row(&row).ok_or_else(|| {
            StoreError::Corrupt("the position of a document is not readable").into()
        }),
    }
}

/// One page: its events and the position behind it.
struct CommentPage {
    events: Vec<CommentEvent>,
    skipped: usize,
    next: CommentCursor,
    is_last: bool,
}

fn read_page(
    (config, own): (&CommentConfig, &BTreeSet<String>),
    source: &dyn CommentSource,
    cursor: &CommentCursor,
) -> Result<CommentPage, CommentBlocker> {
    let mut page = CommentPage {
        events: Vec::new(),
        skipped: 0,
        next: cursor.clone(),
        is_last: false,
    };
    match cursor {
        CommentCursor::Comments { token, cycle } => {
            let read = source
                .cards(token)
                .map_err(|error| blocker_of(&error, CommentBlocker::ListFailed))?;
            page.move_on(read.next.clone(), *cycle);
            for shown in read.cards {
                // The provider takes no answer there.
                if config.responds && !shown.card.can_reply {
                    page.skipped += shown.replies.len().max(1);
                    continue;
                }
                page.add((config, own), &shown.card, &shown.replies);
                if let Some(token) = shown.more {
                    let outer = read.next.clone().unwrap_or_else(|| Opaque::new(""));
                    page.next = CommentCursor::Replies {
                        card: shown.card,
                        token,
                        outer,
                        cycle: *cycle,
                    };
                    page.is_last = false;
                }
            }
        }
        CommentCursor::Replies {
            card,
            token,
            outer,
            cycle,
        } => {
            let place = (card, outer, *cycle);
            read_replies((config, own), source, (token, place), &mut page)?;
        }
    }
    Ok(page)
}

/// Where more replies of one card are read: the card, the card behind it, the scan.
type Place<'a> = (&'a CommentCard, &'a Opaque, u64);

fn read_replies(
    reader: (&CommentConfig, &BTreeSet<String>),
    source: &dyn CommentSource,
    (token, place): (&Opaque, Place<'_>),
    page: &mut CommentPage,
) -> Result<(), CommentBlocker> {
    let (card, outer, cycle) = place;
    let read = source
        .replies(card, Some(token))
        .map_err(|error| blocker_of(&error, CommentBlocker::RepliesFailed))?;
    page.add(reader, card, &read.replies);
    match read.next {
        Some(token) => {
            page.next = CommentCursor::Replies {
                card: card.clone(),
                token,
                outer: outer.clone(),
                cycle,
            }
        }
        None => page.move_on(
            Some(outer.clone()).filter(|outer| !outer.as_str().is_empty()),
            cycle,
        ),
    }
    Ok(())
}

impl CommentPage {
    /// Goes to the next card, or to the first one of the next scan.
    fn move_on(&mut self, next: Option<Opaque>, cycle: u64) {
        self.is_last = next.is_none();
        self.next = match next {
            Some(token) => CommentCursor::Comments { token, cycle },
            None => CommentCursor::Comments {
                token: Opaque::new(""),
                cycle: cycle + 1,
            },
        };
    }

    fn add(
        &mut self,
        (config, own): (&CommentConfig, &BTreeSet<String>),
        card: &CommentCard,
        replies: &[ShownReply],
    ) {
        for reply in replies {
            match CommentEvent::of(&config.source_ref, card, reply)
                .filter(|_| reply.key.is_none() && !own.contains(reply.reply_id.as_str()))
            {
                Some(event) => self.events.push(event),
                // A reply without words, or one of our own answers.
                None => self.skipped += 1,
            }
        }
    }
}

fn store_page(
    document: &Document,
    page: &CommentPage,
    out: &mut Exporter,
) -> Result<CaptureCounts, InboxError> {
    let rows: Vec<(String, String, String)> = page
        .events
        .iter()
        .map(|event| {
            (
                event.event_id.clone(),
                event.create_time.clone(),
                event.row.clone(),
            )
        })
        .collect();
    let news = document.store.store_comment_page(
        document.config.source_ref.as_str(),
        &rows,
        &page.next.to_row(),
    )?;
    failpoint!(Point::CommentPageCommitted);
    let added = rows.iter().zip(&news).filter(|(_, is_new)| **is_new);
    document.store.export_events(
        out,
        added.map(|((id, _, row), _)| (id.as_str(), row.clone())),
    );
    document.store.export_comments(out)?;
    let accepted = news.iter().filter(|is_new| **is_new).count();
    Ok(CaptureCounts {
        requested: rows.len(),
        accepted,
        duplicate: rows.len() - accepted,
        skipped: page.skipped,
    })
}

/// Runs `document-comment-ack`: where answers are on, only a verified one settles a comment.
pub fn ack(
    desk: &Desk<'_>,
    args: &ContextArgs,
    event_id: &str,
    mode: Mode,
) -> Result<(Value, Activation), InboxError> {
    let (document, activation) = Document::open(desk, args, &[Permission::InboxWrite])?;
    document.require_enabled()?;
    if !is_comment_event_id(event_id) || document.store.event_row(event_id)?.is_none() {
        return Err(InboxFault::CommentNotCaptured.into());
    }
    let execute = mode.is_execute();
    if document.store.processed(&[event_id])? == [true] {
        return Ok((
            ack_packet("already_acknowledged", execute, false),
            activation,
        ));
    }
    let key = crate::contract::inbox::comment::reply_key(&document.config.source_ref, event_id);
    let is_answered = document
        .store
        .comment_reply(&key)?
        .is_some_and(|row| row.status == "verified");
    if document.config.responds && !is_answered {
        return Ok((
            ack_packet("verified_response_required", execute, false),
            activation,
        ));
    }
    if mode == Mode::Preview {
        return Ok((ack_packet("preview_ready", false, false), activation));
    }
    let mut out = Exporter::default();
    let new = settle(
        &document.store,
        &[event_id],
        &desk.now.to_string(),
        &mut out,
    )?;
    let status = if new == 1 {
        "acknowledged"
    } else {
        "already_acknowledged"
    };
    Ok((ack_packet(status, true, out.is_pending()), activation))
}
