//! The complete source: composed once, before capture, and handed on unchanged (docs/spec/kernel.md 7.1, 7.2).

use serde_json::{Map, Value, json};

use crate::contract::canonical;
use crate::contract::error::ErrorCode;
use crate::contract::packet::Refusal;
use crate::contract::settlement::SettlementIdentity;
use crate::contract::time::Timestamp;
use crate::contract::turn::INBOX_REPLY_DUE;

/// The schema of a source.
pub const SCHEMA: &str = "loopx_turn_source_v1";
const MAX_BYTES: usize = 16_777_216;

const DECISIONS: [&str; 16] = [
    "run",
    "observe",
    "safe_bypass_recovery",
    "self_repair",
    "repair_bridge",
    "workspace_guard",
    "automation_prompt_upgrade",
    "autonomous_replan_required",
    "safe_bypass_user_gate_fallback",
    "peer_coordination_blocked",
    "skip",
    "agent_scope_wait",
    "agent_scope_exhausted",
    "reassignment_required",
    "successor_replan_required",
    "heartbeat_receipt_write_failed",
];
const ACTIONS: [&str; 35] = [
    "normal_run",
    "quota_skip",
    "blocked_health",
    "operator_gate_notify",
    "throttled_skip",
    "blocked_wait",
    "capability_bridge_repair",
    "agent_workspace_repair",
    "autonomous_replan_required",
    "autonomous_replan",
    "terminal_no_followup",
    INBOX_REPLY_DUE,
    "scoped_user_gate_fallback",
    "agent_scope_wait",
    "agent_scope_exhausted",
    "reassignment_required",
    "successor_replan_required",
    "monitor_due",
    "monitor_quiet_skip",
    "agent_monitor_only",
    "heartbeat_settled_skip",
    "unsettled_host_turn_recovery",
    "governed_capability_intent",
    "heartbeat_receipt_write_failed",
    "boundary_projection_repair",
    "control_plane_self_repair",
    "runtime_user_gate_projection_repair",
    "state_projection_gap_repair",
    "todo_decision_scope_projection_repair",
    "outcome_floor_recovery",
    "external_evidence_observation",
    "automation_prompt_upgrade",
    "peer_coordination_blocked",
    "task_orchestration",
    "mapped_noop_if_unchanged",
];
const STATES: [&str; 9] = [
    "paused",
    "blocked_health",
    "operator_gate",
    "waiting",
    "focus_wait",
    "throttled",
    "eligible",
    "terminal_no_followup",
    "unknown",
];
const MODES: [&str; 34] = [
    "agent_monitor_only",
    "monitor_due",
    "terminal_no_followup",
    "peer_coordination_blocked",
    "scoped_user_gate_fallback",
    "user_gate_cooldown_wait",
    "automation_prompt_upgrade",
    "bounded_delivery_with_user_notice",
    "user_gate",
    "user_todo_blocker_push",
    "user_action_required",
    "external_evidence_observation",
    "autonomous_replan",
    "task_orchestration",
    "agent_scope_wait",
    "agent_scope_exhausted",
    "reassignment_required",
    "successor_replan_required",
    "monitor_quiet_skip",
    "heartbeat_settled_skip",
    "unsettled_host_turn_recovery",
    "outcome_floor_recovery",
    "capability_bridge_repair",
    "agent_workspace_repair",
    "boundary_projection_repair",
    "control_plane_self_repair",
    "mapped_noop_if_unchanged",
    "bounded_delivery",
    "health_blocked",
    "quota_throttled",
    "blocked_wait",
    "skip",
    INBOX_REPLY_DUE,
    "safe_bypass_recovery",
];
const CHANNELS: [(&str, &[&str]); 3] = [
    (
        "user_channel",
        &[
            "action_required",
            "notify",
            "max_items",
            "actions",
            "non_blocking",
            "reason",
        ],
    ),
    (
        "agent_channel",
        &[
            "must_attempt",
            "delivery_allowed",
            "quiet_noop_allowed",
            "primary_action",
        ],
    ),
    (
        "cli_channel",
        &[
            "next_cli_actions",
            "spend_allowed_now",
            "spend_after_validation",
            "spend_policy",
            "settlement_plan",
            "replan_settlement_contract",
            "delivery_workspace_causality",
            "selection_required",
        ],
    ),
];

