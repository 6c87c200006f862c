//! `goal-channel target add` and `target list`: named chats of this machine. No provider is called.

use std::path::PathBuf;

use serde_json::{Value, json};

use crate::contract::channel::packet::ChannelPacket;
use crate::contract::channel::target::{self, TargetRequest};
use crate::contract::extension::{Activation, Permission};
use crate::contract::time::Timestamp;
use crate::flow::Mode;
use crate::flow::extension_gate::{Gate, require};
use crate::flow::place::Place;
use crate::flow::store_code::store_code;
use crate::store::StoreError;
use crate::store::document::extension_state::ExtensionStateFile;
use crate::store::document::target::TargetStore;
use crate::store::lock::{Claim, Policy};

/// Where the targets of a command are.
pub struct TargetDesk<'a> {
    pub place: &'a Place,
    /// Another file than the usual one.
    pub path: Option<PathBuf>,
    pub now: Timestamp,
}

const UNAVAILABLE: &str =
    "The channel extension is not available; run the named command and try again.";

impl TargetDesk<'_> {
    fn store(&self) -> TargetStore {
        let usual = || self.place.runtime_root.join("goal-channel-targets.json");
        TargetStore::at(self.path.clone().unwrap_or_else(usual))
    }

    fn require(&self, operation: &'static str, mode: Mode) -> Result<Activation, Value> {
        let file = ExtensionStateFile::of_runtime(&self.place.runtime_root);
        require(&file, &[Permission::GoalChannelManage]).map_err(|gate| {
            let recovery_command = match gate {
                Gate::Unavailable(refusal) => Some(refusal.recovery_command),
                Gate::Store(_) => None,
            };
            let packet = ChannelPacket::new(operation, mode.is_execute(), "blocked", UNAVAILABLE)
                .blocked("extension_unavailable");
            ChannelPacket {
                recovery_command,
                ..packet
            }
            .packet()
        })
    }

    /// Adds one target, or says that it is there.
    pub fn add(&self, request: &TargetRequest<'_>, mode: Mode) -> Value {
        let activation = match self.require("target_add", mode) {
            Ok(activation) => activation,
            Err(packet) => return packet,
        };
        let packet =
            |status, summary| ChannelPacket::new("target_add", mode.is_execute(), status, summary);
        let Ok(built) = target::build(request) else {
            return packet(
                "blocked",
                "The target is not valid; check name, chat, identity and application.",
            )
            .blocked("invalid_configuration")
            .packet();
        };
        match self.put(request.name, &built, mode) {
            Ok(put) => {
                let status = match (mode, put.changed) {
                    (Mode::Preview, _) => "preview_ready",
                    (Mode::Execute, true) => "configured",
                    (Mode::Execute, false) => "already_configured",
                };
                if !put.verified {
                    return packet(
                        "failed",
                        "The target was written and read back differently.",
                    )
                    .blocked("readback_mismatch")
                    .packet();
                }
                let details = json!({"target_name": request.name, "changed": put.changed, "target_count": put.count});
                ChannelPacket {
                    readback_verified: mode.is_execute(),
                    details: Some(details),
                    activation: Some(&activation),
                    ..packet(status, "The target is configured on this machine only.")
                }
                .packet()
            }
            Err(error) => packet(
                "blocked",
                "The store of targets cannot be used; nothing was changed.",
            )
            .blocked(store_code(&error))
            .packet(),
        }
    }

    fn put(&self, name: &str, built: &Value, mode: Mode) -> Result<Put, StoreError> {
        let store = self.store();
        let now = self.now.to_string();
        let claim = Claim {
            lock_id: "targets",
            agent_id: None,
            operation: "goal-channel target add",
            policy: Policy::Mutation,
            now: &now,
        };
        let held = match mode {
            Mode::Preview => None,
            Mode::Execute => Some(store.lock(&claim)?),
        };
        let mut targets = store.read()?;
        let changed = targets.get(name) != Some(built);
        targets.insert(name.to_owned(), built.clone());
        let mut verified = true;
        if let Some(held) = held.filter(|_| changed) {
            store.write(&held, &targets)?;
            verified = store.read()? == targets;
        }
        Ok(Put {
            changed,
            verified,
            count: targets.len(),
        })
    }

    /// Lists the targets by name.
    pub fn list(&self) -> Value {
        let activation = match self.require("target_list", Mode::Preview) {
            Ok(activation) => activation,
            Err(packet) => return packet,
        };
        let packet = |status, summary| ChannelPacket::new("target_list", false, status, summary);
        let targets = match self.store().read() {
            Ok(targets) => targets,
            Err(error) => {
                return packet("blocked", "The store of targets cannot be read.")
                    .blocked(store_code(&error))
                    .packet();
            }
        };
        let mut names: Vec<&String> = targets.keys().collect();
        names.sort();
        let items: Vec<Value> = names
            .into_iter()
            .map(|name| json!({"target_name": name, "provider": targets[name]["provider"], "enabled": targets[name]["enabled"] == json!(true)}))
            .collect();
        let details = json!({"target_count": items.len(), "items": items});
        ChannelPacket {
            details: Some(details),
            activation: Some(&activation),
            ..packet("ready", "The targets of this machine.")
        }
        .packet()
    }
}

struct Put {
    changed: bool,
    verified: bool,
    count: usize,
}
