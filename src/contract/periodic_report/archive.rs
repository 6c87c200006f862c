//! `periodic_report_archive_bundle_v0`: a report as project resources with their manifest.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::archive_root::ArchiveRoot;
use super::artifact::{ArtifactDigest, GivenArtifact};
use super::document::{DocumentProfile, DocumentSchema, GivenDocument};
use super::trigger_receipt::TriggerReceipt;
use super::vocabulary::{No, Yes, boundary, schema_version};
use crate::contract::error::ContractError;
use crate::contract::ids::Token;
use crate::contract::parse::{Fields, Label, at_most, read_text, read_token};
use crate::contract::time::Window;

schema_version!(
    /// The schema of an archive bundle.
    ArchiveBundleSchema,
    "periodic_report_archive_bundle_v0"
);
schema_version!(
    /// The schema of a manifest.
    ArchiveManifestSchema,
    "periodic_report_archive_manifest_v0"
);
schema_version!(
    /// The schema of a memory reference.
    MemoryReferenceSchema,
    "periodic_report_memory_reference_v0"
);

/// What a sink did, as a manifest remembers it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArchivedDelivery {
    sink_id: Token,
    sink_kind: Token,
    sink_role: Token,
    status: Token,
    readback_verified: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    receipt_ref: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    result_id: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delivered_at: Option<String>,
}

impl ArchivedDelivery {
    fn parse_all(fields: &mut Fields<'_>) -> Result<Vec<Self>, ContractError> {
        let mut receipts = Vec::new();
        for (at, value) in fields.list_or_empty("delivery_receipts")? {
            let mut fields = Fields::open(&at, value)?;
            let receipt = Self {
                sink_id: fields.token("sink_id")?,
                sink_kind: fields.token("sink_kind")?,
                sink_role: fields.token("sink_role")?,
                status: fields.token("status")?,
                readback_verified: fields.flag("readback_verified")?,
                receipt_ref: fields.optional_text("receipt_ref", 500)?,
                result_id: fields.optional_text("result_id", 500)?,
                delivered_at: fields.optional_text("delivered_at", 500)?,
            };
            receipts.push(fields.finish(receipt)?);
        }
        receipts.sort_by(|left, right| {
            (&left.sink_role, &left.sink_id).cmp(&(&right.sink_role, &right.sink_id))
        });
        Ok(receipts)
    }
}

/// A request to prepare an archive.
#[derive(Debug, Clone, PartialEq)]
pub struct ArchiveRequest<'a> {
    /// The document.
    pub document: GivenDocument,
    /// What justified the report.
    pub trigger_receipt: Option<TriggerReceipt>,
    /// The sources as the document keeps them.
    pub source_snapshots: &'a Value,
    /// The artifact to keep.
    pub artifact: GivenArtifact<'a>,
    /// Where archives live.
    pub root: ArchiveRoot,
    /// What the sinks did so far.
    pub delivery_receipts: Vec<ArchivedDelivery>,
    /// Tags for finding it again, sorted.
    pub semantic_tags: Vec<Token>,
    /// What is worth remembering.
    pub conclusions: Vec<String>,
}

impl<'a> ArchiveRequest<'a> {
    /// Reads the request of `archive-bundle`; unknown members are dropped.
    pub fn parse(value: &'a Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(&Label::root(), value)?;
        let given = fields.required("document")?;
        let at = fields.at("document");
        let mut document_fields = Fields::open(&at, given)?;
        document_fields.constant("schema_version", DocumentSchema::TEXT)?;
        let document = GivenDocument::read(&at, given)?;
        let artifact = fields.required("artifact")?;
        let request = Self {
            trigger_receipt: document_fields.optional("trigger_receipt", TriggerReceipt::parse)?,
            source_snapshots: document_fields.required("source_snapshots")?,
            artifact: GivenArtifact::read(&fields.at("artifact"), artifact, document.digest())?,
            root: fields.with("archive_root_uri", ArchiveRoot::parse)?,
            delivery_receipts: ArchivedDelivery::parse_all(&mut fields)?,
            semantic_tags: parse_tags(&mut fields)?,
            conclusions: parse_conclusions(&mut fields)?,
            document,
        };
        fields.finish(request)
    }
}

