//! The typed facts of a trigger, strict per kind.
//!
//! A boolean behind a test that has already failed is not read: its type does not matter then
//! (`docs/spec/periodic-report-core.md` 4.3). Names that a kind does not know are always refused.

use serde_json::Value;

use super::vocabulary::TriggerKind;
use crate::contract::error::ContractError;
use crate::contract::ids::Token;
use crate::contract::parse::{Fields, Label};

const STAGE_FACTS: [&str; 9] = [
    "status",
    "acceptance",
    "stage_transition",
    "completed_at",
    "stage_identity",
    "closed_vision_revision",
    "frontier_identity",
    "completion_receipt_ref",
    "outcome_checkpoint_satisfied",
];

/// What a candidate says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Facts {
    Manual {
        authorized: bool,
    },
    PrimaryGoalOutcome {
        delivery_outcome: Token,
        is_proven: bool,
    },
    VisionClosed {
        transition: Token,
        acceptance: Token,
        continuation: Token,
    },
    MaterialBlocker {
        severity: Token,
        transition: Token,
        blocks_primary_path: bool,
    },
    MaterialRecovery {
        transition: Token,
        is_proven: bool,
    },
    MaterialDecision {
        is_effective: bool,
    },
    BoundedSegmentMilestone(SegmentFacts),
    CadenceDue {
        due: bool,
    },
    Noise,
}

/// What is known about a bounded segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SegmentFacts {
    /// A checkpoint inside the segment.
    Checkpoint,
    /// Nothing has been written back yet.
    WritebackPending,
    /// At least one stage fact is missing.
    StageUnproven,
    /// All stage facts are given.
    Stage(StageFacts),
}

/// The facts that together prove a completed stage.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct StageFacts {
    pub is_segment_completed: bool,
    pub status: Token,
    pub acceptance: Token,
    pub stage_transition: Token,
    pub outcome_checkpoint_satisfied: bool,
}

impl Facts {
    /// Reads the facts of one kind.
    pub fn parse(at: &Label, kind: TriggerKind, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        refuse_unknown(&fields, kind)?;
        match kind {
            TriggerKind::Manual => Ok(Self::Manual {
                authorized: fields.flag("authorized")?,
            }),
            TriggerKind::CadenceDue => Ok(Self::CadenceDue {
                due: fields.flag("due")?,
            }),
            TriggerKind::PrimaryGoalOutcome => primary_goal_outcome(&mut fields),
            TriggerKind::VisionClosed => Ok(Self::VisionClosed {
                transition: fields.token("transition")?,
                acceptance: fields.token("acceptance")?,
                continuation: fields.token("continuation")?,
            }),
            TriggerKind::MaterialBlocker => material_blocker(&mut fields),
            TriggerKind::MaterialRecovery => {
                let transition = fields.token("transition")?;
                let is_proven = transition.as_str() == "resolved"
                    && fields.flag("primary_path_reopened")?
                    && fields.flag("validated")?;
                Ok(Self::MaterialRecovery {
                    transition,
                    is_proven,
                })
            }
            TriggerKind::MaterialDecision => material_decision(&mut fields),
            TriggerKind::BoundedSegmentMilestone => {
                segment(&mut fields).map(Self::BoundedSegmentMilestone)
            }
            _ => Ok(Self::Noise),
        }
    }
}

fn allowed(kind: TriggerKind) -> &'static [&'static str] {
    match kind {
        TriggerKind::Manual => &["authorized"],
        TriggerKind::CadenceDue => &["due"],
        TriggerKind::PrimaryGoalOutcome => &["delivery_outcome", "validated", "durable_writeback"],
        TriggerKind::VisionClosed => &["transition", "acceptance", "continuation"],
        TriggerKind::MaterialBlocker => &["severity", "transition", "blocks_primary_path"],
        TriggerKind::MaterialRecovery => &["transition", "primary_path_reopened", "validated"],
        TriggerKind::MaterialDecision => {
            &["decision_outcome", "route_changed", "durable_writeback"]
        }
        TriggerKind::BoundedSegmentMilestone => &[
            "segment_ref",
            "transition",
            "delivered_count",
            "remaining_todo_count",
            "durable_writeback",
        ],
        _ => &[],
    }
}

