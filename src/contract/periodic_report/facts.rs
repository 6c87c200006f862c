//! The typed facts of a trigger, strict per kind.
//!
//! A boolean behind a test that has already failed is never looked at, so its type does not matter
//! then (`docs/spec/periodic-report-core.md` 4.3): it is kept as a [`Claim`]. Names that a kind does not know are always refused.

use serde_json::Value;

use super::vocabulary::{TriggerKind, vocabulary};
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

/// A boolean that counts only when it is looked at: its type does not matter before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim(Result<bool, ContractError>);

impl Claim {
    /// Makes a claim of one's own.
    pub fn of(holds: bool) -> Self {
        Self(Ok(holds))
    }

    fn read(fields: &mut Fields<'_>, name: &'static str) -> Self {
        Self(fields.flag(name))
    }

    /// Tells whether the claim holds; one that is no boolean is refused now.
    pub fn holds(&self) -> Result<bool, ContractError> {
        self.0.clone()
    }
}

/// What a candidate says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Facts {
    Manual {
        authorized: Claim,
    },
    PrimaryGoalOutcome {
        delivery_outcome: Token,
        validated: Claim,
        durable_writeback: Claim,
    },
    VisionClosed {
        transition: Token,
        acceptance: Token,
        continuation: Token,
    },
    MaterialBlocker {
        severity: Token,
        transition: Token,
        blocks_primary_path: Claim,
    },
    MaterialRecovery {
        transition: Token,
        primary_path_reopened: Claim,
        validated: Claim,
    },
    MaterialDecision {
        route_changed: Claim,
        durable_writeback: Claim,
    },
    BoundedSegmentMilestone(SegmentFacts),
    CadenceDue {
        due: Claim,
    },
    Noise,
}

/// What is known about a bounded segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentFacts {
    /// What happened to it.
    pub transition: SegmentTransition,
    /// Whether that is written back.
    pub durable_writeback: bool,
    /// The facts of a completed stage, when every one of them is given.
    pub stage: Option<StageFacts>,
}

vocabulary!(
    /// What happened to a segment.
    SegmentTransition {
        ReplanEntered => "replan_entered",
        SegmentCompleted => "segment_completed",
        VisionCheckpoint => "vision_checkpoint",
    }
);

/// The facts that together prove a completed stage.
#[derive(Debug, Clone, PartialEq, Eq)]
#[allow(missing_docs)]
pub struct StageFacts {
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
                authorized: Claim::read(&mut fields, "authorized"),
            }),
            TriggerKind::CadenceDue => Ok(Self::CadenceDue {
                due: Claim::read(&mut fields, "due"),
            }),
            TriggerKind::PrimaryGoalOutcome => Ok(Self::PrimaryGoalOutcome {
                delivery_outcome: fields.token("delivery_outcome")?,
                validated: Claim::read(&mut fields, "validated"),
                durable_writeback: Claim::read(&mut fields, "durable_writeback"),
            }),
            TriggerKind::VisionClosed => Ok(Self::VisionClosed {
                transition: fields.token("transition")?,
                acceptance: fields.token("acceptance")?,
                continuation: fields.token("continuation")?,
            }),
            TriggerKind::MaterialBlocker => Ok(Self::MaterialBlocker {
                severity: fields.token("severity")?,
                transition: fields.token("transition")?,
                blocks_primary_path: Claim::read(&mut fields, "blocks_primary_path"),
            }),
            TriggerKind::MaterialRecovery => Ok(Self::MaterialRecovery {
                transition: fields.token("transition")?,
                primary_path_reopened: Claim::read(&mut fields, "primary_path_reopened"),
                validated: Claim::read(&mut fields, "validated"),
            }),
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

fn material_decision(fields: &mut Fields<'_>) -> Result<Facts, ContractError> {
    let outcome = fields.token("decision_outcome")?;
    if !is_one_of(&outcome, &["approve", "reject", "cancel"]) {
        return Err(ContractError::invalid(
            fields.at("decision_outcome"),
            "must be one of: approve, reject, cancel",
        ));
    }
    Ok(Facts::MaterialDecision {
        route_changed: Claim::read(fields, "route_changed"),
        durable_writeback: Claim::read(fields, "durable_writeback"),
    })
}

fn segment(fields: &mut Fields<'_>) -> Result<SegmentFacts, ContractError> {
    fields.token("segment_ref")?;
    let name = fields.token("transition")?;
    let transition = SegmentTransition::find(name.as_str()).ok_or_else(|| {
        let reason = "must be one of: replan_entered, segment_completed, vision_checkpoint";
        ContractError::invalid(fields.at("transition"), reason)
    })?;
    fields.integer_or("delivered_count", 0..=1_000_000, 0)?;
    fields.integer_or("remaining_todo_count", 0..=1_000_000, 0)?;
    let durable_writeback = fields.flag("durable_writeback")?;
    // Spec core 4.3: the stage is looked at only behind a durable step, and only when it is whole.
    let is_open = transition != SegmentTransition::VisionCheckpoint && durable_writeback;
    let is_whole = is_open && STAGE_FACTS.iter().all(|name| fields.some(name).is_some());
    Ok(SegmentFacts {
        transition,
        durable_writeback,
        stage: match is_whole {
            true => Some(stage(fields)?),
            false => None,
        },
    })
}

fn stage(fields: &mut Fields<'_>) -> Result<StageFacts, ContractError> {
    fields.timestamp("completed_at")?;
    fields.token("stage_identity")?;
    fields.text("closed_vision_revision", 128)?;
    fields.text("frontier_identity", 256)?;
    fields.text("completion_receipt_ref", 256)?;
    Ok(StageFacts {
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
