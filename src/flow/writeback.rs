//! The durable writeback: run, vision, acknowledgement, completion and the receipt of the Turn, in one transaction.

use serde_json::{Map, Value, json};

use super::open::{Answer, Place};
use super::{snapshot, todo as todo_flow};
use crate::contract::error::ErrorCode;
use crate::contract::event::EventDraft;
use crate::contract::ids::AgentId;
use crate::contract::packet::Refusal;
use crate::contract::settlement::{Binding, SettlementIdentity};
use crate::contract::vision::Vision;
use crate::kernel::checkpoint::{self, CheckpointFacts, StageFacts};
use crate::kernel::quota::frontier::Frontier;
use crate::kernel::quota::snapshot::{Question, Snapshot};
use crate::kernel::refresh::Content;
use crate::kernel::replan::{self, Obligation};
use crate::kernel::todo::{self, Completion, Continuation};
use crate::store::journal::run::{RunKey, RunRow};
use crate::store::journal::settlement::Writeback;
use crate::store::journal::vision::StoredCheckpoint;
use crate::store::state::{EventRow, GoalTx};

/// One writeback as it is asked for.
#[derive(Clone, Debug)]
pub struct Ask<'a> {
    /// The Turn it belongs to; none for an unbound refresh.
    pub identity: Option<&'a SettlementIdentity>,
    /// The acting agent.
    pub agent: Option<&'a AgentId>,
    /// What is written.
    pub content: &'a Content,
    /// How the bound todo is completed with it.
    pub completion: Option<Continuation>,
    /// How the Turn is closed without a spend.
    pub closeout_kind: Option<&'static str>,
    /// Further members of the run.
    pub more: Map<String, Value>,
}

/// What was written.
#[derive(Clone, Debug)]
pub struct Written {
    /// The run.
    pub run: RunRow,
    /// The vision.
    pub vision: Option<Vision>,
    /// The checkpoint.
    pub checkpoint: Value,
    /// The acknowledgement.
    pub acknowledgement: Option<Value>,
    /// The stage receipt that follows.
    pub stage: Option<Value>,
    /// The completed todo.
    pub completed: Option<Value>,
}

/// Writes back inside the caller's transaction.
pub fn write_back(
    tx: &mut GoalTx<'_>,
    place: &Place,
    question: &Question,
    ask: &Ask<'_>,
) -> Answer<Written> {
    let before = snapshot::take(place, Some(tx.rows()), question)?;
    let generated_at = tx.rows().free_run_instant(&place.goal.id, tx.now())?;
    let instant = generated_at.to_string();
    let vision = written_vision(ask, &instant)?;
    let acknowledgement = acknowledge(&before, question, ask, vision.as_ref())?;
    let checkpoint = make_checkpoint(tx, &before, ask, (vision.as_ref(), &instant))?;
    let completed = complete(tx, ask)?;
    let record = record(ask, vision.as_ref(), &checkpoint, acknowledgement.as_ref());
    let effect = ask.identity.map(SettlementIdentity::effect_id);
    let key = RunKey {
        agent_id: ask.agent.map(AgentId::as_str),
        classification: &ask.content.classification,
        effect_id: effect.as_deref(),
    };
    let run = tx.put_run(key, generated_at, record)?;
    store_meaning(
        tx,
        ask,
        &run,
        (vision.as_ref(), &checkpoint, acknowledgement.as_ref()),
    )?;
    let current = match ask.agent {
        Some(agent) => tx.rows().vision(&place.goal.id, agent)?,
        None => None,
    };
    let look = StageLook {
        before: before.vision.as_ref(),
        current: current.as_ref(),
        checkpoint: &checkpoint,
        acknowledgement: acknowledgement.as_ref(),
    };
    let stage = stage(tx, (place, question), ask, &look)?;
    let event = tx.event(event(ask, stage.as_ref(), effect.as_deref()))?;
    if let Some(vision) = &vision {
        let draft = EventDraft::new("vision", "vision written")
            .agent(ask.agent.map(AgentId::as_str))
            .status(vision.state());
        tx.event(draft)?;
    }
    if let Some(identity) = ask.identity {
        store_receipt(tx, ask, identity, (&run, &event, stage.as_ref()))?;
    }
    Ok(Written {
        run,
        vision,
        checkpoint,
        acknowledgement,
        stage,
        completed,
    })
}

