//! `periodic_report_document_v0`: the facts of one report before anybody renders them.
//!
//! [`Document`] is what a command builds; [`GivenDocument`] is one that came back from outside and
//! is taken as it stands. Only [`VerifiedDocument`] can be rendered: whoever makes one has
//! recomputed the summary.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::editorial::{Editorial, EditorialProfile, GivenEditorial};
use super::identity::digest_of_value;
use super::item::{Item, read_string, read_token_as_given};
use super::limits;
use super::run::read_window;
use super::source::{Section, SourceResult};
use super::trigger_receipt::TriggerReceipt;
use super::vocabulary::{SourceStatus, boundary, schema_version};
use crate::contract::error::ContractError;
use crate::contract::ids::Token;
use crate::contract::parse::{Fields, Label};
use crate::contract::time::{Timestamp, Window};

schema_version!(
    /// The schema of a document.
    DocumentSchema,
    "periodic_report_document_v0"
);

boundary!(
    /// What a document does not decide.
    DocumentBoundary {
        schedule_policy_owned_by_profile: true,
        business_semantics_owned_by_sources: true,
        editorial_selection_owned_by_profile: true,
        editorial_summary_owned_by_orchestrator: true,
        renderer_owns_business_semantics: false,
        sink_owns_business_semantics: false,
        external_writes_performed: false,
    }
);

/// The profile of a document: id and version only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DocumentProfile {
    /// The profile.
    pub profile_id: Token,
    /// Its version.
    pub profile_version: Token,
}

impl DocumentProfile {
    /// Reads the profile of a document as it stands.
    fn read(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        let profile = Self {
            profile_id: fields.with("profile_id", read_token_as_given)?,
            profile_version: fields.with("profile_version", read_token_as_given)?,
        };
        fields.finish(profile)
    }

    fn parse(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        let profile = Self {
            profile_id: fields.token("profile_id")?,
            profile_version: fields.token("profile_version")?,
        };
        fields.finish(profile)
    }
}

/// Everything a document is built from.
#[derive(Debug, Clone, PartialEq)]
pub struct DocumentParts {
    /// The heading.
    pub title: String,
    /// When the report was generated.
    pub generated_at: Timestamp,
    /// The period it covers.
    pub period_window: Window,
    /// For which profile.
    pub profile: DocumentProfile,
    /// What the sources say, at least one, with unique ids.
    pub sources: Vec<SourceResult>,
    /// What the profile says about the presentation.
    pub editorial: Option<EditorialProfile>,
    /// What justified the report.
    pub trigger_receipt: Option<TriggerReceipt>,
}

impl DocumentParts {
    /// Reads the request of `build-document`; unknown members are dropped.
    pub fn parse(value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(&Label::root(), value)?;
        let parts = Self {
            title: fields.text("title", limits::DOCUMENT_TITLE)?,
            generated_at: fields.timestamp("generated_at")?,
            period_window: fields.with("period_window", read_window)?,
            profile: fields.with("profile", DocumentProfile::parse)?,
            sources: parse_sources(&mut fields)?,
            editorial: fields.optional("editorial", EditorialProfile::parse)?,
            trigger_receipt: fields.optional("trigger_receipt", TriggerReceipt::parse)?,
        };
        let parts = fields.finish(parts)?;
        parts.check_trigger()?;
        Ok(parts)
    }

    fn check_trigger(&self) -> Result<(), ContractError> {
        let Some(receipt) = &self.trigger_receipt else {
            return Ok(());
        };
        let is_same = receipt.profile.profile_id == self.profile.profile_id
            && receipt.profile.profile_version == self.profile.profile_version;
        match is_same {
            true => Ok(()),
            false => Err(ContractError::mismatch(
                "trigger_receipt.profile",
                "differs from the profile of the document",
            )),
        }
    }
}

fn parse_sources(fields: &mut Fields<'_>) -> Result<Vec<SourceResult>, ContractError> {
    let mut seen = BTreeSet::new();
    let mut sources = Vec::new();
    for (at, value) in fields.list("sources")? {
        let source = SourceResult::parse(&at, value)?;
        if !seen.insert(source.source_id.clone()) {
            return Err(ContractError::invalid(
                at.field("source_id"),
                "names a source twice",
            ));
        }
        sources.push(source);
    }
    match sources.is_empty() {
        true => Err(ContractError::invalid(
            fields.at("sources"),
            "must hold at least one source",
        )),
        false => Ok(sources),
    }
}

/// What a document keeps of a source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DocumentSource {
    /// The source.
    pub source_id: Token,
    /// What it is.
    pub source_kind: Token,
    /// How completely it was read.
    pub status: SourceStatus,
    /// When it was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub observed_at: Option<Timestamp>,
    /// Identity of its sections.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_digest: Option<String>,
    /// Where the snapshot can be looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_ref: Option<String>,
    /// Its items.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub item_count: Option<usize>,
    /// Whether reading it again may help.
    pub retryable: bool,
}

/// A document as a command builds it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Document {
    /// The schema constant.
    pub schema_version: DocumentSchema,
    /// The heading.
    pub title: String,
    /// When the report was generated.
    pub generated_at: Timestamp,
    /// The period it covers.
    pub period_window: Window,
    /// For which profile.
    pub profile: DocumentProfile,
    /// Its sources, by id.
    pub source_snapshots: Vec<DocumentSource>,
    /// Its sections, by order and id.
    pub sections: Vec<Section>,
    /// What the document does not decide.
    pub boundary: DocumentBoundary,
    /// The compiled editorial.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub editorial: Option<Editorial>,
    /// What justified the report.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger_receipt: Option<TriggerReceipt>,
}

