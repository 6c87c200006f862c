//! `lark-inbox drain`: what is pending. It reads no more than it prints and acknowledges nothing.

use serde_json::{Value, json};

use crate::contract::extension::{Activation, Permission};
use crate::contract::inbox::drained::{
    self, DrainCounts, DrainRoutes, DrainedItem, Projection, RoutedProjection,
};
use crate::contract::inbox::fault::InboxFault;
use crate::contract::json as strict;
use crate::flow::inbox::context::{BoundCollector, BoundInbox, ContextArgs, Desk, Source};
use crate::flow::inbox::error::InboxError;
use crate::store::StoreError;
use crate::store::inbox::{DrainedRow, Inbox};

/// The most items one call hands out.
const MAX_LIMIT: i64 = 100;

/// Runs the command; a goal without an inbox is an answer and needs no right.
pub fn run(
    desk: &Desk<'_>,
    args: &ContextArgs,
    limit: i64,
) -> Result<(Value, Option<Activation>), InboxError> {
    let Some(located) = desk.locate(args)? else {
        return Ok((drained::disabled(None), None));
    };
    let activation = desk.require(&[Permission::InboxRead])?;
    let limit = u32::try_from(limit.clamp(1, MAX_LIMIT)).unwrap_or(1);
    let packet = match desk.read(&located)? {
        Source::Single(inbox) if !inbox.config.enabled => {
            drained::disabled(Some(inbox.config.capture_scope))
        }
        Source::Single(inbox) => json!(single(&inbox, limit)?),
        Source::Routed(collector) => json!(routed(&collector, limit)?),
    };
    Ok((packet, Some(activation)))
}

fn single(inbox: &BoundInbox, limit: u32) -> Result<Projection, InboxError> {
    let store = inbox.store()?;
    let items = store
        .pending(limit)?
        .iter()
        .map(item)
        .collect::<Result<_, _>>()?;
    let config = &inbox.config;
    Ok(Projection::new(
        config.capture_scope,
        config.guidance,
        counts(&store)?,
        items,
    ))
}

fn routed(collector: &BoundCollector, limit: u32) -> Result<RoutedProjection, InboxError> {
    let mut routes = DrainRoutes {
        total: collector.routes.len(),
        disabled: collector.disabled_keys(),
        with_pending: 0,
    };
    let mut sums = DrainCounts::default();
    let mut items: Vec<DrainedItem> = Vec::new();
    for route in collector.enabled() {
        let store = route.store()?;
        let own = counts(&store)?;
        routes.with_pending += usize::from(own.pending_count > 0);
        sums.pending_count += own.pending_count;
        sums.captured_count += own.captured_count;
        sums.processed_count += own.processed_count;
        let key = route.route_key().map_or("", |key| key.as_str());
        for row in store.pending(limit)? {
            if row.event.route_key() != key {
                return Err(InboxFault::RouteMismatch.into());
            }
            items.push(item(&row)?.with_guidance(route.config.guidance));
        }
    }
    items.sort_by(|one, other| one.order().cmp(&other.order()));
    items.truncate(limit as usize);
    Ok(RoutedProjection::new(routes, sums, items))
}

fn counts(store: &Inbox) -> Result<DrainCounts, StoreError> {
    let counts = store.counts()?;
    Ok(DrainCounts {
        pending_count: counts.pending,
        captured_count: counts.captured,
        processed_count: counts.processed,
        ..DrainCounts::default()
    })
}

fn item(row: &DrainedRow) -> Result<DrainedItem, StoreError> {
    let latest = row.latest_revision.as_deref().map(|text| {
        let body = strict::parse_object(text.as_bytes());
        body.map(Value::Object)
            .map_err(|_| StoreError::Corrupt("a revision is not readable"))
    });
    Ok(DrainedItem::show(
        &row.event,
        row.revision_count,
        latest.transpose()?,
    ))
}
