//! The envelope: the signed projection, and the identity, authority and settlement that go with it
//! (docs/spec/kernel.md 7.3 B).

use serde_json::{Map, Value, json};

use super::project;
use super::source::{CompleteSource, decision_of};
use crate::contract::canonical::NotCanonical;
use crate::contract::digest;
use crate::contract::error::ErrorCode;
use crate::contract::packet::Refusal;
use crate::contract::settlement::{Binding, SettlementIdentity};
use crate::kernel::quota::places::shell_line;

const BUDGET: usize = 8_192;

/// What a plan adds to the source: who runs it, under which identity.
#[derive(Clone, Debug)]
pub struct Frame {
    /// The kind of host.
    pub host: String,
    /// Visible or isolated.
    pub execution_mode: String,
    /// The instance the caller named.
    pub instance: Option<String>,
    /// What the Turn is bound to.
    pub binding: Binding,
    /// The identity it settles under, when it can settle at all.
    pub identity: Option<SettlementIdentity>,
    /// The Turn key, for a planned Turn.
    pub turn_key: Option<String>,
    /// The one command an agent settles with.
    pub settlement_argv: Option<Vec<String>>,
}

/// Builds the complete envelope of a source.
pub fn build(source: &CompleteSource, frame: &Frame) -> Result<Map<String, Value>, Refusal> {
    let made = assemble(source.value(), frame);
    made.map_err(|NotCanonical| {
        Refusal::new(
            ErrorCode::TurnSourceInvalidJson,
            "the source holds a number that is not finite; fix it",
        )
    })
}

/// What a host has to read before it acts; a plan that names another one needs another version.
pub(super) const CONTROLS: [&str; 5] = [
    "decision",
    "effective_action",
    "state",
    "mode",
    "interaction_contract.mode",
];

fn assemble(source: &Value, frame: &Frame) -> Result<Map<String, Value>, NotCanonical> {
    let decision = decision_of(source);
    let mut envelope = project::project(decision);
    let projected = project::signature_hash(&project::project(decision))?;
    let built = project::signature_hash(&envelope)?;
    let decision_hash = digest::digest(&Value::Object(decision.clone()))?;
    envelope.insert("detail_ref".to_owned(), detail_ref(decision));
    envelope.insert(
        "action_signature".to_owned(),
        json!({
            "schema_version": "loopx_action_signature_v0",
            "coverage": project::coverage(&envelope),
            "source_hash": projected,
            "envelope_hash": built,
            "matches": projected == built,
            "source_decision_hash": decision_hash,
        }),
    );
    // Its place; the sizes are those of the finished envelope.
    envelope.insert("compaction".to_owned(), Value::Null);
    let (identity, authority, settlement) = (
        identity(decision, frame),
        authority(decision),
        settlement(decision, frame),
    );
    envelope.insert("source".to_owned(), source.clone());
    let binding = json!({
        "schema_version": "loopx_turn_source_binding_v1",
        "source_digest": digest::digest(source)?,
        "source_decision_hash": decision_hash,
        "identity_digest": digest::digest(&identity)?,
        "authority_digest": digest::digest(&authority)?,
        "settlement_digest": digest::digest(&settlement)?,
        "action_source_hash": projected,
        "turn_key": frame.turn_key,
        "capture": null,
    });
    envelope.insert("source_binding".to_owned(), binding);
    envelope.insert("identity".to_owned(), identity);
    envelope.insert("authority".to_owned(), authority);
    envelope.insert("settlement".to_owned(), settlement);
    envelope.insert("execution".to_owned(), json!({"kind": "executable"}));
    envelope.insert("required_controls".to_owned(), json!(CONTROLS));
    let compaction = compaction(&envelope);
    envelope.insert("compaction".to_owned(), compaction);
    Ok(envelope)
}

/// The identity block of a source inside a frame.
pub fn identity(decision: &Map<String, Value>, frame: &Frame) -> Value {
    json!({
        "goal_id": decision.get("goal_id"),
        "goal_instance_id": decision.get("goal_instance_id"),
        "agent_id": decision.get("agent_id"),
        "todo_id": frame.binding.todo(),
        "replan_obligation_id": frame.binding.obligation(),
        "turn_instance_id": frame.instance,
        "binding_kind": frame.binding.kind(),
        "binding_id": frame.binding.id(),
        "host": frame.host,
        "execution_mode": frame.execution_mode,
    })
}

