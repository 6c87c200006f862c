//! `lark-inbox ingest`: what is given on standard input, stored once.
//!
//! 1. configuration  2. the right to run  3. read the batch  4. decide each event; an invalid one is counted  5. preview returns here
//! 6. one transaction per inbox  7. exports

use std::collections::HashSet;

use serde_json::Value;

use crate::contract::extension::{Activation, Permission};
use crate::contract::inbox::event::StoredEvent;
use crate::contract::inbox::fault::InboxFault;
use crate::contract::inbox::packet::{IngestCounts, IngestPacket, RoutedFlags};
use crate::contract::json;
use crate::failpoint;
use crate::failpoint::Point;
use crate::flow::Mode;
use crate::flow::inbox::context::{BoundInbox, ContextArgs, Desk, Source};
use crate::flow::inbox::error::InboxError;
use crate::kernel::inbox::ingest;
use crate::store::inbox::{Exporter, Inbox};

/// Runs the command on the bytes of standard input.
pub fn run(
    desk: &Desk<'_>,
    args: &ContextArgs,
    input: &[u8],
    mode: Mode,
) -> Result<(IngestPacket, Activation), InboxError> {
    let (_, activation, source) = desk.open(args, &[Permission::InboxWrite])?;
    if let Source::Single(inbox) = &source {
        inbox.store()?;
    }
    let events = read_batch(input)?;
    let mut out = Exporter::default();
    let packet = match &source {
        Source::Single(inbox) => {
            let mut counts = IngestCounts {
                requested: events.len(),
                ..IngestCounts::default()
            };
            store_into(
                inbox,
                &events.iter().collect::<Vec<_>>(),
                mode,
                (&mut counts, &mut out),
            )?;
            IngestPacket::new(mode.is_execute(), counts, None, out.is_pending())
        }
        Source::Routed(collector) => {
            let mut counts = IngestCounts {
                requested: events.len(),
                ..IngestCounts::default()
            };
            let mut touched = 0;
            let mut routed = 0;
            for route in collector.enabled() {
                let chat = route.route.as_ref().map(|route| route.chat.as_str());
                let own: Vec<&Value> = events
                    .iter()
                    .filter(|event| event["chat_id"].as_str() == chat)
                    .collect();
                routed += own.len();
                touched += usize::from(!own.is_empty());
                store_into(route, &own, mode, (&mut counts, &mut out))?;
            }
            counts.invalid += events.len() - routed;
            IngestPacket::new(
                mode.is_execute(),
                counts,
                Some(RoutedFlags::of(touched)),
                out.is_pending(),
            )
        }
    };
    Ok((packet, activation))
}

fn store_into(
    inbox: &BoundInbox,
    events: &[&Value],
    mode: Mode,
    (counts, out): (&mut IngestCounts, &mut Exporter),
) -> Result<(), InboxError> {
    if events.is_empty() {
        return Ok(());
    }
    let store = inbox.store()?;
    let decided: Vec<StoredEvent> = events
        .iter()
        .filter_map(|event| ingest::event(event, inbox.ingest_into()).ok())
        .collect();
    counts.invalid += events.len() - decided.len();
    let news = match mode {
        Mode::Preview => would_be_new(&store, &decided)?,
        Mode::Execute => store_batch(&store, &decided, out)?,
    };
    let accepted = news.iter().filter(|is_new| **is_new).count();
    counts.accepted += accepted;
    counts.duplicate += news.len() - accepted;
    Ok(())
}

fn would_be_new(store: &Inbox, events: &[StoredEvent]) -> Result<Vec<bool>, InboxError> {
    let ids: Vec<&str> = events
        .iter()
        .map(|event| event.message_id().as_str())
        .collect();
    let stored = store.stored(&ids)?;
    let mut seen = HashSet::new();
    Ok(ids
        .iter()
        .zip(stored)
        .map(|(id, stored)| !stored && seen.insert(*id))
        .collect())
}

/// Stores a batch durably and writes the exports of what is new; says for each event whether it is.
pub(super) fn store_batch(
    store: &Inbox,
    events: &[StoredEvent],
    out: &mut Exporter,
) -> Result<Vec<bool>, InboxError> {
    if events.is_empty() {
        return Ok(Vec::new());
    }
    let news = store.store_events(events, &[])?;
    if !news.contains(&true) {
        return Ok(news);
    }
    failpoint!(Point::InboxBatchCommitted);
    let stored = events.iter().zip(&news).filter(|(_, is_new)| **is_new);
    store.export_events(
        out,
        stored.map(|(event, _)| (event.message_id().as_str(), event.to_row())),
    );
    Ok(news)
}

/// Reads one JSON object, an array of values, or one value per line; lines end at line feeds alone.
fn read_batch(input: &[u8]) -> Result<Vec<Value>, InboxFault> {
    if input.iter().all(u8::is_ascii_whitespace) {
        return Err(InboxFault::InputEmpty);
    }
    if let Ok(value) = json::parse(input) {
        return match value {
            Value::Array(items) => Ok(items),
            object @ Value::Object(_) => Ok(vec![object]),
            _ => Err(InboxFault::InputUnreadable),
        };
    }
    let lines = input
        .split(|byte| *byte == b'\n')
        .filter(|line| !line.iter().all(u8::is_ascii_whitespace));
    lines
        .map(|line| json::parse(line).map_err(|_| InboxFault::InputUnreadable))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_an_array_and_lines_are_read() {
        assert_eq!(read_batch(b"{\"a\":1}").map(|events| events.len()), Ok(1));
        assert_eq!(read_batch(b"[{},{},3]").map(|events| events.len()), Ok(3));
        assert_eq!(
            read_batch("{\"a\":\"x\u{2028}\u{85}y\"}\n\n{}\n".as_bytes())
                .map(|events| events.len()),
            Ok(2)
        );
    }

    #[test]
    fn blank_and_broken_input_is_refused() {
        assert_eq!(read_batch(b" \n\n"), Err(InboxFault::InputEmpty));
        assert_eq!(read_batch(b"{\"a\": 1"), Err(InboxFault::InputUnreadable));
        assert_eq!(read_batch(b"{}\n{"), Err(InboxFault::InputUnreadable));
        assert_eq!(read_batch(b"3"), Err(InboxFault::InputUnreadable));
    }
}