fn written_vision(ask: &Ask<'_>, instant: &str) -> Answer<Option<Vision>> {
    let (Some(value), Some(agent)) = (&ask.content.vision, ask.agent) else {
        return Ok(None);
    };
    let mut vision = Vision::parse(value, agent)?;
    vision.set_generated_at(instant);
    Ok(Some(vision))
}

/// The acknowledgement of a replan: its obligation has to be the current one and its delta accepted.
fn acknowledge(
    before: &Snapshot,
    question: &Question,
    ask: &Ask<'_>,
    vision: Option<&Vision>,
) -> Answer<Option<Value>> {
    let Some(identity) = ask.identity else {
        return Ok(None);
    };
    let Binding::Replan(id) = &identity.binding else {
        return Ok(None);
    };
    let frontier = Frontier::new(before, question);
    let current = Obligation::derive(
        before,
        &identity.agent,
        replan::has_runnable_advancement(&frontier),
    );
    let current = current.filter(|current| &current.id == id).ok_or_else(|| {
        let text = "the obligation is not the current one; ask `loopx quota should-run` again";
        Refusal::new(ErrorCode::ReplanObligationMismatch, text)
    })?;
    let has_successor = frontier
        .work
        .iter()
        .any(|(todo, hold)| hold.is_none() && replan::is_successor(todo, id, &identity.agent));
    let outcomes = replan::outcomes(vision, has_successor);
    if outcomes.is_empty() {
        let text = "the replan satisfies none of the outcomes; add a successor todo or a fresh vision with evidence";
        return Err(Refusal::new(ErrorCode::ReplanDeltaNotAccepted, text)
            .with("required_any_of", json!(replan::REQUIRED_ANY_OF)));
    }
    Ok(Some(replan::acknowledgement(
        &current,
        &outcomes,
        &ask.content.delta_kinds,
    )))
}

fn make_checkpoint(
    tx: &GoalTx<'_>,
    before: &Snapshot,
    ask: &Ask<'_>,
    (vision, instant): (Option<&Vision>, &str),
) -> Answer<Value> {
    let Some(agent) = ask.agent else {
        return Ok(Value::Null);
    };
    let known = match &ask.content.next_action {
        Some(_) => tx.rows().last_next_action(&before.goal.id, agent)?,
        None => None,
    };
    let next_action_changed = known.is_some() && ask.content.next_action != known;
    let facts = CheckpointFacts {
        agent,
        outcome: ask.content.outcome.as_deref(),
        boundary: ask.content.effective_boundary(ask.identity.is_some()),
        next_action_changed,
        written: vision,
        before: before.vision.as_ref(),
        unchanged_reason: ask.content.unchanged_reason.as_deref(),
        generated_at: instant,
    };
    Ok(checkpoint::checkpoint(&facts))
}

/// Completes the bound todo with the writeback, as its declared intent says.
fn complete(tx: &mut GoalTx<'_>, ask: &Ask<'_>) -> Answer<Option<Value>> {
    let (Some(continuation), Some(identity)) = (&ask.completion, ask.identity) else {
        return Ok(None);
    };
    let Some(todo_id) = identity.binding.todo() else {
        return Ok(None);
    };
    let stored = tx
        .rows()
        .todo(&identity.goal, todo_id)?
        .ok_or_else(|| todo_flow::unknown_todo(todo_id))?
        .todo;
    let now = tx.now();
    let lease = tx.rows().lease(&identity.goal, todo_id)?;
    todo::require_unleased(lease.as_ref(), Some(&identity.agent), now)?;
    let completion = Completion {
        agent: &identity.agent,
        continuation: continuation.clone(),
        evidence: None,
        note: None,
        instance: Some(&identity.instance),
        is_turn_settled: false,
        now,
    };
    let Some(done) = todo::complete(&stored, &completion)? else {
        return Ok(Some(stored.to_value()));
    };
    let draft = todo_flow::completion_event(&done, &identity.agent, Some(&identity.instance));
    todo_flow::store_change(tx, &stored, &done, draft)?;
    Ok(Some(done.to_value()))
}

