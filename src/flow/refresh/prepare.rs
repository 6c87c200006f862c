//! What is known before anything is written: the admission, the recovery of a committed refresh, the pause of sinks.

use serde_json::Value;

use super::asked::{Refresh, VisionInput};
use crate::contract::error::ErrorCode;
use crate::contract::packet::Refusal;
use crate::contract::settlement::SettlementIdentity;
use crate::contract::todo::Status;
use crate::contract::vision::Vision;
use crate::flow::open::{Answer, Place};
use crate::flow::settle;
use crate::kernel::refresh::{self, Committed, Content, Link, Recovery, SinkDecision, SinkRequest};
use crate::store::journal::settlement::ExternalDelivery;
use crate::store::rows::Rows;

/// What is known before anything is written.
pub(super) struct Prepared {
    pub(super) recovery: Recovery,
    pub(super) sinks: SinkDecision,
}

pub(super) fn prepare(place: &Place, asked: &Refresh) -> Answer<Prepared> {
    let Some(identity) = &asked.identity else {
        return Ok(Prepared {
            recovery: Recovery::Append,
            sinks: untied(asked),
        });
    };
    let missing = || {
        Refusal::new(
            ErrorCode::ReceiptMissing,
            "there is no admission for this Turn; run `loopx quota should-run` first",
        )
    };
    let reader = place
        .reader()?
        .ok_or_else(missing)
        .map_err(|refusal| settle::failed(refusal, "admission"))?;
    let rows = reader.rows();
    settle::require_admission(rows, identity)
        .map_err(|refusal| settle::failed(refusal, "admission"))?;
    let sinks = sinks(rows, asked)?;
    let steps = settle::steps(rows, identity)
        .map_err(|refusal| settle::failed(refusal, "durable_writeback"))?;
    let recovery = recovery(rows, asked, identity, &steps)
        .map_err(|refusal| settle::failed(refusal, "durable_writeback"))?;
    if recovery == Recovery::Append {
        check_outcome(rows, asked, identity)?;
    }
    Ok(Prepared { recovery, sinks })
}

/// What outside sinks may do, as these rows have it.
pub(super) fn sinks(rows: Rows<'_>, asked: &Refresh) -> Answer<SinkDecision> {
    let Some(identity) = &asked.identity else {
        return Ok(untied(asked));
    };
    let effect = identity.effect_id();
    let chain = rows.external_delivery(&effect)?;
    let chain: Vec<Link> = chain.into_iter().map(link).collect();
    refresh::sinks(&effect, &chain, &asked.sinks)
}

/// A call without a Turn holds sinks back for itself alone.
fn untied(asked: &Refresh) -> SinkDecision {
    let is_held = asked.sinks == SinkRequest::Suppress;
    SinkDecision {
        authorized: !is_held,
        reason: if is_held {
            "suppressed"
        } else {
            "legacy_per_call"
        },
        resume_key: None,
        append: None,
    }
}

fn link(stored: ExternalDelivery) -> Link {
    Link {
        state: stored.state,
        resume_key: stored.resume_key,
        event_id: stored.event_id,
    }
}

pub(super) fn recovery(
    rows: Rows<'_>,
    asked: &Refresh,
    identity: &SettlementIdentity,
    steps: &settle::Steps,
) -> Answer<Recovery> {
    let Some(writeback) = &steps.writeback else {
        return Ok(Recovery::Append);
    };
    let run = rows.run(&identity.goal, &writeback.run_generated_at)?;
    let checkpoint = run
        .as_ref()
        .and_then(|run| run.body.get("vision_checkpoint"))
        .and_then(|checkpoint| checkpoint.get("decision"));
    let has_later_vision =
        rows.has_vision_after(&identity.goal, &identity.agent, writeback.run_seq)?;
    let committed = Committed {
        mutation_digest: &writeback.mutation_digest,
        vision_digest: writeback.vision_digest.as_deref(),
        checkpoint: checkpoint.and_then(Value::as_str).unwrap_or("not_required"),
        has_later_vision,
        lacks_receipt: steps.writeback_lacks_event,
    };
    refresh::recover(&content_of(rows, asked)?, Some(&committed))
}

/// The content with its vision; a patch is laid over the latest open vision, or over what this Turn already wrote.
pub(super) fn content_of(rows: Rows<'_>, asked: &Refresh) -> Answer<Content> {
    let mut content = asked.content.clone();
    content.vision = match (&asked.vision, &asked.agent) {
        (None, _) | (_, None) => None,
        (Some(VisionInput::Whole(value)), _) => Some(value.clone()),
        (Some(VisionInput::Patch { state, members }), Some(agent)) => {
            let committed = match &asked.identity {
                Some(identity) => rows.writeback(&identity.effect_id())?,
                None => None,
            };
            let base = match &committed {
                Some(writeback) => {
                    rows.open_vision_before(&asked.goal, agent, &writeback.run_generated_at)?
                }
                None => rows.open_vision(&asked.goal, agent)?,
            };
            Some(Vision::patched(base.as_ref(), state.as_deref(), members))
        }
    };
    Ok(content)
}

/// A Turn-bound refresh says what it achieved, or that its todo is blocked.
pub(super) fn check_outcome(
    rows: Rows<'_>,
    asked: &Refresh,
    identity: &SettlementIdentity,
) -> Answer<()> {
    if asked.content.outcome.as_deref() != Some("outcome_gap") {
        return Ok(());
    }
    let todo = match identity.binding.todo() {
        Some(todo) => rows.todo(&identity.goal, todo)?,
        None => None,
    };
    let is_blocked = todo.is_some_and(|stored| {
        stored.todo.status() == Status::Blocked && stored.todo.text("reason").is_some()
    });
    if is_blocked {
        return Ok(());
    }
    let text = "a Turn with an outcome gap is closed only while its todo is blocked with a reason, and spends nothing";
    Err(settle::failed(
        Refusal::new(ErrorCode::WritebackRejected, text),
        "durable_writeback",
    ))
}
