//! What a delivery amounts to: readiness verified from scratch, then sink by sink.

use std::collections::BTreeMap;

use serde::Serialize;

use super::readiness;
use crate::contract::error::ContractError;
use crate::contract::ids::Token;
use crate::contract::periodic_report::delivery::{
    DeliveryReceipt, DeliveryReceiptSchema, DeliveryRequest, DeliveryStatus, SinkDelivery,
    SinkResult,
};
use crate::contract::periodic_report::identity::{id_of, value_of};
use crate::contract::periodic_report::readiness::{GivenReadiness, Readiness, SinkReadiness};
use crate::contract::periodic_report::vocabulary::{
    DependencyPolicy, No, SinkRole, SinkStatus, Yes,
};

type Results = BTreeMap<(SinkRole, Token), SinkResult>;

/// Settles a delivery.
pub fn settle(request: &DeliveryRequest<'_>) -> Result<DeliveryReceipt, ContractError> {
    let generation_id = request.generation.generation_id.clone();
    let readiness = verify_readiness(&request.readiness, generation_id)?;
    refuse_unbound(&request.results, &readiness)?;
    let mut sinks = Vec::with_capacity(readiness.sink_readiness.len());
    for sink in &readiness.sink_readiness {
        sinks.push(settle_sink(sink, &request.results)?);
    }
    receipt(readiness, sinks)
}

/// Judges the sinks again from their own receipts; whatever differs is refused.
fn verify_readiness(
    given: &GivenReadiness<'_>,
    generation_id: String,
) -> Result<Readiness, ContractError> {
    let bindings = given.bindings.clone();
    let readiness = readiness::judge_bindings(generation_id, bindings, &given.observed)?;
    let expected = value_of(&readiness)?;
    let mut members = expected.as_object().into_iter().flatten();
    match members.find(|(name, value)| !given.says(name, value)) {
        None => Ok(readiness),
        Some((name, _)) => Err(ContractError::mismatch(
            given.at.field(name),
            "differs from what the bindings and receipts give",
        )),
    }
}

fn refuse_unbound(results: &Results, readiness: &Readiness) -> Result<(), ContractError> {
    for ((role, sink_id), result) in results {
        let binding = readiness
            .sink_readiness
            .iter()
            .map(|sink| &sink.binding)
            .find(|binding| binding.sink_role == *role && binding.sink_id == *sink_id);
        let fault = match binding {
            None => Some(("sink_id", "is not a sink of this delivery")),
            Some(binding) if binding.sink_kind != result.sink_kind => {
                Some(("sink_kind", "differs from the kind of the sink"))
            }
            Some(_) => None,
        };
        if let Some((name, reason)) = fault {
            return Err(ContractError::invalid(result.given_at.field(name), reason));
        }
    }
    Ok(())
}

fn settle_sink(sink: &SinkReadiness, results: &Results) -> Result<SinkDelivery, ContractError> {
    let binding = &sink.binding;
    let result = results.get(&(binding.sink_role, binding.sink_id.clone()));
    let is_required = binding.dependency_policy == DependencyPolicy::Required;
    let mut delivery = if binding.dependency_policy == DependencyPolicy::Disabled {
        let reason = "dependency_disabled".to_owned();
        SinkDelivery::without_result(sink, SinkStatus::Skipped, reason)
    } else if !sink.ready {
        let status = match is_required {
            true => SinkStatus::Failed,
            false => SinkStatus::Skipped,
        };
        let reason = format!("extension_{}", sink.status.as_str());
        SinkDelivery::without_result(sink, status, reason)
    } else if let Some(result) = result {
        let reason = "provider_result".to_owned();
        let mut delivery = SinkDelivery::without_result(sink, result.status, reason);
        delivery.retryable = result.retryable;
        delivery
    } else {
        let reason = "sink_result_pending".to_owned();
        SinkDelivery::without_result(sink, SinkStatus::Pending, reason)
    };
    if let Some(result) = result {
        // Spec core 10.4: what a provider proved stays, also when its extension is not ready.
        delivery.readback_verified = result.status == SinkStatus::Sent && result.readback_verified;
        delivery.evidence = result.evidence.clone();
    }
    Ok(delivery)
}

/// The state of the sinks that are switched on; required ones speak first.
fn status(sinks: &[SinkDelivery]) -> DeliveryStatus {
    let enabled: Vec<&SinkDelivery> = sinks
        .iter()
        .filter(|sink| sink.dependency_policy != DependencyPolicy::Disabled)
        .collect();
    let any = |wanted| enabled.iter().any(|sink| sink.status == wanted);
    let is_open = |sink: &&&SinkDelivery| sink.status != SinkStatus::Sent;
    let is_required_open = enabled
        .iter()
        .filter(is_open)
        .any(|sink| sink.dependency_policy == DependencyPolicy::Required);
    if enabled.is_empty() {
        DeliveryStatus::NotRequired
    } else if any(SinkStatus::Pending) {
        DeliveryStatus::Pending
    } else if any(SinkStatus::Unknown) {
        DeliveryStatus::Unknown
    } else if is_required_open {
        DeliveryStatus::Failed
    } else if enabled.iter().any(|sink| is_open(&sink)) {
        DeliveryStatus::Partial
    } else {
        DeliveryStatus::Succeeded
    }
}

#[derive(Serialize)]
struct DeliveryIdentity<'a> {
    generation_id: &'a str,
    readiness_id: &'a str,
    sinks: &'a [SinkDelivery],
}

fn receipt(
    readiness: Readiness,
    sinks: Vec<SinkDelivery>,
) -> Result<DeliveryReceipt, ContractError> {
    let status = status(&sinks);
    let identity = DeliveryIdentity {
        generation_id: &readiness.generation_id,
        readiness_id: &readiness.readiness_id,
        sinks: &sinks,
    };
    let mut retryable_sinks: Vec<Token> = sinks
        .iter()
        .filter(|sink| sink.retryable && sink.status != SinkStatus::Sent)
        .map(|sink| sink.sink_id.clone())
        .collect();
    retryable_sinks.sort();
    Ok(DeliveryReceipt {
        ok: matches!(
            status,
            DeliveryStatus::NotRequired | DeliveryStatus::Succeeded | DeliveryStatus::Partial
        ),
        schema_version: DeliveryReceiptSchema,
        delivery_id: id_of("report_delivery", &identity)?,
        generation_id: readiness.generation_id,
        readiness_id: readiness.readiness_id,
        delivery_mode: readiness.delivery_mode,
        status,
        terminal: !matches!(status, DeliveryStatus::Pending | DeliveryStatus::Unknown),
        generation_usable: Yes,
        sink_receipts: sinks,
        retryable_sinks,
        external_writes_performed: No,
    })
}