fn record(
    ask: &Ask<'_>,
    vision: Option<&Vision>,
    checkpoint: &Value,
    acknowledgement: Option<&Value>,
) -> Map<String, Value> {
    let content = ask.content;
    let mut record = Map::new();
    let mut put = |name: &str, value: Value| {
        if !value.is_null() {
            record.insert(name.to_owned(), value);
        }
    };
    put("recommended_action", json!(content.recommended_action));
    put("next_action", json!(content.next_action));
    put("delivery_batch_scale", json!(content.scale));
    put("delivery_outcome", json!(content.outcome));
    put(
        "delivery_boundary",
        json!(content.effective_boundary(ask.identity.is_some())),
    );
    put(
        "progress_scope",
        json!(content.progress_scope.as_deref().unwrap_or("goal")),
    );
    put("agent_lane", json!(content.agent_lane));
    put(
        "settlement_identity",
        ask.identity
            .map_or(Value::Null, SettlementIdentity::to_value),
    );
    put("agent_vision", vision.map_or(Value::Null, Vision::to_value));
    put("vision_checkpoint", checkpoint.clone());
    put("vision_unchanged_reason", json!(content.unchanged_reason));
    put(
        "autonomous_replan_ack",
        acknowledgement.cloned().unwrap_or(Value::Null),
    );
    record.extend(ask.more.clone());
    record
}

fn store_meaning(
    tx: &GoalTx<'_>,
    ask: &Ask<'_>,
    run: &RunRow,
    meaning: (Option<&Vision>, &Value, Option<&Value>),
) -> Answer<()> {
    let Some(agent) = ask.agent else {
        return Ok(());
    };
    let (vision, checkpoint, acknowledgement) = meaning;
    if let Some(vision) = vision {
        tx.put_vision(agent, vision)?;
    }
    if checkpoint.get("required") == Some(&Value::Bool(true)) {
        let effect = ask.identity.map(SettlementIdentity::effect_id);
        let decision = checkpoint
            .get("decision")
            .and_then(Value::as_str)
            .unwrap_or("");
        let stored = StoredCheckpoint {
            run_seq: run.seq,
            decision,
            effect_id: effect.as_deref(),
            body: checkpoint,
        };
        tx.put_checkpoint(agent, &stored)?;
    }
    if let (Some(acknowledgement), Some(id)) = (
        acknowledgement,
        ask.identity
            .and_then(|identity| identity.binding.obligation()),
    ) {
        tx.put_ack(
            (agent, id),
            (&run.generated_at.to_string(), run.seq),
            acknowledgement,
        )?;
    }
    Ok(())
}

/// What a stage receipt is derived from, beside the frontier.
pub struct StageLook<'a> {
    /// The agent's vision before the writeback.
    pub before: Option<&'a Vision>,
    /// The agent's vision after it.
    pub current: Option<&'a Vision>,
    /// The checkpoint of the writeback.
    pub checkpoint: &'a Value,
    /// The acknowledgement of the writeback.
    pub acknowledgement: Option<&'a Value>,
}

/// Derives the stage receipt from the state this transaction leaves behind.
pub fn stage(
    tx: &GoalTx<'_>,
    (place, question): (&Place, &Question),
    ask: &Ask<'_>,
    look: &StageLook<'_>,
) -> Answer<Option<Value>> {
    let (Some(_), Some(agent)) = (ask.identity, ask.agent) else {
        return Ok(None);
    };
    let after = snapshot::take(place, Some(tx.rows()), question)?;
    let frontier = Frontier::new(&after, question);
    let obligation = Obligation::derive(&after, agent, replan::has_runnable_advancement(&frontier));
    let projection = replan::frontier_projection(&after, question, obligation.as_ref());
    let closing = match look.before.and_then(Vision::generated_at) {
        Some(at) => tx
            .rows()
            .run(&place.goal.id, at)?
            .and_then(|run| run.body.get("vision_checkpoint").cloned()),
        None => None,
    };
    Ok(checkpoint::stage(&StageFacts {
        agent,
        current: look.current,
        before: look.before,
        checkpoint: look.checkpoint,
        closing_checkpoint: closing.as_ref(),
        acknowledgement: look.acknowledgement,
        frontier: &projection,
    }))
}

