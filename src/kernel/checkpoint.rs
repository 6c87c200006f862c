//! The vision checkpoint of a refresh, and the stage receipt that can follow from it
//! (docs/spec/kernel.md 4.2, docs/spec/periodic-report-runtime.md 5).

use serde_json::{Value, json};

use super::replan;
use crate::contract::digest;
use crate::contract::ids::AgentId;
use crate::contract::vision::Vision;

/// The outcomes that move a goal.
pub const MATERIAL: [&str; 2] = ["outcome_progress", "primary_goal_outcome"];

/// What a refresh says that a checkpoint looks at.
#[derive(Clone, Debug)]
pub struct CheckpointFacts<'a> {
    /// The agent.
    pub agent: &'a AgentId,
    /// The outcome of the delivery.
    pub outcome: Option<&'a str>,
    /// The boundary it was reached at.
    pub boundary: Option<&'a str>,
    /// True when the durable next action differs from the one before.
    pub next_action_changed: bool,
    /// The vision that is written now.
    pub written: Option<&'a Vision>,
    /// The agent's vision before.
    pub before: Option<&'a Vision>,
    /// Why the vision stays as it is.
    pub unchanged_reason: Option<&'a str>,
    /// The instant of the run.
    pub generated_at: &'a str,
}

/// The checkpoint packet.
pub fn checkpoint(facts: &CheckpointFacts<'_>) -> Value {
    let mut triggers = Vec::new();
    let material = facts.outcome.filter(|outcome| {
        MATERIAL.contains(outcome) && facts.boundary == Some("semantic_closeout")
    });
    if let Some(outcome) = material {
        triggers.push(json!({"kind": "material_delivery_outcome", "delivery_outcome": outcome}));
    }
    let has_vision = facts.before.is_some() || facts.written.is_some();
    if facts.next_action_changed && has_vision && facts.boundary != Some("in_flight_continuation") {
        triggers.push(json!({"kind": "next_action_update"}));
    }
    let is_required = !triggers.is_empty() && has_vision;
    let decision = match (
        is_required,
        facts.written,
        facts.unchanged_reason,
        facts.before,
    ) {
        (false, ..) => "not_required",
        (true, Some(_), ..) => "patched",
        (true, None, Some(_), Some(_)) => "unchanged_with_reason",
        (true, None, ..) => "missing_required",
    };
    let mut packet = json!({
        "schema_version": "vision_checkpoint_v0",
        "agent_id": facts.agent,
        "required": is_required,
        "satisfied": decision != "missing_required",
        "decision": decision,
        "triggers": triggers,
        "delivery_boundary": facts.boundary,
        "generated_at": facts.generated_at,
    });
    if let Some(vision) = facts.written.or(facts.before) {
        packet["agent_vision_state"] = json!(vision.state());
    }
    match decision {
        "unchanged_with_reason" => packet["unchanged_reason"] = json!(facts.unchanged_reason),
        "missing_required" => {
            packet["required_resolution"] = json!(["agent_vision", "vision_unchanged_reason"])
        }
        "not_required" if facts.unchanged_reason.is_some() && !has_vision => {
            packet["missing_baseline"] = json!(true)
        }
        _ => {}
    }
    packet
}

/// What a stage receipt is derived from; everything is of one agent and one committed refresh.
#[derive(Clone, Debug)]
pub struct StageFacts<'a> {
    /// The agent.
    pub agent: &'a AgentId,
    /// The agent's current vision after the refresh.
    pub current: Option<&'a Vision>,
    /// The agent's vision before the refresh.
    pub before: Option<&'a Vision>,
    /// The checkpoint of this refresh.
    pub checkpoint: &'a Value,
    /// The checkpoint of the run that closed the vision before.
    pub closing_checkpoint: Option<&'a Value>,
    /// The acknowledgement of this refresh.
    pub acknowledgement: Option<&'a Value>,
    /// The frontier after the refresh.
    pub frontier: &'a Value,
}

/// The stage completion receipt, when a stage is complete; derived, never declared.
pub fn stage(facts: &StageFacts<'_>) -> Option<Value> {
    terminal(facts).or_else(|| successor(facts))
}

fn terminal(facts: &StageFacts<'_>) -> Option<Value> {
    facts
        .frontier
        .get("terminal_state")
        .filter(|state| **state == replan::terminal_state())?;
    let closed = facts.current.filter(|vision| is_accepted(vision))?;
    proven(facts.checkpoint)?;
    let revision = closed.generated_at()?;
    receipt(
        facts.agent,
        revision,
        "validated-goal-terminal",
        (
            ("goal_terminal", revision),
            &[revision, "goal_terminal_state_v0"],
        ),
    )
}

