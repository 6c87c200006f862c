//! `todo add|list|claim|update|complete|supersede|archive-completed`: plain bookkeeping, one transaction each.

use serde_json::{Map, Value, json};

use super::mode::Mode;
use super::open::{self, Answer, Place};
use super::ports::Ports;
use crate::contract::error::ErrorCode;
use crate::contract::event::EventDraft;
use crate::contract::ids::{AgentId, GoalId, TodoId, TurnInstanceId};
use crate::contract::packet::Refusal;
use crate::contract::settlement::{Binding, SettlementIdentity};
use crate::contract::todo::{Role, Status, Todo};
use crate::kernel::todo::{self, Completion, Continuation, LeaseProof, Update};
use crate::store::StoreError;
use crate::store::journal::gate::GateDecision;
use crate::store::rows::{Head, Rows};
use crate::store::state::GoalTx;

/// A todo as it is asked for.
#[derive(Clone, Debug)]
pub struct NewTodo {
    /// Who it is for.
    pub role: Role,
    /// Its words.
    pub words: String,
    /// Every further member in the order of the record.
    pub members: Vec<(&'static str, Value)>,
    /// The agents it names, which must be on the roster.
    pub agents: Vec<AgentId>,
}

/// Adds a todo.
pub fn add(ports: &Ports, mode: Mode, id: &GoalId, new: &NewTodo) -> Answer {
    let mut place = open::goal(ports, id)?;
    for agent in &new.agents {
        place.require_actor(agent, ErrorCode::ActorNotRegistered)?;
    }
    let fill = |todo: &mut Todo| {
        for (name, value) in &new.members {
            todo.set(name, value.clone());
        }
        todo.set("updated_at", json!(ports.now));
    };
    if mode.is_preview() {
        let head = head_of(&place)?;
        let mut todo = Todo::new(preview_id(&place, new)?, new.role, &new.words);
        fill(&mut todo);
        return Ok(packet(
            ("loopx_todo_add_v0", mode),
            &todo,
            true,
            &revision_text(head.as_ref()),
        ));
    }
    let mut writer = place.writer(ports)?;
    let mut tx = place.begin(ports, &mut writer)?;
    let words = crate::contract::text::collapse(&new.words);
    let (todo_id, seq) = tx.new_todo_id(new.role, &words)?;
    let mut todo = Todo::new(todo_id, new.role, &new.words);
    fill(&mut todo);
    tx.insert_todo(&todo, seq)?;
    let draft = EventDraft::new("todo_add", "todo added")
        .status("open")
        .todo(Some(todo.id().as_str()));
    tx.event(
        draft
            .agent(todo.claimed_by())
            .detail("role", new.role.as_str()),
    )?;
    let head = tx.commit()?;
    writer.bring_up_exports(id, ports.now);
    Ok(packet(
        ("loopx_todo_add_v0", mode),
        &todo,
        true,
        &head.provider_revision(),
    ))
}

/// The id the next todo of these words would get.
fn preview_id(place: &Place, new: &NewTodo) -> Answer<TodoId> {
    let seq = match place.reader()? {
        Some(reader) => reader.rows().next_todo_number(&place.goal.id)?,
        None => 1,
    };
    let words = crate::contract::text::collapse(&new.words);
    let suffix = crate::contract::digest::todo_suffix(new.role.as_str(), "", seq, &words);
    TodoId::new(format!("todo_{suffix}"))
        .ok_or_else(|| StoreError::Corrupt("a generated todo id has another form").into())
}

/// Lists the todos of a goal, full records.
pub fn list(ports: &Ports, id: &GoalId, with_archived: bool) -> Answer {
    let place = open::goal(ports, id)?;
    let reader = place.reader()?;
    let (todos, head) = match &reader {
        Some(reader) => (reader.rows().all_todos(id)?, reader.rows().head(id)?),
        None => (Vec::new(), None),
    };
    let shown: Vec<Value> = todos
        .iter()
        .filter(|todo| with_archived || !todo.is_archived())
        .map(Todo::to_value)
        .collect();
    let mut packet = json!({
        "ok": true, "schema_version": "loopx_todo_list_v0", "goal_id": id, "todos": [],
        "provider_revision": revision_text(head.as_ref()),
    });
    packet["todos"] = Value::Array(shown);
    Ok(packet)
}

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
            Ok(Some((
                superseded,
                EventDraft::new("todo_supersede", "todo superseded").status("done"),
                None,
            )))
        },
    )
}

