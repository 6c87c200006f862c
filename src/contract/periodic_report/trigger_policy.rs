//! What may trigger a report, and how often.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::vocabulary::TriggerKind;
use crate::contract::error::ContractError;
use crate::contract::parse::{Fields, Label, read_token};

const LONGEST_INTERVAL: i64 = 2_678_400;

/// How facts of one segment may add up.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Aggregation {
    window_seconds: i64,
    promote_replan: bool,
    stage_completion_required: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    todo_completed_threshold: Option<i64>,
}

/// Where an aggregation stands: what a caller writes, or what a decision carried on.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Origin {
    Request,
    Receipt,
}

impl Aggregation {
    fn parse(at: &Label, value: &Value, origin: Origin) -> Result<Self, ContractError> {
        let range = 1..=LONGEST_INTERVAL;
        let (mut fields, window_seconds) = match origin {
            Origin::Request => {
                let mut fields = Fields::closed(at, value)?;
                let window = fields.integer_or("window_seconds", range, 604_800)?;
                (fields, window)
            }
            Origin::Receipt => {
                let mut fields = Fields::open(at, value)?;
                let window = fields.integer("window_seconds", range)?;
                (fields, window)
            }
        };
        let aggregation = Self {
            window_seconds,
            promote_replan: fields.flag("promote_replan")?,
            stage_completion_required: stage_required(&mut fields)?,
            todo_completed_threshold: fields
                .integer_if_given("todo_completed_threshold", 1..=64)?,
        };
        let aggregation = fields.finish(aggregation)?;
        let has_way = aggregation.todo_completed_threshold.is_some()
            || aggregation.promote_replan
            || aggregation.stage_completion_required;
        match has_way {
            true => Ok(aggregation),
            false => Err(ContractError::invalid(
                at,
                "must switch on a todo threshold, replan promotion or stage completion",
            )),
        }
    }
}

fn stage_required(fields: &mut Fields<'_>) -> Result<bool, ContractError> {
    match fields.some("stage_completion_required") {
        None => {
            fields.given("stage_completion_required");
            Ok(true)
        }
        Some(_) => fields.boolean("stage_completion_required"),
    }
}

/// What may trigger a report, and how often.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TriggerPolicy {
    /// The kinds a profile reports, sorted by their wire spelling.
    pub enabled_kinds: Vec<&'static str>,
    /// The quiet time after a report.
    pub minimum_interval_seconds: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    aggregation: Option<Aggregation>,
}

impl Default for TriggerPolicy {
    fn default() -> Self {
        let reportable = TriggerKind::CHOICES
            .iter()
            .filter(|(_, kind)| !kind.is_noise());
        let names: BTreeSet<&'static str> = reportable.map(|(name, _)| *name).collect();
        Self {
            enabled_kinds: names.into_iter().collect(),
            minimum_interval_seconds: 0,
            aggregation: None,
        }
    }
}

impl TriggerPolicy {
    /// Reads the member `trigger_policy`; absent means everything, at any time.
    pub fn parse_or_default(fields: &mut Fields<'_>) -> Result<Self, ContractError> {
        match fields.given("trigger_policy") {
            None => Ok(Self::default()),
            Some(value) => Self::parse(&fields.at("trigger_policy"), value, Origin::Request),
        }
    }

    pub(super) fn parse(at: &Label, value: &Value, origin: Origin) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        let kinds = match (origin, fields.given("enabled_kinds")) {
            (Origin::Request, None) => Self::default().enabled_kinds,
            _ => parse_kinds(&mut fields)?,
        };
        let policy = Self {
            enabled_kinds: kinds,
            minimum_interval_seconds: fields.integer_or(
                "minimum_interval_seconds",
                0..=LONGEST_INTERVAL,
                0,
            )?,
            aggregation: fields.optional("aggregation", |at, value| {
                Aggregation::parse(at, value, origin)
            })?,
        };
        fields.finish(policy)
    }

    /// Tells whether a kind is reported.
    pub fn enables(&self, kind: TriggerKind) -> bool {
        self.enabled_kinds.contains(&kind.as_str())
    }
}

fn parse_kinds(fields: &mut Fields<'_>) -> Result<Vec<&'static str>, ContractError> {
    let mut kinds = BTreeSet::new();
    for (at, value) in fields.list("enabled_kinds")? {
        let kind = read_kind(&at, value)?;
        if kind.is_noise() {
            return Err(ContractError::invalid(
                at,
                "is a control-plane event that is never reported",
            ));
        }
        kinds.insert(kind.as_str());
    }
    match kinds.is_empty() {
        true => Err(ContractError::invalid(
            fields.at("enabled_kinds"),
            "must name at least one kind",
        )),
        false => Ok(kinds.into_iter().collect()),
    }
}

pub(super) fn read_kind(at: &Label, value: &Value) -> Result<TriggerKind, ContractError> {
    let token = read_token(at, value)?;
    TriggerKind::find(token.as_str())
        .ok_or_else(|| ContractError::invalid(at, "is not a known trigger kind"))
}
