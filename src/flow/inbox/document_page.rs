//! One page of a document's comments: what becomes an event, and where the scan goes on.

use std::collections::BTreeSet;

use crate::contract::channel::ids::Opaque;
use crate::contract::digest;
use crate::contract::inbox::comment::{
    CommentCard, CommentConfig, CommentCursor, CommentEvent, ShownReply, unescaped,
};
use crate::contract::inbox::comment_packet::CommentBlocker;
use crate::flow::inbox::document::blocker_of;
use crate::port::channel::{ProviderError, ProviderErrorKind as Kind};
use crate::port::comments::CommentSource;
use crate::store::StoreError;
use crate::store::inbox::Inbox;

/// One page: its events and the position behind it.
pub(super) struct CommentPage {
    pub(super) events: Vec<CommentEvent>,
    pub(super) skipped: usize,
    pub(super) next: CommentCursor,
    /// The row text of the position behind it.
    pub(super) next_row: String,
    pub(super) is_last: bool,
}

/// What is known of our own answers.
pub(super) struct OwnAnswers {
    ids: BTreeSet<String>,
    /// Those whose answer was lost: the card and the digest of the words.
    open: BTreeSet<(String, String)>,
}

impl OwnAnswers {
    pub(super) fn read(store: &Inbox) -> Result<Self, StoreError> {
        Ok(Self {
            ids: store.own_comment_replies()?,
            open: store.open_comment_replies()?,
        })
    }

    /// Tells whether a reply is one of ours, or may be one whose id nobody knows: that one comes again in a later scan.
    fn may_hold(&self, card: &CommentCard, reply: &ShownReply) -> bool {
        let words = reply.text.as_str();
        let is_open = |words: &str| {
            let digest = digest::content_digest(words.as_bytes()).to_string();
            let card = card.comment_id.as_str().to_owned();
            self.open.contains(&(card, digest))
        };
        reply.key.is_some()
            || self.ids.contains(reply.reply_id.as_str())
            || is_open(words)
            || is_open(&unescaped(words))
    }
}

/// No page.
pub(super) struct PageRefused {
    pub(super) blocker: CommentBlocker,
    /// The row text of where the scan goes on, if the provider will never take this position again.
    pub(super) instead: Option<String>,
}

impl From<CommentBlocker> for PageRefused {
    fn from(blocker: CommentBlocker) -> Self {
        Self {
            blocker,
            instead: None,
        }
    }
}

impl PageRefused {
    fn of(error: &ProviderError, otherwise: CommentBlocker, cursor: &CommentCursor) -> Self {
        let instead = match is_final(error) {
            true => after_refusal(cursor).and_then(|cursor| cursor.to_row()),
            false => None,
        };
        Self {
            blocker: blocker_of(error, otherwise),
            instead,
        }
    }
}

/// Tells whether the provider itself refused the position: a card that was deleted or closed, a token that expired.
fn is_final(error: &ProviderError) -> bool {
    let is_fault_of_server = error.code.is_some_and(|code| (500..=599).contains(&code));
    match error.kind {
        Kind::NotFound => true,
        Kind::Rejected => error.code.is_some() && !is_fault_of_server,
        _ => false,
    }
}

/// Where the scan goes on: behind the card whose replies are refused, or with the next scan. Stable ids make every reply count once. The
/// begin of a scan is no position that could be given up.
fn after_refusal(cursor: &CommentCursor) -> Option<CommentCursor> {
    match cursor {
        CommentCursor::Comments { token, .. } if token.as_str().is_empty() => None,
        CommentCursor::Comments { cycle, .. } => Some(behind(None, *cycle)),
        CommentCursor::Replies { outer, cycle, .. } => Some(behind(behind_card(outer), *cycle)),
    }
}

/// The page of cards behind the card whose replies were read, if there is one.
fn behind_card(outer: &Opaque) -> Option<Opaque> {
    Some(outer.clone()).filter(|outer| !outer.as_str().is_empty())
}

/// The next page of cards, or the first one of the next scan.
fn behind(next: Option<Opaque>, cycle: u64) -> CommentCursor {
    match next {
        Some(token) => CommentCursor::Comments { token, cycle },
        None => CommentCursor::Comments {
            token: Opaque::new(""),
            cycle: cycle + 1,
        },
    }
}

/// Reads one page at a position: of cards, or of the replies of one.
pub(super) fn read_page(
    (config, own): (&CommentConfig, &OwnAnswers),
    source: &dyn CommentSource,
    cursor: &CommentCursor,
) -> Result<CommentPage, PageRefused> {
    let mut page = CommentPage {
        events: Vec::new(),
        skipped: 0,
        next: cursor.clone(),
        next_row: String::new(),
        is_last: false,
    };
    match cursor {
        CommentCursor::Comments { token, cycle } => {
            let read = source
                .cards(token)
                .map_err(|error| PageRefused::of(&error, CommentBlocker::ListFailed, cursor))?;
            page.move_on(read.next.clone(), *cycle);
            for shown in read.cards {
                // The provider takes no answer there.
                if config.responds && !shown.card.can_reply {
                    page.skipped += shown.replies.len().max(1);
                    continue;
                }
                page.add((config, own), &shown.card, &shown.replies)?;
                if let Some(token) = shown.more {
                    let outer = read.next.clone().unwrap_or_else(|| Opaque::new(""));
                    page.stay_at(&shown.card, token, (outer, *cycle));
                }
            }
        }
        CommentCursor::Replies {
            card,
            token,
            outer,
            cycle,
        } => {
            let read = source
                .replies(card, Some(token))
                .map_err(|error| PageRefused::of(&error, CommentBlocker::RepliesFailed, cursor))?;
            page.add((config, own), card, &read.replies)?;
            page.move_on(behind_card(outer), *cycle);
            if let Some(token) = read.next {
                page.stay_at(card, token, (outer.clone(), *cycle));
            }
        }
    }
    // A position that could not be read again would end every later scan.
    page.next_row = page.next.to_row().ok_or(CommentBlocker::ResponseInvalid)?;
    Ok(page)
}

impl CommentPage {
    /// Goes to the next card, or to the first one of the next scan.
    fn move_on(&mut self, next: Option<Opaque>, cycle: u64) {
        self.is_last = next.is_none();
        self.next = behind(next, cycle);
    }

    /// Stays at a card with more replies.
    fn stay_at(&mut self, card: &CommentCard, token: Opaque, (outer, cycle): (Opaque, u64)) {
        self.is_last = false;
        self.next = CommentCursor::Replies {
            card: card.clone(),
            token,
            outer,
            cycle,
        };
    }

    fn add(
        &mut self,
        (config, own): (&CommentConfig, &OwnAnswers),
        card: &CommentCard,
        replies: &[ShownReply],
    ) -> Result<(), CommentBlocker> {
        let address = match card.can_reply {
            true => Some(
                card.address(&config.source_ref)
                    .ok_or(CommentBlocker::ResponseInvalid)?,
            ),
            false => None,
        };
        for reply in replies {
            match CommentEvent::of(&config.source_ref, (card, address.as_deref()), reply)
                .filter(|_| !own.may_hold(card, reply))
            {
                Some(event) => self.events.push(event),
                // A reply without words, or one of our own answers.
                None => self.skipped += 1,
            }
        }
        Ok(())
    }
}
