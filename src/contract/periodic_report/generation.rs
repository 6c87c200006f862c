//! `periodic_report_generation_bundle_v0` and the receipt inside it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::artifact::{ArtifactDigest, GivenArtifact, read_digest};
use super::document::read_digest_of;
use super::identity::{id_of, require_derived};
use super::limits;
use super::vocabulary::{No, Yes, boundary, schema_version, vocabulary};
use crate::contract::error::ContractError;
use crate::contract::parse::{Fields, Label, at_most};

schema_version!(
    /// The schema of a bundle.
    GenerationBundleSchema,
    "periodic_report_generation_bundle_v0"
);
schema_version!(
    /// The schema of a generation receipt.
    GenerationReceiptSchema,
    "periodic_report_generation_receipt_v0"
);

vocabulary!(
    /// How a generation ended; one that failed has no receipt.
    GenerationStatus {
        Succeeded => "succeeded",
    }
);

boundary!(
    /// What a generation does not do.
    GenerationBoundary {
        provider_neutral: true,
        generation_precedes_delivery: true,
        sink_readiness_required_for_generation: false,
        external_writes_performed: false,
    }
);

/// Proof that artifacts of one document exist, without any provider.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GenerationReceipt {
    schema_version: GenerationReceiptSchema,
    /// Identity of the generation.
    pub generation_id: String,
    status: GenerationStatus,
    /// Digest of the document.
    pub document_digest: String,
    artifact_count: usize,
    /// Its artifacts, by id.
    pub artifact_receipts: Vec<ArtifactDigest>,
    provider_required: No,
    external_writes_performed: No,
}

#[derive(Serialize)]
struct GenerationIdentity<'a> {
    document_digest: &'a str,
    artifacts: &'a [ArtifactDigest],
}

impl GenerationReceipt {
    /// Makes the receipt of artifacts in their order.
    pub fn new(
        document_digest: String,
        artifact_receipts: Vec<ArtifactDigest>,
    ) -> Result<Self, ContractError> {
        let identity = GenerationIdentity {
            document_digest: &document_digest,
            artifacts: &artifact_receipts,
        };
        Ok(Self {
            schema_version: GenerationReceiptSchema,
            generation_id: id_of("report_generation", &identity)?,
            status: GenerationStatus::Succeeded,
            artifact_count: artifact_receipts.len(),
            document_digest,
            artifact_receipts,
            provider_required: No,
            external_writes_performed: No,
        })
    }

    /// Reads a receipt and verifies all of it again.
    pub fn parse(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        fields.constant("schema_version", GenerationReceiptSchema::TEXT)?;
        fields.choice("status", GenerationStatus::CHOICES)?;
        for name in ["provider_required", "external_writes_performed"] {
            if fields.boolean(name)? {
                return Err(ContractError::invalid(at.field(name), "must be false"));
            }
        }
        let document_digest = fields.with("document_digest", read_digest)?;
        let receipts = parse_receipts(&mut fields, &document_digest)?;
        let receipt = Self::new(document_digest, receipts)?;
        let count = fields.integer("artifact_count", 0..=1_000_000)?;
        if usize::try_from(count) != Ok(receipt.artifact_count) {
            let place = at.field("artifact_count");
            return Err(ContractError::mismatch(place, "differs from the receipts"));
        }
        let given = fields.text("generation_id", 128)?;
        let place = at.field("generation_id");
        require_derived(place, Some(&given), &receipt.generation_id)?;
        fields.finish(receipt)
    }
}

fn parse_receipts(
    fields: &mut Fields<'_>,
    document_digest: &str,
) -> Result<Vec<ArtifactDigest>, ContractError> {
    let mut artifacts = BTreeSet::new();
    let mut renderers = BTreeSet::new();
    let mut receipts = Vec::new();
    for (at, value) in fields.list("artifact_receipts")? {
        let receipt = ArtifactDigest::parse(&at, value)?;
        let place = at.field("document_digest");
        require_derived(place, Some(&receipt.document_digest), document_digest)?;
        let is_new = artifacts.insert(receipt.artifact_id.clone())
            && renderers.insert(receipt.renderer_id.clone());
        if !is_new {
            return Err(ContractError::invalid(
                at,
                "names an artifact or renderer twice",
            ));
        }
        receipts.push(receipt);
    }
    match receipts.is_empty() {
        true => Err(ContractError::invalid(
            fields.at("artifact_receipts"),
            "must hold at least one receipt",
        )),
        false => Ok(receipts),
    }
}

/// A document and one to eight artifacts that show exactly it.
#[derive(Debug, Clone, PartialEq)]
pub struct BundleRequest<'a> {
    /// The document as given.
    pub document: &'a Value,
    /// Its digest.
    pub document_digest: String,
    /// The artifacts, by id.
    pub artifacts: Vec<GivenArtifact<'a>>,
}

impl<'a> BundleRequest<'a> {
    /// Reads the request of `bundle`; unknown members are dropped.
    pub fn parse(value: &'a Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(&Label::root(), value)?;
        let document = fields.required("document")?;
        let document_digest = read_digest_of(&fields.at("document"), document)?;
        let request = Self {
            document,
            artifacts: parse_artifacts(&mut fields, &document_digest)?,
            document_digest,
        };
        fields.finish(request)
    }
}

fn parse_artifacts<'a>(
    fields: &mut Fields<'a>,
    document_digest: &str,
) -> Result<Vec<GivenArtifact<'a>>, ContractError> {
    let list = fields.list("artifacts")?;
    let place = fields.at("artifacts");
    at_most(&place, &list, limits::ARTIFACTS)?;
    if list.is_empty() {
        let reason = "must hold at least one artifact";
        return Err(ContractError::invalid(place, reason));
    }
    let mut sorted = BTreeMap::new();
    let mut renderers = BTreeSet::new();
    for (at, value) in list {
        let artifact = GivenArtifact::read(&at, value, document_digest)?;
        let is_new_renderer = renderers.insert(artifact.digest.renderer_id.clone());
        let is_new = sorted
            .insert(artifact.digest.artifact_id.clone(), artifact)
            .is_none();
        if !is_new || !is_new_renderer {
            let reason = "names an artifact or renderer twice";
            return Err(ContractError::invalid(at, reason));
        }
    }
    Ok(sorted.into_values().collect())
}

/// A document, its artifacts and their receipt.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GenerationBundle<'a> {
    /// Always true.
    pub ok: Yes,
    /// The schema constant.
    pub schema_version: GenerationBundleSchema,
    /// The document as given.
    pub document: &'a Value,
    /// The artifacts as given, by id.
    pub artifacts: Vec<&'a Value>,
    /// The receipt.
    pub generation_receipt: GenerationReceipt,
    /// What this bundle did not do.
    pub boundary: GenerationBoundary,
}
