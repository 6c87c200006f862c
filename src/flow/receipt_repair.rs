//! Puts back the event of a settlement row that lost it (docs/spec/kernel.md 10.3, 11.4): row without event = repair the
//! event. A writeback row keeps the id of its event, so an event that is derived again and gets that id is the lost one
//! to the byte; only where it cannot be derived a new one says `receipt_repaired`. Nothing is written back or spent again.

use serde_json::{Map, Value};

use super::open::{Answer, Place};
use super::settle::{self, SpendAsk};
use super::writeback::{self, Ask, StageLook};
use crate::contract::event::EventDraft;
use crate::contract::settlement::SettlementIdentity;
use crate::contract::time::Timestamp;
use crate::kernel::quota::snapshot::Question;
use crate::kernel::refresh::Content;
use crate::store::StoreError;
use crate::store::journal::run::RunRow;
use crate::store::journal::settlement::Writeback;
use crate::store::rows::{from_micros, micros};
use crate::store::state::GoalTx;

/// How far an event may lie behind its run: each event of one transaction takes a microsecond of its own.
const NEAR_MICROS: i64 = 16;

/// Repairs the receipt of a Turn's writeback; `false` when nothing is missing.
pub fn writeback(
    tx: &mut GoalTx<'_>,
    (place, question): (&Place, &Question),
    identity: &SettlementIdentity,
) -> Answer<bool> {
    let steps = settle::steps(tx.rows(), identity)?;
    let Some(stored) = steps.writeback.filter(|_| steps.writeback_lacks_event) else {
        return Ok(false);
    };
    let run = tx
        .rows()
        .run(&identity.goal, &stored.run_generated_at)?
        .ok_or(StoreError::Corrupt("a writeback has lost its run"))?;
    let drafts = drafts(tx, (place, question), identity, (&stored, &run))?;
    match drafts
        .iter()
        .find_map(|draft| instant_of(draft, identity, (&stored, &run)).map(|at| (draft, at)))
    {
        Some((draft, at)) => {
            tx.event_at(draft.clone(), at)?;
        }
        None => {
            let draft = drafts.into_iter().next().unwrap_or_else(|| {
                EventDraft::new("refresh_state", "state refreshed").once(stored.effect_id.clone())
            });
            let event = tx.event(draft.status("receipt_repaired"))?;
            tx.repair_writeback_event(&stored.effect_id, &event.event_id)?;
        }
    }
    tx.put_step(
        &stored.effect_id,
        "durable_writeback",
        Some(&stored.run_generated_at),
    )?;
    Ok(true)
}

/// Repairs the receipt of a Turn's debit; `false` when nothing is missing.
pub fn spend(tx: &mut GoalTx<'_>, identity: &SettlementIdentity) -> Answer<bool> {
    let steps = settle::steps(tx.rows(), identity)?;
    let Some(stored) = steps.spend.filter(|_| steps.spend_lacks_event) else {
        return Ok(false);
    };
    let source = ["adapter", "controller", "visible-goal"]
        .into_iter()
        .find(|source| *source == stored.source)
        .unwrap_or("heartbeat");
    let asked = SpendAsk {
        identity,
        source,
        effect_ref: None,
    };
    settle::put_back_spend_event(tx, &asked)?;
    Ok(true)
}

/// The events the lost one may have been, the likeliest first.
fn drafts(
    tx: &GoalTx<'_>,
    (place, question): (&Place, &Question),
    identity: &SettlementIdentity,
    (stored, run): (&Writeback, &RunRow),
) -> Answer<Vec<EventDraft>> {
    let word = |name: &str| run.body.get(name).and_then(Value::as_str);
    if word("classification") == Some("monitor_poll") {
        let draft = EventDraft::new("quota_monitor_poll", "monitor looked at")
            .agent(Some(identity.agent.as_str()))
            .run(Some(identity.instance.as_str()))
            .status(word("result").unwrap_or("unchanged"))
            .todo(identity.binding.todo().map(|todo| todo.as_str()));
        return Ok(vec![draft]);
    }
    let effect = identity.effect_id();
    let before = tx
        .rows()
        .vision_before(&identity.goal, &identity.agent, run.seq)?;
    let written = tx.rows().vision_of_run(
        &identity.goal,
        &identity.agent,
        &run.generated_at.to_string(),
    )?;
    let recorded = run.body.get("autonomous_replan_ack").is_some();
    let mut drafts = Vec::new();
    for replan_recorded in [recorded, !recorded] {
        let content = content_of(run, replan_recorded);
        let ask = Ask {
            identity: Some(identity),
            agent: Some(&identity.agent),
            content: &content,
            completion: None,
            closeout_kind: None,
            more: Map::new(),
        };
        if let Some(stage) = stored.body.get(writeback::STAGE) {
            drafts.push(writeback::event(&ask, Some(stage), Some(&effect)));
            continue;
        }
        let look = StageLook {
            before: before.as_ref(),
            current: written.as_ref().or(before.as_ref()),
            checkpoint: run.body.get("vision_checkpoint").unwrap_or(&Value::Null),
            acknowledgement: run.body.get("autonomous_replan_ack"),
        };
        let stage = writeback::stage(tx, (place, question), &ask, &look)?;
        if stage.is_some() {
            drafts.push(writeback::event(&ask, stage.as_ref(), Some(&effect)));
        }
        drafts.push(writeback::event(&ask, None, Some(&effect)));
    }
    Ok(drafts)
}

fn content_of(run: &RunRow, replan_recorded: bool) -> Content {
    let word = |name: &str| run.body.get(name).and_then(Value::as_str);
    Content {
        classification: word("classification").unwrap_or_default().to_owned(),
        outcome: word("delivery_outcome").map(str::to_owned),
        replan_recorded,
        ..Content::default()
    }
}

/// The instant at which a draft is the lost event itself, by its id.
fn instant_of(
    draft: &EventDraft,
    identity: &SettlementIdentity,
    (stored, run): (&Writeback, &RunRow),
) -> Option<Timestamp> {
    let first = micros(run.generated_at);
    (first..first + NEAR_MICROS)
        .filter_map(from_micros)
        .find(|at| {
            draft
                .body(&identity.goal, *at)
                .is_some_and(|(id, _)| id == stored.event_id)
        })
}
