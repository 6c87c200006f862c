//! The one transaction of a refresh: append, replay, repair or supplement.

use serde_json::{Map, Value, json};

use super::answer::{Done, finish, stored};
use super::asked::{BLOCKED_CLOSEOUT, Refresh};
use super::prepare::{check_outcome, content_of, recovery, sinks};
use crate::contract::error::ErrorCode;
use crate::contract::event::EventDraft;
use crate::contract::packet::Refusal;
use crate::contract::settlement::SettlementIdentity;
use crate::failpoint::Point;
use crate::flow::open::{Answer, Place};
use crate::flow::ports::Ports;
use crate::flow::writeback::{self, Ask, Written};
use crate::flow::{receipt_repair, settle};
use crate::kernel::quota::snapshot::Question;
use crate::kernel::refresh::{Content, Recovery, SinkDecision, SinkRequest};
use crate::store::journal::settlement::ExternalDelivery;
use crate::store::rows::Rows;
use crate::store::state::{GoalTx, Writer};

/// Makes a pause or its end durable before anything else is written.
pub(super) fn record_pause(
    (ports, place): (&Ports, &Place),
    writer: &mut Writer,
    asked: &Refresh,
) -> Answer<()> {
    if asked.sinks == SinkRequest::Plain || asked.identity.is_none() {
        return Ok(());
    }
    let mut tx = place.begin(ports, writer)?;
    if extend_chain(&mut tx, asked)?.append.is_none() {
        return Ok(());
    }
    tx.commit()?;
    crate::failpoint!(Point::PauseCommitted);
    Ok(())
}

/// Decides over the chain as this transaction has it and appends the link that follows: between a decision on other
/// rows and this one somebody may have paused or resumed.
fn extend_chain(tx: &mut GoalTx<'_>, asked: &Refresh) -> Answer<SinkDecision> {
    let sinks = sinks(tx.rows(), asked)?;
    let (Some(identity), Some((state, key))) = (&asked.identity, &sinks.append) else {
        return Ok(sinks);
    };
    let effect = identity.effect_id();
    let draft = EventDraft::new("refresh_external_delivery", "outside delivery changed")
        .agent(Some(identity.agent.as_str()))
        .todo(identity.binding.todo().map(|todo| todo.as_str()))
        .run(Some(identity.instance.as_str()))
        .status(state)
        .detail("schema_version", "refresh_external_delivery_v0")
        .detail("settlement_effect_id", effect.as_str())
        .detail("replan_obligation_id", json!(identity.binding.obligation()))
        .detail("state", *state)
        .detail("resume_key", key.as_str());
    let event = tx.event(draft)?;
    let chain = tx.rows().external_delivery(&effect)?;
    let link = ExternalDelivery {
        seq: chain.last().map_or(1, |link| link.seq + 1),
        state: (*state).to_owned(),
        resume_key: key.clone(),
        event_id: event.event_id,
    };
    tx.put_external_delivery(&effect, &link)?;
    Ok(sinks)
}

pub(super) fn append(
    (ports, place): (&Ports, &Place),
    writer: &mut Writer,
    asked: &Refresh,
    question: &Question,
) -> Answer<Done> {
    let mut tx = place.begin(ports, writer)?;
    let sinks = extend_chain(&mut tx, asked)?;
    let content = content_of(tx.rows(), asked)?;
    // Another process may have written this Turn back since it was looked at.
    let written = match &asked.identity {
        Some(identity) if is_written_back(tx.rows(), asked, identity)? => None,
        _ => {
            check_spendable(tx.rows(), asked)?;
            // A todo that was opened again since the first look is not closed for nothing.
            if let Some(identity) = &asked.identity {
                check_outcome(tx.rows(), asked, identity)?;
            }
            let closeout = closeout_kind(tx.rows(), asked.identity.as_ref(), &content)?;
            let ask = Ask {
                identity: asked.identity.as_ref(),
                agent: asked.agent.as_ref(),
                content: &content,
                completion: None,
                closeout_kind: closeout,
                more: Map::new(),
            };
            Some(writeback::write_back(&mut tx, place, question, &ask)?)
        }
    };
    let spent = match &asked.identity {
        Some(identity) if asked.pays() => Some(settle::spend_by_agent(
            &mut tx,
            &place.goal_of(&identity.agent)?,
            question,
            identity,
        )?),
        _ => None,
    };
    tx.commit()?;
    crate::failpoint!(Point::WritebackCommitted);
    if spent.is_some() {
        crate::failpoint!(Point::SpendCommitted);
    }
    let mut done = match (&written, &asked.identity) {
        (None, Some(identity)) => stored(writer.rows(), asked, identity)?,
        (written, _) => Done {
            body: written.as_ref().map(body).unwrap_or_default(),
            appended: true,
            spent: None,
            repaired: false,
            sinks,
        },
    };
    done.spent = spent;
    Ok(done)
}

