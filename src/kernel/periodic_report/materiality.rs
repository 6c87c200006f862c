//! Which facts are material, kind by kind.

use crate::contract::error::ContractError;
use crate::contract::periodic_report::facts::{
    Facts, SegmentFacts, SegmentTransition, StageFacts, is_one_of,
};

/// Whether a fact is material, and the machine reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Materiality {
    /// Whether it may justify a report.
    pub material: bool,
    /// Why.
    pub reason: &'static str,
}

/// The reasons of one kind: when it is material, and when it is not.
type Reasons = (&'static str, &'static str);

const STAGE_COMPLETED: &str = "authoritative_stage_completed";
const STAGE_NOT_PROVEN: &str = "stage_completion_not_proven";

/// Judges the facts of one candidate; tests run from left to right and stop at the first that fails.
pub fn judge(facts: &Facts) -> Result<Materiality, ContractError> {
    if let Facts::BoundedSegmentMilestone(segment) = facts {
        return Ok(judge_segment(segment));
    }
    let material = is_material(facts)?;
    let (yes, no) = reasons(facts);
    Ok(Materiality {
        material,
        reason: match material {
            true => yes,
            false => no,
        },
    })
}

fn is_material(facts: &Facts) -> Result<bool, ContractError> {
    Ok(match facts {
        Facts::Manual { authorized } => authorized.holds()?,
        Facts::PrimaryGoalOutcome {
            delivery_outcome,
            validated,
            durable_writeback,
        } => {
            delivery_outcome.as_str() == "primary_goal_outcome"
                && validated.holds()?
                && durable_writeback.holds()?
        }
        Facts::VisionClosed {
            transition,
            acceptance,
            continuation,
        } => {
            transition.as_str() == "vision_closed"
                && acceptance.as_str() == "validated"
                && is_one_of(continuation, &["goal_terminal", "successor_established"])
        }
        Facts::MaterialBlocker {
            severity,
            transition,
            blocks_primary_path,
        } => {
            severity.as_str() == "p0"
                && is_one_of(transition, &["opened", "escalated"])
                && blocks_primary_path.holds()?
        }
        Facts::MaterialRecovery {
            transition,
            primary_path_reopened,
            validated,
        } => {
            transition.as_str() == "resolved"
                && primary_path_reopened.holds()?
                && validated.holds()?
        }
        Facts::MaterialDecision {
            route_changed,
            durable_writeback,
        } => route_changed.holds()? && durable_writeback.holds()?,
        Facts::BoundedSegmentMilestone(segment) => judge_segment(segment).material,
        Facts::CadenceDue { due } => due.holds()?,
        Facts::Noise => false,
    })
}

fn reasons(facts: &Facts) -> Reasons {
    match facts {
        Facts::Manual { .. } => ("manual_authorized", "manual_unauthorized"),
        Facts::PrimaryGoalOutcome { .. } => ("primary_outcome_validated", "outcome_unverified"),
        Facts::VisionClosed { .. } => ("vision_boundary_closed", "vision_not_closed"),
        Facts::MaterialBlocker { .. } => ("primary_path_blocked", "blocker_not_material"),
        Facts::MaterialRecovery { .. } => ("primary_path_recovered", "recovery_unverified"),
        Facts::MaterialDecision { .. } => ("decision_changed_route", "decision_not_material"),
        Facts::BoundedSegmentMilestone(_) => (STAGE_COMPLETED, STAGE_NOT_PROVEN),
        Facts::CadenceDue { .. } => ("cadence_due", "cadence_not_due"),
        Facts::Noise => ("", "non_material_control_plane_event"),
    }
}

/// Todo counts, elapsed time and remaining work never prove a stage and never suppress one.
fn judge_segment(segment: &SegmentFacts) -> Materiality {
    let no = |reason| Materiality {
        material: false,
        reason,
    };
    if segment.transition == SegmentTransition::VisionCheckpoint {
        return no("segment_checkpoint_only");
    }
    if !segment.durable_writeback {
        return no("segment_writeback_pending");
    }
    let is_completed = segment.transition == SegmentTransition::SegmentCompleted
        && segment.stage.as_ref().is_some_and(is_settled);
    match is_completed {
        true => Materiality {
            material: true,
            reason: STAGE_COMPLETED,
        },
        false => no(STAGE_NOT_PROVEN),
    }
}

fn is_settled(stage: &StageFacts) -> bool {
    let settled = ["goal_terminal", "successor_frontier_settled"];
    stage.status.as_str() == "completed"
        && stage.acceptance.as_str() == "validated"
        && is_one_of(&stage.stage_transition, &settled)
        && stage.outcome_checkpoint_satisfied
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::parse::Label;
    use crate::contract::periodic_report::vocabulary::TriggerKind;
    use serde_json::{Value, json};

    fn judged(kind: TriggerKind, facts: &Value) -> Result<Materiality, ContractError> {
        judge(&Facts::parse(&Label::named("facts"), kind, facts)?)
    }

    #[test]
    fn a_claim_behind_a_failed_test_is_not_looked_at() {
        let kind = TriggerKind::PrimaryGoalOutcome;
        let other = json!({"delivery_outcome": "outcome_progress", "validated": "yes"});
        assert_eq!(
            judged(kind, &other).map(|verdict| verdict.material),
            Ok(false)
        );
        let same = json!({"delivery_outcome": "primary_goal_outcome", "validated": "yes"});
        assert_eq!(
            judged(kind, &same).map_err(|error| error.at),
            Err("facts.validated".to_owned())
        );
    }

    #[test]
    fn a_checkpoint_and_an_unwritten_segment_prove_nothing() {
        let reason = |transition: &str, written: bool| {
            let facts =
                json!({"segment_ref": "s", "transition": transition, "durable_writeback": written});
            judged(TriggerKind::BoundedSegmentMilestone, &facts).map(|verdict| verdict.reason)
        };
        assert_eq!(
            reason("vision_checkpoint", true),
            Ok("segment_checkpoint_only")
        );
        assert_eq!(
            reason("segment_completed", false),
            Ok("segment_writeback_pending")
        );
        assert_eq!(
            reason("segment_completed", true),
            Ok("stage_completion_not_proven")
        );
    }
}
