//! One page of a document's comments: what becomes an event, and where the scan goes on.

use std::collections::BTreeSet;

use crate::contract::channel::ids::Opaque;
use crate::contract::inbox::comment::{
    CommentCard, CommentConfig, CommentCursor, CommentEvent, ShownReply,
};
use crate::contract::inbox::comment_packet::CommentBlocker;
use crate::flow::inbox::document::blocker_of;
use crate::port::comments::CommentSource;

/// One page: its events and the position behind it.
pub(super) struct CommentPage {
    pub(super) events: Vec<CommentEvent>,
    pub(super) skipped: usize,
    pub(super) next: CommentCursor,
    /// The row text of the position behind it.
    pub(super) next_row: String,
    pub(super) is_last: bool,
}

/// Reads one page at a position: of cards, or of the replies of one.
pub(super) fn read_page(
    (config, own): (&CommentConfig, &BTreeSet<String>),
    source: &dyn CommentSource,
    cursor: &CommentCursor,
) -> Result<CommentPage, CommentBlocker> {
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
                .map_err(|error| blocker_of(&error, CommentBlocker::ListFailed))?;
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
    // A position that could not be read again would end every later scan.
    page.next_row = page.next.to_row().ok_or(CommentBlocker::ResponseInvalid)?;
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
    page.add(reader, card, &read.replies)?;
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
                .filter(|_| reply.key.is_none() && !own.contains(reply.reply_id.as_str()))
            {
                Some(event) => self.events.push(event),
                // A reply without words, or one of our own answers.
                None => self.skipped += 1,
            }
        }
        Ok(())
    }
}
