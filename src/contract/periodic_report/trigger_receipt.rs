//! The trigger decision as a run or document embeds it.

use serde::Serialize;
use serde_json::Value;

use super::identity::{id_of, require_derived};
use super::trigger::ProfileRef;
use super::trigger::read_token_set;
use super::trigger_decision::{TriggerDecision, TriggerDecisionSchema};
use super::trigger_policy::{Origin, TriggerPolicy};
use super::vocabulary::{ReportKind, Yes};
use crate::contract::error::ContractError;
use crate::contract::parse::{Fields, Label};

/// An eligible decision in its normal form.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TriggerReceipt {
    schema_version: TriggerDecisionSchema,
    eligible: Yes,
    /// For which profile.
    pub profile: ProfileRef,
    trigger_policy: TriggerPolicy,
    decision_id: String,
    /// Identity of the report.
    pub report_key: String,
    /// Which report.
    pub report_kind: ReportKind,
    selected_trigger_id: String,
    coalesced_trigger_ids: Vec<String>,
}

#[derive(Serialize)]
struct ReportIdentity<'a> {
    profile: &'a ProfileRef,
    trigger_policy: &'a TriggerPolicy,
    report_kind: ReportKind,
    trigger_ids: &'a [String],
}

/// Derives the identity of the report that coalesced triggers lead to.
pub fn report_key(
    profile: &ProfileRef,
    trigger_policy: &TriggerPolicy,
    report_kind: ReportKind,
    trigger_ids: &[String],
) -> Result<String, ContractError> {
    id_of(
        "report",
        &ReportIdentity {
            profile,
            trigger_policy,
            report_kind,
            trigger_ids,
        },
    )
}

impl TriggerReceipt {
    /// Keeps of a decision what a report carries; none when nothing is due.
    pub fn of(decision: &TriggerDecision) -> Option<Self> {
        Some(Self {
            schema_version: TriggerDecisionSchema,
            eligible: Yes,
            profile: decision.profile.clone(),
            trigger_policy: decision.trigger_policy.clone(),
            decision_id: decision.decision_id.clone(),
            report_key: decision.report_key.clone()?,
            report_kind: decision.report_kind?,
            selected_trigger_id: decision.selected_trigger_id.clone()?,
            coalesced_trigger_ids: decision.coalesced_trigger_ids.clone(),
        })
    }

    /// Reads a whole decision or its normal form; unknown members are dropped.
    pub fn parse(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        fields.constant("schema_version", TriggerDecisionSchema::TEXT)?;
        if !fields.boolean("eligible")? {
            return Err(ContractError::invalid(
                fields.at("eligible"),
                "must be true: a decision that is not eligible starts no report",
            ));
        }
        let policy = |at: &Label, value: &Value| TriggerPolicy::parse(at, value, Origin::Receipt);
        let ids = read_token_set(&mut fields, "coalesced_trigger_ids")?;
        let receipt = Self {
            schema_version: TriggerDecisionSchema,
            eligible: Yes,
            profile: fields.with("profile", ProfileRef::parse)?,
            trigger_policy: fields.with("trigger_policy", policy)?,
            decision_id: fields.token("decision_id")?.to_string(),
            report_key: fields.text("report_key", 128)?,
            report_kind: fields.choice("report_kind", ReportKind::CHOICES)?,
            selected_trigger_id: fields.token("selected_trigger_id")?.to_string(),
            coalesced_trigger_ids: ids.iter().map(ToString::to_string).collect(),
        };
        let receipt = fields.finish(receipt)?;
        receipt.verify(at)?;
        Ok(receipt)
    }

    fn verify(&self, at: &Label) -> Result<(), ContractError> {
        if !self
            .coalesced_trigger_ids
            .contains(&self.selected_trigger_id)
        {
            return Err(ContractError::invalid(
                at.field("selected_trigger_id"),
                "must be one of coalesced_trigger_ids",
            ));
        }
        let derived = report_key(
            &self.profile,
            &self.trigger_policy,
            self.report_kind,
            &self.coalesced_trigger_ids,
        )?;
        require_derived(at.field("report_key"), Some(&self.report_key), &derived)
    }
}
