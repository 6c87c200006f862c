//! Which facts are material, kind by kind.

use crate::contract::periodic_report::facts::{Facts, SegmentFacts, StageFacts, is_one_of};

/// Whether a fact is material, and the machine reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Materiality {
    /// Whether it may justify a report.
    pub material: bool,
    /// Why.
    pub reason: &'static str,
}

/// Judges the facts of one candidate.
pub fn judge(facts: &Facts) -> Materiality {
    match facts {
        Facts::Manual { authorized } => {
            either(*authorized, "manual_authorized", "manual_unauthorized")
        }
        Facts::PrimaryGoalOutcome { is_proven, .. } => either(
            *is_proven,
            "primary_outcome_validated",
            "outcome_unverified",
        ),
        Facts::VisionClosed {
            transition,
            acceptance,
            continuation,
        } => {
            let is_closed = transition.as_str() == "vision_closed"
                && acceptance.as_str() == "validated"
                && is_one_of(continuation, &["goal_terminal", "successor_established"]);
            either(is_closed, "vision_boundary_closed", "vision_not_closed")
        }
        Facts::MaterialBlocker {
            blocks_primary_path,
            ..
        } => either(
            *blocks_primary_path,
            "primary_path_blocked",
            "blocker_not_material",
        ),
        Facts::MaterialRecovery { is_proven, .. } => {
            either(*is_proven, "primary_path_recovered", "recovery_unverified")
        }
        Facts::MaterialDecision { is_effective } => either(
            *is_effective,
            "decision_changed_route",
            "decision_not_material",
        ),
        Facts::BoundedSegmentMilestone(segment) => judge_segment(segment),
        Facts::CadenceDue { due } => either(*due, "cadence_due", "cadence_not_due"),
        Facts::Noise => either(false, "", "non_material_control_plane_event"),
    }
}

/// Todo counts, elapsed time and remaining work never prove a stage and never suppress one.
fn judge_segment(segment: &SegmentFacts) -> Materiality {
    const PROVEN: &str = "authoritative_stage_completed";
    const UNPROVEN: &str = "stage_completion_not_proven";
    match segment {
        SegmentFacts::Checkpoint => either(false, PROVEN, "segment_checkpoint_only"),
        SegmentFacts::WritebackPending => either(false, PROVEN, "segment_writeback_pending"),
        SegmentFacts::StageUnproven => either(false, PROVEN, UNPROVEN),
        SegmentFacts::Stage(stage) => either(is_completed(stage), PROVEN, UNPROVEN),
    }
}

fn is_completed(stage: &StageFacts) -> bool {
    let settled = ["goal_terminal", "successor_frontier_settled"];
    stage.is_segment_completed
        && stage.status.as_str() == "completed"
        && stage.acceptance.as_str() == "validated"
        && is_one_of(&stage.stage_transition, &settled)
        && stage.outcome_checkpoint_satisfied
}

fn either(material: bool, yes: &'static str, no: &'static str) -> Materiality {
    Materiality {
        material,
        reason: if material { yes } else { no },
    }
}
