//! `periodic_report_delivery_receipt_v0`: what the sinks did with one generation.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::generation::GenerationReceipt;
use super::hosted::HostedReadback;
use super::readiness::{GivenReadiness, SinkReadiness};
use super::sink::{Capability, ExtensionRef};
use super::vocabulary::{
    DeliveryMode, DependencyPolicy, No, SinkRole, SinkStatus, Yes, schema_version, vocabulary,
};
use crate::contract::error::ContractError;
use crate::contract::ids::Token;
use crate::contract::parse::{Fields, Label};

schema_version!(
    /// The schema of a delivery receipt.
    DeliveryReceiptSchema,
    "periodic_report_delivery_receipt_v0"
);

const RESULT_SCHEMA: &str = "periodic_report_sink_result_v0";

/// What a provider says it did for one sink.
#[derive(Debug, Clone, PartialEq)]
pub struct SinkResult {
    /// The sink.
    pub sink_id: Token,
    /// What it is.
    pub sink_kind: Token,
    /// Archive or delivery.
    pub sink_role: SinkRole,
    /// How far it is.
    pub status: SinkStatus,
    /// Whether sending again may help.
    pub retryable: bool,
    /// Whether the provider was read back.
    pub readback_verified: bool,
    /// What is copied into the receipt as it stands.
    pub evidence: SinkEvidence,
    /// Where the result stood in the input.
    pub given_at: Label,
}

/// What a result leaves in the receipt.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SinkEvidence {
    #[serde(skip_serializing_if = "Option::is_none")]
    idempotency_key: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt_ref: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_id: Option<String>,
    #[serde(flatten)]
    hosted: HostedReadback,
}

impl SinkResult {
    fn parse(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        fields.constant("schema_version", RESULT_SCHEMA)?;
        let status = fields.choice("status", SinkStatus::CHOICES)?;
        let is_sent = status == SinkStatus::Sent;
        let sink_kind = fields.token("sink_kind")?;
        let hosted = HostedReadback::parse(&mut fields, sink_kind.as_str(), status)?;
        let result = Self {
            sink_id: fields.token("sink_id")?,
            sink_role: fields.choice("sink_role", SinkRole::CHOICES)?,
            status,
            retryable: match fields.some("retryable") {
                None => !is_sent,
                Some(_) => fields.boolean("retryable")?,
            },
            readback_verified: fields.flag("readback_verified")?,
            evidence: SinkEvidence {
                idempotency_key: filled(&mut fields, "idempotency_key")?,
                receipt_ref: filled(&mut fields, "receipt_ref")?,
                result_id: filled(&mut fields, "result_id")?,
                hosted,
            },
            sink_kind,
            given_at: at.clone(),
        };
        let result = fields.finish(result)?;
        result.require_proof(at)?;
        Ok(result)
    }

    fn require_proof(&self, at: &Label) -> Result<(), ContractError> {
        let missing = [
            ("idempotency_key", self.evidence.idempotency_key.is_none()),
            ("receipt_ref", self.evidence.receipt_ref.is_none()),
            ("readback_verified", !self.readback_verified),
        ];
        match missing.into_iter().find(|(_, is_missing)| *is_missing) {
            Some((name, _)) if self.status == SinkStatus::Sent => Err(ContractError::invalid(
                at.field(name),
                "is required for a sink that is sent",
            )),
            _ => Ok(()),
        }
    }

    /// Reads results, unique by role and sink.
    fn parse_all(
        fields: &mut Fields<'_>,
    ) -> Result<BTreeMap<(SinkRole, Token), Self>, ContractError> {
        let mut results = BTreeMap::new();
        for (at, value) in fields.list_or_empty("sink_results")? {
            let result = Self::parse(&at, value)?;
            let key = (result.sink_role, result.sink_id.clone());
            if results.insert(key, result).is_some() {
                let place = at.field("sink_id");
                return Err(ContractError::invalid(
                    place,
                    "has two results for one sink",
                ));
            }
        }
        Ok(results)
    }
}

