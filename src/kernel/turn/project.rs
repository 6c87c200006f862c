//! The signed part of an envelope: a pure projection of the complete decision (docs/spec/kernel.md 7.3 A).
//!
//! Short free texts are shaped, because the full text is in the source; lists that carry safety are never cut.

use serde_json::{Map, Value, json};

use crate::contract::canonical::NotCanonical;
use crate::contract::digest::{self, Digest};
use crate::contract::text;

const TODO_FIELDS: [&str; 15] = [
    "todo_id",
    "priority",
    "status",
    "task_class",
    "action_kind",
    "task_repository",
    "continuation_policy",
    "claimed_by",
    "bound_agent",
    "goal_bound",
    "blocks_agent",
    "unblocks_todo_id",
    "next_due_at",
    "expires_at",
    "selected_by",
];
const POLICY_FIELDS: [&str; 8] = [
    "normal_delivery_allowed",
    "recovery_delivery_allowed",
    "self_repair_allowed",
    "capability_repair_allowed",
    "workspace_repair_allowed",
    "safe_bypass_allowed",
    "safe_bypass_kind",
    "blocked_action_scope",
];
const SIGNED: [&str; 15] = [
    "agent_id",
    "decision",
    "should_run",
    "effective_action",
    "state",
    "action",
    "user",
    "required_reads",
    "replan_action_packet",
    "boundary",
    "execution_policy",
    "writeback",
    "scheduler",
    "contract_capsule",
    "task_orchestration_contract",
];
const REPLAN_SENTENCE: &str = "Replan within the bounded frontier and record the outcome";

/// The projection of a complete decision.
pub fn project(decision: &Map<String, Value>) -> Map<String, Value> {
    let get = |name: &str| decision.get(name).cloned().unwrap_or(Value::Null);
    let has_replan = !get("replan_action_packet").is_null();
    let members = [
        ("ok", get("ok")),
        ("schema_version", json!("loopx_turn_envelope_v1")),
        ("mode", json!("should-run")),
        ("view", json!("turn_envelope")),
        ("goal_id", get("goal_id")),
        ("agent_id", get("agent_id")),
        ("reason", shaped(decision.get("reason"), 360)),
        ("action_required", get("action_required")),
        ("open_count", get("open_count")),
        ("decision", get("decision")),
        ("should_run", get("should_run")),
        ("effective_action", get("effective_action")),
        ("state", get("state")),
        ("action", action(decision, has_replan)),
        ("user", user(decision)),
        ("required_reads", list(channel(decision, "required_reads"))),
        ("replan_action_packet", get("replan_action_packet")),
        ("boundary", boundary(decision)),
        ("execution_policy", policy(decision)),
        ("writeback", writeback(decision)),
        ("scheduler", scheduler(decision)),
        ("contract_capsule", capsule(decision)),
    ];
    let mut envelope: Map<String, Value> = members
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    for name in ["agent_context", "task_orchestration_contract"] {
        if let Some(value) = decision.get(name).filter(|value| !value.is_null()) {
            envelope.insert(name.to_owned(), value.clone());
        }
    }
    if let Some(plan) = channel(decision, "response_plan") {
        envelope.insert("response_plan".to_owned(), plan.clone());
    }
    envelope
}

/// What is signed: the action dimensions of an envelope, absent ones as `null`.
pub fn signature_document(envelope: &Map<String, Value>) -> Value {
    let mut document = Map::new();
    document.insert(
        "schema_version".to_owned(),
        json!("loopx_action_signature_v0"),
    );
    document.insert("coverage".to_owned(), json!(coverage(envelope)));
    for name in SIGNED {
        document.insert(
            name.to_owned(),
            envelope.get(name).cloned().unwrap_or(Value::Null),
        );
    }
    for name in ["agent_context", "response_plan"] {
        if let Some(value) = envelope.get(name).filter(|value| is_filled(value)) {
            document.insert(name.to_owned(), value.clone());
        }
    }
    Value::Object(document)
}

/// The digest of the signed part.
pub fn signature_hash(envelope: &Map<String, Value>) -> Result<Digest, NotCanonical> {
    digest::digest(&signature_document(envelope))
}