fn parse_tags(fields: &mut Fields<'_>) -> Result<Vec<Token>, ContractError> {
    let own = Token::new("periodic_report").expect("a constant of the token grammar");
    let mut tags = BTreeSet::from([own]);
    for (at, value) in fields.list_or_empty("semantic_tags")? {
        tags.insert(read_token(&at, value)?);
    }
    Ok(tags.into_iter().collect())
}

fn parse_conclusions(fields: &mut Fields<'_>) -> Result<Vec<String>, ContractError> {
    let list = fields.list_or_empty("memory_conclusions")?;
    at_most(&fields.at("memory_conclusions"), &list, 8)?;
    list.into_iter()
        .map(|(at, value)| read_text(&at, value, 300))
        .collect()
}

/// What identifies an archived report.
#[derive(Debug, Clone, Serialize)]
pub struct ArchiveIdentity<'a> {
    /// The profile.
    pub profile_id: &'a Token,
    /// Its version.
    pub profile_version: &'a Token,
    /// The period.
    pub period_window: Window,
    /// Digest of the document.
    pub document_digest: &'a str,
    /// Digest of the artifact's text.
    pub content_digest: &'a str,
}

/// Where the two files of an archive live.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArchiveUris {
    /// The report.
    pub report_uri: String,
    /// The manifest.
    pub manifest_uri: String,
}

boundary!(
    /// What is remembered of a report, and what is not.
    MemoryPolicy {
        distillation_required: true,
        full_report_copied: false,
        report_uri_required: true,
    }
);

/// The manifest of an archived report.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArchiveManifest<'a> {
    /// The schema constant.
    pub schema_version: ArchiveManifestSchema,
    /// The manifest's own version.
    pub manifest_version: &'static str,
    /// Identity of the archive.
    pub archive_id: String,
    /// The heading.
    pub title: &'a str,
    /// When the report was generated.
    pub generated_at: &'a str,
    /// The period.
    pub period_window: Window,
    /// For which profile.
    pub profile: &'a DocumentProfile,
    /// The artifact that is kept.
    pub artifact_receipt: &'a ArtifactDigest,
    /// The sources.
    pub source_snapshots: &'a Value,
    /// What the sinks did so far.
    pub delivery_receipts: &'a [ArchivedDelivery],
    /// Tags for finding it again.
    pub semantic_tags: &'a [Token],
    /// Where the files live.
    pub resources: ArchiveUris,
    /// What is remembered.
    pub memory_policy: MemoryPolicy,
    /// What justified the report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger_receipt: Option<&'a TriggerReceipt>,
}

/// What a memory store keeps: never the body.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct MemoryReference {
    /// The schema constant.
    pub schema_version: MemoryReferenceSchema,
    /// Identity of the archive.
    pub archive_id: String,
    /// Where the files live.
    #[serde(flatten)]
    pub uris: ArchiveUris,
    /// Tags for finding it again.
    pub semantic_tags: Vec<Token>,
    /// What is worth remembering.
    pub conclusions: Vec<String>,
    /// Memory keeps a distillation.
    pub distillation_required: Yes,
    /// Memory does not keep the report.
    pub full_report_copied: No,
}

/// One file of an archive.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArchiveResource {
    /// Which file it is.
    pub resource_kind: &'static str,
    /// Where it lives.
    pub resource_uri: String,
    /// What it holds.
    pub media_type: &'static str,
    /// Its text.
    pub content: String,
    /// Digest of its text.
    pub content_digest: String,
}

boundary!(
    /// What preparing an archive does not do.
    ArchiveBoundary {
        project_resource_is_history_source_of_truth: true,
        memory_contains_full_report: false,
        schedule_policy_applied: false,
        business_evidence_judged: false,
        external_writes_performed: false,
    }
);

/// A report as project resources with their manifest.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ArchiveBundle<'a> {
    /// The schema constant.
    pub schema_version: ArchiveBundleSchema,
    /// Identity of the archive.
    pub archive_id: String,
    /// The folder of this report.
    pub root_uri: String,
    /// The report, then the manifest.
    pub resources: [ArchiveResource; 2],
    /// The manifest.
    pub manifest: ArchiveManifest<'a>,
    /// What memory keeps.
    pub memory_reference: MemoryReference,
    /// What this preparation did not do.
    pub boundary: ArchiveBoundary,
}