/// An empty text says the same as no text.
fn filled(fields: &mut Fields<'_>, name: &'static str) -> Result<Option<String>, ContractError> {
    match fields.some(name) {
        Some(Value::String(text)) if text.is_empty() => Ok(None),
        _ => fields.optional_text(name, 500),
    }
}

/// A request to settle one delivery.
#[derive(Debug, Clone, PartialEq)]
pub struct DeliveryRequest<'a> {
    /// The generation that was delivered.
    pub generation: GenerationReceipt,
    /// The readiness packet, to be verified from scratch.
    pub readiness: GivenReadiness<'a>,
    /// What the providers say, by role and sink.
    pub results: BTreeMap<(SinkRole, Token), SinkResult>,
}

impl<'a> DeliveryRequest<'a> {
    /// Reads the request of `delivery-receipt`; unknown members are dropped.
    pub fn parse(value: &'a Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(&Label::root(), value)?;
        let request = Self {
            generation: fields.with("generation_receipt", GenerationReceipt::parse)?,
            readiness: fields.with("readiness_receipt", GivenReadiness::read)?,
            results: SinkResult::parse_all(&mut fields)?,
        };
        fields.finish(request)
    }
}

/// What one sink did.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SinkDelivery {
    /// The sink.
    pub sink_id: Token,
    /// What it is.
    pub sink_kind: Token,
    /// Archive or delivery.
    pub sink_role: SinkRole,
    /// Whether delivery needs it.
    pub dependency_policy: DependencyPolicy,
    /// How far it is.
    pub status: SinkStatus,
    /// Whether sending again may help.
    pub retryable: bool,
    /// Why it stands so.
    pub reason: String,
    /// The extension that was to do it.
    pub extension: ExtensionRef,
    /// The ability it was to use.
    pub capability: Capability,
    /// Whether a sent report was read back.
    pub readback_verified: bool,
    /// What the provider left.
    #[serde(flatten)]
    pub evidence: SinkEvidence,
}

impl SinkDelivery {
    /// Starts the receipt of a sink that has no result.
    pub fn without_result(sink: &SinkReadiness, status: SinkStatus, reason: String) -> Self {
        let binding = &sink.binding;
        Self {
            sink_id: binding.sink_id.clone(),
            sink_kind: binding.sink_kind.clone(),
            sink_role: binding.sink_role,
            dependency_policy: binding.dependency_policy,
            status,
            retryable: binding.dependency_policy != DependencyPolicy::Disabled,
            reason,
            extension: binding.extension.clone(),
            capability: binding.capability.clone(),
            readback_verified: false,
            evidence: SinkEvidence::default(),
        }
    }
}

vocabulary!(
    /// How the whole delivery stands.
    DeliveryStatus {
        NotRequired => "not_required",
        Pending => "pending",
        Unknown => "unknown",
        Failed => "failed",
        Partial => "partial",
        Succeeded => "succeeded",
    }
);

/// The delivery receipt; its `ok` is about delivery, not about the command.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DeliveryReceipt {
    /// Whether the report is where it should be.
    pub ok: bool,
    /// The schema constant.
    pub schema_version: DeliveryReceiptSchema,
    /// Identity of the delivery.
    pub delivery_id: String,
    /// The generation that was delivered.
    pub generation_id: String,
    /// The readiness it was judged by.
    pub readiness_id: String,
    /// How much delivery depends on extensions.
    pub delivery_mode: DeliveryMode,
    /// How the whole delivery stands.
    pub status: DeliveryStatus,
    /// Whether it is over.
    pub terminal: bool,
    /// The report can be used whatever the sinks did.
    pub generation_usable: Yes,
    /// Every sink.
    pub sink_receipts: Vec<SinkDelivery>,
    /// Sinks to try again, sorted.
    pub retryable_sinks: Vec<Token>,
    /// Nothing was written by this command.
    pub external_writes_performed: No,
}
