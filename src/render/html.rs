//! The page `html_artifact_v0`, presentation `editorial_dense_v2` (`docs/spec/report-design.md`).
//!
//! One file that reads without script, style or network. Every value goes through one cleaning
//! function and one escaping function; style and script are constants whose digests make up the
//! policy. Nothing of the closed appendix (ids, digests, times, source names) stands outside it.

use std::borrow::Cow;
use std::collections::BTreeMap;

use askama::Template as _;

use super::labels::{Labels, is_chinese};
use super::link::link;
use super::page::{
    Fact, ItemView, Kicker, Page, RowView, SectionView, SourceView, Symbol, TagView,
};
use super::prepare::prepare;
use super::shape;
use super::symbol::{SPRITE, colour, symbol};
use crate::contract::digest::policy_source;
use crate::contract::error::{ContractError, ErrorCode};
use crate::contract::periodic_report::document::{GivenDocument, GivenSection, VerifiedDocument};
use crate::contract::periodic_report::item::Item;
use crate::contract::periodic_report::limits;
use crate::contract::periodic_report::vocabulary::{ContentKind, SourceStatus, Tone};

const STYLE: &str = include_str!("templates/page.css").trim_ascii_end();
const SCRIPT: &str = include_str!("templates/page.js").trim_ascii_end();
const RTL: [&str; 10] = ["ar", "fa", "he", "ur", "ps", "sd", "ug", "yi", "dv", "ckb"];

/// Renders a document as a page that carries `markdown`, its companion artifact.
pub(crate) fn render(verified: &VerifiedDocument, markdown: &str) -> Result<String, ContractError> {
    let page = Builder::new(verified).page(markdown);
    let mut out = String::with_capacity(16_384 + markdown.len() * 4);
    page.render_into(&mut out).map_err(|_| {
        let reason = "could not be written; report this as a defect";
        ContractError::coded(ErrorCode::InternalError, "the page", reason)
    })?;
    // The template engine drops the last line feed of a template.
    out.push('\n');
    Ok(out)
}

pub(super) struct Builder<'a> {
    pub(super) verified: &'a VerifiedDocument,
    pub(super) document: &'a GivenDocument,
    pub(super) labels: &'static Labels,
    pub(super) language: Option<&'a str>,
    /// The number of every primary item, by section and index.
    pub(super) numbers: BTreeMap<(usize, usize), usize>,
}

impl<'a> Builder<'a> {
    fn new(verified: &'a VerifiedDocument) -> Self {
        let document = verified.document();
        let mut numbers = BTreeMap::new();
        for (section, view) in document.sections.iter().enumerate() {
            for (index, item) in view.items.iter().enumerate() {
                if item.is_primary() {
                    numbers.insert((section, index), numbers.len() + 1);
                }
            }
        }
        let language = document.editorial.profile.language.as_deref();
        Self {
            verified,
            document,
            labels: Labels::of(language),
            language,
            numbers,
        }
    }

    fn page(&self, markdown: &'a str) -> Page<'a> {
        let editorial = &self.document.editorial;
        let primary = self.language.map(primary_tag).unwrap_or_default();
        let kicker = editorial.profile.kicker.as_deref();
        Page {
            lang: self.language.unwrap_or("und"),
            rtl: RTL.contains(&primary.as_str()),
            cjk: ["zh", "ja", "ko"].contains(&primary.as_str()),
            own: match primary.as_str() {
                "" | "en" | "zh" => "",
                _ => " lang=\"en\"",
            },
            gap: if is_chinese(self.language) { "" } else { " " },
            l: self.labels,
            policy: policy(),
            style: STYLE,
            script: SCRIPT,
            symbols: self.symbols(),
            title: prepare(&self.document.title, limits::DOCUMENT_TITLE),
            heading: self.heading(),
            kicker: Kicker {
                text: kicker.map_or(Cow::Borrowed(self.labels.kicker), |text| {
                    prepare(text, limits::KICKER)
                }),
                is_own: kicker.is_none(),
            },
            period: self.period(),
            lead: editorial
                .summary
                .as_deref()
                .map(|text| prepare(text, limits::SUMMARY)),
            facts: self.facts(),
            brief: self.brief(),
            partial: self.is_partial(),
            shape: shape::of(self.document, self.labels),
            total: self.numbers.len(),
            sections: self.sections(),
            appendix: self.appendix(markdown),
            markdown,
        }
    }

    /// A date must not break at its hyphens: a period at the end of the title stays in one piece.
    fn heading(&self) -> (String, String) {
        let title = prepare(&self.document.title, limits::DOCUMENT_TITLE);
        let period = self.period();
        match title.strip_suffix(period.as_str()) {
            Some(rest) if !rest.is_empty() && !period.is_empty() => (rest.to_owned(), period),
            _ => (title.into_owned(), String::new()),
        }
    }

    fn period(&self) -> String {
        match &self.document.editorial.profile.period_label {
            Some(label) => prepare(label, limits::PERIOD_LABEL).into_owned(),
            None => {
                let (start, end) = &self.document.period;
                format!(
                    "{} — {}",
                    prepare(start, limits::STAMP),
                    prepare(end, limits::STAMP)
                )
            }
        }
    }

    fn items(&self) -> impl Iterator<Item = &'a Item> + use<'a> {
        self.document
            .sections
            .iter()
            .flat_map(|section| &section.items)
    }

    /// Only the shapes of kinds that are there; notes always use the dot.
    fn symbols(&self) -> Vec<Symbol> {
        let mut names: Vec<&'static str> = Vec::new();
        for item in self.items() {
            let has_shape = item.content_kind.is_some() || item.is_primary();
            let name = symbol(item.content_kind);
            if has_shape && !names.contains(&name) {
                names.push(name);
            }
        }
        SPRITE
            .iter()
            .filter(|(name, _)| names.contains(name))
            .map(|(name, path)| Symbol { name, path })
            .collect()
    }

    fn facts(&self) -> Vec<Fact<'a>> {
        let highlights = &self.document.editorial.profile.highlights;
        if highlights.is_empty() {
            return self.counts();
        }
        highlights
            .iter()
            .map(|highlight| Fact {
                label: prepare(&highlight.label, limits::HIGHLIGHT_LABEL),
                value: prepare(&highlight.value, limits::HIGHLIGHT_VALUE),
                detail: highlight
                    .detail
                    .as_deref()
                    .map(|text| prepare(text, limits::HIGHLIGHT_DETAIL)),
                tone: highlight.tone.unwrap_or(Tone::Neutral).as_str(),
                is_own: false,
            })
            .collect()
    }

