//! `periodic_report_artifact_v0`: one rendering of a document.

use serde::Serialize;
use serde_json::Value;

use super::editorial::Orchestration;
use super::identity::{content_digest, require_derived};
use super::limits;
use super::vocabulary::{boundary, schema_version, vocabulary};
use crate::contract::digest::is_digest_text;
use crate::contract::error::{ContractError, ErrorCode};
use crate::contract::ids::Token;
use crate::contract::parse::{Fields, Label};
use crate::contract::text;

schema_version!(
    /// The schema of an artifact.
    ArtifactSchema,
    "periodic_report_artifact_v0"
);

boundary!(
    /// What a renderer does not do.
    ArtifactBoundary {
        schedule_policy_applied: false,
        business_evidence_judged: false,
        external_writes_performed: false,
    }
);

vocabulary!(
    /// The built-in renderers.
    RendererAdapter {
        Markdown => "markdown_v0",
        Html => "html_artifact_v0",
    }
);

impl RendererAdapter {
    /// Returns the artifact id.
    pub const fn artifact_id(self) -> &'static str {
        match self {
            Self::Markdown => "periodic_report_markdown",
            Self::Html => "periodic_report_html",
        }
    }

    /// Returns the kind of artifact.
    pub const fn renderer_kind(self) -> &'static str {
        match self {
            Self::Markdown => "markdown",
            Self::Html => "html",
        }
    }
}

/// What a rendering shows and what it keeps in the appendix.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ContentPolicy {
    #[serde(skip_serializing_if = "Option::is_none")]
    primary_body_fields: Option<[&'static str; 8]>,
    primary_visibility: &'static str,
    supporting_visibility: &'static str,
    supporting_context: &'static str,
    process_narration_default_visible: bool,
    editorial_summary_source: &'static str,
    readability_policy: &'static str,
    primary_item_count: usize,
    supporting_item_count: usize,
}

impl ContentPolicy {
    /// Makes the policy of one rendering.
    ///
    /// `compiled` is the compiler's receipt, `counts` are primary and supporting items.
    pub fn new(adapter: RendererAdapter, compiled: Option<&Value>, counts: (usize, usize)) -> Self {
        let (summary_source, readability) = match compiled.is_some() {
            true => (
                Orchestration::SUMMARY_SOURCE,
                Orchestration::READABILITY_POLICY,
            ),
            false => ("none", "none"),
        };
        let body_fields = [
            "title",
            "status",
            "tags",
            "tag_labels",
            "summary",
            "details",
            "next_action",
            "source_ref",
        ];
        Self {
            primary_body_fields: (adapter == RendererAdapter::Html).then_some(body_fields),
            primary_visibility: "primary",
            supporting_visibility: "supporting",
            supporting_context: match adapter {
                RendererAdapter::Markdown => "appendix",
                RendererAdapter::Html => "collapsed",
            },
            process_narration_default_visible: false,
            editorial_summary_source: summary_source,
            readability_policy: readability,
            primary_item_count: counts.0,
            supporting_item_count: counts.1,
        }
    }
}

/// What only the page says about itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PageFacts {
    media_type: &'static str,
    companion_markdown_digest: String,
    single_file: bool,
    zero_build: bool,
    external_dependencies: [&'static str; 0],
    interactive_controls: [&'static str; 4],
    presentation_profile: &'static str,
}

impl PageFacts {
    /// Names the Markdown that the page carries.
    pub fn with_companion(markdown_digest: String) -> Self {
        Self {
            media_type: "text/html; charset=utf-8",
            companion_markdown_digest: markdown_digest,
            single_file: true,
            zero_build: true,
            external_dependencies: [],
            interactive_controls: [
                "section_filter",
                "text_filter",
                "copy_markdown",
                "print_report",
            ],
            presentation_profile: "editorial_dense_v2",
        }
    }
}

/// An artifact as a built-in renderer makes it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Artifact {
    schema_version: ArtifactSchema,
    artifact_id: &'static str,
    renderer_id: RendererAdapter,
    renderer_kind: &'static str,
    /// The rendered text.
    pub content: String,
    /// Digest of the rendered text.
    pub content_digest: String,
    artifact_ref: String,
    document_digest: String,
    #[serde(flatten)]
    page: Option<PageFacts>,
    content_policy: ContentPolicy,
    boundary: ArtifactBoundary,
}

/// What a renderer hands over to become an artifact.
#[derive(Debug, Clone)]
pub struct Rendered {
    /// Who rendered.
    pub adapter: RendererAdapter,
    /// The text.
    pub content: String,
    /// Digest of the document it shows.
    pub document_digest: String,
    /// What it shows.
    pub content_policy: ContentPolicy,
    /// What a page says about itself.
    pub page: Option<PageFacts>,
}

