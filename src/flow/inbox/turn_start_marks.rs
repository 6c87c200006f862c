//! The received marks of a turn start: a few waiting messages show that an agent has read them. The route that waits longest comes
//! first, and in a route the message after the last one, so that nothing is passed over for good.

use crate::contract::channel::ids::MessageId;
use crate::contract::inbox::mark_packet::{MarkCounts, MarkStatus};
use crate::contract::inbox::turn_start::{DispatchCursor, SyncCounts};
use crate::flow::inbox::context::{BoundCollector, BoundInbox};
use crate::flow::inbox::error::InboxError;
use crate::flow::inbox::marks::Marked;
use crate::port::channel::ChannelProvider;
use crate::store::inbox::{Exporter, Inbox};

/// The most marks of one dispatch.
const MAX_MARKS: u32 = 3;

/// Gives the marks of one dispatch. A mark that fails is counted and stops no other.
pub(super) fn give(
    collector: &BoundCollector,
    channel: &dyn ChannelProvider,
    now: &str,
    (counts, out): (&mut SyncCounts, &mut Exporter),
) {
    let mut queues = queues(collector);
    let sequence = queues.last().map_or(0, |queue| queue.cursor.sequence) + 1;
    let mut is_served = true;
    while is_served {
        is_served = false;
        for queue in &mut queues {
            if counts.marks_tried >= MAX_MARKS {
                return;
            }
            let giving = Giving {
                channel,
                now,
                sequence,
            };
            is_served |= giving.next(queue, counts, out).unwrap_or(false);
        }
    }
}

/// The waiting messages of one route.
struct Queue<'a> {
    route: &'a BoundInbox,
    store: Inbox,
    cursor: DispatchCursor,
    first: Option<String>,
}

/// The routes that give marks, the one that waits longest first.
fn queues(collector: &BoundCollector) -> Vec<Queue<'_>> {
    let giving = collector
        .enabled()
        .filter(|route| route.config.marks.received.is_some() && route.config.reply.is_some());
    let mut queues: Vec<Queue<'_>> = giving
        .filter_map(|route| {
            let store = route.store().ok()?;
            let cursor = store.dispatch_cursor().ok()?;
            Some(Queue {
                route,
                store,
                cursor,
                first: None,
            })
        })
        .collect();
    queues.sort_by_key(|queue| queue.cursor.sequence);
    queues
}

struct Giving<'a> {
    channel: &'a dyn ChannelProvider,
    now: &'a str,
    sequence: u64,
}

impl Giving<'_> {
    /// Tries the next message of a route; false when none is left for this dispatch.
    fn next(
        &self,
        queue: &mut Queue<'_>,
        counts: &mut SyncCounts,
        out: &mut Exporter,
    ) -> Result<bool, InboxError> {
        let Some(reply) = &queue.route.config.reply else {
            return Ok(false);
        };
        let Some(found) = queue.store.next_unmarked(&queue.cursor.after)? else {
            return Ok(false);
        };
        // Once around: what failed just now is not tried again at once.
        if queue.first.as_ref() == Some(&found.message_id) {
            return Ok(false);
        }
        queue.first.get_or_insert(found.message_id.clone());
        let Some(message) = MessageId::new(&found.message_id) else {
            return Ok(false);
        };
        // Kept before the call: a mark that kills its turn does not hold up the others for ever.
        queue.cursor = DispatchCursor {
            sequence: self.sequence,
            after: (found.create_time, found.message_id),
        };
        queue.store.put_dispatch(&queue.cursor, message.as_str())?;
        counts.has_written = true;
        let marked = Marked {
            store: &queue.store,
            marks: &queue.route.config.marks,
            profile: &reply.profile,
            message: &message,
            channel: self.channel,
            now: self.now,
        };
        let mut made = MarkCounts::default();
        let ended = marked.receive(&mut made, out);
        counts.marks_outcome = counts.marks_outcome.and(made.outcome);
        counts.marks_tried += 1;
        counts.marks_created += made.created;
        let is_given = matches!(
            ended,
            Ok(MarkStatus::Processing | MarkStatus::ReceiptRecovered | MarkStatus::AlreadyComplete)
        );
        counts.marks_failed += u32::from(!is_given);
        queue.store.export_reads(out)?;
        Ok(true)
    }
}
