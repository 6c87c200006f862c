//! The one packet that shows message text on purpose: what is pending, for the owner's own machine.
//!
//! Chats and profiles are left out also here.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::config::{CaptureScope, ReplyGuidance};
use super::event::StoredEvent;
use crate::contract::channel::ids::RouteKey;

/// The projection of one inbox.
pub const PROJECTION_V0: &str = "lark_event_inbox_projection_v0";
/// The projection of a collector's inboxes.
pub const PROJECTION_V1: &str = "lark_event_inbox_projection_v1";

const COVERAGE_WARNING: &str = "addressed_only capture does not include unaddressed thread replies";
const INSTRUCTION: &str = "Handle each item and record its durable effect first; acknowledge it afterwards with lark-inbox ack. \
Zero pending items do not mean that every message was read.";

/// One pending message as it is shown.
#[derive(Clone, PartialEq, Serialize)]
#[serde(transparent)]
pub struct DrainedItem(Map<String, Value>);

impl DrainedItem {
    /// Shows a stored message with its newest revision.
    pub fn show(event: &StoredEvent, revision_count: u64, latest_revision: Option<Value>) -> Self {
        let mut body = event.body().clone();
        body.remove("schema_version");
        if let Some(context) = body.get_mut("reply_context").and_then(Value::as_object_mut) {
            context.remove("conversation_id");
        }
        if let Some(latest) = latest_revision {
            let kept = |name: &str| latest.get(name).cloned().unwrap_or(Value::Null);
            body.insert("revision_count".to_owned(), json!(revision_count));
            let shown = json!({"revision": kept("revision"), "content": kept("content"), "observed_at": kept("observed_at")});
            body.insert("latest_revision".to_owned(), shown);
        }
        Self(body)
    }

    /// Adds the advice of the item's own route.
    #[must_use]
    pub fn with_guidance(mut self, guidance: ReplyGuidance) -> Self {
        self.0.insert("reply_guidance".to_owned(), json!(guidance));
        self
    }

    /// Returns the order in which items are handed out.
    pub fn order(&self) -> (&str, &str) {
        let text = |name: &str| self.0.get(name).and_then(Value::as_str).unwrap_or("");
        (text("create_time"), text("message_id"))
    }
}

/// The counts of a projection.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct DrainCounts {
    pub pending_count: u64,
    pub captured_count: u64,
    pub returned_count: u64,
    pub processed_count: u64,
    pub invalid_count: u64,
}

/// What is pending in one inbox.
#[derive(Serialize)]
pub struct Projection {
    ok: bool,
    schema_version: &'static str,
    enabled: bool,
    configured: bool,
    capture_scope: CaptureScope,
    thread_complete: bool,
    reply_guidance: ReplyGuidance,
    coverage_warning: Option<&'static str>,
    #[serde(flatten)]
    counts: DrainCounts,
    items: Vec<DrainedItem>,
    local_private_content_returned: bool,
    external_reads_performed: bool,
    instruction: &'static str,
}

impl Projection {
    /// Builds the packet of one enabled inbox.
    pub fn new(
        scope: CaptureScope,
        guidance: ReplyGuidance,
        counts: DrainCounts,
        items: Vec<DrainedItem>,
    ) -> Self {
        Self {
            ok: true,
            schema_version: PROJECTION_V0,
            enabled: true,
            configured: true,
            capture_scope: scope,
            thread_complete: scope.is_thread_complete(),
            reply_guidance: guidance,
            coverage_warning: (!scope.is_thread_complete()).then_some(COVERAGE_WARNING),
            counts: DrainCounts {
                returned_count: items.len() as u64,
                ..counts
            },
            local_private_content_returned: !items.is_empty(),
            items,
            external_reads_performed: false,
            instruction: INSTRUCTION,
        }
    }
}

/// The routes of a routed projection.
#[derive(Clone, Debug, Default)]
pub struct DrainRoutes {
    pub total: usize,
    pub disabled: Vec<RouteKey>,
    pub with_pending: usize,
}

/// What is pending in all inboxes of a collector.
#[derive(Serialize)]
pub struct RoutedProjection {
    ok: bool,
    schema_version: &'static str,
    enabled: bool,
    configured: bool,
    capture_scope: CaptureScope,
    thread_complete: bool,
    route_count: usize,
    disabled_route_count: usize,
    disabled_route_keys: Vec<RouteKey>,
    routes_with_pending_count: usize,
    #[serde(flatten)]
    counts: DrainCounts,
    items: Vec<DrainedItem>,
    local_private_content_returned: bool,
    external_reads_performed: bool,
    chat_ids_returned: bool,
    route_keys_returned: bool,
    profiles_returned: bool,
    instruction: &'static str,
}

impl RoutedProjection {
    /// Builds the packet of a collector's inboxes.
    pub fn new(routes: DrainRoutes, counts: DrainCounts, items: Vec<DrainedItem>) -> Self {
        let enabled = routes.total > routes.disabled.len();
        Self {
            ok: true,
            schema_version: PROJECTION_V1,
            enabled,
            configured: true,
            capture_scope: CaptureScope::ConfiguredChatAll,
            thread_complete: enabled,
            route_count: routes.total,
            disabled_route_count: routes.disabled.len(),
            disabled_route_keys: routes.disabled,
            routes_with_pending_count: routes.with_pending,
            counts: DrainCounts {
                returned_count: items.len() as u64,
                ..counts
            },
            local_private_content_returned: !items.is_empty(),
            external_reads_performed: false,
            chat_ids_returned: false,
            route_keys_returned: !items.is_empty(),
            profiles_returned: false,
            items,
            instruction: INSTRUCTION,
        }
    }
}

/// The projection where nothing is configured, or what is configured is switched off.
pub fn disabled(configured: Option<CaptureScope>) -> Value {
    match configured {
        None => {
            json!({"ok": true, "schema_version": PROJECTION_V0, "enabled": false, "configured": false, "pending_count": 0,
            "items": [], "local_private_content_returned": false, "external_reads_performed": false})
        }
        Some(scope) => {
            json!({"ok": true, "schema_version": PROJECTION_V0, "enabled": false, "configured": true,
            "capture_scope": scope, "thread_complete": scope.is_thread_complete(), "pending_count": 0,
            "items": [], "local_private_content_returned": false, "external_reads_performed": false})
        }
    }
}
