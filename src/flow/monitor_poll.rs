//! `quota monitor-poll`: one look at a monitor; with a Turn it is that Turn's closeout.

use serde_json::{Map, json};

use super::mode::Mode;
use super::open::Answer;
use super::ports::Ports;
use super::quota_spend::open_goal;
use super::{settle, todo as todo_flow};
use crate::contract::error::ErrorCode;
use crate::contract::event::EventDraft;
use crate::contract::ids::{AgentId, GoalId, TodoId, TurnInstanceId};
use crate::contract::packet::Refusal;
use crate::contract::settlement::{Binding, SettlementIdentity};
use crate::contract::todo::{Status, Todo};
use crate::store::journal::run::RunKey;
use crate::store::journal::settlement::Writeback;
use crate::store::rows::Rows;
use crate::store::state::GoalTx;

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

fn require_open_monitor(todo: &Todo) -> Answer<()> {
    if !todo.is_monitor() {
        let text = "this todo is no monitor; only one of --task-class continuous_monitor is polled";
        return Err(Refusal::new(ErrorCode::InvalidArguments, text));
    }
    match todo.status() {
        Status::Open => Ok(()),
        _ => Err(crate::kernel::todo::not_open(todo)),
    }
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
    require_open_monitor(&stored)?;
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
    crate::kernel::todo::require_not_anothers(&stored, &asked.agent)?;
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
    crate::kernel::todo::require_not_anothers(&before, &asked.agent)?;
    let lease = tx.rows().lease(goal, &asked.todo)?;
    crate::kernel::todo::require_unleased(lease.as_ref(), Some(&asked.agent), tx.now())?;
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
