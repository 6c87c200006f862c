//! Laying out one report as project resources.

use crate::contract::canonical;
use crate::contract::error::ContractError;
use crate::contract::periodic_report::archive::{
    ArchiveBoundary, ArchiveBundle, ArchiveBundleSchema, ArchiveIdentity, ArchiveManifest,
    ArchiveManifestSchema, ArchiveRequest, ArchiveResource, ArchiveUris, MemoryPolicy,
    MemoryReference, MemoryReferenceSchema,
};
use crate::contract::periodic_report::identity::{content_digest, id_of, value_of};
use crate::contract::periodic_report::vocabulary::{No, Yes};

/// Lays out the archive of a report; nothing is written.
pub fn bundle<'a>(request: &'a ArchiveRequest<'a>) -> Result<ArchiveBundle<'a>, ContractError> {
    let profile = &request.document.profile;
    let identity = ArchiveIdentity {
        profile_id: &profile.profile_id,
        profile_version: &profile.profile_version,
        period_window: request.document.window,
        document_digest: request.document.digest(),
        content_digest: &request.artifact.digest.content_digest,
    };
    let archive_id = id_of("report", &identity)?;
    let root_uri = format!(
        "{}/{}/{archive_id}",
        request.root.as_str(),
        profile.profile_id
    );
    let uris = ArchiveUris {
        report_uri: format!("{root_uri}/report.md"),
        manifest_uri: format!("{root_uri}/manifest.json"),
    };
    let manifest = manifest(request, archive_id.clone(), uris.clone());
    let manifest_text = canonical::compact(&value_of(&manifest)?)
        .map_err(|fault| ContractError::invalid("document", fault.to_string()))?;
    Ok(ArchiveBundle {
        schema_version: ArchiveBundleSchema,
        root_uri,
        resources: [
            resource(
                "report_body",
                &uris.report_uri,
                "text/markdown",
                request.artifact.content,
            ),
            resource(
                "manifest",
                &uris.manifest_uri,
                "application/json",
                &format!("{manifest_text}\n"),
            ),
        ],
        manifest,
        memory_reference: memory(request, archive_id.clone(), uris),
        archive_id,
        boundary: ArchiveBoundary,
    })
}

fn memory(request: &ArchiveRequest<'_>, archive_id: String, uris: ArchiveUris) -> MemoryReference {
    MemoryReference {
        schema_version: MemoryReferenceSchema,
        archive_id,
        uris,
        semantic_tags: request.semantic_tags.clone(),
        conclusions: request.conclusions.clone(),
        distillation_required: Yes,
        full_report_copied: No,
    }
}

fn manifest<'a>(
    request: &'a ArchiveRequest<'a>,
    archive_id: String,
    resources: ArchiveUris,
) -> ArchiveManifest<'a> {
    ArchiveManifest {
        schema_version: ArchiveManifestSchema,
        manifest_version: "v0",
        archive_id,
        title: &request.document.title,
        generated_at: &request.document.generated_at,
        period_window: request.document.window,
        profile: &request.document.profile,
        artifact_receipt: &request.artifact.digest,
        source_snapshots: request.source_snapshots,
        delivery_receipts: &request.delivery_receipts,
        semantic_tags: &request.semantic_tags,
        resources,
        memory_policy: MemoryPolicy,
        trigger_receipt: request.trigger_receipt.as_ref(),
    }
}

fn resource(
    resource_kind: &'static str,
    uri: &str,
    media_type: &'static str,
    content: &str,
) -> ArchiveResource {
    ArchiveResource {
        resource_kind,
        resource_uri: uri.to_owned(),
        media_type,
        content: content.to_owned(),
        content_digest: content_digest(content),
    }
}
