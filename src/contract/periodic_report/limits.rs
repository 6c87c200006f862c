//! How long and how many: every limit of the report contracts, once.
//!
//! Lengths count Unicode scalar values. Readers refuse what is longer, renderers cut what a given
//! document holds beyond them (`docs/spec/periodic-report-core.md` 6.1, 7, 9).

/// The title of a document.
pub const DOCUMENT_TITLE: usize = 200;
/// The title of a section.
pub const SECTION_TITLE: usize = 160;
/// The line above the title.
pub const KICKER: usize = 120;
/// The period in words.
pub const PERIOD_LABEL: usize = 160;
/// The compiled summary.
pub const SUMMARY: usize = 600;
/// The figure of a highlight.
pub const HIGHLIGHT_VALUE: usize = 48;
/// What a highlight measures.
pub const HIGHLIGHT_LABEL: usize = 80;
/// What a highlight is compared with.
pub const HIGHLIGHT_DETAIL: usize = 160;
/// Highlights of an editorial.
pub const HIGHLIGHTS: usize = 4;
/// The title of an item.
pub const ITEM_TITLE: usize = 240;
/// The summary of an item.
pub const ITEM_SUMMARY: usize = 1_000;
/// The summary of a primary item.
pub const PRIMARY_SUMMARY: usize = 360;
/// The status of an item.
pub const STATUS: usize = 80;
/// A source reference, and a next action.
pub const REFERENCE: usize = 500;
/// The local name of a tag.
pub const TAG_LABEL: usize = 64;
/// The label of a detail.
pub const DETAIL_LABEL: usize = 40;
/// The text of a detail.
pub const DETAIL_TEXT: usize = 360;
/// Details of an item.
pub const DETAILS: usize = 4;
/// A timestamp as written.
pub const STAMP: usize = 80;
/// The digest of a snapshot as a caller writes it.
pub const SNAPSHOT_DIGEST: usize = 256;
/// Primary items of one source.
pub const PRIMARY_ITEMS: usize = 8;
/// Supporting items of one source.
pub const SUPPORTING_ITEMS: usize = 16;
/// The content of an artifact.
pub const CONTENT: usize = 1_000_000;
/// Artifacts of a bundle.
pub const ARTIFACTS: usize = 8;
