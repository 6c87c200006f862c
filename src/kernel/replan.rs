//! Replan obligations: derived from a closed vision or a missed checkpoint, discharged by an accepted acknowledgement
//! (docs/spec/kernel.md 4.5).

use serde_json::{Map, Value, json};

use super::quota::frontier::{Frontier, open_gates};
use super::quota::snapshot::{Question, Snapshot};
use crate::contract::digest;
use crate::contract::ids::{AgentId, ReplanObligationId};
use crate::contract::todo::{Status, Todo};
use crate::contract::vision::Vision;

/// What discharges an obligation, in the order packets list it.
pub const REQUIRED_ANY_OF: [&str; 5] = [
    "fresh_vision_path_outcome",
    "new_runnable_successor",
    "new_concrete_blocker",
    "coverage_backed_exploration_exhausted",
    "coverage_backed_no_followup",
];

/// The delta kinds an acknowledgement may name.
pub const DELTA_KINDS: [&str; 13] = [
    "effective_action",
    "interaction_contract",
    "runnable_todo_set",
    "user_gate",
    "blocker",
    "successor_or_supersede",
    "capability_gate",
    "monitor_target",
    "active_state_next_action",
    "goal_vision_patch",
    "goal_boundary_projection",
    "no_followup",
    "watch_lane_continuation",
];

/// One obligation of one agent.
#[derive(Clone, Debug, PartialEq)]
pub struct Obligation {
    /// Its id.
    pub id: ReplanObligationId,
    agent: AgentId,
    rearmed_after: Option<ReplanObligationId>,
    triggers: Vec<&'static str>,
}

impl Obligation {
    /// The obligation of an agent, if it has one.
    pub fn derive(
        snapshot: &Snapshot,
        agent: &AgentId,
        has_runnable_advancement: bool,
    ) -> Option<Self> {
        let mut triggers = Vec::new();
        let acknowledged = snapshot.last_ack.as_ref().map(|(_, seq)| *seq);
        // By the order of runs, never by a clock that may have been set back.
        let is_fresh = |seq: Option<i64>| {
            acknowledged.is_none_or(|acknowledged| seq.is_none_or(|seq| seq >= acknowledged))
        };
        if let Some(vision) = &snapshot.vision
            && vision.is_reached()
            && is_fresh(snapshot.vision_seq)
            && !is_terminal(snapshot)
        {
            triggers.push("vision_successor_required");
        }
        if let Some((checkpoint, seq)) = &snapshot.checkpoint
            && checkpoint.get("decision").and_then(Value::as_str) == Some("missing_required")
            && is_fresh(Some(*seq))
            && !has_runnable_advancement
        {
            triggers.push("vision_checkpoint_missing");
        }
        if triggers.is_empty() {
            return None;
        }
        let rearmed_after = snapshot.last_ack.as_ref().map(|(id, _)| id.clone());
        let identity: Vec<Value> = triggers
            .iter()
            .map(|kind| json!({"kind": kind, "agent_id": agent}))
            .collect();
        let document = json!({
            "schema_version": "autonomous_replan_obligation_v0", "agent_id": agent, "frontier_identity": null,
            "rearmed_after_obligation_id": rearmed_after, "trigger_identity": identity,
        });
        let id = digest::ascii_digest(&document).ok()?.short(16);
        Some(Self {
            id: ReplanObligationId::new(format!("replan-{id}"))?,
            agent: agent.clone(),
            rearmed_after,
            triggers,
        })
    }

    /// The trigger kinds.
    pub fn trigger_kinds(&self) -> &[&'static str] {
        &self.triggers
    }

    /// The packet.
    pub fn to_value(&self) -> Value {
        let triggers: Vec<Value> = self
            .triggers
            .iter()
            .map(|kind| json!({"kind": kind, "agent_id": self.agent}))
            .collect();
        json!({
            "schema_version": "autonomous_replan_obligation_v0",
            "required": true,
            "obligation_id": self.id,
            "agent_id": self.agent,
            "frontier_identity": null,
            "rearmed_after_obligation_id": self.rearmed_after,
            "trigger_count": triggers.len(),
            "triggers": triggers,
            "required_any_of": REQUIRED_ANY_OF,
            "recommended_action": "Write a fresh vision with evidence, or add a runnable successor todo for this obligation",
            "stop_condition": "The acknowledgement of this obligation is recorded and accepted",
        })
    }
}

/// True when the goal has come to its end: nothing unfinished, nobody to ask, no open vision, and the last completion said
/// that nothing follows.
pub fn is_terminal(snapshot: &Snapshot) -> bool {
    snapshot.agent_todos.is_empty()
        && open_gates(snapshot).next().is_none()
        && !snapshot.has_open_vision
        && snapshot.ends_without_followup
}

/// Which of the typed outcomes a written-back replan reached.
pub fn outcomes(vision: Option<&Vision>, has_successor: bool) -> Vec<&'static str> {
    let mut outcomes = Vec::new();
    if has_successor {
        outcomes.push("new_runnable_successor");
    }
    let is_fresh = vision.is_some_and(|vision| {
        vision.patch("acceptance_summary").is_some()
            && matches!(
                vision.path_outcome(),
                Some("continue" | "no_change" | "replan")
            )
            && vision.has_evidence()
    });
    if is_fresh {
        outcomes.push("fresh_vision_path_outcome");
    }
    outcomes
}

