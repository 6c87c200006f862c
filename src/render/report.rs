//! Rendering one document into one artifact.

use super::{html, markdown};
use crate::contract::error::ContractError;
use crate::contract::periodic_report::artifact::{
    Artifact, ContentPolicy, PageFacts, Rendered, RendererAdapter,
};
use crate::contract::periodic_report::document::VerifiedDocument;
use crate::contract::periodic_report::identity::content_digest;
use crate::contract::public_safety;

/// Renders a document with a built-in renderer.
pub(crate) fn render(
    adapter: RendererAdapter,
    verified: &VerifiedDocument,
) -> Result<Artifact, ContractError> {
    let document = verified.document();
    let text = markdown::render(verified);
    let (content, page) = match adapter {
        RendererAdapter::Markdown => (text, None),
        RendererAdapter::Html => {
            let digest = content_digest(&text);
            let page = html::render(verified, &text)?;
            (page, Some(PageFacts::with_companion(digest)))
        }
    };
    let compiled = document.editorial.orchestration.as_ref();
    let artifact = Artifact::seal(Rendered {
        adapter,
        content,
        document_digest: document.digest().to_owned(),
        content_policy: ContentPolicy::new(adapter, compiled, document.item_counts()),
        page,
    })?;
    match public_safety::is_public(&artifact.content) {
        true => Ok(artifact),
        false => Err(ContractError::coded(
            crate::contract::error::ErrorCode::InputUnsafe,
            "the rendered artifact",
            "holds a local path or credential-like text; take it out of the facts",
        )),
    }
}
