//! Settlement inside one transaction: the spend, and what is known about a Turn's steps.
//!
//! A step counts when its row and its event both exist and match their digests; the exported files are not looked at.

use serde_json::{Map, Value, json};

use super::open::{Answer, Place};
use super::snapshot;
use crate::contract::error::ErrorCode;
use crate::contract::event::EventDraft;
use crate::contract::goal::Goal;
use crate::contract::packet::Refusal;
use crate::contract::settlement::{Binding, SettlementIdentity};
use crate::kernel::quota::policy::{self, QuotaState};
use crate::kernel::quota::snapshot::{Question, Spent};
use crate::store::StoreError;
use crate::store::journal::run::RunKey;
use crate::store::journal::settlement::{Spend, Writeback};
use crate::store::rows::Rows;
use crate::store::state::GoalTx;

/// Where a Turn's settlement stands.
#[derive(Clone, Debug)]
pub struct Steps {
    /// The committed writeback.
    pub writeback: Option<Writeback>,
    /// The committed spend.
    pub spend: Option<Spend>,
    /// A writeback whose event is gone.
    pub writeback_lacks_event: bool,
    /// A debit whose event is gone.
    pub spend_lacks_event: bool,
}

/// Reads the steps of a Turn and checks each against its run and its event.
pub fn steps(rows: Rows<'_>, identity: &SettlementIdentity) -> Answer<Steps> {
    let effect = identity.effect_id();
    let writeback = rows.writeback(&effect)?;
    let spend = rows.spend(&effect)?;
    require_whole(rows, identity, (writeback.is_some(), spend.is_some()))?;
    let writeback_lacks_event = match &writeback {
        Some(writeback) => {
            let run = rows.run(&identity.goal, &writeback.run_generated_at);
            if run.map_err(malformed)?.is_none() {
                let text = "the writeback of this Turn has lost its run; restore a backup";
                return Err(Refusal::new(ErrorCode::WritebackMissing, text));
            }
            let event = rows.event(&writeback.event_id);
            event.map_err(malformed)?.is_none()
        }
        None => false,
    };
    let spend_lacks_event = match &spend {
        Some(spend) => {
            if rows
                .run(&identity.goal, &spend.run_generated_at)
                .map_err(malformed)?
                .is_none()
            {
                let text = "the spend of this Turn has lost its run; run `loopx doctor`";
                return Err(Refusal::new(ErrorCode::ReceiptMissing, text));
            }
            rows.event(&spend.event_id).map_err(malformed)?.is_none()
        }
        None => false,
    };
    Ok(Steps {
        writeback,
        spend,
        writeback_lacks_event,
        spend_lacks_event,
    })
}

fn malformed(error: StoreError) -> Refusal {
    match error {
        StoreError::Corrupt(_) => Refusal::new(
            ErrorCode::MalformedSettlementState,
            "stored settlement rows contradict each other; run `loopx doctor`",
        ),
        other => other.into(),
    }
}

/// An event or a run without its row may or may not have happened: nothing is done again on top of it.
fn require_whole(
    rows: Rows<'_>,
    identity: &SettlementIdentity,
    (has_writeback, has_spend): (bool, bool),
) -> Answer<()> {
    let effect = identity.effect_id();
    if has_writeback && has_spend {
        return Ok(());
    }
    let (wrote, spent) = rows.runs_of_effect(&effect)?;
    let is_left = |kind| rows.has_event_of(&identity.goal, kind, &effect);
    if !has_writeback && (wrote || is_left("refresh_state")?)
        || !has_spend && (spent || is_left("quota_spend")?)
    {
        let text = "the store holds one half of this effect and not the other; run `loopx doctor`, then restore a backup";
        return Err(Refusal::new(ErrorCode::EffectOutcomeUnknown, text));
    }
    if has_spend {
        let text = "a slot is spent for this Turn and nothing says what for; restore a backup";
        return Err(Refusal::new(ErrorCode::MalformedSettlementState, text));
    }
    Ok(())
}

