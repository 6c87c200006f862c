//! Reads what a decision is made from, in one look at the rows.

use super::open::{Answer, Place};
use crate::contract::goal::Goal;
use crate::contract::ids::{AgentId, GoalId, TurnInstanceId};
use crate::contract::settlement::{Binding, SettlementIdentity};
use crate::contract::time::Timestamp;
use crate::contract::todo::{Role, Status};
use crate::kernel::intent;
use crate::kernel::quota::frontier;
use crate::kernel::quota::refused_gate::{RefusedGate, Ruling};
use crate::kernel::quota::snapshot::{Owed, Question, Snapshot, Spent, TurnFacts};
use crate::store::StoreError;
use crate::store::journal::gate::Refused;
use crate::store::rows::{Rows, micros};

/// The snapshot of a goal, from its rows; a goal without rows has nothing in it.
pub fn take(place: &Place, rows: Option<Rows<'_>>, question: &Question) -> Answer<Snapshot> {
    let mut snapshot = empty(place);
    let Some(rows) = rows else {
        return Ok(snapshot);
    };
    let goal = &place.goal.id;
    snapshot.provider_revision = super::todo::revision_text(rows.head(goal)?.as_ref());
    snapshot.agent_todos = rows.unfinished(goal, Role::Agent)?;
    snapshot.user_todos = rows.unfinished(goal, Role::User)?;
    snapshot.done = (
        rows.todo_count(goal, Role::Agent, Status::Done)?,
        rows.todo_count(goal, Role::User, Status::Done)?,
    );
    if let Some(todo) = &question.todo {
        snapshot.named = rows.todo(goal, todo)?.map(|stored| stored.todo);
    }
    snapshot.refusals = rows.refusals(goal)?.iter().map(refused_gate).collect();
    for awaited in snapshot
        .agent_todos
        .iter()
        .flat_map(frontier::awaited_todos)
        .collect::<Vec<_>>()
    {
        if !snapshot.awaited.contains_key(&awaited)
            && let Some(stored) = rows.todo(goal, &awaited)?
        {
            snapshot.awaited.insert(awaited, stored.todo.status());
        }
    }
    let leases = rows.active_leases(goal, question.now)?;
    let by_todo = leases
        .into_iter()
        .map(|lease| (lease.todo_id.clone(), lease));
    snapshot.leases = by_todo.collect();
    snapshot.spent = spent(rows, &place.goal, question.now)?;
    snapshot.has_open_vision = rows.has_open_vision(goal)?;
    if snapshot.agent_todos.is_empty() {
        snapshot.ends_without_followup = ends_without_followup(rows, &place.goal)?;
    }
    snapshot.latest_recommendation = rows.latest_recommendation(goal)?;
    if let Some(agent) = &question.agent {
        of_agent(&mut snapshot, rows, agent, question)?;
    }
    Ok(snapshot)
}

fn empty(place: &Place) -> Snapshot {
    Snapshot {
        goal: place.goal.clone(),
        registry_revision: place.registry.revision().to_owned(),
        provider_revision: super::todo::revision_text(None),
        agent_todos: Vec::new(),
        user_todos: Vec::new(),
        done: (0, 0),
        named: None,
        refusals: Vec::new(),
        awaited: Default::default(),
        leases: Default::default(),
        spent: Spent::default(),
        vision: None,
        has_open_vision: false,
        vision_seq: None,
        checkpoint: None,
        last_ack: None,
        ends_without_followup: false,
        latest_recommendation: None,
        turn: TurnFacts::default(),
        owed: None,
        intent: None,
    }
}

/// A stored refusal as decisions use it.
pub fn refused_gate(row: &Refused) -> RefusedGate {
    let ruling = match (row.is_latest_of_scope, row.is_latest_of_gate) {
        (true, true) => Ruling::Whole,
        (true, false) => Ruling::Scope,
        (false, _) => Ruling::Gate,
    };
    let decided = (row.gate_id.as_str(), row.outcome.as_str());
    RefusedGate::new(decided, row.scope.as_deref(), &row.body, ruling)
}

