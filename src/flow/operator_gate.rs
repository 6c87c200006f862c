//! `operator-gate`: records a decision about a gate of the goal itself.
//!
//! The row comes first and the registry second; repeating the command finishes a half-made one.

use serde_json::{Map, Value, json};

use super::mode::Mode;
use super::open::{self, Answer};
use super::ports::Ports;
use super::registry_edit::{self, Change};
use crate::contract::error::ErrorCode;
use crate::contract::event::EventDraft;
use crate::contract::goal::Goal;
use crate::contract::ids::{AgentId, GoalId};
use crate::store::document::registry::Registry;
use crate::store::journal::gate::GateDecision;
use crate::store::journal::run::RunKey;
use crate::store::rows::Rows;

/// A decision as it is asked for.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The gate's name.
    pub gate: String,
    /// `approve`, `reject` or `defer`.
    pub outcome: &'static str,
    /// Who records it.
    pub agent: Option<AgentId>,
    /// Further members of the run.
    pub words: Map<String, Value>,
}

/// Records the decision.
pub fn decide(ports: &Ports, mode: Mode, id: &GoalId, asked: &Decision) -> Answer {
    let mut place = open::goal(ports, id)?;
    if let Some(agent) = &asked.agent {
        place.require_actor(agent, ErrorCode::ActorNotRegistered)?;
    }
    let mut is_repeated = match place.reader()? {
        Some(reader) => is_decided(reader.rows(), &place.goal, asked)?,
        None => false,
    };
    let mut answer = json!({
        "ok": true, "schema_version": "loopx_operator_gate_v0", "dry_run": mode.is_preview(), "goal_id": id, "gate": asked.gate,
        "decision": asked.outcome, "changed": !is_repeated, "registry_revision": place.registry.revision(),
    });
    if !mode.is_preview() && !is_repeated {
        let written = append(ports, &mut place, id, asked)?;
        is_repeated = written.is_none();
        answer["changed"] = json!(!is_repeated);
        if let Some(generated_at) = written {
            answer["generated_at"] = json!(generated_at);
        }
    }
    if asked.outcome == "approve" {
        let gate = asked.gate.clone();
        let edit = move |goal: &Goal, entry: &mut Map<String, Value>| release(goal, entry, &gate);
        let event = |_: &Goal, _: &Goal| {
            EventDraft::new("goal_config", "operator gate approved")
                .status("applied")
                .with("gate_id", asked.gate.clone())
        };
        let edited = registry_edit::apply(
            ports,
            mode,
            &Change {
                goal: id,
                expected: None,
                guard: registry_edit::ANY,
                edit: &edit,
                event: &event,
            },
        )?;
        answer["changed"] = json!(!is_repeated || edited.is_changed());
        answer["waiting_on"] = json!(edited.after.text("waiting_on"));
        answer["missing_gates"] = json!(edited.after.missing_gates);
        answer["registry_revision"] = json!(edited.revision);
        if let Some(after) = edited.revision_after {
            answer["registry_revision_after"] = json!(after);
        }
    }
    Ok(answer)
}

/// True when the same outcome rules already; a gate that was set again after it waits for a new decision.
fn is_decided(rows: Rows<'_>, goal: &Goal, asked: &Decision) -> Answer<bool> {
    if rows.gate_outcome(&goal.id, &asked.gate)?.as_deref() != Some(asked.outcome) {
        return Ok(false);
    }
    let mut released = goal.entry().clone();
    release(goal, &mut released, &asked.gate);
    if asked.outcome != "approve" || released == *goal.entry() {
        return Ok(true);
    }
    let known = rows.head(&goal.id)?.and_then(|head| head.entry_digest);
    let is_edited = known.is_some_and(|known| known != open::entry_digest(goal));
    Ok(!is_edited && !rows.configured_after_gate(&goal.id, &asked.gate)?)
}

/// Appends the decision; `None` when another process recorded the same one meanwhile.
fn append(
    ports: &Ports,
    place: &mut open::Place,
    id: &GoalId,
    asked: &Decision,
) -> Answer<Option<String>> {
    let mut writer = place.writer(ports)?;
    let mut tx = place.begin(ports, &mut writer)?;
    let now = Registry::read(place.registry.path())?;
    let goal = now.goal(id)?.ok_or_else(|| open::unknown_goal(id))?;
    if is_decided(tx.rows(), &goal, asked)? {
        return Ok(None);
    }
    let agent = asked.agent.as_ref().map(|agent| agent.as_str());
    let mut body = Map::new();
    body.insert("gate_id".to_owned(), json!(asked.gate));
    body.insert("outcome".to_owned(), json!(asked.outcome));
    body.extend(asked.words.clone());
    tx.decide_gate(&GateDecision {
        gate_id: asked.gate.clone(),
        outcome: asked.outcome.to_owned(),
        scope: None,
        agent_id: agent.map(str::to_owned),
        body: body.clone(),
    })?;
    let past = match asked.outcome {
        "approve" => "operator_gate_approved",
        "reject" => "operator_gate_rejected",
        _ => "operator_gate_deferred",
    };
    let at = tx.rows().free_run_instant(id, ports.now)?;
    let run = tx.put_run(
        RunKey {
            agent_id: agent,
            classification: past,
            effect_id: None,
        },
        at,
        body,
    )?;
    let draft = EventDraft::new("gate_decision", "operator gate decided")
        .agent(agent)
        .status(asked.outcome);
    tx.event(draft.with("gate_id", asked.gate.clone()))?;
    tx.commit()?;
    writer.bring_up_exports(id, ports.now);
    Ok(Some(run.generated_at.to_string()))
}

fn release(goal: &Goal, entry: &mut Map<String, Value>, gate: &str) {
    let left: Vec<&String> = goal
        .missing_gates
        .iter()
        .filter(|name| *name != gate)
        .collect();
    if left.len() != goal.missing_gates.len() {
        if left.is_empty() {
            entry.shift_remove("missing_gates");
        } else {
            entry.insert("missing_gates".to_owned(), json!(left));
        }
    }
    let is_waiting = matches!(
        entry.get("waiting_on").and_then(Value::as_str),
        Some("user_or_controller" | "controller")
    );
    if left.is_empty() && is_waiting {
        entry.insert("waiting_on".to_owned(), json!("codex"));
        entry.shift_remove("operator_question");
    }
}
