//! Bundling a document with its artifacts.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::contract::error::ContractError;
use crate::contract::parse::{Fields, Label, at_most};
use crate::contract::periodic_report::artifact::GivenArtifact;
use crate::contract::periodic_report::document::read_digest_of;
use crate::contract::periodic_report::generation::{
    GenerationBoundary, GenerationBundle, GenerationBundleSchema, GenerationReceipt,
};
use crate::contract::periodic_report::vocabulary::Yes;

const MAX_ARTIFACTS: usize = 8;

/// Bundles one document with one to eight artifacts that show exactly it.
pub fn bundle(request: &Value) -> Result<GenerationBundle<'_>, ContractError> {
    let mut fields = Fields::open(&Label::root(), request)?;
    let document = fields.required("document")?;
    let document_digest = read_digest_of(&fields.at("document"), document)?;
    let list = fields.list("artifacts")?;
    let place = fields.at("artifacts");
    at_most(&place, &list, MAX_ARTIFACTS)?;
    if list.is_empty() {
        return Err(ContractError::invalid(
            place,
            "must hold at least one artifact",
        ));
    }
    let mut artifacts = Vec::with_capacity(list.len());
    let mut renderers = BTreeSet::new();
    let mut ids = BTreeSet::new();
    for (at, value) in list {
        let artifact = GivenArtifact::read(&at, value, &document_digest)?;
        let is_new = ids.insert(artifact.digest.artifact_id.clone())
            && renderers.insert(artifact.digest.renderer_id.clone());
        if !is_new {
            return Err(ContractError::invalid(
                at,
                "names an artifact or renderer twice",
            ));
        }
        artifacts.push(artifact);
    }
    artifacts.sort_by(|left, right| left.digest.artifact_id.cmp(&right.digest.artifact_id));
    let receipts = artifacts.iter().map(|one| one.digest.clone()).collect();
    let bundle = GenerationBundle {
        ok: Yes,
        schema_version: GenerationBundleSchema,
        document,
        artifacts: artifacts.iter().map(|one| one.value).collect(),
        generation_receipt: GenerationReceipt::new(document_digest, receipts)?,
        boundary: GenerationBoundary,
    };
    fields.finish(bundle)
}
