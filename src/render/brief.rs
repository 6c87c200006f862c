//! The four questions of the first screen, always in one order.
//!
//! An index over the facts the summary speaks of, in the compiler's own order; what nothing
//! answers is said aloud (`docs/spec/report-design.md` 2.1).

use std::borrow::Cow;

use super::html::Builder;
use super::labels::Question;
use super::page::{Cell, ItemLink};
use super::prepare::prepare;
use crate::contract::periodic_report::document::ItemPosition;
use crate::contract::periodic_report::item::Item;
use crate::contract::periodic_report::limits;
use crate::contract::periodic_report::vocabulary::ContentKind;

const MAX_LINKS: usize = 3;

impl<'a> Builder<'a> {
    fn item_at(&self, position: &ItemPosition) -> &'a Item {
        &self.document.sections[position.section].items[position.item]
    }

    fn item_link(&self, position: &ItemPosition, text: &'a str, limit: usize) -> ItemLink<'a> {
        ItemLink {
            number: self
                .numbers
                .get(&(position.section, position.item))
                .copied()
                .unwrap_or(0),
            text: prepare(text, limit),
        }
    }

    /// The four questions; left out when none of them has an answer.
    pub(super) fn brief(&self) -> Vec<Cell<'a>> {
        let titled = |kinds: &'static [ContentKind]| {
            self.select(kinds)
                .map(|(position, item)| self.item_link(position, &item.title, limits::ITEM_TITLE))
                .collect::<Vec<_>>()
        };
        let changed = titled(&[ContentKind::Outcome, ContentKind::Decision]);
        let risks = titled(&[ContentKind::Risk]);
        let mut next = titled(&[ContentKind::NextAction]);
        if next.is_empty() {
            next.extend(self.next_fallback());
        }
        let asks: Vec<ItemLink<'a>> = self
            .select(&[
                ContentKind::Outcome,
                ContentKind::Decision,
                ContentKind::Risk,
                ContentKind::NextAction,
            ])
            .filter(|(_, item)| item.tags.iter().any(|tag| tag.as_str() == "ask"))
            .map(|(position, item)| {
                let text = item.next_action.as_deref().unwrap_or(&item.title);
                self.item_link(position, text, limits::REFERENCE)
            })
            .collect();
        if [&changed, &risks, &next, &asks]
            .into_iter()
            .all(Vec::is_empty)
        {
            return Vec::new();
        }
        vec![
            self.cell("chg", &self.labels.changed, changed),
            self.cell("risk", &self.labels.at_risk, risks),
            self.cell("nxt", &self.labels.what_next, next),
            self.cell("ask", &self.labels.needed, asks),
        ]
    }

    /// Primary items of some kinds in the order of the summary compiler.
    fn select(
        &self,
        kinds: &'static [ContentKind],
    ) -> impl Iterator<Item = (&'a ItemPosition, &'a Item)> + use<'a, '_> {
        let positions = self.verified.compiler_order().iter();
        positions
            .map(|position| (position, self.item_at(position)))
            .filter(|(_, item)| item.content_kind.is_some_and(|kind| kinds.contains(&kind)))
    }

    fn next_fallback(&self) -> Option<ItemLink<'a>> {
        // The same fallback as the summary: only the first item of a role speaks for it.
        let risk = self.select(&[ContentKind::Risk]).next();
        let outcome = self
            .select(&[ContentKind::Outcome, ContentKind::Decision])
            .next();
        [risk, outcome]
            .into_iter()
            .flatten()
            .find_map(|(position, item)| {
                let next = item.next_action.as_deref()?;
                Some(self.item_link(position, next, limits::REFERENCE))
            })
    }

    fn cell(
        &self,
        class: &'static str,
        question: &'static Question,
        mut links: Vec<ItemLink<'a>>,
    ) -> Cell<'a> {
        let omitted = links.split_off(links.len().min(MAX_LINKS));
        let more = omitted.first().map(|first| ItemLink {
            number: first.number,
            text: Cow::Owned(self.labels.more(omitted.len())),
        });
        Cell {
            class,
            question,
            links,
            more,
        }
    }
}
