//! `quota spend-slot|void-slot`.

use serde_json::{Map, Value, json};

use super::mode::Mode;
use super::open::{self, Answer, Place};
use super::ports::Ports;
use super::quota::{self, registry_refusal};
use super::settle;
use super::snapshot;
use crate::contract::error::ErrorCode;
use crate::contract::event::EventDraft;
use crate::contract::goal::Goal;
use crate::contract::ids::{AgentId, GoalId};
use crate::contract::packet::Refusal;
use crate::contract::settlement::{Binding, SettlementIdentity};
use crate::failpoint::Point;
use crate::kernel::quota::policy;
use crate::kernel::quota::snapshot::{Question, Spent};
use crate::store::journal::run::RunKey;
use crate::store::journal::settlement::Spend;
use crate::store::rows::Rows;
use crate::store::state::Reader;

/// One spend as the command line asks for it.
#[derive(Clone, Debug)]
pub struct SpendRequest {
    /// The goal.
    pub goal: GoalId,
    /// The agent.
    pub agent: Option<AgentId>,
    /// The Turn, when it is named.
    pub identity: Option<SettlementIdentity>,
    /// How many slots.
    pub slots: i64,
    /// Who spends.
    pub source: String,
}

/// Spends for a written-back Turn, or unbound from another source.
pub fn spend(ports: &Ports, mode: Mode, asked: &SpendRequest) -> Answer {
    let mut place = open_goal(ports, &asked.goal)?;
    if let Some(agent) = &asked.agent {
        place.require_actor(agent, ErrorCode::ActorNotRegistered)?;
    }
    let question = quota::standing(ports, &place, asked.agent.as_ref());
    let reader = place.reader()?;
    let rows = reader.as_ref().map(Reader::rows);
    let Some(identity) = turn_of(rows, asked)? else {
        return unbound((ports, mode), &mut place, asked, &question);
    };
    let rows = rows.ok_or_else(nothing_to_spend_for)?;
    check_turn(rows, (&place, &question), &identity, mode)?;
    if mode.is_preview() {
        let before = snapshot::spent(rows, &place.goal, question.now)?.slots;
        let slots = (before, before + 1);
        return Ok(spend_packet(
            (asked, mode, &place.goal),
            Some(&identity),
            slots,
            None,
        ));
    }
    drop(reader);
    let mut writer = place.writer(ports)?;
    let mut tx = place.begin(ports, &mut writer)?;
    let spent = settle::spend_by_agent(
        &mut tx,
        &place.goal_of(&identity.agent)?,
        &question,
        &identity,
    )?;
    tx.commit()?;
    crate::failpoint!(Point::SpendCommitted);
    writer.bring_up_exports(&asked.goal, ports.now);
    let steps = settle::steps(writer.rows(), &identity)?;
    let done = Some((spent.generated_at.as_str(), !spent.is_replay));
    let slots = (spent.before, spent.after);
    let mut packet = spend_packet((asked, mode, &place.goal), Some(&identity), slots, done);
    packet["settlement_result"] = settle::settlement_result(writer.rows(), &identity)?;
    packet["settlement_progress"] = settle::progress(&steps, "heartbeat");
    Ok(packet)
}

/// The Turn a spend is for; none for a spend of another source without one.
fn turn_of(rows: Option<Rows<'_>>, asked: &SpendRequest) -> Answer<Option<SettlementIdentity>> {
    match (&asked.identity, asked.source.as_str(), rows) {
        (Some(identity), ..) => Ok(Some(identity.clone())),
        (None, "heartbeat", Some(rows)) => {
            let newest = newest_turn(rows, asked)?;
            newest.ok_or_else(nothing_to_spend_for).map(Some)
        }
        (None, "heartbeat", None) => Err(nothing_to_spend_for()),
        (None, ..) => Ok(None),
    }
}

fn nothing_to_spend_for() -> Refusal {
    let text = "there is no admission or writeback to spend for; run `loopx quota should-run` and `loopx refresh-state` first";
    settle::failed(Refusal::new(ErrorCode::ReceiptMissing, text), "quota_spend")
}

