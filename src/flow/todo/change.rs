//! Changes of one todo that is there: claim, update, the outcome of a gate, supersession.

use serde_json::{Value, json};

use super::store::{change, unknown_todo};
use crate::contract::error::ErrorCode;
use crate::contract::event::EventDraft;
use crate::contract::ids::{AgentId, GoalId, TodoId};
use crate::contract::todo::{Status, Todo};
use crate::flow::mode::Mode;
use crate::flow::open::{self, Answer};
use crate::flow::ports::Ports;
use crate::kernel::periodic_report::goal_facts;
use crate::kernel::todo::{self, LeaseProof, Update};
use crate::store::journal::gate::GateDecision;
use crate::store::rows::Rows;

/// Takes a todo for an owner.
pub fn claim(
    (ports, mode): (&Ports, Mode),
    at: (&GoalId, &TodoId),
    (owner, actor): (&AgentId, &AgentId),
    proof: Option<&LeaseProof>,
) -> Answer {
    let mut place = open::goal(ports, at.0)?;
    place.require_actor(owner, ErrorCode::ActorNotRegistered)?;
    place.require_actor(actor, ErrorCode::ActorNotRegistered)?;
    change(
        (ports, mode),
        &mut place,
        (at.1, "loopx_todo_claim_v0"),
        &|todo, rows| {
            let taken = todo::claim(todo, owner, actor, ports.now)?;
            if taken.is_some() || proof.is_some() {
                let lease = rows.lease(at.0, at.1)?;
                let is_free = lease
                    .as_ref()
                    .is_none_or(|lease| !lease.is_live(ports.now) || &lease.owner == owner);
                if proof.is_some() || !is_free {
                    todo::check_lease(lease.as_ref(), proof, owner, ports.now)?;
                }
            }
            let draft = EventDraft::new("todo_claim", "todo claimed")
                .agent(Some(actor.as_str()))
                .status("claimed");
            Ok(taken.map(|taken| (taken, draft, None)))
        },
    )
}

/// Updates a todo, or records the outcome of a gate.
pub fn update(ports: &Ports, mode: Mode, at: (&GoalId, &TodoId), asked: &Update) -> Answer {
    let packet = updated(ports, mode, at, asked)?;
    Ok(with_next_step(packet, asked))
}

/// Work that was finished in nobody's name stays out of reports (generate.md 4): whoever finishes it so is told.
fn with_next_step(mut packet: Value, asked: &Update) -> Value {
    let record = packet.get("todo").and_then(Value::as_object).cloned();
    let todo = record.and_then(Todo::parse);
    let is_asked = asked.status == Some(Status::Done);
    if is_asked && todo.is_some_and(|todo| goal_facts::lacks_producer(&todo)) {
        packet["next_step"] = json!(
            "no agent is named as the one who did this, so reports leave it out; finish work with `--agent-id`, and to report \
             this one add it with `loopx todo add --claimed-by` and finish that one with `loopx todo complete --agent-id`"
        );
    }
    packet
}

fn updated(ports: &Ports, mode: Mode, at: (&GoalId, &TodoId), asked: &Update) -> Answer {
    let mut place = open::goal(ports, at.0)?;
    if let Some(agent) = &asked.agent {
        place.require_actor(agent, ErrorCode::ActorNotRegistered)?;
    }
    change(
        (ports, mode),
        &mut place,
        (at.1, "loopx_todo_update_v0"),
        &|todo, rows| {
            check_successors(
                rows,
                at.0,
                asked
                    .members
                    .iter()
                    .find(|(name, _)| *name == "completion_intent")
                    .map(|(_, value)| value),
            )?;
            let changed = todo::update(todo, asked, ports.now)?;
            if let Some(changed) = &changed {
                check_lease(ports, rows, (at.0, todo, changed), asked)?;
            }
            let agent = asked.agent.as_ref().map(|agent| agent.as_str());
            Ok(changed.map(|changed| match &asked.outcome {
                None => {
                    let draft = EventDraft::new("todo_update", "todo updated")
                        .agent(agent)
                        .status(changed.status().as_str());
                    (changed, draft, None)
                }
                Some(outcome) => {
                    let decision = decision(todo, outcome, agent);
                    let draft = EventDraft::new("gate_decision", "gate decided")
                        .agent(agent)
                        .status(outcome)
                        .with("gate_id", todo.id().as_str())
                        .detail("decision_scope", json!(todo.text("decision_scope")));
                    (changed, draft, Some(decision))
                }
            }))
        },
    )
}

fn decision(gate: &Todo, outcome: &str, agent: Option<&str>) -> GateDecision {
    let body = json!({
        "gate_id": gate.id(), "outcome": outcome, "decision_scope": gate.text("decision_scope"), "agent_id": agent,
        "blocks_agent": gate.text("blocks_agent"), "global_gate": gate.flag("global_gate"),
    });
    GateDecision {
        gate_id: gate.id().to_string(),
        outcome: outcome.to_owned(),
        scope: gate.text("decision_scope").map(str::to_owned),
        agent_id: agent.map(str::to_owned),
        body: body.as_object().cloned().unwrap_or_default(),
    }
}

/// Takes a todo out of the work because another stands in for it.
pub fn supersede(
    (ports, mode): (&Ports, Mode),
    at: (&GoalId, &TodoId),
    by: Option<&TodoId>,
    reason: Option<&str>,
) -> Answer {
    let mut place = open::goal(ports, at.0)?;
    change(
        (ports, mode),
        &mut place,
        (at.1, "loopx_todo_supersede_v0"),
        &|todo, rows| {
            if let Some(by) = by {
                rows.todo(at.0, by)?.ok_or_else(|| unknown_todo(by))?;
            }
            let superseded = todo::supersede(todo, by, reason, ports.now)?;
            // Nobody is named here, so any live lease is somebody else's.
            todo::require_unleased(rows.lease(at.0, at.1)?.as_ref(), None, ports.now)?;
            Ok(Some((
                superseded,
                EventDraft::new("todo_supersede", "todo superseded").status("done"),
                None,
            )))
        },
    )
}

/// A live lease holds a todo where it stands: no update finishes it, which takes the proof of `todo complete`, and no
/// other agent blocks it, puts it off or frees its claim. A person may still hold the work; a gate is the user's to decide.
fn check_lease(
    ports: &Ports,
    rows: Rows<'_>,
    (goal, before, after): (&GoalId, &Todo, &Todo),
    asked: &Update,
) -> Answer<()> {
    if asked.outcome.is_some() {
        return Ok(());
    }
    let finishes = before.status() != Status::Done && after.status() == Status::Done;
    let moves = before.status() != after.status() || asked.clear_claim;
    let lease = rows.lease(goal, before.id())?;
    if finishes {
        todo::require_unleased(lease.as_ref(), None, ports.now)?;
    } else if moves && asked.agent.is_some() {
        todo::require_unleased(lease.as_ref(), asked.agent.as_ref(), ports.now)?;
    }
    Ok(())
}

fn check_successors(rows: Rows<'_>, goal: &GoalId, intent: Option<&Value>) -> Answer<()> {
    let successors = intent
        .and_then(|intent| intent.get("successor_todo_ids"))
        .and_then(Value::as_array);
    for id in successors
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter_map(TodoId::new)
    {
        rows.todo(goal, &id)?.ok_or_else(|| unknown_todo(&id))?;
    }
    Ok(())
}
