//! `lark-inbox collector-route-reconcile`: adds one route, and nothing else.
//!
//! 1. the whole configuration, valid  2. the candidate and its inbox  3. compared under the lock: present already, bound otherwise, or new
//! 4. preview returns here  5. replaced atomically  6. read back: exact binding, exact digest; otherwise the old bytes return

use std::path::Path;

use serde_json::{Value, json};

use crate::contract::channel::ids::{ChatId, RouteKey};
use crate::contract::digest;
use crate::contract::error::ContractError;
use crate::contract::extension::{Activation, Permission};
use crate::contract::inbox::collector::{CollectorConfig, MAX_ROUTES, PathRef, RouteRef};
use crate::contract::inbox::fault::InboxFault;
use crate::contract::inbox::service_packet::RouteReceipt;
use crate::contract::inbox::words;
use crate::flow::Mode;
use crate::flow::inbox::ack::claim;
use crate::flow::inbox::context::{
    BoundCollector, ContextArgs, Desk, Located, Source, locate_in, parse_inbox, read_document,
};
use crate::flow::inbox::error::InboxError;
use crate::store::document::collector_config::CollectorConfigFile;

/// The route to add, as it was given.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    pub route_key: &'a str,
    pub chat_id: &'a str,
    pub config: &'a str,
}

/// Runs the command.
pub fn run(
    desk: &Desk<'_>,
    args: &ContextArgs,
    candidate: &Candidate<'_>,
    mode: Mode,
) -> Result<(Value, Activation), InboxError> {
    let located = desk.locate(args)?.ok_or(InboxFault::NotConfigured)?;
    let activation = desk.require(&[Permission::CollectorManage])?;
    let route = parse(candidate)?;
    let file = CollectorConfigFile::at(&located.config);
    let now = desk.now.to_string();
    let held = match mode {
        Mode::Preview => None,
        Mode::Execute => Some(file.lock(&claim(words::RECONCILE_OPERATION, &now))?),
    };
    let before = collector(desk, &located)?;
    let receipt = |status, after: &Value| {
        RouteReceipt {
            status,
            route_key: &route.key,
            count_before: before.config.routes.len(),
            count_after: route_count(after),
            digest_before: config_digest(&before.document),
            digest_after: config_digest(after),
        }
        .packet()
    };
    if is_present(&before, &route)? {
        return Ok((receipt("already_applied", &before.document), activation));
    }
    let after = with_route(desk, &located, &before, &route)?;
    let Some(held) = held else {
        return Ok((receipt("preview_ready", &after), activation));
    };
    let bytes = file.bytes().map_err(|_| InboxFault::ConfigUnreadable)?;
    file.replace(&held, &after)
        .map_err(crate::store::StoreError::write)?;
    let read = collector(desk, &located);
    let is_exact = read.is_ok_and(|read| {
        config_digest(&read.document) == config_digest(&after)
            && read.config.routes.contains(&route)
    });
    if !is_exact {
        return Err(match file.restore(&held, &bytes) {
            true => InboxFault::ReconcileRolledBack.into(),
            false => InboxFault::ReconcileRollbackUnverified.into(),
        });
    }
    Ok((receipt("applied", &after), activation))
}

fn parse(candidate: &Candidate<'_>) -> Result<RouteRef, InboxFault> {
    let wrong =
        |at: &str, reason: &'static str| InboxFault::Collector(ContractError::invalid(at, reason));
    let path = candidate.config;
    let is_relative = !path.is_empty()
        && !path.starts_with('/')
        && path.split('/').all(|part| part != "..")
        && !path.contains('\\');
    if !is_relative {
        return Err(wrong(
            "event_inbox_config",
            "must be a relative path inside the project",
        ));
    }
    Ok(RouteRef {
        key: RouteKey::new(candidate.route_key)
            .ok_or_else(|| wrong("route_key", "must be a route key"))?,
        chat: ChatId::new(candidate.chat_id)
            .ok_or_else(|| wrong("chat_id", "must be a chat id"))?,
        config: PathRef(path.to_owned()),
    })
}

fn collector(desk: &Desk<'_>, located: &Located) -> Result<BoundCollector, InboxError> {
    match desk.read(located)? {
        Source::Routed(collector) if collector.config.has_routes => Ok(*collector),
        Source::Routed(_) => Err(InboxFault::ReconcileVersion.into()),
        Source::Single(_) => Err(InboxFault::CollectorConfigRequired.into()),
    }
}

fn is_present(collector: &BoundCollector, route: &RouteRef) -> Result<bool, InboxFault> {
    let routes = &collector.config.routes;
    if routes.contains(route) {
        return Ok(true);
    }
    if routes.iter().any(|known| known.key == route.key) {
        return Err(InboxFault::ReconcileKey);
    }
    if routes.iter().any(|known| known.chat == route.chat) {
        return Err(InboxFault::ReconcileChat);
    }
    if routes.iter().any(|known| known.config == route.config) {
        return Err(InboxFault::ReconcileConfig);
    }
    Ok(false)
}

/// Builds the configuration with the route and proves that it is valid as a whole.
fn with_route(
    desk: &Desk<'_>,
    located: &Located,
    before: &BoundCollector,
    route: &RouteRef,
) -> Result<Value, InboxError> {
    let inbox = parse_inbox(&read_document(
        &locate_in(&located.project, Path::new(&route.config.0))?.config,
    )?)?;
    if !inbox.enabled {
        return Err(InboxFault::CollectorRule("a new route needs an enabled inbox config").into());
    }
    if !inbox.capture_scope.is_thread_complete() {
        return Err(InboxFault::CollectorRule(
            "every enabled route needs capture_scope configured_chat_all",
        )
        .into());
    }
    let bound = before.profile.as_ref().map(|bound| &bound.profile);
    if let Some(reply) = &inbox.reply {
        if bound.is_some_and(|profile| profile != &reply.profile) {
            return Err(InboxFault::CollectorRule(
                "the profile must equal the sender profile of every route",
            )
            .into());
        }
        if reply.chat != route.chat {
            return Err(InboxFault::CollectorRule(
                "the chat of a route must equal the reply chat of its inbox",
            )
            .into());
        }
    }
    if before.config.routes.len() >= MAX_ROUTES {
        return Err(InboxFault::ReconcileFull.into());
    }
    let mut document = before.document.clone();
    let entry = json!({"route_key": route.key, "chat_id": route.chat.as_str(), "event_inbox_config": route.config.0});
    if let Some(routes) = document.get_mut("routes").and_then(Value::as_array_mut) {
        routes.push(entry);
    }
    CollectorConfig::parse(&document).map_err(InboxFault::Collector)?;
    desk.bind_document(located, document.clone())?;
    Ok(document)
}

fn route_count(document: &Value) -> usize {
    document
        .get("routes")
        .and_then(Value::as_array)
        .map_or(0, Vec::len)
}

fn config_digest(document: &Value) -> String {
    digest::digest(document)
        .map(|digest| digest.short(16))
        .unwrap_or_default()
}