/// True when a todo is a successor that discharges this obligation for this agent.
pub fn is_successor(todo: &Todo, obligation: &ReplanObligationId, agent: &AgentId) -> bool {
    todo.status() == Status::Open
        && is_advancement(todo)
        && todo.text("replan_obligation_id") == Some(obligation.as_str())
        && (todo.claimed_by().is_none() || todo.is_claimed_by(agent))
}

/// The acknowledgement packet of a run.
pub fn acknowledgement(
    obligation: &Obligation,
    outcomes: &[&str],
    delta_kinds: &[String],
) -> Value {
    json!({
        "schema_version": "autonomous_replan_ack_v0",
        "recorded": true,
        "agent_id": obligation.agent,
        "frontier_identity": null,
        "semantic_delta": {
            "schema_version": "replan_semantic_delta_v0",
            "accepted": !outcomes.is_empty(),
            "outcomes": outcomes,
            "satisfying_outcomes": outcomes,
            "required_any_of": REQUIRED_ANY_OF,
            "trigger_kinds": obligation.triggers,
            "obligation_id": obligation.id,
            "reason": if outcomes.is_empty() { "no_satisfying_outcome" } else { "satisfying_outcome_recorded" },
        },
        "delta_contract": {
            "schema_version": "repair_delta_contract_v0",
            "required": true,
            "delta_present": !delta_kinds.is_empty(),
            "delta_kinds": delta_kinds,
        },
    })
}

/// True for work that moves the goal on.
pub fn is_advancement(todo: &Todo) -> bool {
    todo.task_class()
        .is_none_or(|class| class == "advancement_task")
}

/// True when a runnable advancement todo is left for this agent.
pub fn has_runnable_advancement(frontier: &Frontier<'_>) -> bool {
    frontier
        .work
        .iter()
        .any(|(todo, hold)| hold.is_none() && is_advancement(todo))
}

/// The frontier projection: what is left, what is missing, whether the goal is at its end.
pub fn frontier_projection(
    snapshot: &Snapshot,
    question: &Question,
    obligation: Option<&Obligation>,
) -> Value {
    let agent = question.agent.as_ref().map(|agent| agent.as_str());
    let open: Vec<&Todo> = snapshot
        .agent_todos
        .iter()
        .filter(|todo| todo.status() == Status::Open && is_advancement(todo))
        .collect();
    let own = open
        .iter()
        .filter(|todo| todo.claimed_by().is_some() && todo.claimed_by() == agent)
        .count();
    let free = open
        .iter()
        .filter(|todo| todo.claimed_by().is_none())
        .count();
    let mut packet = json!({
        "schema_version": "goal_frontier_projection_v0",
        "goal_id": snapshot.goal.id,
        "agent_id": question.agent,
        "replan_required": obligation.is_some(),
        "acceptance_gaps": acceptance_gaps(snapshot, obligation),
        "remaining_advancement_frontier": {
            "current_agent_claimed_advancement_count": own,
            "unclaimed_advancement_count": free,
            "other_agent_claimed_advancement_count": open.len() - own - free,
        },
        "blocking_handoff_gate_count": open_gates(snapshot).count(),
    });
    if is_terminal(snapshot) {
        packet["terminal_state"] = terminal_state();
    }
    packet
}

/// The fact that a goal has come to its end.
pub fn terminal_state() -> Value {
    json!({"schema_version": "goal_terminal_state_v0", "kind": "no_followup", "derived": true, "source": "validated_goal_closure"})
}

fn acceptance_gaps(snapshot: &Snapshot, obligation: Option<&Obligation>) -> Vec<Value> {
    let Some(vision) = &snapshot.vision else {
        return Vec::new();
    };
    let kinds: Vec<&str> = match obligation {
        Some(obligation) => obligation.triggers.clone(),
        None if vision.is_open() => vec!["open_vision"],
        None => Vec::new(),
    };
    kinds
        .into_iter()
        .map(|kind| {
            let mut gap = Map::new();
            gap.insert("kind".to_owned(), json!(kind));
            if let Some(summary) = vision.patch("acceptance_summary") {
                gap.insert("acceptance_summary".to_owned(), json!(summary));
            }
            if let Some(at) = vision.generated_at() {
                gap.insert("generated_at".to_owned(), json!(at));
            }
            Value::Object(gap)
        })
        .collect()
}

/// What the agent is told to do about its obligation.
pub fn action_packet(obligation: &Obligation, projection: &Value) -> Value {
    json!({
        "schema_version": "replan_action_packet_v0",
        "decision": "autonomous_replan_required",
        "obligation_id": obligation.id,
        "uncovered_frontier": projection["acceptance_gaps"],
        "required_outcome": REQUIRED_ANY_OF,
        "allowed_terminal": ["fresh_vision_path_outcome", "new_runnable_successor"],
        "bounded_frontier": projection["remaining_advancement_frontier"],
    })
}