/// Who settles a Turn of this source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settler {
    /// The driver, step by step.
    Driver,
    /// The agent, with one command.
    Agent,
}

impl Settler {
    const fn as_str(self) -> &'static str {
        match self {
            Settler::Driver => "driver",
            Settler::Agent => "agent",
        }
    }
}

/// Where and how a source will be executed.
#[derive(Clone, Debug)]
pub struct Surface {
    /// The kind of host.
    pub host: String,
    /// Visible or isolated.
    pub execution_mode: String,
    /// Who schedules the next wake.
    pub scheduler_owner: String,
    /// Canonical hash of the registry's path.
    pub registry_ref: String,
    /// Canonical hash of the runtime root's path.
    pub runtime_ref: String,
    /// Who settles.
    pub settler: Settler,
}

/// A complete source that may be executed.
#[derive(Clone, Debug, PartialEq)]
pub struct CompleteSource {
    value: Value,
}

impl CompleteSource {
    /// The source object.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The complete decision in it.
    pub fn decision(&self) -> &Map<String, Value> {
        decision_of(&self.value)
    }

    /// A source read back from a plan; it is checked as strictly as a fresh one.
    pub fn stored(value: &Value) -> Result<Self, Refusal> {
        if value.get("schema_version").and_then(Value::as_str) != Some(SCHEMA) {
            return Err(unsupported("the source is of another version"));
        }
        let source = Self {
            value: value.clone(),
        };
        check_controls(source.decision())?;
        check_receipt_place(source.decision())?;
        Ok(source)
    }
}

/// The decision inside a source object.
pub fn decision_of(source: &Value) -> &Map<String, Value> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    source
        .get("decision")
        .and_then(Value::as_object)
        .unwrap_or(&EMPTY)
}

/// Composes the source of one decision. Nothing else builds one.
pub fn compose(
    decision: &Map<String, Value>,
    expected: (&str, &str),
    (surface, receipt): (&Surface, Option<&SettlementIdentity>),
    observed_at: Timestamp,
) -> Result<CompleteSource, Refusal> {
    check_identity(decision, expected)?;
    check_receipt(decision, receipt)?;
    check_receipt_place(decision)?;
    check_controls(decision)?;
    let has_receipt = decision.contains_key("heartbeat_receipt");
    let admission = if has_receipt {
        json!({"$ref": "#/decision/heartbeat_receipt"})
    } else {
        Value::Null
    };
    let mut value = json!({
        "schema_version": SCHEMA,
        "decision": null,
        "admission": admission,
        "execution": {
            "host_surface": surface.host,
            "execution_mode": surface.execution_mode,
            "scheduler_owner": surface.scheduler_owner,
            "registry_ref": surface.registry_ref,
            "runtime_ref": surface.runtime_ref,
            "settled_by": surface.settler.as_str(),
        },
        "observed_at": observed_at,
        "provider_revision": decision.get("provider_revision"),
        "registry_revision": decision.get("registry_revision"),
    });
    // The decision is moved, not serialised again: that would respell its numbers.
    value["decision"] = Value::Object(decision.clone());
    match canonical::compact(&value) {
        Ok(text) if text.len() <= MAX_BYTES => Ok(CompleteSource { value }),
        Ok(_) => Err(Refusal::new(
            ErrorCode::TurnSourceInvalidJson,
            "the source is larger than 16777216 bytes; shrink the goal's todos",
        )),
        Err(_) => Err(Refusal::new(
            ErrorCode::TurnSourceInvalidJson,
            "the source holds a number that is not finite; fix it",
        )),
    }
}

fn check_identity(
    decision: &Map<String, Value>,
    (goal, agent): (&str, &str),
) -> Result<(), Refusal> {
    let word = |name: &str| decision.get(name).and_then(Value::as_str);
    if word("goal_id") == Some(goal) && word("agent_id") == Some(agent) {
        return Ok(());
    }
    let text = "the decision belongs to another goal or agent; ask again for this one";
    Err(Refusal::new(ErrorCode::TurnSourceIdentityMismatch, text))
}

