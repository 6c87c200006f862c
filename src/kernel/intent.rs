//! Pending capability intents: which admitted intent comes first and how it is shown (docs/spec/kernel.md 6.7).
//!
//! Admission is not generation, delivery or spend, and nothing here runs the command it names.

use serde_json::{Map, Value, json};

use super::quota::places::shell_line;
use crate::contract::digest;
use crate::contract::goal::Goal;
use crate::contract::ids::AgentId;
use crate::contract::packet::Refusal;
use crate::contract::text;

/// The capability whose intents this version shows.
pub const CAPABILITY: &str = "periodic-report";
/// The kind of those intents.
pub const INTENT_KIND: &str = "periodic_report.trigger_evaluation";

/// True when the goal's own report subscription is active.
pub fn is_subscribed(goal: &Goal) -> bool {
    let is_active = super::quota::policy::pause_cause(goal).is_none();
    let Some(settings) = goal.control("periodic_report").filter(|_| is_active) else {
        return false;
    };
    let has = |name: &str| {
        settings
            .get(name)
            .and_then(Value::as_str)
            .is_some_and(|text| !text.is_empty())
    };
    settings.get("enabled") == Some(&Value::Bool(true)) && has("profile_preset") && has("route_ref")
}

/// The projection of one recorded intent.
pub fn projection(goal: &Goal, agent: &AgentId, intent: &Value) -> Option<Map<String, Value>> {
    let key = intent
        .get("idempotency_key")
        .and_then(Value::as_str)
        .filter(|key| is_key(key))?;
    let stage_agent = intent
        .get("payload")?
        .get("stage_completion")?
        .get("agent_id")
        .and_then(Value::as_str);
    if stage_agent != Some(agent.as_str()) {
        return None;
    }
    let intent_digest = digest::digest(intent).ok()?;
    let packet = json!({
        "schema_version": "pending_capability_intent_projection_v0",
        "capability_id": CAPABILITY,
        "intent_kind": INTENT_KIND,
        "idempotency_key": key,
        "intent_digest": intent_digest,
        "goal_id": goal.id,
        "agent_id": agent,
        "state": "pending",
        "action_kind": "consume_periodic_report_intent",
        "action_summary": "Consume the pending report intent: prepare its text, then freeze and queue the report",
        "command": command(goal.id.as_str(), agent.as_str()),
        "generation_authorized": true,
        "external_delivery_authorized": true,
        "agent_read_required": true,
    });
    check(packet.as_object()?).ok()?;
    packet.as_object().cloned()
}

/// The provider-neutral command, quoted where a shell needs it.
fn command(goal: &str, agent: &str) -> String {
    let words = [
        "loopx",
        "periodic-report",
        "consume-pending",
        "--goal-id",
        goal,
        "--agent-id",
        agent,
        "--execute",
    ];
    shell_line(&words.map(str::to_owned))
}

/// Checks a projection: exactly these fields, and the one command.
pub fn check(packet: &Map<String, Value>) -> Result<(), &'static str> {
    const FIELDS: [&str; 14] = [
        "schema_version",
        "capability_id",
        "intent_kind",
        "idempotency_key",
        "intent_digest",
        "goal_id",
        "agent_id",
        "state",
        "action_kind",
        "action_summary",
        "command",
        "generation_authorized",
        "external_delivery_authorized",
        "agent_read_required",
    ];
    if packet.len() != FIELDS.len() || FIELDS.iter().any(|name| !packet.contains_key(*name)) {
        return Err("the projection has other fields");
    }
    let word = |name: &str| packet.get(name).and_then(Value::as_str).unwrap_or("");
    let (goal, agent) = (word("goal_id"), word("agent_id"));
    let expected = command(goal, agent);
    let command = word("command");
    if command != expected
        || text::is_longer_than(command, 1200)
        || command.contains(['\r', '\n', '\0'])
    {
        return Err("the projection names another command");
    }
    if word("state") != "pending"
        || word("action_summary").is_empty()
        || text::is_longer_than(word("action_summary"), 320)
    {
        return Err("the projection is not pending");
    }
    let is_supported = word("capability_id") == CAPABILITY
        && word("intent_kind") == INTENT_KIND
        && word("action_kind") == "consume_periodic_report_intent"
        && is_key(word("idempotency_key"))
        && digest::is_digest_text(word("intent_digest"));
    if is_supported {
        Ok(())
    } else {
        Err("the projection is of another capability")
    }
}

/// The command bound to the registry and the runtime root of this call; the signed one stays as it is.
pub fn bound_argv(
    intent: &Map<String, Value>,
    places: &super::quota::places::Places,
) -> Result<Vec<String>, Box<Refusal>> {
    let command = intent.get("command").and_then(Value::as_str).unwrap_or("");
    let rest: Vec<&str> = command.split(' ').skip(1).collect();
    Ok(places.argv(&rest))
}

fn is_key(key: &str) -> bool {
    let mut bytes = key.bytes();
    (3..=256).contains(&key.len())
        && bytes
            .next()
            .is_some_and(|byte| byte.is_ascii_alphanumeric())
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || b"_.:-".contains(&byte))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::parse::Label;

    #[test]
    fn a_projection_with_another_field_or_command_is_refused() {
        let goal = Goal::parse(&Label::root(), &json!({"id": "g"})).unwrap();
        let agent = AgentId::new("lane-a").unwrap();
        let intent = json!({"idempotency_key": "periodic-report:stage-1", "payload": {"stage_completion": {"agent_id": "lane-a"}}});
        let packet = projection(&goal, &agent, &intent).unwrap();
        assert_eq!(check(&packet), Ok(()));
        let mut more = packet.clone();
        more.insert("more".into(), json!(1));
        assert!(check(&more).is_err());
        let mut other = packet.clone();
        other.insert("command".into(), json!("rm -rf x"));
        assert!(check(&other).is_err());
        assert!(projection(&goal, &AgentId::new("lane-b").unwrap(), &intent).is_none());
    }
}
