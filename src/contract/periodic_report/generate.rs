//! `periodic_report_generate_result_v0`: what one local generation made.

use serde::Serialize;

use super::vocabulary::{ContentKind, No, ReportKind, SourceStatus, Yes, schema_version};
use crate::contract::ids::Token;
use crate::contract::time::{Timestamp, Window};

schema_version!(
    /// The schema of a generate result.
    GenerateResultSchema,
    "periodic_report_generate_result_v0"
);

/// One file of the report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GeneratedArtifact {
    /// The artifact.
    pub artifact_id: &'static str,
    /// What it is.
    pub renderer_kind: &'static str,
    /// Its file in the report's folder.
    pub file: &'static str,
    /// Digest of its text.
    pub content_digest: String,
    /// Its size.
    pub bytes: usize,
}

/// What one source gave, and what it left out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GeneratedSource {
    /// The source.
    pub source_id: Token,
    /// What it is.
    pub source_kind: Token,
    /// How completely it was read.
    pub status: SourceStatus,
    /// Its items in the report.
    pub item_count: usize,
    /// Facts that did not fit.
    pub omitted_count: usize,
    /// Facts whose text may not be shown.
    pub withheld_count: usize,
    /// Why it is not complete, or what it left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
}

/// How many primary items speak of one kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct KindCount {
    /// The kind.
    pub content_kind: ContentKind,
    /// How many.
    pub count: usize,
}

/// What makes the next report better.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NextStep {
    /// Why.
    pub reason: String,
    /// The commands, in order.
    pub commands: Vec<String>,
}

/// What was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct GenerateEffects {
    state_written: bool,
    external_write_outcome: &'static str,
    external_write_performed: No,
}

impl GenerateEffects {
    /// Nothing was written.
    pub const NONE: Self = Self {
        state_written: false,
        external_write_outcome: "none",
        external_write_performed: No,
    };
    /// Files were written here; nothing left the machine.
    pub const WRITTEN: Self = Self {
        state_written: true,
        ..Self::NONE
    };
}

/// The packet of `generate`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct GenerateResult {
    /// Always true; a refusal is another packet.
    pub ok: Yes,
    /// The schema constant.
    pub schema_version: GenerateResultSchema,
    /// Identity of the generation.
    pub generation_id: String,
    /// Which report it is.
    pub report_kind: ReportKind,
    /// When it was generated.
    pub generated_at: Timestamp,
    /// The period it covers.
    pub period_window: Window,
    /// The zone of its days.
    pub timezone: String,
    /// Its folder; none in a preview.
    pub out: Option<String>,
    /// Its files.
    pub artifacts: Vec<GeneratedArtifact>,
    /// Its sources in the order asked for.
    pub sources: Vec<GeneratedSource>,
    /// Items of the body.
    pub primary_item_count: usize,
    /// Items of the appendix.
    pub supporting_item_count: usize,
    /// Items of the body by kind, without kinds that are not there.
    pub primary_item_kinds: Vec<KindCount>,
    /// The compiled summary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub summary: Option<String>,
    /// The newest fact any source knows of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub newest_fact_at: Option<Timestamp>,
    /// The same report was there already.
    pub already_generated: bool,
    /// What was written.
    pub effects: GenerateEffects,
    /// What makes the next report better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_step: Option<NextStep>,
}