fn successor(facts: &StageFacts<'_>) -> Option<Value> {
    let ack = facts.acknowledgement?;
    let delta = ack.get("semantic_delta")?;
    let is_accepted_ack = ack.get("recorded") == Some(&Value::Bool(true))
        && delta.get("accepted") == Some(&Value::Bool(true))
        && ack.get("agent_id").and_then(Value::as_str) == Some(facts.agent.as_str());
    let kinds = delta.get("trigger_kinds").and_then(Value::as_array)?;
    let outcomes = delta.get("outcomes").and_then(Value::as_array)?;
    let is_typed = outcomes.iter().any(|outcome| {
        outcome == "fresh_vision_path_outcome" || outcome == "new_runnable_successor"
    });
    if !is_accepted_ack
        || !is_typed
        || !kinds.iter().any(|kind| kind == "vision_successor_required")
    {
        return None;
    }
    let obligation = delta.get("obligation_id").and_then(Value::as_str)?;
    let closed = facts.before.filter(|vision| is_accepted(vision))?;
    proven(facts.closing_checkpoint?)?;
    let fresh = facts
        .current
        .filter(|vision| vision.is_open() && vision.agent_id() == Some(facts.agent.as_str()))?;
    settled_frontier(facts.frontier)?;
    let (revision, completed_at) = (closed.generated_at()?, fresh.generated_at()?);
    let refs = [revision, obligation, completed_at, obligation];
    receipt(
        facts.agent,
        revision,
        obligation,
        (("successor_frontier_settled", completed_at), &refs),
    )
}

fn settled_frontier(frontier: &Value) -> Option<()> {
    let left = frontier.get("remaining_advancement_frontier")?;
    let count = |name: &str| left.get(name).and_then(Value::as_u64).unwrap_or(0);
    let open =
        count("current_agent_claimed_advancement_count") + count("unclaimed_advancement_count");
    let gates = frontier
        .get("blocking_handoff_gate_count")
        .and_then(Value::as_u64)
        .unwrap_or(0);
    let is_settled =
        frontier.get("replan_required") == Some(&Value::Bool(false)) && (open > 0 || gates > 0);
    is_settled.then_some(())
}

fn is_accepted(vision: &Vision) -> bool {
    vision.is_reached()
        && vision.patch("acceptance_summary").is_some()
        && vision.generated_at().is_some()
}

/// A checkpoint proves a stage when it is satisfied by a decision over a material outcome.
fn proven(checkpoint: &Value) -> Option<()> {
    let decision = checkpoint.get("decision").and_then(Value::as_str)?;
    let triggers = checkpoint.get("triggers").and_then(Value::as_array)?;
    let is_material = triggers.iter().any(|trigger| {
        trigger.get("kind").and_then(Value::as_str) == Some("material_delivery_outcome")
            && trigger
                .get("delivery_outcome")
                .and_then(Value::as_str)
                .is_some_and(|outcome| MATERIAL.contains(&outcome))
    });
    let is_decided = matches!(decision, "patched" | "unchanged_with_reason")
        && checkpoint.get("satisfied") == Some(&Value::Bool(true));
    (is_material && is_decided).then_some(())
}

fn receipt(
    agent: &AgentId,
    closed: &str,
    frontier: &str,
    ((transition, completed_at), refs): ((&str, &str), &[&str]),
) -> Option<Value> {
    let identity =
        digest::content_digest(format!("{agent}:{closed}:{frontier}").as_bytes()).short(16);
    Some(json!({
        "schema_version": "periodic_report_stage_completion_receipt_v0",
        "stage_identity": format!("stage-{identity}"),
        "agent_id": agent,
        "closed_vision_revision": closed,
        "frontier_identity": frontier,
        "transition": transition,
        "completed_at": completed_at,
        "acceptance": "validated",
        "outcome_checkpoint_satisfied": true,
        "durable_writeback_required": true,
        "evidence_refs": refs,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn agent() -> AgentId {
        AgentId::new("lane-a").unwrap()
    }

    fn vision(value: Value) -> Vision {
        let mut vision = Vision::parse(&value, &agent()).unwrap();
        vision.set_generated_at("2026-09-18T09:00:00Z");
        vision
    }

    #[test]
    fn the_stage_identities_of_the_worked_sequence_are_reproduced() {
        let identity = |frontier: &str| {
            receipt(
                &agent(),
                "2026-09-18T09:00:00Z",
                frontier,
                (("t", "c"), &[]),
            )
            .unwrap()["stage_identity"]
                .clone()
        };
        assert_eq!(
            identity("replan-90740ca02eede1e1"),
            "stage-09b253db07499b3a"
        );
        assert_eq!(
            identity("validated-goal-terminal"),
            "stage-08010bc6fe67d246"
        );
    }

    #[test]
    fn a_material_outcome_asks_for_a_vision_or_a_reason_once_there_is_a_vision() {
        let before = vision(json!({"state": "open"}));
        let agent = agent();
        let facts = |before, reason| CheckpointFacts {
            agent: &agent,
            outcome: Some("outcome_progress"),
            boundary: Some("semantic_closeout"),
            next_action_changed: false,
            written: None,
            before,
            unchanged_reason: reason,
            generated_at: "t",
        };
        assert_eq!(
            checkpoint(&facts(Some(&before), None))["decision"],
            "missing_required"
        );
        assert_eq!(
            checkpoint(&facts(Some(&before), Some("same")))["decision"],
            "unchanged_with_reason"
        );
        assert_eq!(checkpoint(&facts(None, None))["decision"], "not_required");
        assert_eq!(
            checkpoint(&facts(None, Some("same")))["missing_baseline"],
            true
        );
    }
}
