//! The closed end of the page: notes, what the report is made of, and its sources.
//!
//! Ids, digests, times and source names stand here and nowhere else.

use std::borrow::Cow;

use super::html::Builder;
use super::labels::is_chinese;
use super::page::{Appendix, ItemView, RunRow, SectionView, SourceRow, Text};
use super::prepare::prepare;
use crate::contract::periodic_report::document::GivenSource;
use crate::contract::periodic_report::identity::content_digest;
use crate::contract::periodic_report::limits;
use crate::contract::periodic_report::vocabulary::SourceStatus;

impl<'a> Builder<'a> {
    pub(super) fn appendix(&self, markdown: &str) -> Appendix<'a> {
        let mut groups = Vec::new();
        for section in &self.document.sections {
            let notes = section.items.iter().filter(|item| !item.is_primary());
            let items: Vec<ItemView<'a>> = notes.map(|item| self.item(0, item)).collect();
            if !items.is_empty() {
                groups.push(SectionView {
                    id: section.section_id.as_str(),
                    title: prepare(&section.title, limits::SECTION_TITLE),
                    count: String::new(),
                    items,
                });
            }
        }
        Appendix {
            hint: self.hint(groups.iter().map(|group| group.items.len()).sum()),
            groups,
            rows: self.run_rows(markdown),
            sources: self
                .document
                .sources
                .iter()
                .map(|one| self.source_row(one))
                .collect(),
        }
    }

    fn hint(&self, notes: usize) -> String {
        let l = self.labels;
        let mut hint = format!("{} {notes} · {}{}", l.notes, l.sources, l.separator);
        let counted =
            SourceStatus::CHOICES
                .iter()
                .enumerate()
                .filter_map(|(index, (_, status))| {
                    let sources = self.document.sources.iter();
                    let count = sources.filter(|source| source.status == *status).count();
                    (count > 0).then(|| format!("{} {count}", l.statuses[index]))
                });
        let counted: Vec<String> = counted.collect();
        let joint = if is_chinese(self.language) {
            "，"
        } else {
            ", "
        };
        hint.push_str(&match counted.is_empty() {
            true => "0".to_owned(),
            false => counted.join(joint),
        });
        hint
    }

    fn run_rows(&self, markdown: &str) -> Vec<RunRow<'a>> {
        let l = self.labels;
        let document = self.document;
        let profile = format!(
            "{} · {}",
            document.profile.profile_id, document.profile.profile_version
        );
        let (start, end) = &document.period;
        let window = format!(
            "{} – {}",
            prepare(start, limits::STAMP),
            prepare(end, limits::STAMP)
        );
        let row = |label, text: Text<'a>, code| RunRow { label, text, code };
        vec![
            row(l.profile, Cow::Owned(profile), false),
            row(
                l.generated,
                prepare(&document.generated_at, limits::STAMP),
                false,
            ),
            row(l.window, Cow::Owned(window), false),
            row(l.document, Cow::Borrowed(document.digest()), true),
            row("Markdown", Cow::Owned(content_digest(markdown)), true),
        ]
    }

    fn source_row(&self, source: &'a GivenSource) -> SourceRow<'a> {
        let index = SourceStatus::CHOICES
            .iter()
            .position(|(_, status)| *status == source.status)
            .unwrap_or(3);
        SourceRow {
            id: source.source_id.as_str(),
            status: self.labels.statuses[index],
            count: source
                .item_count
                .map(|count| count.to_string())
                .unwrap_or_default(),
            snapshot: source
                .snapshot_digest
                .as_deref()
                .map(|digest| prepare(digest, limits::SNAPSHOT_DIGEST)),
        }
    }
}
