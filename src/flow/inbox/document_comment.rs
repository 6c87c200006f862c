//! `lark-inbox document-comment-status`, `-capture` and `-ack`: the comments of one configured document.
//!
//! capture: 1. configuration, rights  2. preview returns here  3. the program is new enough  4. one page at the stored position, of cards
//! or of replies  5. events and the next position in one transaction  6. exports. After the last card the scan starts again; stable ids
//! make every reply count once.

use serde_json::Value;

use crate::contract::extension::{Activation, Permission};
use crate::contract::inbox::comment::{CommentCursor, is_comment_event_id};
use crate::contract::inbox::comment_packet::{
    CaptureCounts, CapturePacket, CommentBlocker, StatusPacket, ack_packet,
};
use crate::contract::inbox::fault::InboxFault;
use crate::failpoint;
use crate::failpoint::Point;
use crate::flow::Mode;
use crate::flow::inbox::ack::settle;
use crate::flow::inbox::context::{ContextArgs, Desk};
use crate::flow::inbox::document::Document;
use crate::flow::inbox::document_page::{CommentPage, OwnAnswers, PageRefused, read_page};
use crate::flow::inbox::error::InboxError;
use crate::flow::inbox::ports::Providers;
use crate::port::comments::{CommentSource, RightsFault};
use crate::store::StoreError;
use crate::store::inbox::Exporter;

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
        is_healthy: stored_cursor(&document).is_ok(),
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
    let own = OwnAnswers::read(&document.store)?;
    let page = match read_page((&document.config, &own), source.as_ref(), &cursor) {
        Ok(page) => page,
        Err(refused) => return Ok((give_up(&document, &refused)?.packet(), activation)),
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

/// A position that the provider will never take again is left, or it would end every later scan.
fn give_up<'a>(
    document: &'a Document,
    refused: &PageRefused,
) -> Result<CapturePacket<'a>, InboxError> {
    let mut out = Exporter::default();
    if let Some(row) = &refused.instead {
        let source = document.config.source_ref.as_str();
        document.store.store_comment_page(source, &[], row)?;
        document.store.export_comments(&mut out)?;
    }
    let status = match refused.instead {
        Some(_) => "position_given_up",
        None => "blocked",
    };
    Ok(CapturePacket {
        committed: refused.instead.is_some(),
        read_performed: true,
        export_pending: out.is_pending(),
        ..capture_packet(document, status, Some(refused.blocker))
    })
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
        &page.next_row,
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