/// What was spent inside the goal's rolling window.
pub fn spent(rows: Rows<'_>, goal: &Goal, now: Timestamp) -> Result<Spent, StoreError> {
    let since = micros(now).saturating_sub(goal.quota.window_micros());
    let sum = rows.spent_since(&goal.id, since)?;
    Ok(Spent {
        slots: sum.slots,
        spends: sum.spends,
        voids: sum.voids,
    })
}

fn ends_without_followup(rows: Rows<'_>, goal: &Goal) -> Result<bool, StoreError> {
    let last = rows.last_done(&goal.id)?;
    Ok(last.is_some_and(|todo| {
        todo.flag("no_followup") && todo.text("completion_continuation") == Some("no_followup")
    }))
}

fn of_agent(
    snapshot: &mut Snapshot,
    rows: Rows<'_>,
    agent: &AgentId,
    question: &Question,
) -> Result<(), StoreError> {
    let goal = snapshot.goal.id.clone();
    snapshot.vision = rows.vision(&goal, agent)?;
    snapshot.vision_seq = rows.vision_seq(&goal, agent)?;
    snapshot.checkpoint = rows.checkpoint(&goal, agent)?;
    snapshot.last_ack = rows.last_ack(&goal, agent)?;
    if let Some(instance) = &question.instance {
        snapshot.turn = turn_facts(rows, &snapshot.goal, agent, instance)?;
    }
    let current = question.instance.as_ref().map(|instance| instance.as_str());
    snapshot.owed = owed(rows, (&goal, agent), current)?;
    if intent::is_subscribed(&snapshot.goal) {
        let receipts = rows.recorded_intents(&goal, agent)?;
        let intents = receipts
            .iter()
            .filter_map(|receipt| receipt.intent.as_ref());
        snapshot.intent = intents
            .filter_map(|intent| intent::projection(&snapshot.goal, agent, intent))
            .next();
    }
    Ok(())
}

/// What the newest unpaid writeback of an agent owes, but for one Turn; one whose run is gone counts for nothing.
pub fn owed(
    rows: Rows<'_>,
    (goal, agent): (&GoalId, &AgentId),
    but: Option<&str>,
) -> Result<Option<Owed>, StoreError> {
    let Some(writeback) = rows.latest_owed_writeback(goal, agent, but)? else {
        return Ok(None);
    };
    let identity = writeback
        .body
        .get("identity")
        .and_then(SettlementIdentity::parse);
    let identity = identity.ok_or(StoreError::Corrupt("a writeback names no identity"))?;
    Ok(Some(Owed {
        lacks_receipt: rows.event(&writeback.event_id)?.is_none(),
        identity,
    }))
}

/// What is stored about one Turn instance.
pub fn turn_facts(
    rows: Rows<'_>,
    goal: &Goal,
    agent: &AgentId,
    instance: &TurnInstanceId,
) -> Result<TurnFacts, StoreError> {
    let Some(admission) = rows.admission(&goal.id, agent, instance)? else {
        return Ok(TurnFacts::default());
    };
    let identity = SettlementIdentity {
        goal: goal.id.clone(),
        agent: agent.clone(),
        binding: admission.binding,
        instance: instance.clone(),
    };
    if identity.binding == Binding::Unbound {
        return Ok(TurnFacts {
            admitted: Some(identity),
            ..TurnFacts::default()
        });
    }
    let effect = identity.effect_id();
    let writeback = rows.writeback(&effect)?;
    let is_closed = writeback
        .as_ref()
        .is_some_and(|writeback| writeback.closeout_kind.is_some());
    let is_settled = is_closed || rows.spend(&effect)?.is_some();
    Ok(TurnFacts {
        admitted: Some(identity),
        is_written_back: writeback.is_some(),
        is_settled,
    })
}
