//! `lark-inbox collector-status`: what is installed, what runs, and whether events really arrive.
//!
//! Three facts that are never merged: the bot signs in, the local consumer is registered, events arrive. Only the last is evidence of the
//! connection (`docs/spec/lark-inbox.md` 8.6 and 14).

use serde_json::{Value, json};

use crate::contract::extension::{Activation, Permission};
use crate::contract::inbox::listener::ListenerStatus;
use crate::contract::inbox::run_packet::SeenStatus;
use crate::contract::inbox::words;
use crate::contract::time::Timestamp;
use crate::flow::inbox::context::{BoundCollector, BoundInbox, ContextArgs, Desk, Located};
use crate::flow::inbox::damage;
use crate::flow::inbox::error::{InboxError, dependency};
use crate::flow::inbox::ports::Providers;
use crate::flow::inbox::service::installed_path;
use crate::kernel::inbox::gaps;
use crate::port::supervisor::ServiceSupervisor;
use crate::port::tools::TooOld;
use crate::store::StoreError;
use crate::store::document::collector_state::CollectorState;
use crate::store::document::history_cursor::HistoryCursorFile;
use crate::workspace::scratch;

/// Whether the bus is sound, and which program could not be asked.
type Probed = (Option<bool>, Option<TooOld>);

/// Runs the command.
pub fn run(
    desk: &Desk<'_>,
    (providers, supervisor): (&dyn Providers, &dyn ServiceSupervisor),
    args: &ContextArgs,
    probe_bus: bool,
) -> Result<(Value, Activation), InboxError> {
    let (located, activation, collector) =
        desk.open_collector(args, &[Permission::CollectorManage])?;
    let config = &collector.config;
    let state = CollectorState::of_project(&located.project);
    let seen = state.read_status().unwrap_or_default().unwrap_or_default();
    let installed = installed_path(&collector).exists();
    let active = installed && supervisor.is_active(config.supervisor, &config.service_name);
    let program = providers.locate(&config.program).is_some();
    let (bus, old) = probe(providers, &collector, probe_bus)?;
    let evidence = Evidence::of(&collector, &seen)?;
    let is_stale = seen.is_stale(desk.now);
    // A consumer that was never ready says nothing yet, least of all that its source is healthy.
    let is_starting = seen.running && seen.stream_status.as_deref() == Some("starting");
    let says_unhealthy = !is_stale && (seen.source_healthy == Some(false) || is_starting);
    let healthy = config.enabled
        && program
        && installed
        && active
        && bus != Some(false)
        && !says_unhealthy
        && evidence.damaged.is_empty();
    let mut packet = json!({
        "ok": true,
        "schema_version": words::COLLECTOR_STATUS,
        "enabled": config.enabled,
        "status": if healthy { "healthy" } else { "attention_required" },
        "healthy": healthy,
        "service_name": config.service_name,
        "supervisor": config.supervisor,
        "profile_bound": collector.profile.is_some(),
        "profile_source": collector.profile.as_ref().map(|bound| bound.source),
        "profile_returned": false,
        "installed": installed,
        "active": active,
        words::PROGRAM_AVAILABLE: program,
        "event_bus_probe_performed": probe_bus,
        "event_bus_healthy": bus,
    });
    if let Some(old) = &old {
        packet["dependency"] = dependency(old);
    }
    add(&mut packet, evidence.fields(&collector));
    add(&mut packet, source_fields(&seen, is_stale));
    packet["history_gap"] = history_gap(&located, &collector, desk.now)?;
    add(
        &mut packet,
        callback_fields(&state, config.operation_callbacks, desk.now),
    );
    add(&mut packet, boundary(evidence.routes > 0));
    Ok((packet, activation))
}

/// What the packet holds back.
fn boundary(is_thread_complete: bool) -> Value {
    json!({
        "thread_complete": is_thread_complete,
        "local_paths_returned": false,
        "chat_id_returned": false,
        "credentials_returned": false,
        "private_content_returned": false,
        "external_writes_performed": false,
        "external_write_outcome": "none",
    })
}

fn add(packet: &mut Value, fields: Value) {
    if let (Value::Object(packet), Value::Object(fields)) = (packet, fields) {
        packet.extend(fields);
    }
}

/// Asks the bus whether it is sound. One whose program is too old to be asked is not.
fn probe(
    providers: &dyn Providers,
    collector: &BoundCollector,
    is_wanted: bool,
) -> Result<Probed, InboxError> {
    if !is_wanted {
        return Ok((None, None));
    }
    let Some(profile) = &collector.profile else {
        return Ok((Some(false), None));
    };
    let folder = scratch::folder().map_err(StoreError::write)?;
    let program = Some(collector.config.program.clone());
    let folder = folder.path().to_path_buf();
    Ok(
        match providers.probe(program, profile.profile.clone(), folder) {
            Ok(sound) => (Some(sound), None),
            Err(old) => (Some(false), Some(old)),
        },
    )
}

/// What the inboxes prove.
struct Evidence {
    captured: u64,
    routes: usize,
    with_evidence: usize,
    /// Routes whose inbox cannot be read; what they missed is what the collector says.
    damaged: Vec<Value>,
}

impl Evidence {
    fn of(collector: &BoundCollector, seen: &SeenStatus) -> Result<Self, InboxError> {
        let mut evidence = Self {
            captured: 0,
            routes: 0,
            with_evidence: 0,
            damaged: Vec::new(),
        };
        for route in collector.enabled() {
            evidence.routes += 1;
            let captured = match look(route) {
                Ok(captured) => captured,
                Err(error) => {
                    let code = damage::code(&error).ok_or(error)?;
                    evidence.damaged.push(finding(route, code, seen));
                    continue;
                }
            };
            evidence.captured += captured;
            evidence.with_evidence += usize::from(captured > 0);
        }
        Ok(evidence)
    }