/// The progress packet of a Turn's settlement.
pub fn progress(steps: &Steps, source: &str) -> Value {
    let closeout = steps
        .writeback
        .as_ref()
        .and_then(|writeback| writeback.closeout_kind.as_deref());
    let (state, next) = match (&steps.writeback, closeout, &steps.spend) {
        (None, ..) => ("writeback_required", Some("durable_writeback")),
        (Some(_), ..) if steps.writeback_lacks_event => {
            ("writeback_receipt_required", Some("durable_writeback"))
        }
        (Some(_), Some(_), _) => ("settled", None),
        (Some(_), None, None) => ("spend_required", Some("quota_spend")),
        (Some(_), None, Some(_)) if steps.spend_lacks_event => {
            ("spend_receipt_required", Some("quota_spend"))
        }
        (Some(_), None, Some(_)) => ("settled", None),
    };
    let mut packet = json!({
        "schema_version": "quota_settlement_progress_v0",
        "state": state,
        "next_step": next,
        "quota_spend_source": source,
    });
    if let Some(closeout) = closeout {
        packet["closeout_kind"] = json!(closeout);
    }
    packet
}

/// The progress of a Turn, for its decision; `None` while it is not bound.
pub fn progress_of_turn(place: &Place, identity: &SettlementIdentity) -> Answer<Option<Value>> {
    if identity.binding == Binding::Unbound {
        return Ok(None);
    }
    let Some(reader) = place.reader()? else {
        return Ok(None);
    };
    Ok(Some(progress(
        &steps(reader.rows(), identity)?,
        "heartbeat",
    )))
}

/// The step receipts of a Turn.
pub fn settlement_result(rows: Rows<'_>, identity: &SettlementIdentity) -> Answer<Value> {
    let effect = identity.effect_id();
    let receipts: Vec<Value> = rows
        .settlement_steps(&effect)?
        .into_iter()
        .map(|(step, status, source)| {
            json!({
                "schema_version": "quota_settlement_receipt_v1", "step_kind": step, "status": status, "effect_id": effect,
                "source_ref": source,
            })
        })
        .collect();
    Ok(json!({"ok": true, "effect_id": effect, "receipts": receipts}))
}

/// A refused step in the form packets carry it.
pub fn failed(refusal: Refusal, step: &str) -> Refusal {
    let code = refusal.code;
    refusal
        .with(
            "settlement_result",
            json!({"ok": false, "failure": {"kind": code, "step_kind": step}}),
        )
        .with("appended", false)
}

/// One spend as it is asked for.
#[derive(Clone, Debug)]
pub struct SpendAsk<'a> {
    /// The Turn.
    pub identity: &'a SettlementIdentity,
    /// `heartbeat` from the command line, `adapter` from the driver.
    pub source: &'static str,
    /// Carried by the driver's run.
    pub effect_ref: Option<String>,
}

/// The slot a Turn spent.
#[derive(Clone, Debug)]
pub struct SpentSlot {
    /// The run that carries it.
    pub generated_at: String,
    /// Spent slots before.
    pub before: i64,
    /// Spent slots after.
    pub after: i64,
    /// True when it was there already.
    pub is_replay: bool,
}

