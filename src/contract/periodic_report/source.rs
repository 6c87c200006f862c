//! `periodic_report_source_result_v0`: what one source says, in sections.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::identity::{id_of, require_derived};
use super::item::{Item, parse_items, sort_items};
use super::limits;
use super::vocabulary::{ContentKind, SourceStatus, boundary, schema_version};
use crate::contract::error::ContractError;
use crate::contract::ids::Token;
use crate::contract::parse::{Fields, Label};
use crate::contract::time::Timestamp;

schema_version!(
    /// The schema of a source result.
    SourceResultSchema,
    "periodic_report_source_result_v0"
);
schema_version!(
    /// The schema of a section.
    SectionSchema,
    "periodic_report_section_v0"
);

boundary!(
    /// What a source does not do.
    SourceBoundary {
        business_semantics_owned_by_source: true,
        schedule_policy_owned_by_source: false,
        external_reads_performed: false,
        external_writes_performed: false,
        raw_content_persisted: false,
    }
);

/// Items under one heading.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Section {
    /// The schema constant.
    pub schema_version: SectionSchema,
    /// The section, unique within a source or document.
    pub section_id: Token,
    /// Its heading.
    pub title: String,
    /// Lower comes first.
    pub order: i64,
    /// Its items in order.
    pub items: Vec<Item>,
}

impl Section {
    fn parse(at: &Label, value: &Value, index: usize) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        fields.constant_if_given("schema_version", SectionSchema::TEXT)?;
        let default_order = i64::try_from(index).unwrap_or(i64::MAX);
        let section = Self {
            schema_version: SectionSchema,
            section_id: fields.token("section_id")?,
            title: fields.text("title", limits::SECTION_TITLE)?,
            order: fields.integer_or("order", 0..=10_000, default_order)?,
            items: parse_items(&mut fields)?,
        };
        fields.finish(section)
    }

    fn parse_all(fields: &mut Fields<'_>) -> Result<Vec<Self>, ContractError> {
        let mut seen = BTreeSet::new();
        let mut sections = Vec::new();
        for (index, (at, value)) in fields.list("sections")?.into_iter().enumerate() {
            let section = Self::parse(&at, value, index)?;
            if !seen.insert(section.section_id.clone()) {
                return Err(ContractError::invalid(
                    at.field("section_id"),
                    "names a section twice",
                ));
            }
            sections.push(section);
        }
        sort_sections(&mut sections);
        Ok(sections)
    }
}

/// Sorts sections by order and id.
pub fn sort_sections(sections: &mut [Section]) {
    sections.sort_by(|left, right| {
        (left.order, &left.section_id).cmp(&(right.order, &right.section_id))
    });
}

/// What an adapter knows about the whole of one source.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceHead {
    /// The source.
    pub source_id: Token,
    /// What it is.
    pub source_kind: Token,
    /// How completely it was read.
    pub status: SourceStatus,
    /// When it was read.
    pub observed_at: Timestamp,
    /// Whether reading it again may help.
    pub retryable: bool,
    /// Where the snapshot can be looked up.
    pub snapshot_ref: Option<String>,
}

/// What one source says.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SourceResult {
    schema_version: SourceResultSchema,
    /// The source.
    pub source_id: Token,
    /// What it is.
    pub source_kind: Token,
    /// How completely it was read.
    pub status: SourceStatus,
    /// When it was read.
    pub observed_at: Timestamp,
    /// Identity of the sections.
    pub snapshot_digest: String,
    /// Items over all sections.
    pub item_count: usize,
    /// Whether reading it again may help.
    pub retryable: bool,
    /// The facts.
    pub sections: Vec<Section>,
    boundary: SourceBoundary,
    /// Where the snapshot can be looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub snapshot_ref: Option<String>,
}

impl SourceResult {
    /// Builds a result; the sections are sorted and counted, their identity is derived.
    pub fn build(head: SourceHead, mut sections: Vec<Section>) -> Result<Self, ContractError> {
        for section in &mut sections {
            sort_items(&mut section.items);
        }
        sort_sections(&mut sections);
        Ok(Self {
            schema_version: SourceResultSchema,
            source_id: head.source_id,
            source_kind: head.source_kind,
            status: head.status,
            observed_at: head.observed_at,
            snapshot_digest: id_of("snapshot", &sections)?,
            item_count: sections.iter().map(|section| section.items.len()).sum(),
            retryable: head.retryable,
            sections,
            boundary: SourceBoundary,
            snapshot_ref: head.snapshot_ref,
        })
    }

    /// Reads a result; its digest must be the one its sections give.
    pub fn parse(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        fields.constant("schema_version", SourceResultSchema::TEXT)?;
        let head = SourceHead {
            source_id: fields.token("source_id")?,
            source_kind: fields.token("source_kind")?,
            status: fields.choice("status", SourceStatus::CHOICES)?,
            observed_at: fields.timestamp("observed_at")?,
            retryable: fields.flag("retryable")?,
            snapshot_ref: fields.optional_text("snapshot_ref", limits::REFERENCE)?,
        };
        let given = fields.text("snapshot_digest", limits::SNAPSHOT_DIGEST)?;
        let result = Self::build(head, Section::parse_all(&mut fields)?)?;
        let at = fields.at("snapshot_digest");
        require_derived(at, Some(&given), &result.snapshot_digest)?;
        fields.finish(result)
    }
}

/// Where the items of a kind stand in a progress report.
struct Place {
    section_id: &'static str,
    order: i64,
    english: &'static str,
    chinese: &'static str,
}

const PLACES: [Place; 5] = [
    Place {
        section_id: "progress",
        order: 10,
        english: "Progress and outcomes",
        chinese: "进展与成果",
    },
    Place {
        section_id: "capability_evolution",
        order: 20,
        english: "Capability evolution",
        chinese: "能力演进",
    },
    Place {
        section_id: "risks",
        order: 30,
        english: "Risks and blockers",
        chinese: "风险与阻塞",
    },
    Place {
        section_id: "next_actions",
        order: 40,
        english: "Next actions",
        chinese: "下一步",
    },
    Place {
        section_id: "supporting_evidence",
        order: 50,
        english: "Supporting evidence",
        chinese: "支撑证据",
    },
];

fn place_index(kind: Option<ContentKind>) -> usize {
    match kind {
        Some(ContentKind::CapabilityChange) => 1,
        Some(ContentKind::Risk) => 2,
        Some(ContentKind::NextAction) => 3,
        Some(ContentKind::Runtime | ContentKind::DeliveryReceipt | ContentKind::Coverage) => 4,
        _ => 0,
    }
}

fn section_at(index: usize, language: &str, items: Vec<Item>) -> Section {
    let place = &PLACES[index];
    let is_chinese = crate::contract::text::is_chinese(language);
    let title = match is_chinese {
        true => place.chinese,
        false => place.english,
    };
    Section {
        schema_version: SectionSchema,
        section_id: Token::new(place.section_id).expect("a constant of the token grammar"),
        title: title.to_owned(),
        order: place.order,
        items,
    }
}

/// Groups items into the sections of a progress report; a section without items is not made.
pub fn progress_sections(items: Vec<Item>, language: &str) -> Vec<Section> {
    let mut groups: [Vec<Item>; 5] = Default::default();
    for item in items {
        groups[place_index(item.content_kind)].push(item);
    }
    let filled = groups.into_iter().enumerate();
    filled
        .filter(|(_, items)| !items.is_empty())
        .map(|(index, items)| section_at(index, language, items))
        .collect()
}

/// The section that says that nothing was recorded.
pub fn empty_progress_section(language: &str) -> Section {
    section_at(0, language, Vec::new())
}
