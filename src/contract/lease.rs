//! A lease on one todo, `task_lease_v0`: a proof of exclusive work that ends by itself.

use serde::Serialize;
use serde_json::{Value, json};

use super::ids::{AgentId, GoalId, TodoId};
use super::time::Timestamp;

/// How long a lease lasts when nothing is said.
pub const DEFAULT_TTL_SECONDS: i64 = 2_700;
/// The longest lease.
pub const MAX_TTL_SECONDS: i64 = 86_400;

/// One lease.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Lease {
    /// Always `task_lease_v0`.
    pub schema_version: &'static str,
    /// The goal.
    pub goal_id: GoalId,
    /// The todo.
    pub todo_id: TodoId,
    /// Who holds it.
    pub owner: AgentId,
    /// The holder's proof.
    pub idempotency_key: String,
    /// Paths it covers.
    pub write_scopes: Vec<String>,
    /// The asked duration.
    pub acquire_ttl_seconds: i64,
    /// Grows with every change.
    pub version: i64,
    /// Grows with every new acquisition and transfer.
    pub lease_epoch: i64,
    /// When it was acquired.
    pub acquired_at: Timestamp,
    /// When it changed last.
    pub updated_at: Timestamp,
    /// When it ends.
    pub expires_at: Timestamp,
    /// `active` or `released`.
    pub status: String,
}

impl Lease {
    /// Reads a stored lease.
    pub fn parse(value: &Value) -> Option<Self> {
        let word = |name: &str| value.get(name).and_then(Value::as_str);
        let number = |name: &str| value.get(name).and_then(Value::as_i64);
        let instant = |name: &str| word(name).and_then(Timestamp::parse);
        let scopes = value.get("write_scopes")?.as_array()?;
        Some(Self {
            schema_version: "task_lease_v0",
            goal_id: GoalId::new(word("goal_id")?)?,
            todo_id: TodoId::new(word("todo_id")?)?,
            owner: AgentId::new(word("owner")?)?,
            idempotency_key: word("idempotency_key")?.to_owned(),
            write_scopes: scopes
                .iter()
                .filter_map(Value::as_str)
                .map(str::to_owned)
                .collect(),
            acquire_ttl_seconds: number("acquire_ttl_seconds")?,
            version: number("version")?,
            lease_epoch: number("lease_epoch")?,
            acquired_at: instant("acquired_at")?,
            updated_at: instant("updated_at")?,
            expires_at: instant("expires_at")?,
            status: word("status")?.to_owned(),
        })
    }

    /// True while it holds others off.
    pub fn is_live(&self, now: Timestamp) -> bool {
        self.status == "active" && now < self.expires_at
    }

    /// The lease with its status as of now.
    pub fn view(&self, now: Timestamp) -> Value {
        let mut value = json!(self);
        if self.status == "active" && !self.is_live(now) {
            value["status"] = json!("expired");
        }
        value
    }
}
