//! The admission of a Turn instance: recorded once, upgraded once from unbound, otherwise replayed.

use serde_json::{Value, json};

use super::open::{Answer, Place};
use super::ports::Ports;
use super::settle;
use crate::contract::error::ErrorCode;
use crate::contract::event::EventDraft;
use crate::contract::packet::Refusal;
use crate::contract::settlement::{Binding, SettlementIdentity};
use crate::store::journal::settlement::Admission;

/// What an admission keeps of its decision.
#[derive(Clone, Debug)]
pub struct ReceiptFacts {
    /// The effective action.
    pub action: &'static str,
    /// Whether the agent works.
    pub should_run: bool,
    /// The mode of the decision.
    pub mode: &'static str,
    /// Whether a validated Turn of it spends.
    pub spends: bool,
    /// The event status, when it is not the action.
    pub status: Option<&'static str>,
    /// The capture of a driven Turn.
    pub capture_id: Option<String>,
}

/// A stored admission and how it came about.
#[derive(Clone, Debug)]
pub struct AdmissionReceipt {
    /// `committed`, `replayed` or `upgraded`.
    pub status: &'static str,
    /// The identity that is stored now.
    pub identity: SettlementIdentity,
    /// The anchor event.
    pub event_id: String,
    /// When it was recorded.
    pub recorded_at: String,
}

impl AdmissionReceipt {
    /// The view of a packet.
    pub fn view(&self) -> Value {
        let mut view = json!({
            "schema_version": "heartbeat_quota_receipt_v0",
            "turn_instance_id": self.identity.instance,
            "status": self.status,
            "stall_observation": null,
            "event_id": self.event_id,
            "recorded_at": self.recorded_at,
        });
        if self.identity.binding == Binding::Unbound {
            view["settlement_binding_owed"] = json!(true);
        } else {
            view["settlement_identity"] = self.identity.to_value();
            view["closeout_required"] = json!(true);
        }
        view
    }
}

/// Records an admission: once, upgraded once from unbound, otherwise replayed.
pub fn record_admission(
    ports: &Ports,
    place: &mut Place,
    wanted: &SettlementIdentity,
    facts: &ReceiptFacts,
) -> Answer<AdmissionReceipt> {
    // A replay is answered by a read: nothing has to be writable for it.
    if let Some(reader) = place.reader()? {
        let stored = reader
            .rows()
            .admission(&wanted.goal, &wanted.agent, &wanted.instance)?;
        if let Some(replayed) = stored
            .map(|stored| replay(wanted, &stored))
            .transpose()?
            .flatten()
        {
            return Ok(replayed);
        }
    }
    let mut writer = place.writer(ports)?;
    let mut tx = place.begin(ports, &mut writer)?;
    let stored = tx
        .rows()
        .admission(&wanted.goal, &wanted.agent, &wanted.instance)?;
    if let Some(stored) = &stored
        && let Some(replayed) = replay(wanted, stored)?
    {
        drop(tx);
        return Ok(replayed);
    }
    settle::require_own_effect(&tx, wanted)?;
    let event = tx.event(admission_event(wanted, facts))?;
    let (status, event_id, recorded_at) = match stored {
        None => ("committed", event.event_id, event.recorded_at.to_string()),
        Some(stored) => ("upgraded", stored.event_id, stored.recorded_at),
    };
    let admission = Admission {
        binding: wanted.binding.clone(),
        event_id: event_id.clone(),
        recorded_at: recorded_at.clone(),
        mode: facts.mode.to_owned(),
        is_spendable: facts.spends,
        capture_id: facts.capture_id.clone(),
    };
    tx.put_admission(wanted, &admission, &wanted.to_value())?;
    tx.commit()?;
    writer.bring_up_exports(&wanted.goal, ports.now);
    Ok(AdmissionReceipt {
        status,
        identity: wanted.clone(),
        event_id,
        recorded_at,
    })
}

fn admission_event(wanted: &SettlementIdentity, facts: &ReceiptFacts) -> EventDraft {
    let draft = EventDraft::new("quota_should_run", facts.action)
        .agent(Some(wanted.agent.as_str()))
        .todo(wanted.binding.todo().map(|todo| todo.as_str()))
        .run(Some(wanted.instance.as_str()))
        .status(facts.status.unwrap_or(facts.action))
        .detail("binding_kind", wanted.binding.kind())
        .detail("effective_action", facts.action)
        .detail("should_run", facts.should_run);
    match &facts.capture_id {
        Some(capture_id) => draft.detail("capture_id", capture_id.as_str()),
        None => draft,
    }
}

/// The stored admission, when it answers this one; `None` when an unbound one is to be upgraded.
fn replay(wanted: &SettlementIdentity, stored: &Admission) -> Answer<Option<AdmissionReceipt>> {
    let identity = SettlementIdentity {
        binding: stored.binding.clone(),
        ..wanted.clone()
    };
    let receipt = AdmissionReceipt {
        status: "replayed",
        identity,
        event_id: stored.event_id.clone(),
        recorded_at: stored.recorded_at.clone(),
    };
    match (&stored.binding, &wanted.binding) {
        (stored, wanted) if stored == wanted => Ok(Some(receipt)),
        (Binding::Unbound, _) => Ok(None),
        (_, Binding::Unbound) => Ok(Some(receipt)),
        _ => {
            let text = "this Turn instance is bound to something else and was left as it is; use a fresh instance id";
            Err(Refusal::new(
                ErrorCode::HeartbeatReceiptIdentityConflict,
                text,
            ))
        }
    }
}
