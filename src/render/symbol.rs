//! The two signs of an item: a colour for urgency and a shape for its kind.

use super::labels::kind_index;
use crate::contract::periodic_report::vocabulary::ContentKind;

/// Colour tells urgency: only risks have the warm one.
pub(super) fn colour(kind: Option<ContentKind>) -> &'static str {
    match kind {
        Some(ContentKind::Risk) => "r",
        _ => "a",
    }
}

/// Shape tells the kind.
pub(super) fn symbol(kind: Option<ContentKind>) -> &'static str {
    match kind_index(kind) {
        index @ 0..=5 => SPRITE[index].0,
        _ => "other",
    }
}

/// Every shape and its drawing in a square of ten.
pub(super) const SPRITE: [(&str, &str); 7] = [
    ("outcome", r#"<path d="M1 1h8v8H1z"/>"#),
    ("decision", r#"<path d="M5 0l5 5-5 5-5-5z"/>"#),
    (
        "progress",
        r#"<path d="M1 1h8v8H1zm1.8 1.8v4.4h4.4V2.8z" fill-rule="evenodd"/>"#,
    ),
    (
        "capability_change",
        r#"<path d="M3.5.5h3v3h3v3h-3v3h-3v-3h-3v-3h3z"/>"#,
    ),
    ("risk", r#"<path d="M5 .4l4.9 9.2H.1z"/>"#),
    (
        "next_action",
        r#"<path d="M5 .4a4.6 4.6 0 100 9.2A4.6 4.6 0 005 .4zm0 2.2a2.4 2.4 0 110 4.8 2.4 2.4 0 010-4.8z" fill-rule="evenodd"/>"#,
    ),
    ("other", r#"<circle cx="5" cy="5" r="2.6"/>"#),
];
