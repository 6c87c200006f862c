//! The execution controls this version knows (docs/spec/kernel.md 7.1): an unknown one refuses before anything is
//! dispatched. Facts that steer nothing are not looked at here and pass as they are.

use serde_json::{Map, Value};

use crate::contract::error::ErrorCode;
use crate::contract::packet::Refusal;
use crate::contract::turn::INBOX_REPLY_DUE;

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

/// Controls that steer execution have to be known: an unknown one refuses before anything is dispatched.
pub fn check(decision: &Map<String, Value>) -> Result<(), Refusal> {
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

/// What a plan asks its reader to understand has to be among the `known` controls.
pub fn check_required(names: Option<&Value>, known: &[&str]) -> Result<(), Refusal> {
    let is_known = |name: &Value| name.as_str().is_some_and(|name| known.contains(&name));
    match names.and_then(Value::as_array) {
        Some(names) if names.iter().all(is_known) => Ok(()),
        _ => Err(unsupported(
            "the plan requires a control this version does not know",
        )),
    }
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

/// The refusal of a control this version does not know.
pub fn unsupported(text: &str) -> Refusal {
    Refusal::new(
        ErrorCode::TurnSourceUnsupportedSemantics,
        format!("{text}; use a version that does"),
    )
}
