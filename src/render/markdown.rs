//! The linear Markdown artifact `markdown_v0` (`docs/spec/periodic-report-core.md` 9.1).
//!
//! Plain text that reads on its own and can be pasted anywhere; supporting items stand in an
//! appendix. Nothing is left out and nothing is judged.

use super::labels::Labels;
use super::prepare::prepare;
use super::runnable::is_runnable;
use crate::contract::periodic_report::document::{GivenDocument, GivenSection, VerifiedDocument};
use crate::contract::periodic_report::item::Item;
use crate::contract::periodic_report::limits;

/// Renders a document as linear Markdown.
pub(crate) fn render(verified: &VerifiedDocument) -> String {
    let document = verified.document();
    let labels = Labels::of(document.editorial.profile.language.as_deref());
    let mut out = String::new();
    push_head(&mut out, document, labels);
    for section in document
        .sections
        .iter()
        .filter(|section| section.is_in_body())
    {
        push_section(&mut out, section, labels);
    }
    push_appendix(&mut out, document, labels);
    out
}

fn push_head(out: &mut String, document: &GivenDocument, labels: &Labels) {
    push_line(
        out,
        &["# ", &prepare(&document.title, limits::DOCUMENT_TITLE)],
    );
    out.push('\n');
    match &document.editorial.profile.period_label {
        Some(label) => push_line(out, &[&prepare(label, limits::PERIOD_LABEL)]),
        None => {
            let start = prepare(&document.period.0, limits::STAMP);
            let end = prepare(&document.period.1, limits::STAMP);
            push_line(out, &[labels.period, "：`", &start, "` – `", &end, "`"]);
        }
    }
    if let Some(summary) = &document.editorial.summary {
        out.push('\n');
        push_line(out, &[&prepare(summary, limits::SUMMARY)]);
    }
}

fn push_section(out: &mut String, section: &GivenSection, labels: &Labels) {
    push_heading(out, "## ", &section.title);
    if section.items.is_empty() {
        push_line(out, &["- ", labels.no_items]);
    }
    for item in section.items.iter().filter(|item| item.is_primary()) {
        push_item(out, item, labels);
    }
}

fn push_appendix(out: &mut String, document: &GivenDocument, labels: &Labels) {
    let has_notes = |section: &&GivenSection| section.items.iter().any(|item| !item.is_primary());
    let mut sections = document.sections.iter().filter(has_notes).peekable();
    if sections.peek().is_some() {
        out.push('\n');
        push_line(out, &["## ", labels.appendix]);
    }
    for section in sections {
        push_heading(out, "### ", &section.title);
        for item in section.items.iter().filter(|item| !item.is_primary()) {
            push_item(out, item, labels);
        }
    }
}

fn push_heading(out: &mut String, marks: &str, title: &str) {
    out.push('\n');
    push_line(out, &[marks, &prepare(title, limits::SECTION_TITLE)]);
    out.push('\n');
}

fn push_item(out: &mut String, item: &Item, labels: &Labels) {
    let title = prepare(&item.title, limits::ITEM_TITLE);
    out.push_str("- **");
    out.push_str(&title);
    out.push_str("**");
    if let Some(status) = &item.status {
        let status = prepare(status, limits::STATUS);
        out.push_str(&format!(" · `{status}`"));
    }
    if let Some(reference) = &item.source_ref {
        push_reference(out, reference, labels);
    }
    out.push('\n');
    let summary = prepare(&item.summary, limits::ITEM_SUMMARY);
    push_line(out, &["  - ", &summary]);
    for detail in &item.details {
        let label = prepare(&detail.label, limits::DETAIL_LABEL);
        let text = prepare(&detail.text, limits::DETAIL_TEXT);
        push_line(out, &["  - **", &label, labels.separator, "** ", &text]);
    }
    if let Some(next) = &item.next_action {
        let next = prepare(next, limits::REFERENCE);
        push_line(
            out,
            &["  - **", labels.next, labels.separator, "** ", &next],
        );
    }
}

/// A reference whose scheme a viewer would run stands as code, never as a link.
fn push_reference(out: &mut String, reference: &str, labels: &Labels) {
    let shown = prepare(reference, limits::REFERENCE);
    match is_runnable(reference) {
        true => out.push_str(&format!(" · `{}`", shown.replace('`', ""))),
        false => out.push_str(&format!(" · [{}]({shown})", labels.source_word)),
    }
}

fn push_line(out: &mut String, parts: &[&str]) {
    for part in parts {
        out.push_str(part);
    }
    out.push('\n');
}