/// A section of a given document.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenSection {
    /// The section.
    pub section_id: Token,
    /// Its heading.
    pub title: String,
    /// Lower comes first.
    pub order: i64,
    /// Its items as they stand.
    pub items: Vec<Item>,
}

impl GivenSection {
    fn read(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        let items = fields.list_or_empty("items")?;
        let section = Self {
            section_id: fields.with("section_id", read_token_as_given)?,
            title: fields.with("title", read_string)?,
            order: fields.integer_or("order", i64::MIN..=i64::MAX, 0)?,
            items: items
                .into_iter()
                .map(|(at, value)| Item::read(&at, value))
                .collect::<Result<_, _>>()?,
        };
        fields.finish(section)
    }

    /// Tells whether the section has a place in the body: it is empty or holds a primary item.
    pub fn is_in_body(&self) -> bool {
        self.items.is_empty() || self.items.iter().any(Item::is_primary)
    }
}

/// A source of a given document.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenSource {
    /// The source.
    pub source_id: Token,
    /// How completely it was read.
    pub status: SourceStatus,
    /// Its items.
    pub item_count: Option<i64>,
    /// Identity of its sections.
    pub snapshot_digest: Option<String>,
}

impl GivenSource {
    fn read(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        let source = Self {
            source_id: fields.with("source_id", read_token_as_given)?,
            status: fields.choice("status", SourceStatus::CHOICES)?,
            item_count: fields.integer_if_given("item_count", 0..=i64::MAX)?,
            snapshot_digest: fields.optional("snapshot_digest", read_string)?,
        };
        fields.finish(source)
    }
}

/// A document of which a command reads its sections alone.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenFacts {
    /// Digest over the object as given.
    pub digest: String,
    /// Its sections as they stand.
    pub sections: Vec<GivenSection>,
}

impl GivenFacts {
    /// Reads the sections of a document as they stand.
    pub fn read(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let digest = read_digest_of(at, value)?;
        let mut fields = Fields::open(at, value)?;
        let facts = Self {
            digest,
            sections: read_sections(&mut fields)?,
        };
        fields.finish(facts)
    }
}

/// Requires the schema of a document and returns its digest, over the object as given.
pub fn read_digest_of(at: &Label, value: &Value) -> Result<String, ContractError> {
    let mut fields = Fields::open(at, value)?;
    fields.constant("schema_version", DocumentSchema::TEXT)?;
    fields.finish(digest_of_value(value)?)
}

fn read_sections(fields: &mut Fields<'_>) -> Result<Vec<GivenSection>, ContractError> {
    let sections = fields.list("sections")?.into_iter();
    sections
        .map(|(at, value)| GivenSection::read(&at, value))
        .collect()
}

/// A document that came from outside: what commands read of it is typed, nothing is normalized.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenDocument {
    digest: String,
    /// The heading.
    pub title: String,
    /// When the report was generated.
    pub generated_at: String,
    /// The start and end as written.
    pub period: (String, String),
    /// The period.
    pub window: Window,
    /// For which profile.
    pub profile: DocumentProfile,
    /// Its sources as they stand.
    pub sources: Vec<GivenSource>,
    /// Its sections as they stand.
    pub sections: Vec<GivenSection>,
    /// Its editorial as it stands.
    pub editorial: GivenEditorial,
}

impl GivenDocument {
    /// Reads a document as it stands.
    pub fn read(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        fields.constant("schema_version", DocumentSchema::TEXT)?;
        fields.timestamp("generated_at")?;
        let period = |at: &Label, value: &Value| {
            let mut fields = Fields::open(at, value)?;
            let start = fields.with("start_at", read_string)?;
            Ok((start, fields.with("end_at", read_string)?))
        };
        let sources = fields.list_or_empty("source_snapshots")?.into_iter();
        let editorial = fields.optional("editorial", GivenEditorial::read)?;
        let document = Self {
            digest: digest_of_value(value)?,
            title: fields.with("title", read_string)?,
            generated_at: fields.with("generated_at", read_string)?,
            period: fields.with("period_window", period)?,
            window: fields.with("period_window", read_window)?,
            profile: fields.with("profile", DocumentProfile::read)?,
            sources: sources
                .map(|(at, value)| GivenSource::read(&at, value))
                .collect::<Result<_, _>>()?,
            sections: read_sections(&mut fields)?,
            editorial: editorial.unwrap_or_default(),
        };
        fields.finish(document)
    }

    /// Returns its digest, `sha256:…` over the object as given.
    pub fn digest(&self) -> &str {
        &self.digest
    }

    /// Returns the numbers of primary and supporting items.
    pub fn item_counts(&self) -> (usize, usize) {
        let items = self.sections.iter().flat_map(|section| &section.items);
        let (primary, rest): (Vec<&Item>, Vec<&Item>) = items.partition(|item| item.is_primary());
        (primary.len(), rest.len())
    }
}

/// Where a primary item stands in a document.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemPosition {
    /// Index of the section.
    pub section: usize,
    /// Index of the item in it.
    pub item: usize,
}

/// A document whose summary was recomputed and found equal.
#[derive(Debug, Clone, PartialEq)]
pub struct VerifiedDocument {
    document: GivenDocument,
    compiler_order: Vec<ItemPosition>,
}

impl VerifiedDocument {
    /// Vouches for a document; called by the editorial check alone.
    pub fn attest(document: GivenDocument, compiler_order: Vec<ItemPosition>) -> Self {
        Self {
            document,
            compiler_order,
        }
    }

    /// Returns the document.
    pub fn document(&self) -> &GivenDocument {
        &self.document
    }

    /// Returns the primary items in the order in which the summary looks at them.
    pub fn compiler_order(&self) -> &[ItemPosition] {
        &self.compiler_order
    }
}
