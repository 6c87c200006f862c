//! Post-writeback hooks: their ids, their input and what a producer answers
//! (docs/spec/periodic-report-runtime.md 6).
//!
//! A hook sees the committed receipt, the state revision and the derived stage receipt, and nothing else. It can record an
//! intent; it can never touch the writeback, the spend or the exit code.

use serde_json::{Value, json};

use super::intent::{CAPABILITY, INTENT_KIND};
use crate::contract::canonical::NotCanonical;
use crate::contract::digest;
use crate::contract::settlement::SettlementIdentity;

/// The one hook of this version.
pub const HOOK_ID: &str = "periodic_report.runtime_trigger";

/// A committed writeback as a hook sees it.
#[derive(Clone, Debug)]
pub struct Source {
    /// The identity it settled under.
    pub identity: SettlementIdentity,
    /// The instant of its run: the stable state revision.
    pub state_version: String,
    /// When it was committed.
    pub committed_at: String,
    /// The derived stage receipt.
    pub stage: Option<Value>,
}

/// What the report profile adds to an intent.
#[derive(Clone, Debug)]
pub struct Profile {
    /// Its digest.
    pub digest: String,
    /// How it is named in a payload.
    pub reference: Value,
    /// Its trigger policy.
    pub trigger_policy: Value,
}

/// One dispatch of the hook.
#[derive(Clone, Debug)]
pub struct Dispatch {
    /// The receipt of the primary writeback.
    pub source_receipt_id: String,
    /// The dispatch.
    pub dispatch_id: String,
}

impl Source {
    fn identity_value(&self) -> Value {
        json!({
            "goal_id": self.identity.goal, "agent_id": self.identity.agent, "todo_id": self.identity.binding.todo(),
            "turn_instance_id": self.identity.instance, "effect_id": self.identity.effect_id(),
        })
    }

    /// The ids of this dispatch.
    pub fn dispatch(&self, profile: &Profile) -> Result<Dispatch, NotCanonical> {
        let receipt = json!({
            "event_kind": "refresh_state", "identity": self.identity_value(), "state_version": self.state_version,
            "committed_at": self.committed_at,
        });
        let source_receipt_id = format!("pwr_{}", digest::ascii_digest(&receipt)?.short(24));
        let document = json!({
            "source_receipt_id": source_receipt_id, "event_kind": "refresh_state", "hook_id": HOOK_ID, "capability_id": CAPABILITY,
            "registration_schema": "loopx_post_writeback_capability_hook_registration_v0",
            "policy_version": policy_version(profile),
        });
        let dispatch_id = format!("pwh_{}", digest::ascii_digest(&document)?.hex());
        Ok(Dispatch {
            source_receipt_id,
            dispatch_id,
        })
    }
}

fn policy_version(profile: &Profile) -> String {
    let tail = profile.digest.len().saturating_sub(16);
    format!("weekly-{}", &profile.digest[tail..])
}

/// Runs the producer: an intent for a proven stage, none otherwise.
pub fn produce(source: &Source, dispatch: &Dispatch, profile: &Profile) -> Option<Value> {
    let stage = source.stage.as_ref()?;
    let word = |name: &str| stage.get(name).and_then(Value::as_str);
    if word("agent_id") != Some(source.identity.agent.as_str())
        || word("acceptance") != Some("validated")
    {
        return None;
    }
    let identity = word("stage_identity")?;
    Some(json!({
        "schema_version": "loopx_post_writeback_capability_intent_v0",
        "capability_id": CAPABILITY,
        "intent_kind": INTENT_KIND,
        "idempotency_key": format!("periodic-report:{identity}"),
        "source_receipt_id": dispatch.source_receipt_id,
        "write_scope": [],
        "payload": {
            "schema_version": "periodic_report_trigger_evaluation_intent_v0",
            "stage_completion": stage,
            "profile_ref": profile.reference,
            "trigger_policy": profile.trigger_policy,
            "generation_authorized": false,
            "external_delivery_authorized": false,
        },
    }))
}

/// The stage receipt as a committed event carries it: what a replay starts from.
pub fn stage_of_event(event: &Value) -> Option<Value> {
    let details = event.get("details")?;
    let get = |name: &str| details.get(name).cloned();
    let transition = get("stage_transition")?;
    let (closed, frontier, completed) = (
        get("closed_vision_revision")?,
        get("frontier_identity")?,
        get("stage_completed_at")?,
    );
    let refs = if transition == "goal_terminal" {
        json!([closed, "goal_terminal_state_v0"])
    } else {
        json!([closed, frontier, completed, frontier])
    };
    Some(json!({
        "schema_version": get("stage_completion_schema")?,
        "stage_identity": get("stage_identity")?,
        "agent_id": event.get("agent_id"),
        "closed_vision_revision": closed,
        "frontier_identity": frontier,
        "transition": transition,
        "completed_at": completed,
        "acceptance": get("stage_acceptance")?,
        "outcome_checkpoint_satisfied": get("stage_outcome_checkpoint_satisfied")?,
        "durable_writeback_required": get("stage_durable_writeback_required")?,
        "evidence_refs": refs,
    }))
}
