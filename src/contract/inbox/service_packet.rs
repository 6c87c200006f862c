//! The packets of `collector-plan`, `collector-install`, `collector-status` and `collector-route-reconcile`.

use serde_json::{Map, Value, json};

use super::collector::{CALLBACK_KEY, CollectorConfig, MESSAGE_KEY};
use crate::contract::channel::ids::RouteKey;
use crate::contract::channel::outcome::ExternalWriteOutcome;

/// Why a service can or cannot be installed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PlanStatus {
    InstallReady,
    DependencyMissing,
    PinnedRuntimeRequired,
    NoEnabledRoute,
    ProfileAlreadyCollected,
}

impl PlanStatus {
    const fn as_str(self) -> &'static str {
        match self {
            Self::InstallReady => "install_ready",
            Self::DependencyMissing => "dependency_missing",
            Self::PinnedRuntimeRequired => "pinned_runtime_required",
            Self::NoEnabledRoute => "no_enabled_route",
            Self::ProfileAlreadyCollected => "profile_already_collected",
        }
    }

    /// Tells whether the plan itself holds.
    pub const fn is_ok(self) -> bool {
        matches!(self, Self::InstallReady | Self::DependencyMissing)
    }
}

/// What a plan says.
#[derive(Clone, Debug)]
pub struct Plan<'a> {
    pub status: PlanStatus,
    pub config: &'a CollectorConfig,
    pub profile_source: Option<Value>,
    pub disabled_routes: usize,
    pub enabled_routes: usize,
    pub program_available: bool,
    pub service_digest: String,
}

/// The code of a program that is too old, in every command that needs it.
pub const DEPENDENCY_INCOMPATIBLE: &str = "dependency_incompatible";
const INSTALL_HINT: &str =
    "Install lark-cli 1.0.69 or newer and make sure that the service finds it on its search path.";

impl Plan<'_> {
    fn to_map(&self) -> Map<String, Value> {
        let config = self.config;
        let packet = json!({
            "ok": self.status.is_ok(),
            "schema_version": "lark_event_collector_plan_v0",
            "enabled": config.enabled,
            "status": self.status.as_str(),
            "disabled_route_count": self.disabled_routes,
            "service_name": config.service_name,
            "supervisor": config.supervisor,
            "event_key": MESSAGE_KEY,
            "identity": "bot",
            "profile_bound": self.profile_source.is_some(),
            "profile_source": self.profile_source,
            "profile_returned": false,
            "capture_scope": "configured_chat_all",
            "thread_complete": self.enabled_routes > 0,
            "route_count": config.routes.len(),
            "multi_chat_routing": config.routes.len() > 1,
            "operation_callbacks_enabled": config.operation_callbacks,
            "operation_callback_event_key": config.operation_callbacks.then_some(CALLBACK_KEY),
            "operation_callback_console_configuration_preflighted": false,
            "lark_cli_available": self.program_available,
            "install_hint": (!self.program_available).then_some(INSTALL_HINT),
            "service_digest": self.service_digest,
            "local_paths_returned": false,
            "chat_id_returned": false,
            "credentials_returned": false,
            "external_writes_performed": false,
            "external_write_outcome": ExternalWriteOutcome::None,
        });
        match packet {
            Value::Object(map) => map,
            _ => Map::new(),
        }
    }

    /// Returns the plan.
    pub fn packet(&self) -> Value {
        Value::Object(self.to_map())
    }

    /// Returns the result of an install; none when the plan itself does not hold.
    pub fn install_packet(&self, execute: bool, done: Option<InstallStatus>) -> Value {
        let mut packet = self.to_map();
        packet.insert(
            "schema_version".into(),
            json!("lark_event_collector_install_v0"),
        );
        packet.insert("execute".into(), json!(execute));
        let Some(done) = done else {
            packet.insert("ok".into(), json!(false));
            packet.insert("write_performed".into(), json!(false));
            return Value::Object(packet);
        };
        packet.insert(
            "ok".into(),
            json!(matches!(
                done,
                InstallStatus::PreviewReady | InstallStatus::Installed
            )),
        );
        packet.insert("status".into(), json!(done.as_str()));
        let wrote = matches!(
            done,
            InstallStatus::Installed | InstallStatus::SupervisorStartFailed
        );
        match done {
            InstallStatus::PreviewReady => {
                drop(packet.insert("would_write_service".into(), json!(true)))
            }
            _ => drop(packet.insert("write_performed".into(), json!(wrote))),
        }
        if wrote {
            packet.insert("supervisor_start_performed".into(), json!(true));
            packet.insert(
                "supervisor_start_succeeded".into(),
                json!(done == InstallStatus::Installed),
            );
        }
        Value::Object(packet)
    }
}

/// How an install ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InstallStatus {
    PreviewReady,
    DependencyIncompatible,
    Installed,
    SupervisorStartFailed,
}

impl InstallStatus {
    const fn as_str(self) -> &'static str {
        match self {
            Self::PreviewReady => "preview_ready",
            Self::DependencyIncompatible => DEPENDENCY_INCOMPATIBLE,
            Self::Installed => "installed",
            Self::SupervisorStartFailed => "supervisor_start_failed",
        }
    }
}

/// How a route change ended.
#[derive(Clone, Debug)]
pub struct RouteReceipt<'a> {
    pub status: &'static str,
    pub route_key: &'a RouteKey,
    pub count_before: usize,
    pub count_after: usize,
    pub digest_before: String,
    pub digest_after: String,
}

impl RouteReceipt<'_> {
    /// Returns the receipt; a configuration that was read back is not a collector that reloaded it.
    pub fn packet(&self) -> Value {
        let is_planned = self.status == "preview_ready";
        json!({
            "ok": true,
            "schema_version": "lark_event_collector_route_reconcile_v0",
            "status": self.status,
            "route_key": self.route_key,
            "route_count_before": self.count_before,
            "route_count_after": self.count_after,
            "config_digest_before": self.digest_before,
            "config_digest_after": self.digest_after,
            "write_performed": self.status == "applied",
            "runtime_reload_required": true,
            "runtime_reload_performed": false,
            "runtime_readback_verified": false,
            "chat_id_returned": false,
            "event_inbox_config_returned": false,
            "local_path_returned": false,
            "external_write_outcome": ExternalWriteOutcome::None,
            "readback": {"verified": !is_planned, "route_state": if is_planned { "planned" } else { "present" }},
        })
    }
}
