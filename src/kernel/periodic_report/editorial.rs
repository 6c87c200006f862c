//! The summary: compiled from typed primary items, recomputed before anything is rendered.
//!
//! This is structural, never semantic: sources own the kinds, and untyped, progress and capability
//! facts stay in the body.

use crate::contract::error::ContractError;
use crate::contract::ids::Token;
use crate::contract::periodic_report::document::{GivenDocument, ItemPosition, VerifiedDocument};
use crate::contract::periodic_report::editorial::{
    Editorial, EditorialProfile, Orchestration, SummaryField, SummaryItemRef,
};
use crate::contract::periodic_report::identity::value_of;
use crate::contract::periodic_report::item::{DEFAULT_RANK, Item};
use crate::contract::periodic_report::limits;
use crate::contract::periodic_report::vocabulary::ContentKind;
use crate::contract::text;

const LONGEST_EXCERPT: usize = 120;

/// A section as the compiler looks at it.
#[derive(Debug, Clone, Copy)]
pub struct SectionView<'a> {
    /// The section.
    pub section_id: &'a Token,
    /// Lower comes first.
    pub order: i64,
    /// Its items.
    pub items: &'a [Item],
}

/// Returns the primary items in the compiler's order.
pub fn order(sections: &[SectionView<'_>]) -> Vec<ItemPosition> {
    let mut positions: Vec<ItemPosition> = Vec::new();
    for (section, view) in sections.iter().enumerate() {
        let primary = view.items.iter().enumerate();
        let primary = primary.filter(|(_, item)| item.is_primary());
        positions.extend(primary.map(|(item, _)| ItemPosition { section, item }));
    }
    positions.sort_by(|left, right| {
        let key = |position: &ItemPosition| {
            let view = &sections[position.section];
            let item = &view.items[position.item];
            // Spec core 7.3: a rank of 0 counts as the default here.
            let rank = match item.value_rank {
                0 => DEFAULT_RANK,
                rank => rank,
            };
            (rank, view.order, view.section_id, &item.item_id)
        };
        key(left).cmp(&key(right))
    });
    positions
}

/// One part of the summary.
struct Part<'a> {
    role: ContentKind,
    item: &'a Item,
    field: SummaryField,
}

impl Part<'_> {
    fn text(&self) -> &str {
        match self.field {
            SummaryField::Title => &self.item.title,
            SummaryField::NextAction => self.item.next_action.as_deref().unwrap_or(""),
        }
    }
}

/// Compiles the editorial of sections; none when there is nothing to say.
pub fn compile(
    sections: &[SectionView<'_>],
    positions: &[ItemPosition],
    profile: EditorialProfile,
) -> Option<Editorial> {
    let items = || {
        positions
            .iter()
            .map(|position| &sections[position.section].items[position.item])
    };
    let voice = Voice::of(profile.language.as_deref());
    let mut sentences = Vec::new();
    let mut refs = Vec::new();
    for part in parts(items) {
        let excerpt = excerpt(part.text());
        let Some(source_id) = part.item.source_id.clone().filter(|_| !excerpt.is_empty()) else {
            continue;
        };
        sentences.push(voice.sentence(part.role, &excerpt));
        refs.push(SummaryItemRef {
            role: part.role,
            source_id,
            item_id: part.item.item_id.clone(),
            field: part.field,
        });
    }
    if sentences.is_empty() {
        return (!profile.is_empty()).then_some(Editorial {
            profile,
            summary: None,
            orchestration: None,
        });
    }
    let summary = sentences.join(" ");
    Some(Editorial {
        profile,
        summary: Some(text::prefix(&summary, limits::SUMMARY).to_owned()),
        orchestration: Some(Orchestration::new(refs)),
    })
}

fn parts<'a, I: Iterator<Item = &'a Item>>(items: impl Fn() -> I) -> Vec<Part<'a>> {
    let first = |kinds: &[ContentKind]| {
        items().find(|item| item.content_kind.is_some_and(|kind| kinds.contains(&kind)))
    };
    let outcome = first(&[ContentKind::Outcome, ContentKind::Decision]);
    let risk = first(&[ContentKind::Risk]);
    let next = first(&[ContentKind::NextAction]);
    let titled = |item: &'a Item, role| Part {
        role,
        item,
        field: SummaryField::Title,
    };
    let fallback = [risk, outcome]
        .into_iter()
        .flatten()
        .find(|item| item.next_action.is_some())
        .map(|item| Part {
            role: ContentKind::NextAction,
            item,
            field: SummaryField::NextAction,
        });
    let outcome_role = outcome.and_then(|item| item.content_kind);
    let outcome = outcome
        .zip(outcome_role)
        .map(|(item, role)| titled(item, role));
    let risk = risk.map(|item| titled(item, ContentKind::Risk));
    let next = next.map(|item| titled(item, ContentKind::NextAction));
    [outcome, risk, next.or(fallback)]
        .into_iter()
        .flatten()
        .collect()
}

