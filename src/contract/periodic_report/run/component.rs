//! The parts of a run that can succeed or fail on their own.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::super::identity::{id_of, require_derived};
use super::super::vocabulary::{ArtifactStatus, SinkRole, SinkStatus, SourceStatus};
use crate::contract::error::ContractError;
use crate::contract::ids::Token;
use crate::contract::parse::{Fields, Label};
use crate::contract::time::Timestamp;

/// What one source gave.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceSnapshot {
    /// The source.
    pub source_id: Token,
    /// What it is.
    pub source_kind: Token,
    /// How completely it was read.
    pub status: SourceStatus,
    /// Whether reading it again may help.
    pub retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    observed_at: Option<Timestamp>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot_digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    snapshot_ref: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    item_count: Option<i64>,
}

impl SourceSnapshot {
    fn parse(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        let snapshot = Self {
            source_id: fields.token("source_id")?,
            source_kind: fields.token("source_kind")?,
            status: fields.choice("status", SourceStatus::CHOICES)?,
            retryable: fields.flag("retryable")?,
            observed_at: fields.optional_timestamp("observed_at")?,
            snapshot_digest: fields.optional_text("snapshot_digest", 256)?,
            snapshot_ref: fields.optional_text("snapshot_ref", 500)?,
            item_count: fields.integer_if_given("item_count", 0..=1_000_000)?,
        };
        let is_read = matches!(
            snapshot.status,
            SourceStatus::Complete | SourceStatus::Partial
        );
        if is_read {
            require(at, "observed_at", snapshot.observed_at.as_ref())?;
            require(at, "snapshot_digest", snapshot.snapshot_digest.as_ref())?;
        }
        fields.finish(snapshot)
    }

    pub(super) fn parse_all(fields: &mut Fields<'_>) -> Result<Vec<Self>, ContractError> {
        let mut sorted = BTreeMap::new();
        for (at, value) in fields.list("source_snapshots")? {
            let snapshot = Self::parse(&at, value)?;
            if sorted
                .insert(snapshot.source_id.clone(), snapshot)
                .is_some()
            {
                return Err(twice(&at.field("source_id")));
            }
        }
        match sorted.is_empty() {
            true => Err(ContractError::invalid(
                fields.at("source_snapshots"),
                "must hold at least one snapshot",
            )),
            false => Ok(sorted.into_values().collect()),
        }
    }
}

fn require<T>(at: &Label, name: &str, given: Option<&T>) -> Result<(), ContractError> {
    match given {
        Some(_) => Ok(()),
        None => Err(ContractError::invalid(
            at.field(name),
            "is required with this status",
        )),
    }
}

fn twice(at: &Label) -> ContractError {
    ContractError::invalid(at, "names an id that stands there already")
}

/// The rendered artifact of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArtifactReceipt {
    /// The artifact.
    pub artifact_id: Token,
    /// Who rendered it.
    pub renderer_id: Token,
    /// As what.
    pub renderer_kind: Token,
    /// How far it is.
    pub status: ArtifactStatus,
    attempt: i64,
    /// Whether rendering again may help.
    pub retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact_digest: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    artifact_ref: Option<String>,
}

impl ArtifactReceipt {
    pub(super) fn parse(
        at: &Label,
        value: &Value,
        run_attempt: i64,
    ) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        let receipt = Self {
            artifact_id: fields.token("artifact_id")?,
            renderer_id: fields.token("renderer_id")?,
            renderer_kind: fields.token("renderer_kind")?,
            status: fields.choice("status", ArtifactStatus::CHOICES)?,
            attempt: fields.integer_or("attempt", 1..=run_attempt, run_attempt)?,
            retryable: fields.flag("retryable")?,
            artifact_digest: fields.optional_text("artifact_digest", 256)?,
            artifact_ref: fields.optional_text("artifact_ref", 500)?,
        };
        if receipt.status == ArtifactStatus::Rendered {
            require(at, "artifact_digest", receipt.artifact_digest.as_ref())?;
            require(at, "artifact_ref", receipt.artifact_ref.as_ref())?;
        }
        fields.finish(receipt)
    }
}

/// What one sink did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SinkReceipt {
    /// The sink.
    pub sink_id: Token,
    /// What it is.
    pub sink_kind: Token,
    /// Archive or delivery.
    pub sink_role: SinkRole,
    /// How far it is.
    pub status: SinkStatus,
    attempt: i64,
    /// Whether sending again may help.
    pub retryable: bool,
    readback_verified: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt_ref: Option<String>,
    idempotency_key: Option<String>,
    #[serde(skip)]
    given_at: Label,
}

#[derive(Serialize)]
struct SinkKey<'a> {
    run_id: &'a str,
    sink_role: SinkRole,
    sink_id: &'a Token,
}

impl SinkReceipt {
    fn parse(at: &Label, value: &Value, run_attempt: i64) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        let receipt = Self {
            sink_id: fields.token("sink_id")?,
            sink_kind: fields.token("sink_kind")?,
            sink_role: fields.choice("sink_role", SinkRole::CHOICES)?,
            status: fields.choice("status", SinkStatus::CHOICES)?,
            attempt: fields.integer_or("attempt", 1..=run_attempt, run_attempt)?,
            retryable: fields.flag("retryable")?,
            readback_verified: fields.flag("readback_verified")?,
            receipt_ref: fields.optional_text("receipt_ref", 500)?,
            idempotency_key: fields.optional_text("idempotency_key", 128)?,
            given_at: at.clone(),
        };
        if receipt.status == SinkStatus::Sent {
            require(at, "idempotency_key", receipt.idempotency_key.as_ref())?;
            require(at, "receipt_ref", receipt.receipt_ref.as_ref())?;
            let proof = receipt.readback_verified.then_some(&receipt.status);
            require(at, "readback_verified", proof)?;
        }
        fields.finish(receipt)
    }

    pub(super) fn parse_all(
        fields: &mut Fields<'_>,
        run_attempt: i64,
    ) -> Result<Vec<Self>, ContractError> {
        let mut sorted = BTreeMap::new();
        for (at, value) in fields.list("sink_receipts")? {
            let receipt = Self::parse(&at, value, run_attempt)?;
            let key = (receipt.sink_role, receipt.sink_id.clone());
            if sorted.insert(key, receipt).is_some() {
                return Err(twice(&at.field("sink_id")));
            }
        }
        for role in [SinkRole::Archive, SinkRole::Delivery] {
            if !sorted.keys().any(|(found, _)| *found == role) {
                return Err(ContractError::invalid(
                    fields.at("sink_receipts"),
                    format!("must hold at least one {} receipt", role.as_str()),
                ));
            }
        }
        Ok(sorted.into_values().collect())
    }

    /// Puts the derived key in place; a supplied one must equal it, whatever the status.
    pub(super) fn derive_key(&mut self, run_id: &str) -> Result<(), ContractError> {
        let recipe = SinkKey {
            run_id,
            sink_role: self.sink_role,
            sink_id: &self.sink_id,
        };
        let derived = id_of("delivery", &recipe)?;
        let given = self.idempotency_key.as_deref();
        require_derived(self.given_at.field("idempotency_key"), given, &derived)?;
        self.idempotency_key = Some(derived);
        Ok(())
    }
}
