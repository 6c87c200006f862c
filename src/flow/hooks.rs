//! Dispatches post-writeback hooks after the exact settlement readback; a failure stays here.

use serde_json::{Value, json};

use super::open::Place;
use crate::contract::ids::AgentId;
use crate::contract::periodic_report::identity::digest_of;
use crate::contract::periodic_report::profile::Profile as ReportProfile;
use crate::contract::settlement::SettlementIdentity;
use crate::failpoint::Point;
use crate::kernel::hooks::{self, Dispatch, HOOK_ID, Profile, Source};
use crate::kernel::intent;
use crate::store::StoreError;
use crate::store::journal::hook::HookReceipt;
use crate::store::rows::Rows;

const MAX_ATTEMPTS: i64 = 10_000;

/// Dispatches the hooks of a committed writeback; `None` when none is registered.
pub fn dispatch(place: &Place, identity: &SettlementIdentity) -> Option<Value> {
    if !intent::is_subscribed(&place.goal) {
        return None;
    }
    let outcome = run(place, identity);
    crate::failpoint!(Point::HookDispatched);
    Some(match outcome {
        Ok(packet) => packet,
        Err(code) => failure(code),
    })
}

fn run(place: &Place, identity: &SettlementIdentity) -> Result<Value, &'static str> {
    let reader = place
        .reader()
        .map_err(|_| "source_projection_failed")?
        .ok_or("source_projection_failed")?;
    let source = committed(reader.rows(), identity)?;
    let profile = report_profile().ok_or("registration_or_input_rejected")?;
    let ids = source
        .dispatch(&profile)
        .map_err(|_| "registration_or_input_rejected")?;
    let stored = reader
        .rows()
        .hook_receipt(&place.goal.id, &ids.dispatch_id)
        .map_err(|_| "journal_read_failed")?;
    drop(reader);
    if let Some(stored) = stored
        .as_ref()
        .filter(|stored| stored.status != "retryable_failure")
    {
        return Ok(packet(&ids, Some(stored), Progress::Replayed));
    }
    let attempt = stored.as_ref().map_or(0, |stored| stored.attempt_count) + 1;
    if attempt > MAX_ATTEMPTS {
        return Err("journal_write_failed");
    }
    let produced = hooks::produce(&source, &ids, &profile);
    crate::failpoint!(Point::HookReturned);
    let receipt = receipt((&ids, attempt), produced, &source);
    let stored_now = store(place, &identity.agent, &receipt).map_err(|_| "journal_write_failed")?;
    crate::failpoint!(Point::HookReceiptCommitted);
    let progress = if attempt > 1 {
        Progress::Retried
    } else {
        Progress::Invoked
    };
    Ok(match stored_now {
        None => packet(&ids, Some(&receipt), progress),
        Some(other) => packet(&ids, Some(&other), Progress::Replayed),
    })
}

fn receipt(
    (ids, attempt): (&Dispatch, i64),
    produced: Option<Value>,
    source: &Source,
) -> HookReceipt {
    HookReceipt {
        dispatch_id: ids.dispatch_id.clone(),
        hook_id: HOOK_ID.to_owned(),
        capability_id: intent::CAPABILITY.to_owned(),
        source_receipt_id: ids.source_receipt_id.clone(),
        status: if produced.is_some() {
            "intent_recorded"
        } else {
            "not_applicable"
        }
        .to_owned(),
        intent: produced,
        error_code: None,
        attempt_count: attempt,
        recorded_at: source.committed_at.clone(),
    }
}

/// The committed source of a dispatch: the run and the event as they were written, never the present frontier.
fn committed(rows: Rows<'_>, identity: &SettlementIdentity) -> Result<Source, &'static str> {
    let writeback = rows
        .writeback(&identity.effect_id())
        .ok()
        .flatten()
        .ok_or("source_projection_failed")?;
    let event = rows
        .event(&writeback.event_id)
        .ok()
        .flatten()
        .ok_or("source_projection_failed")?;
    let committed_at = event
        .get("recorded_at")
        .and_then(Value::as_str)
        .ok_or("source_projection_failed")?;
    Ok(Source {
        identity: identity.clone(),
        state_version: writeback.run_generated_at,
        committed_at: committed_at.to_owned(),
        stage: hooks::stage_of_event(&event),
    })
}

fn report_profile() -> Option<Profile> {
    let profile = ReportProfile::weekly_progress();
    Some(Profile {
        digest: digest_of(&profile).ok()?,
        reference: json!({"profile_id": profile.profile_id, "profile_version": profile.profile_version}),
        trigger_policy: serde_json::to_value(&profile.trigger_policy).ok()?,
    })
}

/// Stores a receipt; another process that was faster wins and is returned.
fn store(
    place: &Place,
    agent: &AgentId,
    receipt: &HookReceipt,
) -> Result<Option<HookReceipt>, StoreError> {
    let mut writer = place.store.write()?;
    if writer.put_hook_receipt(&place.goal.id, agent, receipt)? {
        return Ok(None);
    }
    writer
        .rows()
        .hook_receipt(&place.goal.id, &receipt.dispatch_id)
}

enum Progress {
    Invoked,
    Retried,
    Replayed,
}

fn packet(ids: &Dispatch, receipt: Option<&HookReceipt>, progress: Progress) -> Value {
    let intents: Vec<&Value> = receipt
        .and_then(|receipt| receipt.intent.as_ref())
        .into_iter()
        .collect();
    let mut packet = base(intents.len());
    packet["intents"] = json!(intents);
    packet["dispatch_ids"] = json!([ids.dispatch_id]);
    match progress {
        Progress::Invoked => packet["invoked_count"] = json!(1),
        Progress::Retried => {
            packet["invoked_count"] = json!(1);
            packet["retried_hooks"] = json!([HOOK_ID]);
        }
        Progress::Replayed => packet["replayed_hooks"] = json!([HOOK_ID]),
    }
    packet
}

fn failure(code: &str) -> Value {
    let mut packet = base(0);
    packet["failures"] = json!([{"hook_id": HOOK_ID, "error_code": code}]);
    packet
}

fn base(intent_count: usize) -> Value {
    json!({
        "schema_version": "loopx_post_writeback_capability_hook_dispatch_v0",
        "phase": "post_writeback",
        "registered_count": 1,
        "invoked_count": 0,
        "replayed_hooks": [],
        "retried_hooks": [],
        "intent_count": intent_count,
        "intents": [],
        "failures": [],
        "primary_writeback_preserved": true,
        "external_writes_performed": false,
    })
}
