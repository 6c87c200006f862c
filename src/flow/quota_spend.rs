//! `quota status|plan|spend-slot|void-slot|monitor-poll`.

use serde_json::{Map, Value, json};

use super::mode::Mode;
use super::open::{self, Answer, Place};
use super::ports::Ports;
use super::quota::registry_refusal;
use super::settle;
use super::{snapshot, todo as todo_flow};
use crate::contract::error::ErrorCode;
use crate::contract::event::EventDraft;
use crate::contract::goal::{Goal, GoalStatus};
use crate::contract::ids::{AgentId, GoalId, TodoId, TurnInstanceId};
use crate::contract::packet::Refusal;
use crate::contract::settlement::{Binding, SettlementIdentity};
use crate::contract::todo::Status;
use crate::failpoint::Point;
use crate::kernel::quota::policy::{self, QuotaState};
use crate::kernel::quota::snapshot::{Question, STANDARD_CAPABILITIES, Spent};
use crate::store::document::registry::Registry;
use crate::store::journal::run::RunKey;
use crate::store::journal::settlement::{Spend, Writeback};
use crate::store::rows::Rows;
use crate::store::state::{GoalTx, Reader, Store};

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
    let question = question(ports, &place, asked.agent.as_ref());
    let reader = place.reader()?;
    let rows = reader.as_ref().map(Reader::rows);
    let Some(identity) = turn_of(rows, asked)? else {
        return unbound((ports, mode), &mut place, asked, &question);
    };
    let rows = rows.ok_or_else(nothing_to_spend_for)?;
    check_turn(rows, (&place, &question), &identity, mode)?;
    if mode.is_preview() {
        let before = snapshot::spent(rows, &place.goal, &question)?.slots;
        let slots = (before, before + 1);
        return Ok(spend_packet((asked, mode), Some(&identity), slots, None));
    }
    drop(reader);
    let mut writer = place.writer(ports)?;
    let mut tx = place.begin(ports, &mut writer)?;
    let spent = settle::spend_by_agent(&mut tx, &place.goal, &question, &identity)?;
    tx.commit()?;
    crate::failpoint!(Point::SpendCommitted);
    writer.bring_up_exports(&asked.goal, ports.now);
    let steps = settle::steps(writer.rows(), &identity)?;
    let done = Some((spent.generated_at.as_str(), !spent.is_replay));
    let slots = (spent.before, spent.after);
    let mut packet = spend_packet((asked, mode), Some(&identity), slots, done);
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
    settle::may_spend(
        &place.goal,
        snapshot::spent(rows, &place.goal, question)?,
        1,
    )
    .map_err(failed)
}

