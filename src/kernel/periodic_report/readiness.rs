//! Whether the extensions a profile names are there, from observed receipts alone.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::contract::error::ContractError;
use crate::contract::ids::Token;
use crate::contract::periodic_report::identity::id_of;
use crate::contract::periodic_report::readiness::{
    ExtensionReceipt, ProviderStatus, Readiness, ReadinessRequest, ReadinessSchema,
    ReadinessStatus, SinkReadiness, SinkReadinessStatus,
};
use crate::contract::periodic_report::sink::SinkBinding;
use crate::contract::periodic_report::vocabulary::{DeliveryMode, DependencyPolicy, No, Yes};

/// Judges every sink of a request.
pub fn judge(request: ReadinessRequest) -> Result<Readiness, ContractError> {
    let generation_id = request.generation.generation_id;
    judge_bindings(generation_id, request.bindings, &request.observed)
}

/// Judges sinks of one generation.
pub fn judge_bindings(
    generation_id: String,
    bindings: Vec<SinkBinding>,
    observed: &BTreeMap<Token, ExtensionReceipt>,
) -> Result<Readiness, ContractError> {
    let sinks: Vec<SinkReadiness> = bindings
        .into_iter()
        .map(|binding| judge_sink(binding, observed))
        .collect();
    summarize(generation_id, sinks)
}

fn judge_sink(binding: SinkBinding, observed: &BTreeMap<Token, ExtensionReceipt>) -> SinkReadiness {
    let receipt = observed.get(&binding.extension.extension_id);
    let status = sink_status(&binding, receipt);
    let ready = status == SinkReadinessStatus::Ready;
    SinkReadiness {
        status,
        ready,
        blocks_delivery: binding.dependency_policy == DependencyPolicy::Required && !ready,
        provider_receipt: receipt.cloned(),
        binding,
    }
}

fn sink_status(binding: &SinkBinding, receipt: Option<&ExtensionReceipt>) -> SinkReadinessStatus {
    if binding.dependency_policy == DependencyPolicy::Disabled {
        return SinkReadinessStatus::Disabled;
    }
    let Some(receipt) = receipt else {
        return SinkReadinessStatus::Missing;
    };
    let is_same = receipt.extension_version == binding.extension.extension_version
        && receipt.protocol == binding.extension.protocol
        && receipt.capabilities.contains(&binding.capability);
    if !is_same {
        return SinkReadinessStatus::Incompatible;
    }
    match (receipt.status, receipt.readback_verified) {
        (ProviderStatus::Unavailable, _) => SinkReadinessStatus::Unavailable,
        (ProviderStatus::Unknown, _) => SinkReadinessStatus::Unknown,
        (ProviderStatus::Ready, false) => SinkReadinessStatus::Unverified,
        (ProviderStatus::Ready, true) => SinkReadinessStatus::Ready,
    }
}

#[derive(Serialize)]
struct ReadinessIdentity<'a> {
    generation_id: &'a str,
    mode: DeliveryMode,
    bindings: &'a [SinkReadiness],
}

fn summarize(generation_id: String, sinks: Vec<SinkReadiness>) -> Result<Readiness, ContractError> {
    let policy = |sink: &SinkReadiness| sink.binding.dependency_policy;
    let mode = DeliveryMode::of(sinks.iter().map(policy));
    let is_blocked = sinks.iter().any(|sink| sink.blocks_delivery);
    let degraded = sinks
        .iter()
        .any(|sink| policy(sink) == DependencyPolicy::Optional && !sink.ready);
    let is_enabled = |sink: &&SinkReadiness| policy(sink) != DependencyPolicy::Disabled;
    let status = if !sinks.iter().any(|sink| is_enabled(&sink)) {
        ReadinessStatus::NotRequired
    } else if is_blocked {
        ReadinessStatus::Blocked
    } else if degraded {
        ReadinessStatus::Degraded
    } else {
        ReadinessStatus::Ready
    };
    let identity = ReadinessIdentity {
        generation_id: &generation_id,
        mode,
        bindings: &sinks,
    };
    let readiness_id = id_of("report_readiness", &identity)?;
    Ok(Readiness {
        ok: Yes,
        schema_version: ReadinessSchema,
        readiness_id,
        delivery_mode: mode,
        status,
        generation_usable: Yes,
        formal_delivery_required: mode == DeliveryMode::Durable,
        delivery_allowed: !is_blocked && sinks.iter().filter(is_enabled).any(|sink| sink.ready),
        degraded,
        readback_verified: sinks
            .iter()
            .all(|sink| sink.ready || sink.status == SinkReadinessStatus::Disabled),
        sink_readiness: sinks,
        external_writes_performed: No,
        generation_id,
    })
}
