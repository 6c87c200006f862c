//! Completion: how a finished todo goes on, under the proof of its lease.

use serde_json::json;

use super::store::{change, unknown_todo};
use crate::contract::error::ErrorCode;
use crate::contract::event::EventDraft;
use crate::contract::ids::{AgentId, GoalId, TodoId, TurnInstanceId};
use crate::contract::settlement::{Binding, SettlementIdentity};
use crate::contract::todo::{Status, Todo};
use crate::flow::mode::Mode;
use crate::flow::open::{self, Answer};
use crate::flow::ports::Ports;
use crate::kernel::todo::{self, Completion, Continuation, LeaseProof};
use crate::store::rows::Rows;

/// A completion as the command line asks for it.
#[derive(Clone, Debug)]
pub struct Complete {
    /// The acting agent.
    pub agent: AgentId,
    /// How it goes on.
    pub continuation: Continuation,
    /// What was found.
    pub evidence: Option<String>,
    /// A remark.
    pub note: Option<String>,
    /// The Turn it belongs to.
    pub instance: Option<TurnInstanceId>,
    /// The proof of a live lease.
    pub proof: Option<LeaseProof>,
}

/// Completes a todo.
pub fn complete(ports: &Ports, mode: Mode, at: (&GoalId, &TodoId), asked: &Complete) -> Answer {
    let mut place = open::goal(ports, at.0)?;
    place.require_actor(&asked.agent, ErrorCode::ActorNotRegistered)?;
    change(
        (ports, mode),
        &mut place,
        (at.1, "loopx_todo_complete_v0"),
        &|todo, rows| {
            if let Continuation::Successor(successors) = &asked.continuation {
                for successor in successors {
                    rows.todo(at.0, successor)?
                        .ok_or_else(|| unknown_todo(successor))?;
                }
            }
            if todo.status() != Status::Done {
                todo::check_lease(
                    rows.lease(at.0, at.1)?.as_ref(),
                    asked.proof.as_ref(),
                    &asked.agent,
                    ports.now,
                )?;
            }
            let completion = Completion {
                agent: &asked.agent,
                continuation: asked.continuation.clone(),
                evidence: asked.evidence.as_deref(),
                note: asked.note.as_deref(),
                instance: asked.instance.as_ref(),
                is_turn_settled: is_settled(rows, at, asked)?,
                now: ports.now,
            };
            let done = todo::complete(todo, &completion)?;
            Ok(done.map(|done| {
                (
                    done.clone(),
                    completion_event(&done, &asked.agent, asked.instance.as_ref()),
                    None,
                )
            }))
        },
    )
}

/// The event of a completion.
pub fn completion_event(
    done: &Todo,
    agent: &AgentId,
    instance: Option<&TurnInstanceId>,
) -> EventDraft {
    EventDraft::new("todo_complete", "todo completed")
        .agent(Some(agent.as_str()))
        .run(instance.map(|instance| instance.as_str()))
        .status("done")
        .detail(
            "completion_continuation",
            json!(done.text("completion_continuation")),
        )
}

fn is_settled(rows: Rows<'_>, at: (&GoalId, &TodoId), asked: &Complete) -> Answer<bool> {
    let Some(instance) = &asked.instance else {
        return Ok(false);
    };
    let identity = SettlementIdentity {
        goal: at.0.clone(),
        agent: asked.agent.clone(),
        binding: Binding::Todo(at.1.clone()),
        instance: instance.clone(),
    };
    Ok(rows.spend(&identity.effect_id())?.is_some())
}