/// A receipt has to be of the same goal, agent, Turn and binding as the selection.
fn check_receipt(
    decision: &Map<String, Value>,
    receipt: Option<&SettlementIdentity>,
) -> Result<(), Refusal> {
    let mismatch = || {
        Refusal::new(
            ErrorCode::TurnSourceReceiptMismatch,
            "the receipt belongs to another Turn or binding; use a fresh instance id",
        )
    };
    let Some(view) = decision.get("heartbeat_receipt") else {
        return Ok(());
    };
    let Some(identity) = view
        .get("settlement_identity")
        .filter(|identity| !identity.is_null())
    else {
        return Ok(());
    };
    let found = SettlementIdentity::parse(identity).ok_or_else(mismatch)?;
    let is_same_place = decision.get("goal_id").and_then(Value::as_str)
        == Some(found.goal.as_str())
        && decision.get("agent_id").and_then(Value::as_str) == Some(found.agent.as_str())
        && view.get("turn_instance_id").and_then(Value::as_str) == Some(found.instance.as_str());
    let selected = decision
        .get("selected_todo")
        .and_then(|todo| todo.get("todo_id"))
        .and_then(Value::as_str);
    let is_same_binding = match (selected, found.binding.todo()) {
        (Some(selected), Some(bound)) => selected == bound.as_str(),
        (Some(_), None) => false,
        (None, _) => true,
    };
    let is_expected = receipt.is_none_or(|receipt| *receipt == found);
    if is_same_place && is_same_binding && is_expected {
        Ok(())
    } else {
        Err(mismatch())
    }
}

/// The receipt stands at one place only.
fn check_receipt_place(decision: &Map<String, Value>) -> Result<(), Refusal> {
    let elsewhere = decision
        .iter()
        .filter(|(name, _)| *name != "heartbeat_receipt");
    let count = elsewhere
        .map(|(_, value)| receipts_in(value))
        .sum::<usize>();
    let inner = decision.get("heartbeat_receipt").map_or(0, receipts_in);
    if count == 0 && inner <= 1 {
        return Ok(());
    }
    Err(Refusal::new(
        ErrorCode::TurnSourceReceiptDuplicated,
        "the receipt stands at two places of the decision; nothing was started",
    ))
}

fn receipts_in(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(receipts_in).sum(),
        Value::Object(map) => {
            let own = usize::from(
                map.get("schema_version").and_then(Value::as_str)
                    == Some("heartbeat_quota_receipt_v0"),
            );
            own + map.values().map(receipts_in).sum::<usize>()
        }
        _ => 0,
    }
}

/// Controls that steer execution have to be known: an unknown one refuses before anything is dispatched.
fn check_controls(decision: &Map<String, Value>) -> Result<(), Refusal> {
    let known = |name: &str, allowed: &[&str]| match decision.get(name) {
        Some(Value::String(word)) if allowed.contains(&word.as_str()) => Ok(()),
        _ => Err(unsupported("a root control is not one this version knows")),
    };
    known("decision", &DECISIONS)?;
    known("effective_action", &ACTIONS)?;
    known("state", &STATES)?;
    known("mode", &["should-run"])?;
    for (object, schema) in [
        (
            "task_orchestration_contract",
            "task_orchestration_contract_v0",
        ),
        ("action_portfolio", "action_portfolio_v0"),
    ] {
        let found = decision
            .get(object)
            .filter(|value| !value.is_null())
            .map(|value| value.get("schema_version"));
        if found.is_some_and(|found| found.and_then(Value::as_str) != Some(schema)) {
            return Err(unsupported("an execution contract is of another version"));
        }
    }
    let Some(contract) = decision
        .get("interaction_contract")
        .and_then(Value::as_object)
    else {
        return Err(unsupported("the interaction contract is missing"));
    };
    if contract.get("schema_version").and_then(Value::as_str)
        != Some("loopx_interaction_contract_v0")
    {
        return Err(unsupported(
            "the interaction contract is of another version",
        ));
    }
    if !contract
        .get("mode")
        .and_then(Value::as_str)
        .is_some_and(|mode| MODES.contains(&mode))
    {
        return Err(unsupported(
            "the interaction mode is not one this version knows",
        ));
    }
    for (channel, known) in CHANNELS {
        check_channel(contract.get(channel).and_then(Value::as_object), known)?;
    }
    Ok(())
}

