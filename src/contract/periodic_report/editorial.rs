//! The editorial of a document: what a profile says, and the summary that is compiled.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::item::{read_string, read_token_as_given};
use super::limits;
use super::vocabulary::{Tone, schema_version, vocabulary};
use crate::contract::error::ContractError;
use crate::contract::ids::Token;
use crate::contract::parse::{Fields, Label, at_most};
use crate::contract::text;

schema_version!(
    /// The schema of the compiler's receipt.
    OrchestrationSchema,
    "periodic_report_editorial_orchestration_v0"
);

/// One figure of the first screen.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Highlight {
    /// The highlight, unique within the editorial.
    pub highlight_id: Token,
    /// The figure.
    pub value: String,
    /// What it measures.
    pub label: String,
    /// What to compare it with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub detail: Option<String>,
    /// Its colour.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tone: Option<Tone>,
}

/// What a profile says about the presentation.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct EditorialProfile {
    /// The line above the title.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kicker: Option<String>,
    /// The period in words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub period_label: Option<String>,
    /// The language of labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub language: Option<String>,
    /// The figures of the first screen.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub highlights: Vec<Highlight>,
}

impl EditorialProfile {
    /// Tells whether nothing was said.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Reads the editorial input of a document; a summary is compiled, never given.
    pub fn parse(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        if fields.some("summary").is_some() {
            return Err(ContractError::invalid(
                fields.at("summary"),
                "is compiled from the items; leave it out",
            ));
        }
        let editorial = Self {
            kicker: fields.optional_text("kicker", limits::KICKER)?,
            period_label: fields.optional_text("period_label", limits::PERIOD_LABEL)?,
            language: read_language(&mut fields)?,
            highlights: parse_highlights(&mut fields)?,
        };
        match editorial.is_empty() {
            true => Err(ContractError::invalid(
                at,
                "must say something or be left out",
            )),
            false => fields.finish(editorial),
        }
    }
}

fn read_language(fields: &mut Fields<'_>) -> Result<Option<String>, ContractError> {
    let language = fields.optional_text("language", 64)?;
    match language.as_deref().is_none_or(text::is_language) {
        true => Ok(language),
        false => Err(ContractError::invalid(
            fields.at("language"),
            "must be a language tag such as en or zh-CN",
        )),
    }
}

fn parse_highlights(fields: &mut Fields<'_>) -> Result<Vec<Highlight>, ContractError> {
    let list = match fields.some("highlights") {
        None => Vec::new(),
        Some(_) => fields.list("highlights")?,
    };
    at_most(&fields.at("highlights"), &list, limits::HIGHLIGHTS)?;
    let mut seen = BTreeSet::new();
    let mut highlights = Vec::new();
    for (at, value) in list {
        let mut fields = Fields::open(&at, value)?;
        let highlight = Highlight {
            highlight_id: fields.token("highlight_id")?,
            value: fields.text("value", limits::HIGHLIGHT_VALUE)?,
            label: fields.text("label", limits::HIGHLIGHT_LABEL)?,
            detail: fields.optional_text("detail", limits::HIGHLIGHT_DETAIL)?,
            tone: fields.optional_choice("tone", Tone::CHOICES)?,
        };
        if !seen.insert(highlight.highlight_id.clone()) {
            return Err(ContractError::invalid(
                at.field("highlight_id"),
                "names a highlight twice",
            ));
        }
        highlights.push(fields.finish(highlight)?);
    }
    Ok(highlights)
}

vocabulary!(
    /// Which field of an item speaks in the summary.
    SummaryField {
        Title => "title",
        NextAction => "next_action",
    }
);

/// Which item speaks in which role.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SummaryItemRef {
    /// The role in the summary.
    pub role: super::vocabulary::ContentKind,
    /// The source of the item.
    pub source_id: Token,
    /// The item.
    pub item_id: Token,
    /// The field that speaks.
    pub field: SummaryField,
}

/// The compiler's receipt: where every part of the summary came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Orchestration {
    schema_version: OrchestrationSchema,
    summary_source: &'static str,
    readability_policy: &'static str,
    /// One reference per part.
    pub summary_item_refs: Vec<SummaryItemRef>,
}

impl Orchestration {
    /// The summary source every compiled editorial names.
    pub const SUMMARY_SOURCE: &'static str = "typed_primary_items";
    /// The readability policy every compiled editorial names.
    pub const READABILITY_POLICY: &'static str = "audience_v1";

    /// Makes the receipt of the given parts.
    pub fn new(summary_item_refs: Vec<SummaryItemRef>) -> Self {
        Self {
            schema_version: OrchestrationSchema,
            summary_source: Self::SUMMARY_SOURCE,
            readability_policy: Self::READABILITY_POLICY,
            summary_item_refs,
        }
    }
}

/// A compiled editorial.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Editorial {
    /// What the profile says.
    #[serde(flatten)]
    pub profile: EditorialProfile,
    /// The compiled summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// Where it came from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub orchestration: Option<Orchestration>,
}

/// The editorial of a document as it stands.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct GivenEditorial {
    /// What the profile said.
    pub profile: EditorialProfile,
    /// The summary.
    pub summary: Option<String>,
    /// The compiler's receipt.
    pub orchestration: Option<Value>,
}

impl GivenEditorial {
    /// Reads an editorial as it stands: types and vocabularies, no limits.
    pub fn read(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        let highlights = match fields.some("highlights") {
            None => Vec::new(),
            Some(_) => fields.list("highlights")?,
        };
        let profile = EditorialProfile {
            kicker: fields.optional("kicker", read_string)?,
            period_label: fields.optional("period_label", read_string)?,
            language: read_language(&mut fields)?,
            highlights: highlights
                .into_iter()
                .map(|(at, value)| read_highlight(&at, value))
                .collect::<Result<_, _>>()?,
        };
        let editorial = Self {
            profile,
            summary: fields.optional("summary", read_string)?,
            orchestration: fields.some("orchestration").cloned(),
        };
        fields.finish(editorial)
    }
}

fn read_highlight(at: &Label, value: &Value) -> Result<Highlight, ContractError> {
    let mut fields = Fields::open(at, value)?;
    let highlight = Highlight {
        highlight_id: fields.with("highlight_id", read_token_as_given)?,
        value: fields.with("value", read_string)?,
        label: fields.with("label", read_string)?,
        detail: fields.optional("detail", read_string)?,
        tone: fields.optional_choice("tone", Tone::CHOICES)?,
    };
    fields.finish(highlight)
}