/// The lineage digest: the signed part with the Turn's own todo object in place of its projection.
pub fn action_hash(
    envelope: &Map<String, Value>,
    decision: &Map<String, Value>,
) -> Result<Digest, NotCanonical> {
    let mut document = signature_document(envelope);
    if let Some(action) = document.get_mut("action").and_then(Value::as_object_mut) {
        action.insert(
            "selected_todo".to_owned(),
            decision
                .get("selected_todo")
                .cloned()
                .unwrap_or(Value::Null),
        );
    }
    digest::digest(&document)
}

/// The coverage word of a signature.
pub fn coverage(envelope: &Map<String, Value>) -> String {
    let action = |name: &str| {
        envelope
            .get("action")
            .and_then(|action| action.get(name))
            .is_some_and(is_filled)
    };
    let root = |name: &str| envelope.get(name).is_some_and(is_filled);
    let version = match () {
        () if root("agent_context") => 4,
        () if action("planning_horizon") => 3,
        () if action("action_portfolio") => 2,
        () if root("response_plan") => 1,
        () => 0,
    };
    format!("turn_envelope_action_dimensions_v{version}")
}

/// White space collapsed, and cut with dots at the limit.
pub fn shape(words: &str, max: usize) -> String {
    let words = text::collapse(words);
    if !text::is_longer_than(&words, max) {
        return words;
    }
    format!("{}...", text::prefix(&words, max - 3))
}

fn shaped(value: Option<&Value>, max: usize) -> Value {
    value
        .and_then(Value::as_str)
        .map_or(Value::Null, |words| json!(shape(words, max)))
}

fn is_filled(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Object(map) => !map.is_empty(),
        Value::Array(items) => !items.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    }
}

fn channel<'a>(decision: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    decision
        .get("interaction_contract")
        .and_then(|contract| contract.get(name))
        .filter(|value| !value.is_null())
}

/// A list without repetitions, never cut.
fn list(value: Option<&Value>) -> Value {
    let mut kept: Vec<Value> = Vec::new();
    for item in value.and_then(Value::as_array).into_iter().flatten() {
        if !kept.contains(item) {
            kept.push(item.clone());
        }
    }
    Value::Array(kept)
}

fn action(decision: &Map<String, Value>, has_replan: bool) -> Value {
    let agent = channel(decision, "agent_channel");
    let flag = |name: &str| {
        agent
            .and_then(|agent| agent.get(name))
            .cloned()
            .unwrap_or(json!(false))
    };
    let words = |value: Option<&Value>| {
        if has_replan {
            json!(REPLAN_SENTENCE)
        } else {
            shaped(value, 480)
        }
    };
    let recommended = words(decision.get("recommended_action"));
    let mut action = Map::new();
    action.insert("recommended_action".to_owned(), recommended.clone());
    action.insert(
        "primary_action".to_owned(),
        words(agent.and_then(|agent| agent.get("primary_action"))),
    );
    for name in ["must_attempt", "delivery_allowed", "quiet_noop_allowed"] {
        action.insert(name.to_owned(), flag(name));
    }
    action.insert(
        "selected_todo".to_owned(),
        todo(decision.get("selected_todo"), &recommended),
    );
    if let Some(intent) = decision
        .get("pending_capability_intent")
        .filter(|intent| !intent.is_null())
    {
        action.insert("capability_intent".to_owned(), intent.clone());
    }
    for name in ["action_portfolio", "planning_horizon"] {
        if let Some(value) = decision.get(name).filter(|value| !value.is_null()) {
            action.insert(name.to_owned(), value.clone());
        }
    }
    Value::Object(action)
}

fn todo(selected: Option<&Value>, recommended: &Value) -> Value {
    let Some(selected) = selected.filter(|todo| !todo.is_null()) else {
        return Value::Null;
    };
    let mut todo = Map::new();
    for name in TODO_FIELDS {
        if let Some(value) = selected.get(name).filter(|value| !value.is_null()) {
            todo.insert(name.to_owned(), value.clone());
        }
    }
    let words = shaped(selected.get("text"), 360);
    if words == *recommended {
        todo.insert("text_ref".to_owned(), json!("action.recommended_action"));
    } else {
        todo.insert("text".to_owned(), words);
    }
    Value::Object(todo)
}