fn check_turn(
    rows: Rows<'_>,
    (place, question): (&Place, &Question),
    identity: &SettlementIdentity,
    mode: Mode,
) -> Answer<()> {
    let failed = |refusal| settle::failed(refusal, "quota_spend");
    settle::require_admission(rows, identity).map_err(failed)?;
    let steps = settle::steps(rows, identity).map_err(failed)?;
    if steps.spend.is_some() || !mode.is_preview() {
        return Ok(());
    }
    if steps.writeback.is_none() {
        let text = "there is no committed writeback for this Turn; run `loopx refresh-state` first";
        return Err(failed(Refusal::new(ErrorCode::WritebackMissing, text)));
    }
    if steps.writeback_lacks_event {
        return Err(failed(settle::lost_receipt()));
    }
    settle::may_spend(
        &place.goal,
        snapshot::spent(rows, &place.goal, question.now)?,
        1,
    )
    .map_err(failed)
}

/// The agent's newest written-back Turn that is not paid; when all are, the newest, whose spend is replayed.
fn newest_turn(rows: Rows<'_>, asked: &SpendRequest) -> Answer<Option<SettlementIdentity>> {
    let Some(agent) = &asked.agent else {
        return Ok(None);
    };
    let writeback = match rows.latest_owed_writeback(&asked.goal, agent, None)? {
        Some(owed) => Some(owed),
        None => rows.latest_writeback(&asked.goal, agent)?,
    };
    Ok(writeback.and_then(|writeback| {
        writeback
            .body
            .get("identity")
            .and_then(SettlementIdentity::parse)
    }))
}

/// A spend without a Turn, from another source: it needs a decision that may run.
fn unbound(
    (ports, mode): (&Ports, Mode),
    place: &mut Place,
    asked: &SpendRequest,
    question: &Question,
) -> Answer {
    let failed = |refusal| settle::failed(refusal, "quota_spend");
    let reader = place.reader()?;
    let snapshot = snapshot::take(place, reader.as_ref().map(Reader::rows), question)?;
    drop(reader);
    settle::may_spend(&place.goal, snapshot.spent, asked.slots).map_err(failed)?;
    let decision =
        crate::kernel::quota::packet::build(&snapshot, question).map_err(|refusal| *refusal)?;
    if !decision.verdict.row.columns().should_run {
        let text = "the present decision does not run, so nothing may be spent; see `loopx quota should-run`";
        return Err(failed(Refusal::new(ErrorCode::QuotaSpendRejected, text)));
    }
    let before = snapshot.spent.slots;
    if mode.is_preview() {
        return Ok(spend_packet(
            (asked, mode, &place.goal),
            None,
            (before, before + asked.slots),
            None,
        ));
    }
    let at = append_unbound((ports, place), asked, question, before)?;
    let slots = (before, before + asked.slots);
    let done = Some((at.as_str(), true));
    Ok(spend_packet((asked, mode, &place.goal), None, slots, done))
}

/// Appends a spend without a Turn; the cap is looked at once more inside the transaction.
fn append_unbound(
    (ports, place): (&Ports, &mut Place),
    asked: &SpendRequest,
    question: &Question,
    before: i64,
) -> Answer<String> {
    let failed = |refusal| settle::failed(refusal, "quota_spend");
    let mut writer = place.writer(ports)?;
    let mut tx = place.begin(ports, &mut writer)?;
    let goal = place.goal_now()?;
    let window = snapshot::spent(tx.rows(), &goal, question.now)?;
    settle::may_spend(&goal, window, asked.slots).map_err(failed)?;
    let agent = asked.agent.as_ref().map(AgentId::as_str);
    let at = tx.rows().free_run_instant(&asked.goal, ports.now)?;
    let draft = EventDraft::new("quota_spend", "slots spent")
        .agent(agent)
        .status("spent")
        .detail("slots", asked.slots)
        .detail("source", asked.source.as_str());
    let event = tx.event(draft)?;
    let effect_id = format!("unbound:{}", event.event_id);
    let quota_event = json!({
        "event_type": "spend", "source": asked.source, "slots": asked.slots, "before": {"spent_slots": before},
        "after": {"spent_slots": before + asked.slots},
    });
    let mut record = Map::new();
    record.insert("quota_event".to_owned(), quota_event);
    let key = RunKey {
        agent_id: agent,
        classification: "quota_slot_spent",
        effect_id: Some(&effect_id),
    };
    let generated_at = tx.put_run(key, at, record)?.generated_at.to_string();
    let spend = Spend {
        effect_id,
        agent_id: agent.map(str::to_owned),
        slots: asked.slots,
        source: asked.source.clone(),
        run_generated_at: generated_at.clone(),
        event_id: event.event_id,
    };
    tx.put_spend(&spend, at)?;
    tx.commit()?;
    writer.bring_up_exports(&asked.goal, ports.now);
    Ok(generated_at)
}