/// The authority block: what the observed state allowed. Today's state is checked at admission.
pub fn authority(decision: &Map<String, Value>) -> Value {
    let todo = decision.get("selected_todo");
    let of_todo = |name: &str| todo.and_then(|todo| todo.get(name)).cloned();
    let gates = decision
        .get("user_todo_summary")
        .and_then(|summary| summary.get("gate_open_items"))
        .and_then(Value::as_array);
    let gates: Vec<&Value> = gates
        .into_iter()
        .flatten()
        .filter_map(|gate| gate.get("todo_id"))
        .collect();
    let lease = decision.get("task_lease").filter(|lease| !lease.is_null()).map(|lease| {
        json!({
            "owner": lease.get("owner"), "version": lease.get("version"), "lease_epoch": lease.get("lease_epoch"),
            "expires_at": lease.get("expires_at"),
        })
    });
    json!({
        "provider_revision": decision.get("provider_revision"),
        "agent_registered": true,
        "claimed_by": of_todo("claimed_by"),
        "lease": lease,
        "write_scope": decision.get("goal_boundary").and_then(|boundary| boundary.get("write_scope")).cloned().unwrap_or(json!([])),
        "required_decision_scopes": of_todo("required_decision_scopes").unwrap_or(json!([])),
        "open_gate_ids": gates,
        "execution_policy": project::policy(decision),
    })
}

/// The settlement block: the steps, what is spent, and who does it.
pub fn settlement(decision: &Map<String, Value>, frame: &Frame) -> Value {
    let cli = decision
        .get("interaction_contract")
        .and_then(|contract| contract.get("cli_channel"));
    let spends = cli.and_then(|cli| cli.get("spend_after_validation")) == Some(&json!(true));
    let is_agent = frame.settlement_argv.is_some();
    let command = frame
        .settlement_argv
        .as_ref()
        .map(|argv| crate::kernel::quota::places::shell_line(argv));
    json!({
        "effect_id": frame.identity.as_ref().map(SettlementIdentity::effect_id),
        "steps": ["validation", "durable_writeback", "quota_spend", "terminal_closeout"],
        "spend_slots": i32::from(spends),
        "spend_source": if is_agent { "heartbeat" } else { "adapter" },
        "settlement_plan": frame.identity.as_ref().map(plan),
        "settlement_command": command,
        "settlement_argv": frame.settlement_argv,
        "after_settled_readback": "no_manual_quota_step",
    })
}

/// The ordered steps of one settlement.
pub fn plan(identity: &SettlementIdentity) -> Value {
    let step = |kind: &str, owner: &str, precondition: &str, receipt: &str| {
        json!({
            "kind": kind, "owner": owner, "precondition": precondition, "idempotency_key_ref": "$.identity.effect_id",
            "expected_receipt": receipt,
        })
    };
    let mut closeout = step(
        "terminal_closeout",
        "todo",
        "quota_spend",
        "terminal_closeout_receipt",
    );
    closeout["conditional"] = json!("completion_intent_no_followup");
    json!({
        "schema_version": "quota_settlement_plan_v1",
        "identity": identity.to_value(),
        "steps": [
            step("validation", "driver", "typed_result", "task_validation_receipt"),
            step("durable_writeback", "state", "validation", "durable_writeback_receipt"),
            step("quota_spend", "quota", "durable_writeback", "quota_spend_receipt"),
            closeout,
        ],
    })
}

/// The same envelope for looking at: without the source and the executable plan, digests kept.
pub fn inspection(mut envelope: Map<String, Value>) -> Map<String, Value> {
    envelope.shift_remove("source");
    envelope.insert(
        "execution".to_owned(),
        json!({"kind": "inspection", "reason": "source_omitted"}),
    );
    if let Some(settlement) = envelope
        .get_mut("settlement")
        .and_then(Value::as_object_mut)
    {
        settlement.insert("settlement_plan".to_owned(), Value::Null);
    }
    envelope
}

