//! A live event on its way into the inbox of the one connection it belongs to, after the inbox of its route.
//!
//! 1. the bindings of the project, with targets filled in  2. enabled asynchronous connections of active goals whose application is this
//!    profile's and whose chat is this route's  3. the inbound decision  4. stored there too, once  (`docs/spec/lark-inbox.md` 8.2, step 6)
//!
//! Trouble here is counted and never loses what the route stored.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::contract::channel::binding::{self, Connection, Ingress};
use crate::contract::channel::ids::{AppId, ChatId};
use crate::contract::goal::GoalStatus;
use crate::failpoint;
use crate::failpoint::Point;
use crate::flow::inbox::context::{BoundInbox, bind_inbox, locate_in, parse_inbox, read_document};
use crate::flow::inbox::error::InboxError;
use crate::flow::inbox::ingest::store_batch;
use crate::kernel::channel::inbound::{self, Inbound};
use crate::kernel::inbox::heard::Heard;
use crate::kernel::inbox::ingest;
use crate::store::StoreError;
use crate::store::document::binding as bindings;
use crate::store::document::registry::Registry;
use crate::store::document::target::TargetStore;
use crate::store::inbox::{Exporter, Inbox};

/// The connections of a project.
pub(super) struct Connections {
    pub(super) project: PathBuf,
    pub(super) runtime_root: PathBuf,
}

impl Connections {
    /// The connections of a chat that a collector serves; whose application they need is looked at later.
    pub(super) fn of_chat(&self, chat: &ChatId) -> Result<Vec<Connection>, InboxError> {
        let mut all = bindings::connections(&self.project)?;
        all.retain(is_served);
        if all.is_empty() {
            return Ok(all);
        }
        let mut targets = None;
        for connection in &mut all {
            let Some(name) = connection.target.clone() else {
                continue;
            };
            let known = match targets.take() {
                Some(known) => known,
                None => self.targets()?,
            };
            let is_usable = known
                .get(&name)
                .is_some_and(|target| binding::resolve(connection, target));
            connection.enabled &= is_usable;
            targets = Some(known);
        }
        all.retain(|connection| connection.enabled && connection.chat.as_ref() == Some(chat));
        if all.is_empty() {
            return Ok(all);
        }
        let registry =
            Registry::read(&self.project.join(".loopx/registry.json")).map_err(|_| UNREADABLE)?;
        let goals = registry.goals().map_err(|_| UNREADABLE)?;
        all.retain(|connection| {
            let goal = goals.iter().find(|goal| goal.id == connection.goal);
            goal.is_some_and(|goal| {
                goal.status == GoalStatus::Active
                    && connection
                        .agent
                        .as_ref()
                        .is_some_and(|agent| goal.has_agent(agent))
            })
        });
        Ok(all)
    }

    fn targets(&self) -> Result<serde_json::Map<String, Value>, InboxError> {
        let path = self.runtime_root.join("goal-channel-targets.json");
        Ok(TargetStore::at(path).read()?)
    }

    /// Says whether every one of these inboxes holds a message.
    pub(super) fn hold(&self, connections: &[Connection], id: &str) -> Result<bool, InboxError> {
        for connection in connections {
            let (_, store) = self.inbox(connection)?;
            if store.stored(&[id])? != [true] {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Stores an event in the inbox of the connection it belongs to; true when it is new there.
    pub(super) fn deliver(
        &self,
        mut connections: Vec<Connection>,
        (heard, event): (&Heard, &Value),
        own: Option<&AppId>,
    ) -> Result<bool, InboxError> {
        connections.retain(|connection| own.is_some() && connection.app.as_ref() == own);
        let Inbound::Matched(index) = inbound::decide(heard, &connections) else {
            return Ok(false);
        };
        let (inbox, store) = self.inbox(&connections[index])?;
        let Ok(decided) = ingest::event(event, inbox.ingest_into()) else {
            return Ok(false);
        };
        let news = store_batch(&store, &[decided], &mut Exporter::default())?;
        failpoint!(Point::ConnectionEventCommitted);
        Ok(news == [true])
    }

    fn inbox(&self, connection: &Connection) -> Result<(BoundInbox, Inbox), InboxError> {
        let routing = connection.routing.as_ref().ok_or(UNREADABLE)?;
        let config = routing.inbox_config.as_ref().ok_or(UNREADABLE)?;
        let located = locate_in(&self.project, Path::new(&config.0))?;
        let config = parse_inbox(&read_document(&located.config)?)?;
        if config.capture_scope != routing.scope {
            return Err(UNREADABLE.into());
        }
        let inbox = bind_inbox(&self.project, config, None)?;
        let store = inbox.store()?;
        Ok((inbox, store))
    }
}

const UNREADABLE: StoreError = StoreError::Corrupt("a connection of the project is not valid");

fn is_served(connection: &Connection) -> bool {
    let is_async = connection
        .routing
        .as_ref()
        .is_some_and(|routing| routing.ingress == Ingress::AsyncInbox);
    connection.enabled && is_async
}