/// Puts finished todos away: one, or all of a goal.
pub fn archive_completed(ports: &Ports, mode: Mode, id: &GoalId, only: Option<&TodoId>) -> Answer {
    let mut place = open::goal(ports, id)?;
    if let Some(only) = only {
        return change(
            (ports, mode),
            &mut place,
            (only, "loopx_todo_archive_v0"),
            &|todo, _| {
                let archived = todo::archive(todo, ports.now)?;
                Ok(Some((
                    archived,
                    EventDraft::new("todo_update", "todo archived").status("archived"),
                    None,
                )))
            },
        );
    }
    let reader = place.reader()?;
    let done = match &reader {
        Some(reader) => reader.rows().done_and_active(id)?,
        None => Vec::new(),
    };
    drop(reader);
    let mut answer = json!({
        "ok": true, "schema_version": "loopx_todo_archive_v0", "dry_run": mode.is_preview(), "goal_id": id,
        "changed": !done.is_empty(), "archived_todo_ids": done.iter().map(|todo| todo.id().clone()).collect::<Vec<_>>(),
    });
    if mode.is_preview() || done.is_empty() {
        return Ok(answer);
    }
    let mut writer = place.writer(ports)?;
    let mut tx = place.begin(ports, &mut writer)?;
    for before in tx.rows().done_and_active(id)? {
        let Ok(after) = todo::archive(&before, ports.now) else {
            continue;
        };
        tx.update_todo(&before, &after, None)?;
        let draft = EventDraft::new("todo_update", "todo archived").status("archived");
        tx.event(draft.todo(Some(after.id().as_str())))?;
    }
    answer["provider_revision"] = json!(tx.commit()?.provider_revision());
    writer.bring_up_exports(id, ports.now);
    Ok(answer)
}

type Step = Option<(Todo, EventDraft, Option<GateDecision>)>;

/// Changes one todo by a pure transition, inside one transaction.
fn change(
    (ports, mode): (&Ports, Mode),
    place: &mut Place,
    (id, schema): (&TodoId, &str),
    step: &dyn Fn(&Todo, Rows<'_>) -> Answer<Step>,
) -> Answer {
    let goal = place.goal.id.clone();
    if mode.is_preview() {
        let reader = place.reader()?.ok_or_else(|| unknown_todo(id))?;
        let before = reader
            .rows()
            .todo(&goal, id)?
            .ok_or_else(|| unknown_todo(id))?
            .todo;
        let changed = step(&before, reader.rows())?.map(|(after, ..)| after);
        let head = reader.rows().head(&goal)?;
        return Ok(packet(
            (schema, mode),
            changed.as_ref().unwrap_or(&before),
            changed.is_some(),
            &revision_text(head.as_ref()),
        ));
    }
    let mut writer = place.writer(ports)?;
    let mut tx = place.begin(ports, &mut writer)?;
    let before = tx
        .rows()
        .todo(&goal, id)?
        .ok_or_else(|| unknown_todo(id))?
        .todo;
    let Some((after, draft, decision)) = step(&before, tx.rows())? else {
        let head = tx.head().clone();
        drop(tx);
        writer.bring_up_exports(&goal, ports.now);
        return Ok(packet(
            (schema, mode),
            &before,
            false,
            &head.provider_revision(),
        ));
    };
    store_change(&mut tx, &before, &after, draft)?;
    if let Some(decision) = decision {
        tx.decide_gate(&decision)?;
    }
    let head = tx.commit()?;
    writer.bring_up_exports(&goal, ports.now);
    Ok(packet(
        (schema, mode),
        &after,
        true,
        &head.provider_revision(),
    ))
}

/// Stores one changed todo with its event; a completion is filed under the event's own instant.
pub fn store_change(
    tx: &mut GoalTx<'_>,
    before: &Todo,
    after: &Todo,
    draft: EventDraft,
) -> Result<(), StoreError> {
    let is_superseded = after.get("superseded_by").is_some();
    let is_completed =
        before.status() != Status::Done && after.status() == Status::Done && !is_superseded;
    let event = tx.event(draft.todo(Some(after.id().as_str())))?;
    tx.update_todo(before, after, is_completed.then_some(event.recorded_at))
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

/// The refusal of a todo that does not exist.
pub fn unknown_todo(id: &TodoId) -> Refusal {
    Refusal::new(
        ErrorCode::TodoNotFound,
        "this goal has no such todo; `loopx todo list` shows what it has",
    )
    .with("todo_id", id.as_str())
}

fn head_of(place: &Place) -> Answer<Option<Head>> {
    Ok(match place.reader()? {
        Some(reader) => reader.rows().head(&place.goal.id)?,
        None => None,
    })
}

/// The revision of a goal that may have no rows yet.
pub fn revision_text(head: Option<&Head>) -> String {
    head.map_or_else(|| "rev-0:000000000000".to_owned(), Head::provider_revision)
}

fn packet((schema, mode): (&str, Mode), todo: &Todo, is_changed: bool, revision: &str) -> Value {
    let mut packet = Map::new();
    packet.insert("ok".to_owned(), json!(true));
    packet.insert("schema_version".to_owned(), json!(schema));
    packet.insert("dry_run".to_owned(), json!(mode.is_preview()));
    packet.insert("todo_id".to_owned(), json!(todo.id()));
    packet.insert("changed".to_owned(), json!(is_changed));
    packet.insert("todo".to_owned(), todo.to_value());
    packet.insert("provider_revision".to_owned(), json!(revision));
    Value::Object(packet)
}