/// The words around the parts of a summary.
struct Voice {
    outcome: &'static str,
    decision: &'static str,
    risk: &'static str,
    next: &'static str,
    end: &'static str,
}

const ENGLISH: Voice = Voice {
    outcome: "Outcome: ",
    decision: "Decision: ",
    risk: "Risk: ",
    next: "Next: ",
    end: ".",
};

const CHINESE: Voice = Voice {
    outcome: "本期进展：",
    decision: "本期结论：",
    risk: "当前风险：",
    next: "下一步：",
    end: "。",
};

impl Voice {
    fn of(language: Option<&str>) -> &'static Self {
        match language.is_some_and(text::is_chinese) {
            true => &CHINESE,
            false => &ENGLISH,
        }
    }

    fn sentence(&self, role: ContentKind, excerpt: &str) -> String {
        let label = match role {
            ContentKind::Outcome => self.outcome,
            ContentKind::Decision => self.decision,
            ContentKind::Risk => self.risk,
            _ => self.next,
        };
        format!("{label}{excerpt}{}", self.end)
    }
}

/// One line of at most 120 characters without closing marks.
fn excerpt(raw: &str) -> String {
    let line = text::collapse(raw);
    if !text::is_longer_than(&line, LONGEST_EXCERPT) {
        let closing = ['。', '.', '!', '?', '；', ';', ' '];
        return line.trim_end_matches(closing).to_owned();
    }
    let cut = [
        '，', ',', '、', '；', ';', '：', ':', '。', '.', '!', '?', ' ',
    ];
    let kept = text::prefix(&line, LONGEST_EXCERPT - 1).trim_end_matches(cut);
    format!("{kept}…")
}

/// Recomputes the summary of a given document; one that differs is refused.
pub fn verify(document: GivenDocument) -> Result<VerifiedDocument, ContractError> {
    let views: Vec<SectionView<'_>> = document
        .sections
        .iter()
        .map(|section| SectionView {
            section_id: &section.section_id,
            order: section.order,
            items: &section.items,
        })
        .collect();
    let positions = order(&views);
    let compiled = compile(&views, &positions, document.editorial.profile.clone());
    let (summary, orchestration) = match compiled {
        Some(editorial) => (editorial.summary, editorial.orchestration),
        None => (None, None),
    };
    if summary != document.editorial.summary {
        return Err(stale("editorial.summary"));
    }
    let orchestration = orchestration
        .map(|receipt| value_of(&receipt))
        .transpose()?;
    if orchestration != document.editorial.orchestration {
        return Err(stale("editorial.orchestration"));
    }
    Ok(VerifiedDocument::attest(document, positions))
}

fn stale(place: &str) -> ContractError {
    ContractError::mismatch(
        format!("document.{place}"),
        "differs from what the items give; build the document again",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_excerpt_is_one_line_without_closing_marks() {
        assert_eq!(
            excerpt(" Depth  fell\nby a metre.; "),
            "Depth fell by a metre"
        );
        assert_eq!(text::length(&excerpt(&"a".repeat(120))), 120);
        let long = excerpt(&format!("{}, b", "a".repeat(118)));
        assert_eq!(long, format!("{}…", "a".repeat(118)));
    }
}