/// True when this exact refresh is committed already.
fn is_written_back(rows: Rows<'_>, asked: &Refresh, identity: &SettlementIdentity) -> Answer<bool> {
    let failed = |refusal| settle::failed(refusal, "durable_writeback");
    let steps = settle::steps(rows, identity)?;
    let recovered = recovery(rows, asked, identity, &steps).map_err(failed)?;
    Ok(matches!(
        recovered,
        Recovery::Replay | Recovery::RepairReceipt
    ))
}

/// `--settle-turn` needs an admitted mode that spends; otherwise nothing is written at all.
fn check_spendable(rows: Rows<'_>, asked: &Refresh) -> Answer<()> {
    let Some(identity) = asked.identity.as_ref().filter(|_| asked.pays()) else {
        return Ok(());
    };
    if settle::require_admission(rows, identity)?.is_spendable {
        return Ok(());
    }
    let text = "the admitted mode does not spend and nothing was written; leave --settle-turn out";
    let refusal = Refusal::new(ErrorCode::SettleTurnNotSpendable, text);
    Err(settle::failed(refusal, "quota_spend"))
}

/// How a writeback ends its Turn when nothing is owed for it: one price for a mode, in whichever
/// order the writeback and the spend are asked for.
fn closeout_kind(
    rows: Rows<'_>,
    identity: Option<&SettlementIdentity>,
    content: &Content,
) -> Answer<Option<&'static str>> {
    let Some(identity) = identity else {
        return Ok(None);
    };
    if content.outcome.as_deref() == Some("outcome_gap") {
        return Ok(Some(BLOCKED_CLOSEOUT));
    }
    settle::free_closeout(rows, identity)
}

fn body(written: &Written) -> Map<String, Value> {
    written.run.body.as_object().cloned().unwrap_or_default()
}

/// Brings the vision decision a committed refresh lacked; it never spends.
pub(super) fn supplement(
    (ports, place): (&Ports, &Place),
    writer: &mut Writer,
    asked: &Refresh,
    question: &Question,
) -> Answer<Done> {
    let Some(identity) = &asked.identity else {
        return append((ports, place), writer, asked, question);
    };
    let mut tx = place.begin(ports, writer)?;
    let sinks = extend_chain(&mut tx, asked)?;
    let content = content_of(tx.rows(), asked)?;
    if is_written_back(tx.rows(), asked, identity)? {
        drop(tx);
        return stored(writer.rows(), asked, identity);
    }
    let repaired = receipt_repair::writeback(&mut tx, (place, question), identity)?;
    let original = tx.rows().writeback(&identity.effect_id())?;
    let mut more = Map::new();
    more.insert(
        "recovery_decision".to_owned(),
        json!("supplement_checkpoint"),
    );
    more.insert(
        "original_generated_at".to_owned(),
        json!(original.map(|writeback| writeback.run_generated_at)),
    );
    let supplement = Content {
        classification: "vision_checkpoint_supplement".to_owned(),
        ..content.clone()
    };
    let ask = Ask {
        identity: None,
        agent: asked.agent.as_ref(),
        content: &supplement,
        completion: None,
        closeout_kind: None,
        more,
    };
    let written = writeback::write_back(&mut tx, place, question, &ask)?;
    if let Some(vision_digest) = content.vision_digest() {
        tx.supplement_writeback(
            &identity.effect_id(),
            &vision_digest,
            written.run.generated_at,
        )?;
    }
    tx.commit()?;
    crate::failpoint!(Point::WritebackCommitted);
    Ok(Done {
        body: body(&written),
        appended: true,
        spent: None,
        repaired,
        sinks,
    })
}

/// Answers an exact repeat from what is stored; only a spend that is asked for now can be added.
pub(super) fn replay(
    (ports, place): (&Ports, &mut Place),
    mut writer: Writer,
    asked: &Refresh,
    question: &Question,
) -> Answer {
    record_pause((ports, place), &mut writer, asked)?;
    let Some(identity) = &asked.identity else {
        let done = Done {
            body: Map::new(),
            appended: false,
            spent: None,
            repaired: false,
            sinks: sinks(writer.rows(), asked)?,
        };
        return finish((ports, place), asked, done);
    };
    let mut done = stored(writer.rows(), asked, identity)?;
    let steps = settle::steps(writer.rows(), identity)?;
    let pays = asked.pays() && (steps.spend.is_none() || steps.spend_lacks_event);
    if pays {
        check_spendable(writer.rows(), asked)?;
    }
    if pays || steps.writeback_lacks_event {
        let mut tx = place.begin(ports, &mut writer)?;
        done.repaired = receipt_repair::writeback(&mut tx, (&*place, question), identity)?;
        if pays {
            let spent = settle::spend_by_agent(
                &mut tx,
                &place.goal_of(&identity.agent)?,
                question,
                identity,
            )?;
            done.spent = Some(spent);
        }
        tx.commit()?;
        if pays {
            crate::failpoint!(Point::SpendCommitted);
        }
    }
    writer.bring_up_exports(&asked.goal, ports.now);
    drop(writer);
    finish((ports, place), asked, done)
}
