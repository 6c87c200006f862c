//! `lark-inbox ack`: settles messages whose durable effect exists.
//!
//! 1. configuration, right to run  2. every id resolved before the first write  3. preview returns here  4. per route: settlement lock,
//!    one transaction, export before the lock is given back

use std::collections::BTreeSet;

use crate::contract::channel::ids::MessageId;
use crate::contract::extension::{Activation, Permission};
use crate::contract::inbox::fault::InboxFault;
use crate::contract::inbox::packet::{AckPacket, RoutedFlags};
use crate::failpoint;
use crate::failpoint::Point;
use crate::flow::Mode;
use crate::flow::inbox::context::{BoundCollector, ContextArgs, Desk, Source};
use crate::flow::inbox::error::InboxError;
use crate::store::inbox::{Exporter, Inbox};
use crate::store::lock::{Claim, Policy, Settlement};

/// Runs the command.
pub fn run(
    desk: &Desk<'_>,
    args: &ContextArgs,
    ids: &[String],
    mode: Mode,
) -> Result<(AckPacket, Activation), InboxError> {
    let (_, activation, source) = desk.open(args, &[Permission::InboxWrite])?;
    check_ids(ids)?;
    let groups = match &source {
        Source::Single(inbox) => vec![(inbox.store()?, ids.iter().map(String::as_str).collect())],
        Source::Routed(collector) => resolve(collector, ids)?,
    };
    let now = desk.now.to_string();
    let mut out = Exporter::default();
    let mut new_count = 0;
    let mut uncaptured = 0;
    for (store, own) in &groups {
        uncaptured += store.stored(own)?.iter().filter(|known| !**known).count();
        new_count += match mode {
            Mode::Preview => store
                .processed(own)?
                .iter()
                .filter(|known| !**known)
                .count(),
            Mode::Execute => settle(store, own, &now, &mut out)?,
        };
    }
    let routed = matches!(source, Source::Routed(_)).then(|| RoutedFlags::of(groups.len()));
    let packet = AckPacket::new(
        (mode.is_execute(), out.is_pending()),
        ids.to_vec(),
        new_count,
        routed,
    );
    Ok((packet.with_uncaptured(uncaptured), activation))
}

fn check_ids(ids: &[String]) -> Result<(), InboxFault> {
    let mut seen = BTreeSet::new();
    match ids
        .iter()
        .all(|id| MessageId::new(id.as_str()).is_some() && seen.insert(id))
    {
        true => Ok(()),
        false => Err(InboxFault::AckIds),
    }
}

fn resolve<'a>(
    collector: &BoundCollector,
    ids: &'a [String],
) -> Result<Vec<(Inbox, Vec<&'a str>)>, InboxError> {
    let mut groups: Vec<(Inbox, Vec<&str>)> = Vec::new();
    for id in ids {
        let store = collector.holder(id)?.store()?;
        match groups
            .iter_mut()
            .find(|(known, _)| known.folder() == store.folder())
        {
            Some((_, own)) => own.push(id),
            None => groups.push((store, vec![id])),
        }
    }
    Ok(groups)
}

/// Settles the ids of one inbox and writes its export before the lock is given back.
pub(super) fn settle(
    store: &Inbox,
    ids: &[&str],
    now: &str,
    out: &mut Exporter,
) -> Result<usize, InboxError> {
    let _held = store.settlement_lock::<Settlement>(&claim("ack", now))?;
    if !store.processed(ids)?.contains(&false) {
        return Ok(0);
    }
    let news = store.acknowledge(ids, now)?;
    failpoint!(Point::InboxAckCommitted);
    store.export_processed(out)?;
    Ok(news.iter().filter(|is_new| **is_new).count())
}

pub(super) fn claim<'a>(operation: &'a str, now: &'a str) -> Claim<'a> {
    Claim {
        lock_id: "inbox",
        agent_id: None,
        operation,
        policy: Policy::Mutation,
        now,
    }
}