    fn counts(&self) -> Vec<Fact<'a>> {
        let body = self
            .document
            .sections
            .iter()
            .filter(|section| section.is_in_body());
        let counts = [
            (self.labels.sections, body.count()),
            (self.labels.items, self.numbers.len()),
            (self.labels.sources, self.document.sources.len()),
        ];
        counts
            .into_iter()
            .map(|(label, count)| Fact {
                label: Cow::Borrowed(label),
                value: Cow::Owned(count.to_string()),
                detail: None,
                tone: Tone::Neutral.as_str(),
                is_own: true,
            })
            .collect()
    }

    fn is_partial(&self) -> bool {
        let is_read = |status| status == SourceStatus::Complete;
        self.document
            .sources
            .iter()
            .any(|source| !is_read(source.status))
            || self.items().any(|item| item.is_kind(ContentKind::Coverage))
    }

    fn sections(&self) -> Vec<SectionView<'a>> {
        let body = self.document.sections.iter().enumerate();
        body.filter(|(_, section)| section.is_in_body())
            .map(|(index, section)| self.section(index, section))
            .collect()
    }

    fn section(&self, index: usize, section: &'a GivenSection) -> SectionView<'a> {
        let items = section.items.iter().enumerate();
        let items: Vec<ItemView<'a>> = items
            .filter(|(_, item)| item.is_primary())
            .map(|(at, item)| {
                let number = self.numbers.get(&(index, at)).copied().unwrap_or(0);
                self.item(number, item)
            })
            .collect();
        SectionView {
            id: section.section_id.as_str(),
            title: prepare(&section.title, limits::SECTION_TITLE),
            count: self.labels.item_count(items.len()),
            items,
        }
    }

    pub(super) fn item(&self, number: usize, item: &'a Item) -> ItemView<'a> {
        let kind = item.content_kind;
        ItemView {
            number,
            kind: kind.map_or("unspecified", |kind| kind.as_str()),
            kind_name: kind.map(|kind| self.labels.kind(Some(kind))),
            class: colour(kind),
            symbol: symbol(kind),
            title: prepare(&item.title, limits::ITEM_TITLE),
            summary: prepare(&item.summary, limits::ITEM_SUMMARY),
            status: item
                .status
                .as_deref()
                .map(|text| prepare(text, limits::STATUS)),
            tags: item.tags.iter().map(|tag| self.tag(item, tag)).collect(),
            details: item
                .details
                .iter()
                .map(|detail| RowView {
                    label: prepare(&detail.label, limits::DETAIL_LABEL),
                    text: prepare(&detail.text, limits::DETAIL_TEXT),
                })
                .collect(),
            next: item
                .next_action
                .as_deref()
                .map(|text| prepare(text, limits::REFERENCE)),
            source: item.source_ref.as_deref().map(source),
        }
    }

    fn tag(&self, item: &'a Item, tag: &'a crate::contract::ids::Token) -> TagView<'a> {
        let is_ask = tag.as_str() == "ask";
        let name = if is_ask {
            self.labels.ask
        } else {
            tag.as_str()
        };
        let label = item.tag_labels.get(tag);
        TagView {
            class: if is_ask { "ask-tag" } else { "tag" },
            text: label.map_or(Cow::Borrowed(name), |label| {
                prepare(label, limits::TAG_LABEL)
            }),
        }
    }
}

fn source(reference: &str) -> SourceView<'_> {
    let text = prepare(reference, limits::REFERENCE);
    SourceView {
        link: link(reference, &text),
        text,
    }
}

fn primary_tag(language: &str) -> String {
    let primary = language.split('-').next().unwrap_or("");
    primary.to_ascii_lowercase()
}

fn policy() -> String {
    format!(
        "default-src 'none'; style-src '{}'; script-src '{}'; base-uri 'none'; form-action 'none'",
        policy_source(STYLE),
        policy_source(SCRIPT)
    )
}
