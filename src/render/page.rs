//! What the page shows, ready for the template: texts are prepared, numbers are counted.
//!
//! One struct a block of the page, in its order (`docs/spec/report-design.md` 2).

use std::borrow::Cow;

use askama::Template;

use super::labels::{Labels, Question};

/// A prepared text.
pub(super) type Text<'a> = Cow<'a, str>;

/// The whole page.
#[derive(Template)]
#[template(path = "page.html")]
pub(super) struct Page<'a> {
    pub lang: &'a str,
    pub rtl: bool,
    pub cjk: bool,
    /// An attribute for elements that hold nothing but our labels.
    pub own: &'static str,
    /// What stands between the two sentences of the coverage line.
    pub gap: &'static str,
    pub l: &'static Labels,
    pub policy: String,
    pub style: &'static str,
    pub script: &'static str,
    pub symbols: Vec<Symbol>,
    pub title: Text<'a>,
    /// The title in two parts: what it ends with keeps together when it is the period.
    pub heading: (String, String),
    pub kicker: Kicker<'a>,
    pub period: String,
    pub lead: Option<Text<'a>>,
    pub facts: Vec<Fact<'a>>,
    pub brief: Vec<Cell<'a>>,
    pub partial: bool,
    pub shape: Option<Shape>,
    pub total: usize,
    pub sections: Vec<SectionView<'a>>,
    pub appendix: Appendix<'a>,
    pub markdown: &'a str,
}

/// A drawing of the sprite, by kind.
pub(super) struct Symbol {
    pub name: &'static str,
    pub path: &'static str,
}

/// The line above the title.
pub(super) struct Kicker<'a> {
    pub text: Text<'a>,
    pub is_own: bool,
}

/// One figure of the first screen.
pub(super) struct Fact<'a> {
    pub label: Text<'a>,
    pub value: Text<'a>,
    pub detail: Option<Text<'a>>,
    pub tone: &'static str,
    pub is_own: bool,
}

/// One of the four questions.
pub(super) struct Cell<'a> {
    pub class: &'static str,
    pub question: &'static Question,
    pub links: Vec<ItemLink<'a>>,
    pub more: Option<ItemLink<'a>>,
}

/// A link to an item of the page.
pub(super) struct ItemLink<'a> {
    pub number: usize,
    pub text: Text<'a>,
}

/// The picture of kinds and days.
pub(super) struct Shape {
    pub caption: String,
    pub days: Option<Days>,
    pub legend: Vec<LegendEntry>,
}

/// The columns of days, drawn.
pub(super) struct Days {
    pub label: String,
    pub height: usize,
    pub marks: String,
}

/// One kind of the picture.
pub(super) struct LegendEntry {
    pub class: &'static str,
    pub symbol: &'static str,
    pub name: &'static str,
    pub count: usize,
}

/// One section of the body.
pub(super) struct SectionView<'a> {
    pub id: &'a str,
    pub title: Text<'a>,
    pub count: String,
    pub items: Vec<ItemView<'a>>,
}

/// One item, in the body or in the appendix.
pub(super) struct ItemView<'a> {
    pub number: usize,
    pub kind: &'static str,
    pub kind_name: Option<&'static str>,
    pub class: &'static str,
    pub symbol: &'static str,
    pub title: Text<'a>,
    pub summary: Text<'a>,
    pub status: Option<Text<'a>>,
    pub tags: Vec<TagView<'a>>,
    pub details: Vec<RowView<'a>>,
    pub next: Option<Text<'a>>,
    pub source: Option<SourceView<'a>>,
}

impl ItemView<'_> {
    /// Tells whether there is a line above the title.
    pub fn has_meta(&self) -> bool {
        self.kind_name.is_some() || self.status.is_some() || !self.tags.is_empty()
    }
}

/// A tag by its label.
pub(super) struct TagView<'a> {
    pub class: &'static str,
    pub text: Text<'a>,
}

/// A label and a text.
pub(super) struct RowView<'a> {
    pub label: Text<'a>,
    pub text: Text<'a>,
}

/// Where a fact can be looked up: a link when its address may be one, else text.
pub(super) struct SourceView<'a> {
    pub text: Text<'a>,
    pub link: Option<LinkView>,
}

/// An outside link and what the reader sees of it.
pub(super) struct LinkView {
    pub href: String,
    pub shown: String,
}

/// The closed part of the page.
pub(super) struct Appendix<'a> {
    pub hint: String,
    pub groups: Vec<SectionView<'a>>,
    pub rows: Vec<RunRow<'a>>,
    pub sources: Vec<SourceRow<'a>>,
}

/// One fact about the report itself.
pub(super) struct RunRow<'a> {
    pub label: &'static str,
    pub text: Text<'a>,
    pub code: bool,
}

/// One source of the report.
pub(super) struct SourceRow<'a> {
    pub id: &'a str,
    pub status: &'static str,
    pub count: String,
    pub snapshot: Option<Text<'a>>,
}
