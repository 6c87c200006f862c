//! One live event: routed, looked at, stored once.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use crate::contract::channel::ids::ProfileName;
use crate::contract::inbox::run_packet::RunCounts;
use crate::contract::time::Timestamp;
use crate::flow::inbox::context::{BoundCollector, BoundInbox};
use crate::flow::inbox::damage::Damage;
use crate::flow::inbox::error::InboxError;
use crate::flow::inbox::ingest::store_batch;
use crate::flow::inbox::live_context::{Looked, Lookup, OwnApp};
use crate::kernel::inbox::ingest;
use crate::port::channel::ChannelProvider;
use crate::store::inbox::{Exporter, Inbox};

/// A message is this much older than its arrival at most, in seconds.
const LATE: i64 = 120;

/// Stores what the stream brings.
pub(super) struct Capture<'a> {
    routes: Vec<(&'a BoundInbox, Inbox)>,
    damage: &'a Damage,
    channel: &'a dyn ChannelProvider,
    profile: ProfileName,
    own: OwnApp,
    counts: RunCounts,
    touched: BTreeSet<usize>,
}

impl<'a> Capture<'a> {
    pub(super) fn new(
        (collector, damage): (&'a BoundCollector, &'a Damage),
        channel: &'a dyn ChannelProvider,
        profile: ProfileName,
    ) -> Result<Self, InboxError> {
        let routes = collector
            .enabled()
            .map(|route| Ok((route, route.store()?)))
            .collect::<Result<Vec<_>, InboxError>>()?;
        Ok(Self {
            routes,
            damage,
            channel,
            profile,
            own: OwnApp::default(),
            counts: RunCounts::default(),
            touched: BTreeSet::new(),
        })
    }

    /// Takes one event; true when one of our routes was spoken to. A route whose inbox is damaged holds up no other: its event is counted
    /// and lies in a known hole.
    pub(super) fn take(
        &mut self,
        (event, at): (Value, Timestamp),
        pause: &dyn Fn(Duration),
    ) -> Result<bool, InboxError> {
        let chat = event["chat_id"].as_str();
        let found = self.routes.iter().position(|(route, _)| {
            let own = route.route.as_ref().map(|route| route.chat.as_str());
            own.is_some() && own == chat
        });
        let Some(index) = found else { return Ok(false) };
        match self.store(index, event, pause) {
            Err(InboxError::Store(error)) => {
                let key = self.routes[index]
                    .0
                    .route_key()
                    .map_or("", |key| key.as_str());
                self.damage
                    .note(key, at.plus_seconds(-LATE).unwrap_or(at), error)?;
                self.damage.count(key);
                Ok(true)
            }
            other => other,
        }
    }

    fn store(
        &mut self,
        index: usize,
        event: Value,
        pause: &dyn Fn(Duration),
    ) -> Result<bool, InboxError> {
        let (route, store) = &self.routes[index];
        let Some(configured) = route.route.as_ref() else {
            return Ok(false);
        };
        let lookup = Lookup {
            channel: self.channel,
            profile: &self.profile,
            chat: &configured.chat,
            pause,
        };
        let looked = match event["message_id"].as_str() {
            // A message that is stored already needs no second look: the first copy wins.
            Some(id) if store.stored(&[id])? == [true] => return Ok(true),
            _ => lookup.complete(event, &route.config, &mut self.own),
        };
        let event = match looked {
            Looked::Own => {
                self.counts.self_message_skipped_count += 1;
                return Ok(true);
            }
            Looked::Event(event) => event,
        };
        let Ok(decided) = ingest::event(&event, route.ingest_into()) else {
            return Ok(true);
        };
        let body = decided.body();
        self.counts.reply_context_verified_count +=
            u64::from(body["reply_context_verified"] == Value::Bool(true));
        self.counts.reply_to_bot_count += u64::from(body["reply_to_bot"] == Value::Bool(true));
        let news = store_batch(store, &[decided], &mut Exporter::default())?;
        if news == [true] {
            self.counts.captured_count += 1;
            self.touched.insert(index);
        }
        Ok(true)
    }

    pub(super) fn counts(&self) -> RunCounts {
        self.counts
    }

    pub(super) fn touched_routes(&self) -> usize {
        self.touched.len()
    }

    pub(super) fn own_app(&self) -> &OwnApp {
        &self.own
    }
}