/// Spends one slot for a written-back Turn, once.
pub fn spend_in(
    tx: &mut GoalTx<'_>,
    goal: &Goal,
    question: &Question,
    asked: &SpendAsk<'_>,
) -> Answer<SpentSlot> {
    let steps = steps(tx.rows(), asked.identity)?;
    let window = snapshot::spent(tx.rows(), goal, question.now)?;
    if let Some(spend) = &steps.spend {
        if steps.spend_lacks_event {
            put_back_spend_event(tx, asked)?;
        }
        let replay = SpentSlot {
            generated_at: spend.run_generated_at.clone(),
            before: window.slots,
            after: window.slots,
            is_replay: true,
        };
        return Ok(replay);
    }
    let Some(writeback) = &steps.writeback else {
        let text = "there is no committed writeback for this Turn; run `loopx refresh-state` first";
        return Err(Refusal::new(ErrorCode::WritebackMissing, text));
    };
    if steps.writeback_lacks_event {
        return Err(lost_receipt());
    }
    if writeback.closeout_kind.is_some() {
        let text = "this Turn was closed without a spend; nothing is owed";
        return Err(Refusal::new(ErrorCode::QuotaSpendRejected, text));
    }
    may_spend(goal, window, 1)?;
    append_spend(tx, asked, writeback, window)
}

/// The closeout of a Turn whose admitted mode does not spend.
pub fn free_closeout(
    rows: Rows<'_>,
    identity: &SettlementIdentity,
) -> Answer<Option<&'static str>> {
    let is_spendable = rows
        .admission(&identity.goal, &identity.agent, &identity.instance)?
        .is_none_or(|admission| admission.is_spendable);
    Ok((!is_spendable).then_some("non_spendable_mode_no_spend"))
}

/// Gives a debit that lost its event a new one; nothing is spent.
pub fn put_back_spend_event(tx: &mut GoalTx<'_>, asked: &SpendAsk<'_>) -> Answer<()> {
    let effect = asked.identity.effect_id();
    let event = tx.event(spend_event(asked).once(effect.clone()))?;
    tx.repair_spend_event(&effect, &event.event_id)?;
    Ok(())
}

/// The spend as an agent asks for it from the command line.
pub fn spend_by_agent(
    tx: &mut GoalTx<'_>,
    goal: &Goal,
    question: &Question,
    identity: &SettlementIdentity,
) -> Answer<SpentSlot> {
    let asked = SpendAsk {
        identity,
        source: "heartbeat",
        effect_ref: None,
    };
    spend_in(tx, goal, question, &asked).map_err(|refusal| failed(refusal, "quota_spend"))
}

/// The refusal of a writeback whose event is gone: it does not count until that is repaired.
pub fn lost_receipt() -> Refusal {
    let text = "the writeback of this Turn has lost its receipt; repeat its `loopx refresh-state` exactly, or run `loopx doctor --execute`";
    Refusal::new(ErrorCode::WritebackMissing, text).with("receipt_repair_required", true)
}

/// Refuses a debit of a paused goal, and one beyond the cap.
pub fn may_spend(goal: &Goal, window: Spent, slots: i64) -> Answer<()> {
    if let QuotaState::Paused(cause) = policy::state(goal, window) {
        let text = "the goal is paused and spends nothing; resume it first";
        return Err(Refusal::new(ErrorCode::QuotaSpendRejected, text).with("reason", cause));
    }
    if policy::is_full(goal, window, slots) {
        let text = "every slot of the window is spent; wait for the window, or raise the cap";
        return Err(Refusal::new(ErrorCode::BudgetRejected, text).with("spent_slots", window.slots));
    }
    Ok(())
}