fn user(decision: &Map<String, Value>) -> Value {
    let user = channel(decision, "user_channel");
    let get = |name: &str| {
        user.and_then(|user| user.get(name))
            .cloned()
            .unwrap_or(Value::Null)
    };
    json!({
        "action_required": get("action_required"),
        "open_count": decision.get("open_count"),
        "notify": get("notify"),
        "actions": list(user.and_then(|user| user.get("actions"))),
        "reason": shaped(user.and_then(|user| user.get("reason")), 360),
    })
}

fn boundary(decision: &Map<String, Value>) -> Value {
    let goal = decision.get("goal_boundary");
    let get = |name: &str| goal.and_then(|goal| goal.get(name));
    let mut boundary = json!({
        "rule": get("rule"),
        "adapter": {"kind": "loopx", "status": "connected"},
        "write_scope": list(get("write_scope")),
        "available_capabilities": list(decision.get("available_capabilities")),
        "requires_parent_approval": [],
        "guards": list(get("guards")),
        "stop_condition": shaped(get("stop_condition"), 320),
    });
    for name in ["workspace_guard", "capability_gate", "execution_profile"] {
        if let Some(value) = decision.get(name).filter(|value| !value.is_null()) {
            boundary[name] = value.clone();
        }
    }
    boundary
}

/// The permission flags of a decision that are present.
pub fn policy(decision: &Map<String, Value>) -> Value {
    let present = POLICY_FIELDS.iter().filter_map(|name| {
        let value = decision.get(*name).filter(|value| !value.is_null())?;
        Some(((*name).to_owned(), value.clone()))
    });
    Value::Object(present.collect())
}

fn writeback(decision: &Map<String, Value>) -> Value {
    let cli = channel(decision, "cli_channel");
    let get = |name: &str| cli.and_then(|cli| cli.get(name));
    json!({
        "next_cli_actions": list(get("next_cli_actions")),
        "spend_allowed_now": get("spend_allowed_now"),
        "spend_after_validation": get("spend_after_validation"),
        "spend_policy": shaped(get("spend_policy"), 280),
    })
}

fn scheduler(decision: &Map<String, Value>) -> Value {
    match decision
        .get("scheduler_hint")
        .filter(|hint| !hint.is_null())
    {
        Some(hint) => hint.clone(),
        None => json!({
            "action": "none", "cadence_class": "unchanged", "reason_code": decision.get("effective_action"), "spend_policy": "no-spend",
        }),
    }
}

fn capsule(decision: &Map<String, Value>) -> Value {
    let contract = decision.get("interaction_contract");
    let mut capsule = json!({
        "schema_version": "loopx_contract_capsule_v0",
        "source": "full_quota_decision",
        "interaction": {
            "schema_version": contract.and_then(|contract| contract.get("schema_version")),
            "mode": contract.and_then(|contract| contract.get("mode")),
        },
        "execution_obligation": decision.get("execution_obligation"),
        "frontier": decision.get("goal_frontier_projection"),
    });
    for name in [
        "work_lane_contract",
        "automation_liveness",
        "vision_continuation_audit",
    ] {
        if let Some(value) = decision.get(name).filter(|value| !value.is_null()) {
            capsule[name] = value.clone();
        }
    }
    capsule
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_is_collapsed_and_cut_with_dots() {
        assert_eq!(shape("a  b\n c", 10), "a b c");
        assert_eq!(shape("abcdefghij", 8), "abcde...");
    }

    #[test]
    fn lists_that_carry_safety_keep_every_item_once() {
        let scopes: Vec<String> = (0..40)
            .map(|index| format!("src/{index}"))
            .chain(["src/0".to_owned()])
            .collect();
        let decision = json!({"goal_boundary": {"write_scope": scopes}});
        let envelope = project(decision.as_object().unwrap());
        assert_eq!(
            envelope["boundary"]["write_scope"]
                .as_array()
                .unwrap()
                .len(),
            40
        );
    }

    #[test]
    fn an_intent_puts_its_command_first_and_is_signed() {
        let decision = json!({"pending_capability_intent": {"command": "c"}, "interaction_contract": {"cli_channel": {"next_cli_actions": ["c"]}}});
        let envelope = project(decision.as_object().unwrap());
        let before = signature_hash(&envelope).unwrap();
        let mut changed = envelope.clone();
        changed["action"]["capability_intent"]["command"] = json!("d");
        assert_ne!(signature_hash(&changed).unwrap(), before);
    }
}