/// A capture an envelope is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CaptureRef {
    /// Its id.
    pub capture_id: String,
    /// The digest of its bytes.
    pub sha256: String,
    /// The command that reads it back.
    pub argv: Vec<String>,
}

impl CaptureRef {
    /// The opaque name readers use.
    pub fn reader_ref(&self) -> String {
        format!("turn-capture:{}", self.capture_id)
    }
}

/// Binds an envelope to its capture: only the detail reference and the binding change, never what is signed.
pub fn bind(envelope: &Map<String, Value>, capture: &CaptureRef) -> Map<String, Value> {
    let mut bound = envelope.clone();
    let old = envelope.get("detail_ref");
    let kept = |name: &str| {
        old.and_then(|old| old.get(name))
            .cloned()
            .unwrap_or(Value::Null)
    };
    let command = crate::kernel::quota::places::shell_line(&capture.argv);
    bound.insert(
        "detail_ref".to_owned(),
        json!({
            "schema_version": "loopx_turn_detail_ref_v1",
            "reader_ref": capture.reader_ref(),
            "full_decision": command,
            "command": command,
            "argv": capture.argv,
            "todo_detail": kept("todo_detail"),
            "status_detail": kept("status_detail"),
            "observation": "original",
            "grants_authority": false,
        }),
    );
    if let Some(binding) = bound
        .get_mut("source_binding")
        .and_then(Value::as_object_mut)
    {
        let reference = json!({"capture_id": capture.capture_id, "sha256": capture.sha256, "reader_ref": capture.reader_ref()});
        binding.insert("capture".to_owned(), reference);
    }
    bound
}

fn detail_ref(decision: &Map<String, Value>) -> Value {
    let word = |name: &str| decision.get(name).and_then(Value::as_str).unwrap_or("");
    let quoted = |name: &str| shell_line(&[word(name).to_owned()]);
    let (goal, agent) = (quoted("goal_id"), quoted("agent_id"));
    json!({
        "full_decision": format!("loopx quota should-run --goal-id {goal} --agent-id {agent} --format json"),
        "todo_detail": format!("loopx todo list --goal-id {goal} --format json"),
        "status_detail": format!("loopx status --goal-id {goal} --format json"),
    })
}

/// Sizes of the finished envelope are measured and reported; they admit or refuse nothing. The budget is about the envelope
/// without its source, as it is read; what a host gets in all stands beside it. Only this block itself is not counted.
fn compaction(envelope: &Map<String, Value>) -> Value {
    let length = |value: &str| value.chars().count();
    let print = |left_out: &[&str]| {
        let members = envelope.iter();
        let kept: Map<String, Value> = members
            .filter(|(name, _)| !left_out.contains(&name.as_str()))
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        serde_json::to_string(&kept).unwrap_or_default()
    };
    let source_text = envelope.get("source").map(Value::to_string);
    let source_text = source_text.unwrap_or_default();
    let text = print(&["source", "compaction"]);
    let complete = print(&["compaction"]);
    let (from, to) = (length(&source_text), length(&text));
    let ratio = if from == 0 {
        0.0
    } else {
        1.0 - to as f64 / from as f64
    };
    let mut compaction = json!({
        "source_json_bytes": from,
        "envelope_json_bytes": to,
        "byte_reduction_ratio": (ratio * 10_000.0).round() / 10_000.0,
        "budget_bytes": BUDGET,
        "within_budget": text.len() <= BUDGET,
        "envelope_utf8_bytes": text.len(),
        "complete_utf8_bytes": complete.len(),
    });
    if text.len() > BUDGET {
        let sections: Map<String, Value> = envelope
            .iter()
            .filter(|(name, _)| *name != "source")
            .map(|(name, value)| {
                (
                    name.clone(),
                    json!(serde_json::to_string(value).map_or(0, |text| text.len())),
                )
            })
            .filter(|(_, size)| size.as_u64() > Some(1024))
            .collect();
        let names: Vec<&String> = sections.keys().collect();
        compaction["warning"] = json!({
            "code": "turn_envelope_budget_exceeded", "excess_bytes": text.len() - BUDGET, "over_target_sections": names,
            "section_bytes": sections,
        });
    }
    compaction
}