fn append_spend(
    tx: &mut GoalTx<'_>,
    asked: &SpendAsk<'_>,
    writeback: &Writeback,
    window: Spent,
) -> Answer<SpentSlot> {
    let identity = asked.identity;
    let effect = identity.effect_id();
    let at = tx.rows().free_run_instant(&identity.goal, tx.now())?;
    let quota_event = json!({
        "event_type": "spend", "source": asked.source, "slots": 1, "todo_id": identity.binding.todo(),
        "replan_obligation_id": identity.binding.obligation(), "turn_instance_id": identity.instance,
        "settlement_identity": identity.to_value(), "reason_summary": "one validated and written-back Turn",
        "delivery_run_generated_at": writeback.run_generated_at,
        "before": {"spent_slots": window.slots}, "after": {"spent_slots": window.slots + 1},
    });
    let mut record = Map::new();
    record.insert("quota_event".to_owned(), quota_event);
    record.insert("settlement_effect_id".to_owned(), json!(effect));
    if let Some(effect_ref) = &asked.effect_ref {
        record.insert("effect_ref".to_owned(), json!(effect_ref));
    }
    let key = RunKey {
        agent_id: Some(identity.agent.as_str()),
        classification: "quota_slot_spent",
        effect_id: Some(&effect),
    };
    let run = tx.put_run(key, at, record)?;
    let event = tx.event(spend_event(asked).once(effect.clone()))?;
    let spend = Spend {
        effect_id: effect.clone(),
        agent_id: Some(identity.agent.to_string()),
        slots: 1,
        source: asked.source.to_owned(),
        run_generated_at: run.generated_at.to_string(),
        event_id: event.event_id,
    };
    tx.put_spend(&spend, at)?;
    tx.put_step(&effect, "quota_spend", Some(&spend.run_generated_at))?;
    Ok(SpentSlot {
        generated_at: spend.run_generated_at,
        before: window.slots,
        after: window.slots + 1,
        is_replay: false,
    })
}

fn spend_event(asked: &SpendAsk<'_>) -> EventDraft {
    EventDraft::new("quota_spend", "one slot spent")
        .agent(Some(asked.identity.agent.as_str()))
        .todo(asked.identity.binding.todo().map(|todo| todo.as_str()))
        .run(Some(asked.identity.instance.as_str()))
        .status("spent")
        .detail("slots", 1)
        .detail("source", asked.source)
        .detail("settlement_effect_id", asked.identity.effect_id())
}

/// Refuses a Turn whose effect id already stands for another goal or agent.
pub fn require_own_effect(tx: &GoalTx<'_>, identity: &SettlementIdentity) -> Answer<()> {
    if !tx.is_foreign_effect(identity)? {
        return Ok(());
    }
    Err(foreign_effect())
}

/// The refusal of a Turn whose effect id stands for another goal or agent.
pub fn foreign_effect() -> Refusal {
    let text = "goal, agent and todo of this Turn join to an identity another goal uses; use a fresh instance id";
    Refusal::new(ErrorCode::HeartbeatReceiptIdentityConflict, text)
}

/// Refuses to run a host for a Turn whose writeback somebody else committed: its result could not be kept.
pub fn require_unwritten(rows: Rows<'_>, identity: &SettlementIdentity) -> Answer<()> {
    let steps = steps(rows, identity)?;
    let Some(writeback) = steps.writeback else {
        return Ok(());
    };
    let text = match steps.spend.is_some() || writeback.closeout_kind.is_some() {
        true => {
            "this Turn is settled already and its host was not started; use a fresh instance id"
        }
        false => {
            "this Turn is written back already and its host was not started; pay it with `loopx quota spend-slot`, or use a fresh instance id"
        }
    };
    Err(Refusal::new(
        ErrorCode::CommittedWritebackPayloadConflict,
        text,
    ))
}

/// Finds the admission of a Turn and checks that it is this identity's.
pub fn require_admission(
    rows: Rows<'_>,
    identity: &SettlementIdentity,
) -> Answer<crate::store::journal::settlement::Admission> {
    let admission = rows.admission(&identity.goal, &identity.agent, &identity.instance)?;
    let missing = || {
        let text = "there is no admission for this Turn and agent; run `loopx quota should-run --turn-instance-id` first";
        Refusal::new(ErrorCode::ReceiptMissing, text)
    };
    let admission = admission.ok_or_else(missing)?;
    match &admission.binding {
        Binding::Unbound => Err(missing()),
        binding if *binding == identity.binding => Ok(admission),
        _ => {
            let text = "this Turn is bound to another todo or obligation; settle it under its own identity";
            Err(Refusal::new(ErrorCode::IdentityMismatch, text))
        }
    }
}