fn spend_packet(
    (asked, mode, goal): (&SpendRequest, Mode, &Goal),
    identity: Option<&SettlementIdentity>,
    slots: (i64, i64),
    done: Option<(&str, bool)>,
) -> Value {
    let after = Spent {
        slots: slots.1,
        ..Spent::default()
    };
    let reason = match (done, identity) {
        (None, _) => "a preview; nothing is spent without --execute",
        (Some((_, false)), _) => "this Turn was paid before; nothing was spent again",
        (Some(_), Some(_)) => "one validated and written-back Turn",
        (Some(_), None) => "the present decision may run; no Turn is named",
    };
    let binding = identity.map(|identity| &identity.binding);
    json!({
        "ok": true,
        "schema_version": "loopx_quota_spend_v0",
        "mode": "spend-slot",
        "dry_run": mode.is_preview(),
        "goal_id": asked.goal,
        "slots": asked.slots,
        "agent_id": identity.map(|identity| identity.agent.clone()).or(asked.agent.clone()),
        "appended": done.is_some_and(|(_, appended)| appended),
        "idempotent_replay": done.is_some_and(|(_, appended)| !appended),
        "generated_at": done.map(|(at, _)| at),
        "registry_mutated": false,
        "before": {"spent_slots": slots.0},
        "after": {"spent_slots": slots.1},
        "would_throttle": policy::is_full(goal, after, 0),
        "reason": reason,
        "source": asked.source,
        "todo_id": binding.and_then(Binding::todo),
        "replan_obligation_id": binding.and_then(Binding::obligation),
        "turn_instance_id": identity.map(|identity| identity.instance.clone()),
        "settlement_identity": identity.map(SettlementIdentity::to_value),
    })
}

/// Corrects one spend, once; the settled Turn stays settled.
pub fn void(
    (ports, mode): (&Ports, Mode),
    goal: &GoalId,
    agent: Option<&AgentId>,
    asked: (&str, &str),
) -> Answer {
    let (generated_at, reason) = asked;
    let mut place = open_goal(ports, goal)?;
    if let Some(agent) = agent {
        place.require_actor(agent, ErrorCode::ActorNotRegistered)?;
    }
    let missing = || {
        let text = "there is no spend at that instant; `generated_at` of the spend names it";
        Refusal::new(ErrorCode::ReceiptMissing, text)
    };
    let packet = |is_changed: bool, slots: i64| {
        json!({
            "ok": true, "schema_version": "loopx_quota_void_v0", "mode": "void-slot", "dry_run": mode.is_preview(), "goal_id": goal,
            "changed": is_changed, "appended": is_changed && !mode.is_preview(), "void_generated_at": generated_at, "slots": slots,
        })
    };
    let reader = place.reader()?.ok_or_else(missing)?;
    let spend = reader
        .rows()
        .spend_of_run(goal, generated_at)?
        .ok_or_else(missing)?;
    let is_voided = reader.rows().is_voided(goal, generated_at)?;
    drop(reader);
    if is_voided || mode.is_preview() {
        return Ok(packet(!is_voided, spend.slots));
    }
    let mut writer = place.writer(ports)?;
    let mut tx = place.begin(ports, &mut writer)?;
    if tx.rows().is_voided(goal, generated_at)? {
        return Ok(packet(false, spend.slots));
    }
    let draft = EventDraft::new("quota_void", "spend corrected")
        .agent(agent.map(AgentId::as_str))
        .status("voided");
    let event = tx.event(
        draft
            .detail("slots", spend.slots)
            .detail("void_generated_at", generated_at)
            .detail("reason_summary", reason),
    )?;
    tx.put_void(&spend, &event, reason)?;
    tx.commit()?;
    writer.bring_up_exports(goal, ports.now);
    Ok(packet(true, spend.slots))
}

pub(super) fn open_goal(ports: &Ports, id: &GoalId) -> Answer<Place> {
    open::find(ports, id)
        .map_err(registry_refusal)?
        .ok_or_else(|| open::unknown_goal(id))
}