/// The event of a writeback; a stage receipt is flattened into its details.
pub fn event(ask: &Ask<'_>, stage: Option<&Value>, effect: Option<&str>) -> EventDraft {
    let identity = ask.identity;
    let mut draft = EventDraft::new("refresh_state", "state refreshed")
        .agent(ask.agent.map(AgentId::as_str))
        .todo(
            identity
                .and_then(|identity| identity.binding.todo())
                .map(|todo| todo.as_str()),
        )
        .run(identity.map(|identity| identity.instance.as_str()))
        .status("appended")
        .detail("classification", ask.content.classification.as_str());
    if let Some(outcome) = &ask.content.outcome {
        draft = draft.detail("delivery_outcome", outcome.as_str());
    }
    if ask.content.replan_recorded {
        draft = draft.detail("autonomous_replan_recorded", true);
    }
    if let Some(stage) = stage {
        let word = |name: &str| stage.get(name).cloned().unwrap_or(Value::Null);
        draft = draft
            .detail("stage_identity", word("stage_identity"))
            .detail("stage_completion_schema", word("schema_version"))
            .detail("stage_transition", word("transition"))
            .detail("stage_acceptance", word("acceptance"))
            .detail("stage_completed_at", word("completed_at"))
            .detail(
                "stage_outcome_checkpoint_satisfied",
                word("outcome_checkpoint_satisfied"),
            )
            .detail(
                "stage_durable_writeback_required",
                word("durable_writeback_required"),
            )
            .detail("closed_vision_revision", word("closed_vision_revision"))
            .detail("frontier_identity", word("frontier_identity"));
    }
    match effect {
        Some(effect) => draft.once(effect),
        None => draft,
    }
}

/// The member of a writeback row that keeps its stage receipt.
pub const STAGE: &str = "stage";

fn store_receipt(
    tx: &GoalTx<'_>,
    ask: &Ask<'_>,
    identity: &SettlementIdentity,
    (run, event, stage): (&RunRow, &EventRow, Option<&Value>),
) -> Answer<()> {
    let effect = identity.effect_id();
    let mut body = Map::new();
    body.insert("identity".to_owned(), identity.to_value());
    if let Some(stage) = stage {
        // The todos it was derived from may be finished by the time the event has to be made again.
        body.insert(STAGE.to_owned(), stage.clone());
    }
    let writeback = Writeback {
        effect_id: effect.clone(),
        instance: identity.instance.to_string(),
        run_generated_at: run.generated_at.to_string(),
        run_seq: run.seq,
        event_id: event.event_id.clone(),
        closeout_kind: ask.closeout_kind.map(str::to_owned),
        mutation_digest: ask.content.mutation_digest(),
        vision_digest: ask.content.vision_digest(),
        body,
    };
    tx.put_writeback(&identity.agent, &writeback)?;
    tx.put_step(
        &effect,
        "durable_writeback",
        Some(&writeback.run_generated_at),
    )?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::ids::{GoalId, ReplanObligationId, TurnInstanceId};
    use crate::contract::time::Timestamp;

    #[test]
    fn the_stage_event_of_the_worked_sequence_is_reproduced() {
        let identity = SettlementIdentity {
            goal: GoalId::new("demo-goal").unwrap(),
            agent: AgentId::new("lane-a").unwrap(),
            binding: Binding::Replan(ReplanObligationId::new("replan-90740ca02eede1e1").unwrap()),
            instance: TurnInstanceId::new("turn-2").unwrap(),
        };
        let content = Content {
            classification: "stage_replanned".into(),
            outcome: Some("outcome_progress".into()),
            replan_recorded: true,
            ..Content::default()
        };
        let ask = Ask {
            identity: Some(&identity),
            agent: Some(&identity.agent),
            content: &content,
            completion: None,
            closeout_kind: None,
            more: Map::new(),
        };
        let stage = json!({
            "schema_version": "periodic_report_stage_completion_receipt_v0", "stage_identity": "stage-09b253db07499b3a",
            "transition": "successor_frontier_settled", "acceptance": "validated", "completed_at": "2026-09-18T09:20:00Z",
            "outcome_checkpoint_satisfied": true, "durable_writeback_required": true,
            "closed_vision_revision": "2026-09-18T09:00:00Z", "frontier_identity": "replan-90740ca02eede1e1",
        });
        let at = Timestamp::parse("2026-09-18T09:20:00Z").unwrap();
        let (id, _) = event(&ask, Some(&stage), None)
            .body(&identity.goal, at)
            .unwrap();
        assert_eq!(id, "68314a0d630b6915");
    }
}