fn check_channel(channel: Option<&Map<String, Value>>, known: &[&str]) -> Result<(), Refusal> {
    for (name, value) in channel.into_iter().flatten() {
        if !known.contains(&name.as_str()) && is_control_name(name) && is_set(value) {
            return Err(unsupported(
                "an interaction channel holds a control this version does not know",
            ));
        }
    }
    Ok(())
}

fn is_control_name(name: &str) -> bool {
    const WORDS: [&str; 6] = [
        "required",
        "allowed",
        "forbidden",
        "must_",
        "_gate",
        "_policy",
    ];
    WORDS
        .iter()
        .any(|word| name.starts_with(word) || name.ends_with(word))
}

fn is_set(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::String(text) => !text.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
        _ => true,
    }
}

fn unsupported(text: &str) -> Refusal {
    Refusal::new(
        ErrorCode::TurnSourceUnsupportedSemantics,
        format!("{text}; use a version that does"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision() -> Map<String, Value> {
        let value = json!({
            "goal_id": "g", "agent_id": "lane-a", "decision": "run", "effective_action": "normal_run", "state": "eligible",
            "mode": "should-run", "interaction_contract": {"schema_version": "loopx_interaction_contract_v0", "mode": "bounded_delivery",
                "agent_channel": {"must_attempt": true}}, "anything": {"deep": 1},
        });
        value.as_object().unwrap().clone()
    }

    fn compose_of(decision: &Map<String, Value>) -> Result<CompleteSource, Refusal> {
        let surface = Surface {
            host: "generic-cli".into(),
            execution_mode: "isolated-headless".into(),
            scheduler_owner: "outer_controller".into(),
            registry_ref: "r".into(),
            runtime_ref: "t".into(),
            settler: Settler::Driver,
        };
        compose(
            decision,
            ("g", "lane-a"),
            (&surface, None),
            Timestamp::parse("2026-01-01T00:00:00Z").unwrap(),
        )
    }

    #[test]
    fn unknown_facts_pass_unchanged_and_unknown_controls_refuse() {
        assert_eq!(compose_of(&decision()).unwrap().decision(), &decision());
        for (path, value) in [
            ("effective_action", json!("format_the_disk")),
            ("state", json!("odd")),
            ("decision", json!(1)),
        ] {
            let mut broken = decision();
            broken.insert(path.to_owned(), value);
            assert_eq!(
                compose_of(&broken).unwrap_err().code,
                ErrorCode::TurnSourceUnsupportedSemantics
            );
        }
        let mut broken = decision();
        broken["interaction_contract"]["agent_channel"]["second_review_required"] = json!(true);
        assert_eq!(
            compose_of(&broken).unwrap_err().code,
            ErrorCode::TurnSourceUnsupportedSemantics
        );
        broken["interaction_contract"]["agent_channel"]["second_review_required"] = json!(false);
        assert!(compose_of(&broken).is_ok());
    }

    #[test]
    fn a_receipt_stands_once_and_belongs_to_the_selection() {
        let receipt = json!({"schema_version": "heartbeat_quota_receipt_v0", "turn_instance_id": "t", "settlement_identity": {
            "schema_version": "quota_settlement_identity_v0", "effect_id": "g:lane-a:todo_abc:t", "goal_id": "g", "agent_id": "lane-a",
            "todo_id": "todo_abc", "turn_instance_id": "t"}});
        let mut with = decision();
        with.insert("heartbeat_receipt".to_owned(), receipt.clone());
        with.insert("selected_todo".to_owned(), json!({"todo_id": "todo_abc"}));
        assert!(compose_of(&with).is_ok());
        with.insert("selected_todo".to_owned(), json!({"todo_id": "todo_other"}));
        assert_eq!(
            compose_of(&with).unwrap_err().code,
            ErrorCode::TurnSourceReceiptMismatch
        );
        with.insert("selected_todo".to_owned(), json!({"todo_id": "todo_abc"}));
        with.insert("copy".to_owned(), json!([receipt]));
        assert_eq!(
            compose_of(&with).unwrap_err().code,
            ErrorCode::TurnSourceReceiptDuplicated
        );
    }
}