/// The agent's newest written-back Turn: the unspent one, or the settled one whose spend is replayed.
fn newest_turn(rows: Rows<'_>, asked: &SpendRequest) -> Answer<Option<SettlementIdentity>> {
    let Some(agent) = &asked.agent else {
        return Ok(None);
    };
    let writeback = rows.latest_writeback(&asked.goal, agent, None)?;
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
            (asked, mode),
            None,
            (before, before + asked.slots),
            None,
        ));
    }
    let at = append_unbound((ports, place), asked, question, before)?;
    let slots = (before, before + asked.slots);
    Ok(spend_packet((asked, mode), None, slots, Some((&at, true))))
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
    let window = snapshot::spent(tx.rows(), &place.goal, question)?;
    settle::may_spend(&place.goal, window, asked.slots).map_err(failed)?;
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
    (asked, mode): (&SpendRequest, Mode),
    identity: Option<&SettlementIdentity>,
    slots: (i64, i64),
    done: Option<(&str, bool)>,
) -> Value {
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

/// The result of looking at a monitor.
#[derive(Clone, Debug)]
pub struct Poll {
    /// The acting agent.
    pub agent: AgentId,
    /// The monitor.
    pub todo: TodoId,
    /// `changed` or `unchanged`.
    pub result: &'static str,
    /// When it is due next.
    pub next_due_at: Option<String>,
    /// The Turn it closes.
    pub instance: Option<TurnInstanceId>,
}

/// Records a look at a monitor; with a Turn it is that Turn's closeout.
pub fn monitor_poll(ports: &Ports, mode: Mode, goal: &GoalId, asked: &Poll) -> Answer {
    let mut place = open_goal(ports, goal)?;
    place.require_actor(&asked.agent, ErrorCode::ActorNotRegistered)?;
    let packet = |is_changed: bool| {
        json!({
            "ok": true, "schema_version": "loopx_monitor_poll_v0", "mode": "monitor-poll", "dry_run": mode.is_preview(), "goal_id": goal,
            "agent_id": asked.agent, "todo_id": asked.todo, "result": asked.result, "next_due_at": asked.next_due_at, "changed": is_changed,
        })
    };
    let reader = place
        .reader()?
        .ok_or_else(|| todo_flow::unknown_todo(&asked.todo))?;
    let stored = reader
        .rows()
        .todo(goal, &asked.todo)?
        .ok_or_else(|| todo_flow::unknown_todo(&asked.todo))?
        .todo;
    if !stored.is_monitor() || stored.status() != Status::Open {
        return Err(crate::kernel::todo::not_open(&stored));
    }
    let identity = asked.instance.as_ref().map(|instance| SettlementIdentity {
        goal: goal.clone(),
        agent: asked.agent.clone(),
        binding: Binding::Todo(asked.todo.clone()),
        instance: instance.clone(),
    });
    if let Some(identity) = &identity {
        settle::require_admission(reader.rows(), identity)?;
        if is_polled(reader.rows(), identity, asked)? {
            return Ok(packet(false));
        }
    }
    drop(reader);
    if mode.is_preview() {
        return Ok(packet(true));
    }
    let mut writer = place.writer(ports)?;
    let mut tx = place.begin(ports, &mut writer)?;
    // Another process may have closed this Turn, or the monitor, since it was looked at.
    if let Some(identity) = &identity
        && is_polled(tx.rows(), identity, asked)?
    {
        return Ok(packet(false));
    }
    record_poll(&mut tx, goal, asked, identity.as_ref())?;
    tx.commit()?;
    writer.bring_up_exports(goal, ports.now);
    Ok(packet(true))
}

fn record_poll(
    tx: &mut GoalTx<'_>,
    goal: &GoalId,
    asked: &Poll,
    identity: Option<&SettlementIdentity>,
) -> Answer<()> {
    let stored = tx.rows().todo(goal, &asked.todo)?;
    let unknown = || todo_flow::unknown_todo(&asked.todo);
    let before = stored.ok_or_else(unknown)?.todo;
    if before.status() != Status::Open {
        return Err(crate::kernel::todo::not_open(&before));
    }
    let mut after = before.clone();
    if let Some(next) = &asked.next_due_at {
        after.set("next_due_at", json!(next));
    }
    crate::kernel::todo::touch(&mut after, Some(&asked.agent), tx.now());
    let instance = asked.instance.as_ref().map(|instance| instance.as_str());
    let draft = EventDraft::new("quota_monitor_poll", "monitor looked at")
        .agent(Some(asked.agent.as_str()))
        .run(instance)
        .status(asked.result);
    let event = tx.event(draft.todo(Some(asked.todo.as_str())))?;
    tx.update_todo(&before, &after, None)?;
    match identity {
        Some(identity) => close_by_poll(tx, identity, asked, event.event_id),
        None => Ok(()),
    }
}

/// True when this poll closed its Turn already; another poll of the same Turn is a conflict.
fn is_polled(rows: Rows<'_>, identity: &SettlementIdentity, asked: &Poll) -> Answer<bool> {
    let Some(writeback) = rows.writeback(&identity.effect_id())? else {
        return Ok(false);
    };
    let stored = rows.run(&identity.goal, &writeback.run_generated_at)?;
    let is_same = stored.is_some_and(|run| {
        run.body.get("result") == Some(&json!(asked.result))
            && run
                .body
                .get("next_due_at")
                .is_none_or(|next| *next == json!(asked.next_due_at))
    });
    if is_same {
        return Ok(true);
    }
    let text =
        "this Turn is closed with another result and was left as it is; use a fresh instance id";
    Err(Refusal::new(
        ErrorCode::CommittedWritebackPayloadConflict,
        text,
    ))
}

/// A committed poll is the closeout of its Turn: nothing is spent.
fn close_by_poll(
    tx: &mut GoalTx<'_>,
    identity: &SettlementIdentity,
    asked: &Poll,
    event_id: String,
) -> Answer<()> {
    let effect = identity.effect_id();
    let at = tx.rows().free_run_instant(&identity.goal, tx.now())?;
    let mut record = Map::new();
    record.insert("result".to_owned(), json!(asked.result));
    record.insert("next_due_at".to_owned(), json!(asked.next_due_at));
    record.insert("settlement_identity".to_owned(), identity.to_value());
    let key = RunKey {
        agent_id: Some(identity.agent.as_str()),
        classification: "monitor_poll",
        effect_id: Some(&effect),
    };
    let run = tx.put_run(key, at, record)?;
    let mut body = Map::new();
    body.insert("identity".to_owned(), identity.to_value());
    let generated_at = run.generated_at.to_string();
    let writeback = Writeback {
        effect_id: effect.clone(),
        instance: identity.instance.to_string(),
        run_generated_at: generated_at.clone(),
        run_seq: run.seq,
        event_id,
        closeout_kind: Some("committed_monitor_poll".to_owned()),
        mutation_digest: String::new(),
        vision_digest: None,
        body,
    };
    tx.put_writeback(&identity.agent, &writeback)?;
    tx.put_step(&effect, "durable_writeback", Some(&generated_at))?;
    Ok(())
}

/// Ranks goals by what they need: first those a person has to look at.
pub fn ranking(ports: &Ports, mode: &str, with_archived: bool) -> Answer {
    let registry = Registry::read(ports.workspace.registry()).map_err(registry_refusal)?;
    let mut rows = Vec::new();
    let store = Store::at(&ports.workspace.runtime_root(registry.common_runtime_root()));
    let reader = store.read()?;
    for goal in registry.goals().map_err(registry_refusal)? {
        if goal.status == GoalStatus::Archived && !with_archived {
            continue;
        }
        let asked = Question {
            agent: None,
            todo: None,
            obligation: None,
            instance: None,
            capabilities: Vec::new(),
            now: ports.now,
            places: Default::default(),
        };
        let spent = match &reader {
            Some(reader) => snapshot::spent(reader.rows(), &goal, &asked)?,
            None => Default::default(),
        };
        let state = policy::state(&goal, spent);
        rows.push((goal, spent, state));
    }
    rows.sort_by(|left, right| {
        let by_compute = right.0.quota.compute().total_cmp(&left.0.quota.compute());
        let by_spent = left.1.slots.cmp(&right.1.slots);
        left.2
            .rank()
            .cmp(&right.2.rank())
            .then(by_compute)
            .then(by_spent)
            .then_with(|| left.0.id.cmp(&right.0.id))
    });
    let goals: Vec<Value> = rows.iter().enumerate().map(ranked).collect();
    Ok(json!({
        "ok": true, "schema_version": "loopx_quota_ranking_v0", "mode": mode, "goals": goals, "registry_revision": registry.revision(),
    }))
}

fn ranked((index, (goal, spent, state)): (usize, &(Goal, Spent, QuotaState))) -> Value {
    let mut row = json!({
        "rank": index + 1, "goal_id": goal.id, "title": goal.text("title"), "state": state.as_str(),
        "waiting_on": goal.text("waiting_on"), "quota": policy::packet(goal, *spent, *state),
    });
    if let QuotaState::Paused(cause) = state {
        row["pause_cause"] = json!(cause);
    }
    row
}

fn open_goal(ports: &Ports, id: &GoalId) -> Answer<Place> {
    open::find(ports, id)
        .map_err(registry_refusal)?
        .ok_or_else(|| open::unknown_goal(id))
}

fn question(ports: &Ports, place: &Place, agent: Option<&AgentId>) -> Question {
    Question {
        agent: agent.cloned(),
        todo: None,
        obligation: None,
        instance: None,
        capabilities: STANDARD_CAPABILITIES.map(str::to_owned).to_vec(),
        now: ports.now,
        places: place.places(),
    }
}