fn refuse_unknown(fields: &Fields<'_>, kind: TriggerKind) -> Result<(), ContractError> {
    let is_segment = kind == TriggerKind::BoundedSegmentMilestone;
    let is_known =
        |name: &str| allowed(kind).contains(&name) || (is_segment && STAGE_FACTS.contains(&name));
    match fields.as_map().keys().any(|name| !is_known(name)) {
        false => Ok(()),
        true => Err(ContractError::invalid(
            fields.here(),
            format!("has a fact that {} does not know; remove it", kind.as_str()),
        )),
    }
}

fn primary_goal_outcome(fields: &mut Fields<'_>) -> Result<Facts, ContractError> {
    let delivery_outcome = fields.token("delivery_outcome")?;
    let is_proven = delivery_outcome.as_str() == "primary_goal_outcome"
        && fields.flag("validated")?
        && fields.flag("durable_writeback")?;
    Ok(Facts::PrimaryGoalOutcome {
        delivery_outcome,
        is_proven,
    })
}

fn material_blocker(fields: &mut Fields<'_>) -> Result<Facts, ContractError> {
    let severity = fields.token("severity")?;
    let transition = fields.token("transition")?;
    let is_open = severity.as_str() == "p0" && is_one_of(&transition, &["opened", "escalated"]);
    let blocks_primary_path = is_open && fields.flag("blocks_primary_path")?;
    Ok(Facts::MaterialBlocker {
        severity,
        transition,
        blocks_primary_path,
    })
}

fn material_decision(fields: &mut Fields<'_>) -> Result<Facts, ContractError> {
    let outcome = fields.token("decision_outcome")?;
    if !is_one_of(&outcome, &["approve", "reject", "cancel"]) {
        return Err(ContractError::invalid(
            fields.at("decision_outcome"),
            "must be one of: approve, reject, cancel",
        ));
    }
    let is_effective = fields.flag("route_changed")? && fields.flag("durable_writeback")?;
    Ok(Facts::MaterialDecision { is_effective })
}

fn segment(fields: &mut Fields<'_>) -> Result<SegmentFacts, ContractError> {
    fields.token("segment_ref")?;
    let transition = fields.token("transition")?;
    let known = ["replan_entered", "segment_completed", "vision_checkpoint"];
    if !is_one_of(&transition, &known) {
        return Err(ContractError::invalid(
            fields.at("transition"),
            "must be one of: replan_entered, segment_completed, vision_checkpoint",
        ));
    }
    fields.integer_or("delivered_count", 0..=1_000_000, 0)?;
    fields.integer_or("remaining_todo_count", 0..=1_000_000, 0)?;
    let is_written_back = fields.flag("durable_writeback")?;
    if transition.as_str() == "vision_checkpoint" {
        return Ok(SegmentFacts::Checkpoint);
    }
    if !is_written_back {
        return Ok(SegmentFacts::WritebackPending);
    }
    if STAGE_FACTS.iter().any(|name| fields.some(name).is_none()) {
        return Ok(SegmentFacts::StageUnproven);
    }
    let is_segment_completed = transition.as_str() == "segment_completed";
    stage(fields, is_segment_completed).map(SegmentFacts::Stage)
}

fn stage(fields: &mut Fields<'_>, completed: bool) -> Result<StageFacts, ContractError> {
    fields.timestamp("completed_at")?;
    fields.token("stage_identity")?;
    fields.text("closed_vision_revision", 128)?;
    fields.text("frontier_identity", 256)?;
    fields.text("completion_receipt_ref", 256)?;
    Ok(StageFacts {
        is_segment_completed: completed,
        status: fields.token("status")?,
        acceptance: fields.token("acceptance")?,
        stage_transition: fields.token("stage_transition")?,
        outcome_checkpoint_satisfied: fields.boolean("outcome_checkpoint_satisfied")?,
    })
}

/// Tells whether a token is one of the named ones.
pub fn is_one_of(token: &Token, names: &[&str]) -> bool {
    names.contains(&token.as_str())
}
