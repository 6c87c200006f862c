//! `periodic_report_trigger_decision_v0`: whether a report is due, and why.

use serde::Serialize;

use super::trigger::ProfileRef;
use super::trigger_policy::TriggerPolicy;
use super::vocabulary::{ReportKind, TriggerKind, Yes, boundary, schema_version, vocabulary};
use crate::contract::time::Timestamp;

schema_version!(
    /// The schema of a decision.
    TriggerDecisionSchema,
    "periodic_report_trigger_decision_v0"
);

/// A trigger that does not lead to a report, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SuppressedTrigger {
    /// The trigger.
    pub trigger_id: String,
    /// Its kind.
    pub trigger_kind: TriggerKind,
    /// The machine reason.
    pub reason: &'static str,
}

/// The quiet interval as it stood.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Cooldown {
    /// Whether the interval still runs.
    pub active: bool,
    /// Whether an urgent trigger broke it.
    pub bypassed: bool,
    /// The trigger that broke it.
    pub bypass_trigger_id: Option<String>,
    /// When the next ordinary trigger counts.
    pub next_eligible_at: Option<Timestamp>,
}

vocabulary!(
    /// Why a decision came out as it did.
    DecisionReason {
        TriggerSelected => "trigger_selected",
        CooldownActive => "cooldown_active",
        NoMaterialTrigger => "no_material_trigger",
    }
);

boundary!(
    /// What a decision does not do.
    TriggerBoundary {
        provider_neutral: true,
        project_schedule_owned_by_profile: true,
        project_audience_owned_by_profile: true,
        project_layout_owned_by_profile: true,
        external_writes_performed: false,
        raw_content_persisted: false,
    }
);

/// The decision packet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TriggerDecision {
    /// Always true: "no" is an answer too.
    pub ok: Yes,
    /// The schema constant.
    pub schema_version: TriggerDecisionSchema,
    /// Identity of the whole decision.
    pub decision_id: String,
    /// The instant of the decision.
    pub evaluated_at: Timestamp,
    /// For which profile.
    pub profile: ProfileRef,
    /// Under which policy.
    pub trigger_policy: TriggerPolicy,
    /// Whether a report is due.
    pub eligible: bool,
    /// Why.
    pub reason: DecisionReason,
    /// Which report.
    pub report_kind: Option<ReportKind>,
    /// Identity of that report.
    pub report_key: Option<String>,
    /// The trigger that names the kind.
    pub selected_trigger_id: Option<String>,
    /// Its kind.
    pub selected_trigger_kind: Option<TriggerKind>,
    /// Every trigger the report covers, sorted.
    pub coalesced_trigger_ids: Vec<String>,
    /// Every other trigger, by kind and id.
    pub suppressed_triggers: Vec<SuppressedTrigger>,
    /// The quiet interval.
    pub cooldown: Cooldown,
    /// What this decision did not do.
    pub boundary: TriggerBoundary,
}
