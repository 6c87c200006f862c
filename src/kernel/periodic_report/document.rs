//! Building one document from what its sources say.

use std::collections::BTreeMap;

use super::editorial::{self, SectionView};
use crate::contract::error::ContractError;
use crate::contract::ids::Token;
use crate::contract::periodic_report::document::{
    Document, DocumentBoundary, DocumentParts, DocumentSchema, DocumentSource,
};
use crate::contract::periodic_report::item::Item;
use crate::contract::periodic_report::source::{
    Section, SectionSchema, SourceResult, sort_sections,
};

/// Builds a document: sections of one id become one, the summary is compiled.
pub fn build(parts: DocumentParts) -> Result<Document, ContractError> {
    let DocumentParts {
        mut sources,
        editorial,
        ..
    } = parts;
    sources.sort_by(|left, right| left.source_id.cmp(&right.source_id));
    let source_snapshots = sources.iter().map(snapshot).collect();
    let sections = merge(sources)?;
    let views: Vec<SectionView<'_>> = sections
        .iter()
        .map(|section| SectionView {
            section_id: &section.section_id,
            order: section.order,
            items: &section.items,
        })
        .collect();
    let positions = editorial::order(&views);
    let editorial = editorial::compile(&views, &positions, editorial.unwrap_or_default());
    Ok(Document {
        schema_version: DocumentSchema,
        title: parts.title,
        generated_at: parts.generated_at,
        period_window: parts.period_window,
        profile: parts.profile,
        source_snapshots,
        sections,
        boundary: DocumentBoundary,
        editorial,
        trigger_receipt: parts.trigger_receipt,
    })
}

fn snapshot(source: &SourceResult) -> DocumentSource {
    DocumentSource {
        source_id: source.source_id.clone(),
        source_kind: source.source_kind.clone(),
        status: source.status,
        observed_at: Some(source.observed_at),
        snapshot_digest: Some(source.snapshot_digest.clone()),
        snapshot_ref: source.snapshot_ref.clone(),
        item_count: Some(source.item_count),
        retryable: source.retryable,
    }
}

fn merge(sources: Vec<SourceResult>) -> Result<Vec<Section>, ContractError> {
    let mut merged: BTreeMap<Token, Section> = BTreeMap::new();
    for source in sources {
        for section in source.sections {
            let id = section.section_id.clone();
            let target = merged.entry(id).or_insert_with(|| Section {
                schema_version: SectionSchema,
                section_id: section.section_id.clone(),
                title: section.title.clone(),
                order: section.order,
                items: Vec::new(),
            });
            if target.title != section.title {
                let place = format!("sources: section {}", section.section_id);
                return Err(ContractError::invalid(place, "has two different titles"));
            }
            target.order = target.order.min(section.order);
            target
                .items
                .extend(section.items.into_iter().map(|item| Item {
                    source_id: Some(source.source_id.clone()),
                    ..item
                }));
        }
    }
    let mut sections: Vec<Section> = merged.into_values().collect();
    for section in &mut sections {
        section.items.sort_by(|left, right| {
            let key = |item: &Item| (item.value_rank, item.source_id.clone());
            key(left)
                .cmp(&key(right))
                .then_with(|| left.item_id.cmp(&right.item_id))
        });
    }
    sort_sections(&mut sections);
    Ok(sections)
}