impl Artifact {
    /// Seals a rendering; a text over the limit is refused, never cut.
    pub fn seal(rendered: Rendered) -> Result<Self, ContractError> {
        if text::is_longer_than(&rendered.content, limits::CONTENT) {
            return Err(ContractError::coded(
                ErrorCode::ReportArtifactTooLarge,
                "the rendered artifact",
                "is longer than 1000000 characters; report fewer or shorter items",
            ));
        }
        let digest = content_digest(&rendered.content);
        Ok(Self {
            schema_version: ArtifactSchema,
            artifact_id: rendered.adapter.artifact_id(),
            renderer_id: rendered.adapter,
            renderer_kind: rendered.adapter.renderer_kind(),
            artifact_ref: format!("artifact:periodic-report/{}", &digest[7..31]),
            content: rendered.content,
            content_digest: digest,
            document_digest: rendered.document_digest,
            page: rendered.page,
            content_policy: rendered.content_policy,
            boundary: ArtifactBoundary,
        })
    }
}

/// Identity and digests of an artifact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ArtifactDigest {
    /// The artifact.
    pub artifact_id: Token,
    /// Who rendered it.
    pub renderer_id: Token,
    /// As what.
    pub renderer_kind: Token,
    /// Where it can be looked up.
    pub artifact_ref: String,
    /// Digest of the text.
    pub content_digest: String,
    /// Digest of the document it shows.
    pub document_digest: String,
}

impl ArtifactDigest {
    /// Reads the identity of an artifact; unknown members are dropped.
    pub fn parse(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        let digest = Self {
            artifact_id: fields.token("artifact_id")?,
            renderer_id: fields.token("renderer_id")?,
            renderer_kind: fields.token("renderer_kind")?,
            artifact_ref: fields.text("artifact_ref", limits::REFERENCE)?,
            content_digest: fields.with("content_digest", read_digest)?,
            document_digest: fields.with("document_digest", read_digest)?,
        };
        fields.finish(digest)
    }
}

/// Reads `sha256:` and 64 hex digits.
pub fn read_digest(at: &Label, value: &Value) -> Result<String, ContractError> {
    match value.as_str() {
        Some(text) if is_digest_text(text) => Ok(text.to_owned()),
        _ => Err(ContractError::invalid(
            at,
            "must be sha256: and 64 lower-case hex digits",
        )),
    }
}

/// An artifact that came from outside, verified against its own content.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenArtifact<'a> {
    /// The artifact as given.
    pub value: &'a Value,
    /// Its identity and digests.
    pub digest: ArtifactDigest,
    /// Its text.
    pub content: &'a str,
}

impl<'a> GivenArtifact<'a> {
    /// Reads an artifact that must show exactly the document with this digest.
    pub fn read(
        at: &Label,
        value: &'a Value,
        document_digest: &str,
    ) -> Result<Self, ContractError> {
        let digest = ArtifactDigest::parse(at, value)?;
        let mut fields = Fields::open(at, value)?;
        fields.constant("schema_version", ArtifactSchema::TEXT)?;
        let content = read_content(&mut fields)?;
        let place = at.field("content_digest");
        require_derived(
            place,
            Some(&digest.content_digest),
            &content_digest(content),
        )?;
        let place = at.field("document_digest");
        require_derived(place, Some(&digest.document_digest), document_digest)?;
        fields.with("boundary", check_boundary)?;
        fields.finish(Self {
            value,
            digest,
            content,
        })
    }
}

fn read_content<'a>(fields: &mut Fields<'a>) -> Result<&'a str, ContractError> {
    let at = fields.at("content");
    let content = fields.required("content")?.as_str();
    let content = content.ok_or_else(|| ContractError::invalid(&at, "must be a text"))?;
    if text::trim(content).is_empty() {
        return Err(ContractError::invalid(&at, "must not be blank"));
    }
    match text::is_longer_than(content, limits::CONTENT) {
        false => Ok(content),
        true => Err(ContractError::coded(
            ErrorCode::ReportArtifactTooLarge,
            &at,
            "is longer than 1000000 characters",
        )),
    }
}

fn check_boundary(at: &Label, value: &Value) -> Result<(), ContractError> {
    let mut fields = Fields::open(at, value)?;
    for name in [
        "schedule_policy_applied",
        "business_evidence_judged",
        "external_writes_performed",
    ] {
        if fields.boolean(name)? {
            return Err(ContractError::invalid(at.field(name), "must be false"));
        }
    }
    fields.finish(())
}