    fn fields(&self, collector: &BoundCollector) -> Value {
        json!({
            "captured_event_count": self.captured,
            "real_event_evidence_present": self.captured > 0,
            "route_count": collector.routes.len(),
            "disabled_route_count": collector.disabled_keys().len(),
            "damaged_route_count": self.damaged.len(),
            "damaged_routes": self.damaged,
            "multi_chat_routing": collector.routes.len() > 1,
            "routes_with_event_evidence_count": self.with_evidence,
            "all_routes_real_event_evidence_present": self.routes > 0 && self.with_evidence == self.routes,
        })
    }
}

/// Reads what the status of a route needs: its counts and its holes.
fn look(route: &BoundInbox) -> Result<u64, StoreError> {
    // A configured store that is switched off is no enabled route.
    let Ok(store) = route.store() else {
        return Ok(0);
    };
    store.gaps(route.route_key().map_or("", |key| key.as_str()))?;
    Ok(store.counts()?.captured)
}

fn finding(route: &BoundInbox, code: &str, seen: &SeenStatus) -> Value {
    let key = route.route_key().map_or("", |key| key.as_str());
    let missed = seen.damaged.iter().find(|missed| missed.route_key == key);
    json!({
        "route_key": key,
        "error_code": code,
        "unstored_since": missed.map(|missed| missed.unstored_since),
        "unstored_event_count": missed.map_or(0, |missed| missed.unstored_event_count),
    })
}

fn source_fields(seen: &SeenStatus, is_stale: bool) -> Value {
    json!({
        "source_healthy": seen.source_healthy,
        "source_stream_status": seen.stream_status,
        "source_error_code": seen.error_code,
        "source_last_event_at": seen.last_event_at,
        "source_status_stale": is_stale,
    })
}

fn callback_fields(state: &CollectorState, enabled: bool, now: Timestamp) -> Value {
    // The file is a report: one that cannot be read says nothing, and stops no status.
    let listener = state
        .read_listener()
        .unwrap_or_default()
        .unwrap_or_default();
    let listener = match listener.is_null() {
        true => listener,
        false => shown(&listener, now),
    };
    let flag = |name: &str| listener.get(name) == Some(&Value::Bool(true));
    let kept = |name: &str| listener.get(name).cloned().unwrap_or(Value::Null);
    let qualification = match (
        enabled,
        flag("listener_ready"),
        flag("callback_delivery_verified"),
    ) {
        (false, _, _) => "disabled",
        (true, false, _) => "listener_unready",
        (true, true, false) => "listener_ready_unqualified",
        (true, true, true) => "callback_qualified",
    };
    json!({
        "operation_callbacks_enabled": enabled,
        "operation_callback_listener_active": flag("listener_active"),
        "operation_callback_listener_ready": flag("listener_ready"),
        "operation_callback_delivery_verified": flag("callback_delivery_verified"),
        "operation_callback_qualification_state": qualification,
        "operation_callback_verified_count": listener.get("verified_callback_count").and_then(Value::as_u64).unwrap_or(0),
        "operation_callback_last_evidence_at": kept("last_verified_callback_at"),
        "operation_callback_last_failure_code": kept("last_failure_code"),
        "operation_callback_last_failure_stage": kept("last_failure_stage"),
        "operation_callback_last_failure_event_shape": kept("last_failure_event_shape"),
        "operation_callback_console_configuration_preflighted": false,
    })
}

/// The file as this version writes it: nothing of another hand is shown.
fn shown(listener: &Value, now: Timestamp) -> Value {
    let mut kept = ListenerStatus::resumed(Some(listener));
    kept.active = listener["listener_active"] == Value::Bool(true);
    kept.ready = listener["listener_ready"] == Value::Bool(true);
    kept.to_value(now)
}

/// The possible holes of the enabled routes, and the one line that closes the oldest.
fn history_gap(
    located: &Located,
    collector: &BoundCollector,
    now: Timestamp,
) -> Result<Value, InboxError> {
    let mut all = Vec::new();
    let mut routes = 0;
    for route in collector.enabled() {
        let Some(key) = route.route_key() else {
            continue;
        };
        // A damaged inbox is a finding of its own.
        let rows = match route.store()?.gaps(key.as_str()) {
            Err(error) if damage::code(&error).is_some() => continue,
            rows => rows?,
        };
        routes += usize::from(!rows.is_empty());
        all.extend(rows.into_iter().map(|row| (route, row)));
    }
    all.sort_by_key(|(_, row)| row.started_at);
    let until = match all.iter().any(|(_, row)| row.ended_at.is_none()) {
        true => None,
        false => all.iter().filter_map(|(_, row)| row.ended_at).max(),
    };
    let next = match all.first() {
        Some((route, row)) => next_command(located, route, row.started_at, now),
        None => None,
    };
    Ok(json!({
        "open_count": all.len(),
        "since": all.first().map(|(_, row)| row.started_at),
        "until": until,
        "routes_affected": routes,
        "next_command": next,
    }))
}

fn next_command(
    located: &Located,
    route: &BoundInbox,
    since: Timestamp,
    now: Timestamp,
) -> Option<String> {
    let key = route.route_key()?;
    let cursor = HistoryCursorFile::of_route(&located.project, key)
        .read()
        .ok()?;
    let start = gaps::catch_up_start(cursor.as_ref(), since, now)?;
    Some(format!(
        "{} --route-key {key} --start {start} --execute",
        words::CATCH_UP_COMMAND
    ))
}
