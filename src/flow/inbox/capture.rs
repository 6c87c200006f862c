//! One live event: routed, looked at, stored once.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::Value;

use crate::contract::channel::binding::Connection;
use crate::contract::channel::ids::ProfileName;
use crate::contract::inbox::live_event::LiveMessage;
use crate::contract::inbox::run_packet::RunCounts;
use crate::contract::time::Timestamp;
use crate::flow::inbox::connection::Connections;
use crate::flow::inbox::context::{BoundCollector, BoundInbox};
use crate::flow::inbox::damage::Damage;
use crate::flow::inbox::error::InboxError;
use crate::flow::inbox::ingest::store_batch;
use crate::flow::inbox::live_context::{Looked, Lookup, OwnApp};
use crate::kernel::inbox::heard::Heard;
use crate::kernel::inbox::ingest;
use crate::port::channel::ChannelProvider;
use crate::store::inbox::{Exporter, Inbox};

/// A message is this much older than its arrival at most, in seconds.
const LATE: i64 = 120;

/// Stores what the stream brings.
pub(super) struct Capture<'a> {
    routes: Vec<(&'a BoundInbox, Inbox)>,
    damage: &'a Damage,
    connections: Connections,
    channel: &'a dyn ChannelProvider,
    profile: ProfileName,
    own: OwnApp,
    counts: RunCounts,
    touched: BTreeSet<usize>,
}

impl<'a> Capture<'a> {
    pub(super) fn new(
        (collector, damage): (&'a BoundCollector, &'a Damage),
        connections: Connections,
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
            connections,
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
        (live, at): (LiveMessage, Timestamp),
        pause: &dyn Fn(Duration),
    ) -> Result<bool, InboxError> {
        let found = self.routes.iter().position(|(route, _)| {
            let own = route.route.as_ref().map(|route| &route.chat);
            own == Some(&live.chat)
        });
        let Some(index) = found else { return Ok(false) };
        match self.store(index, live, pause) {
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
        live: LiveMessage,
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
        let connections = self.connections.of_chat(&configured.chat);
        // A message that is stored already needs no second look: the first copy wins.
        if let Some(id) = live.message.as_ref().map(|id| id.as_str())
            && store.stored(&[id])? == [true]
            && connections
                .as_ref()
                .is_ok_and(|of| self.connections.hold(of, id).unwrap_or(false))
        {
            return Ok(true);
        }
        let looked = lookup.complete(live, &route.config, &mut self.own);
        let heard = match looked {
            Looked::Own => {
                self.counts.self_message_skipped_count += 1;
                return Ok(true);
            }
            Looked::Message(heard) => heard,
        };
        let Some(event) = heard.ingest_form() else {
            return Ok(true);
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
        self.deliver(connections, (&heard, &event));
        Ok(true)
    }

    /// Trouble with a connection is counted; the message is safe in the inbox of its route.
    fn deliver(
        &mut self,
        connections: Result<Vec<Connection>, InboxError>,
        event: (&Heard, &Value),
    ) {
        let delivered = connections.and_then(|connections| {
            if connections.is_empty() {
                return Ok(false);
            }
            let own = self.own.get(self.channel, &self.profile).cloned();
            self.connections.deliver(connections, event, own.as_ref())
        });
        match delivered {
            Ok(is_new) => self.counts.connection_delivery_count += u64::from(is_new),
            Err(_) => self.counts.connection_delivery_failure_count += 1,
        }
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
