//! The exact readback, the hooks it releases, and what a refresh answers.

use serde_json::{Map, Value, json};

use super::asked::Refresh;
use super::prepare::{Prepared, content_of, sinks};
use crate::contract::error::ErrorCode;
use crate::contract::packet::Refusal;
use crate::contract::settlement::{Binding, SettlementIdentity};
use crate::failpoint::Point;
use crate::flow::open::{Answer, Place};
use crate::flow::ports::Ports;
use crate::flow::settle::{self, SpentSlot};
use crate::flow::{hooks, quota};
use crate::kernel::quota::packet as quota_packet;
use crate::kernel::refresh::{Recovery, SinkDecision};
use crate::store::rows::Rows;

/// What one transaction left behind.
pub(super) struct Done {
    pub(super) body: Map<String, Value>,
    pub(super) appended: bool,
    pub(super) spent: Option<SpentSlot>,
    pub(super) repaired: bool,
    /// What outside sinks may do, as the rows have it that were written or read last.
    pub(super) sinks: SinkDecision,
}

/// What is stored for this call: the run of the writeback, or that of the supplement this call repeats.
pub(super) fn stored(
    rows: Rows<'_>,
    asked: &Refresh,
    identity: &SettlementIdentity,
) -> Answer<Done> {
    let writeback = rows.writeback(&identity.effect_id())?;
    let decides = content_of(rows, asked)?.vision_digest().is_some();
    let supplement = writeback
        .as_ref()
        .and_then(|writeback| writeback.body.get("supplement_generated_at"))
        .and_then(Value::as_str)
        .filter(|_| decides);
    let at = supplement.or(writeback
        .as_ref()
        .map(|writeback| writeback.run_generated_at.as_str()));
    let run = match at {
        Some(at) => rows.run(&identity.goal, at)?,
        None => None,
    };
    let body = run
        .and_then(|run| run.body.as_object().cloned())
        .unwrap_or_default();
    Ok(Done {
        body,
        appended: false,
        spent: None,
        repaired: false,
        sinks: sinks(rows, asked)?,
    })
}

/// Reads back, runs the hooks and answers.
pub(super) fn finish((ports, place): (&Ports, &Place), asked: &Refresh, done: Done) -> Answer {
    let mut packet = packet(asked, &done);
    let delivery = done.sinks.to_value(None);
    packet.insert("external_delivery".to_owned(), delivery);
    packet.insert(
        "external_sink_delivery_authorized".to_owned(),
        json!(done.sinks.authorized),
    );
    if let Some(identity) = &asked.identity {
        let reader = place.reader()?.ok_or_else(|| {
            Refusal::new(
                ErrorCode::StoreCorrupt,
                "the store vanished; run `loopx doctor`",
            )
        })?;
        let steps = settle::steps(reader.rows(), identity)
            .map_err(|refusal| settle::failed(refusal, "durable_writeback"))?;
        let progress = settle::progress(&steps, "heartbeat");
        packet.insert("settlement_identity".to_owned(), identity.to_value());
        packet.insert(
            "settlement_result".to_owned(),
            settle::settlement_result(reader.rows(), identity)?,
        );
        if progress.get("next_step").and_then(Value::as_str) == Some("quota_spend") {
            let question = quota::standing(ports, place, asked.agent.as_ref());
            packet.insert(
                "settlement_owed".to_owned(),
                quota_packet::settlement_owed(&question, identity),
            );
        }
        packet.insert("settlement_progress".to_owned(), progress);
        drop(reader);
        if identity.binding != Binding::Unbound
            && let Some(hooks) = hooks::dispatch(place, identity)
        {
            packet.insert("post_writeback_hooks".to_owned(), hooks);
        }
    }
    crate::failpoint!(Point::SinkCalled);
    Ok(Value::Object(packet))
}

fn packet(asked: &Refresh, done: &Done) -> Map<String, Value> {
    let mut packet = Map::new();
    packet.insert("ok".to_owned(), json!(true));
    packet.extend(done.body.clone());
    packet.insert("schema_version".to_owned(), json!("loopx_refresh_state_v0"));
    packet.insert("dry_run".to_owned(), json!(false));
    packet.insert("appended".to_owned(), json!(done.appended));
    if !done.appended {
        packet.insert("idempotent_replay".to_owned(), json!(true));
    }
    if done.repaired {
        packet.insert("receipt_repaired".to_owned(), json!(true));
    }
    packet.insert("goal_id".to_owned(), json!(asked.goal));
    if let Some(spent) = &done.spent {
        packet.insert("spend_generated_at".to_owned(), json!(spent.generated_at));
    }
    packet
}

pub(super) fn preview(asked: &Refresh, prepared: &Prepared) -> Value {
    let word = match prepared.recovery {
        Recovery::Append => "preview_only",
        Recovery::Replay => "already_applied",
        Recovery::RepairReceipt => "repair_receipt",
        Recovery::SupplementCheckpoint => "supplement_checkpoint",
    };
    let mut sinks = prepared.sinks.clone();
    sinks.append = None;
    let mut packet = json!({
        "ok": true, "schema_version": "loopx_refresh_state_v0", "dry_run": true, "appended": false, "write_outcome": word,
        "goal_id": asked.goal, "agent_id": asked.agent, "classification": asked.content.classification,
        "settlement_identity": asked.identity.as_ref().map(SettlementIdentity::to_value),
        "external_delivery": sinks.to_value(None), "external_sink_delivery_authorized": prepared.sinks.authorized,
    });
    if prepared.recovery == Recovery::RepairReceipt {
        packet["receipt_repair_required"] = json!(true);
    }
    packet
}
