//! Bundling a document with its artifacts.

use crate::contract::error::ContractError;
use crate::contract::periodic_report::generation::{
    BundleRequest, GenerationBoundary, GenerationBundle, GenerationBundleSchema, GenerationReceipt,
};
use crate::contract::periodic_report::vocabulary::Yes;

/// Bundles one document with artifacts that show exactly it, in the order of their ids.
pub fn bundle<'a>(request: &BundleRequest<'a>) -> Result<GenerationBundle<'a>, ContractError> {
    let receipts = request.artifacts.iter().map(|one| one.digest.clone());
    let digest = request.document_digest.clone();
    Ok(GenerationBundle {
        ok: Yes,
        schema_version: GenerationBundleSchema,
        document: request.document,
        artifacts: request.artifacts.iter().map(|one| one.value).collect(),
        generation_receipt: GenerationReceipt::new(digest, receipts.collect())?,
        boundary: GenerationBoundary,
    })
}
