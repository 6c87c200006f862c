//! `periodic_report_trigger_request_v0`: what was observed, under which policy.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::facts::Facts;
use super::identity::{id_of, require_derived};
use super::trigger_policy::{TriggerPolicy, read_kind};
use super::vocabulary::TriggerKind;
use crate::contract::error::ContractError;
use crate::contract::ids::Token;
use crate::contract::parse::{Fields, Label, at_most, read_token};
use crate::contract::time::Timestamp;

const REQUEST_SCHEMA: &str = "periodic_report_trigger_request_v0";
const MAX_CANDIDATES: usize = 64;

/// Which profile a trigger or run belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ProfileRef {
    /// The profile.
    pub profile_id: Token,
    /// Its version, here a token.
    pub profile_version: Token,
    /// An opaque reference to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profile_ref: Option<String>,
}

impl ProfileRef {
    /// Reads a profile reference; unknown members are dropped.
    pub fn parse(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        let profile = Self {
            profile_id: fields.token("profile_id")?,
            profile_version: fields.token("profile_version")?,
            profile_ref: fields.optional_text("profile_ref", 500)?,
        };
        fields.finish(profile)
    }
}

/// Reads a list of tokens as a sorted set.
pub(super) fn read_token_set(
    fields: &mut Fields<'_>,
    name: &'static str,
) -> Result<Vec<Token>, ContractError> {
    let mut set = BTreeSet::new();
    for (at, value) in fields.list_or_empty(name)? {
        set.insert(read_token(&at, value)?);
    }
    Ok(set.into_iter().collect())
}

/// What the last delivered report covered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LastReport {
    /// When it was delivered.
    pub delivered_at: Timestamp,
    /// The triggers it covered, sorted.
    pub covered_trigger_ids: Vec<Token>,
}

impl LastReport {
    fn parse(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        let report = Self {
            delivered_at: fields.timestamp("delivered_at")?,
            covered_trigger_ids: read_token_set(&mut fields, "covered_trigger_ids")?,
        };
        fields.finish(report)
    }

    /// Tells whether a trigger was covered.
    pub fn covers(&self, trigger_id: &str) -> bool {
        self.covered_trigger_ids
            .iter()
            .any(|covered| covered.as_str() == trigger_id)
    }
}

/// One observed fact that may justify a report.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Its derived id.
    pub trigger_id: String,
    /// What it is.
    pub trigger_kind: TriggerKind,
    /// When it was observed.
    pub observed_at: Timestamp,
    /// Where it was observed.
    pub source_ref: String,
    /// What proves it.
    pub evidence_digest: String,
    /// Its facts as given, for digests.
    pub facts: Value,
    /// Its facts as understood.
    pub typed_facts: Facts,
}

#[derive(Serialize)]
struct TriggerIdentity<'a> {
    trigger_kind: TriggerKind,
    source_ref: &'a str,
    evidence_digest: &'a str,
}

/// Derives the id of a trigger: neither facts, profile nor time enter.
pub fn trigger_id(
    kind: TriggerKind,
    source_ref: &str,
    evidence_digest: &str,
) -> Result<String, ContractError> {
    id_of(
        "trigger",
        &TriggerIdentity {
            trigger_kind: kind,
            source_ref,
            evidence_digest,
        },
    )
}

impl Candidate {
    fn parse(at: &Label, value: &Value, evaluated_at: Timestamp) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        let trigger_kind = fields.with("trigger_kind", read_kind)?;
        let observed_at = fields.timestamp("observed_at")?;
        if observed_at > evaluated_at {
            return Err(ContractError::invalid(
                fields.at("observed_at"),
                "must not be later than evaluated_at",
            ));
        }
        let source_ref = fields.text("source_ref", 500)?;
        let evidence_digest = fields.text("evidence_digest", 256)?;
        let derived = trigger_id(trigger_kind, &source_ref, &evidence_digest)?;
        let given = fields.optional_text("trigger_id", 128)?;
        require_derived(fields.at("trigger_id"), given.as_deref(), &derived)?;
        let facts = match fields.given("facts") {
            None => Value::Object(serde_json::Map::new()),
            Some(value) => value.clone(),
        };
        let typed_facts = Facts::parse(&fields.at("facts"), trigger_kind, &facts)?;
        fields.finish(Self {
            trigger_id: derived,
            trigger_kind,
            observed_at,
            source_ref,
            evidence_digest,
            facts,
            typed_facts,
        })
    }
}

/// A request to decide whether a report is due.
#[derive(Debug, Clone, PartialEq)]
pub struct TriggerRequest {
    /// The instant of the decision.
    pub evaluated_at: Timestamp,
    /// For which profile.
    pub profile: ProfileRef,
    /// Under which policy.
    pub trigger_policy: TriggerPolicy,
    /// What was reported before.
    pub last_report: Option<LastReport>,
    /// What was observed, with unique ids.
    pub candidates: Vec<Candidate>,
}

impl TriggerRequest {
    /// Reads a request; unknown members are dropped.
    pub fn parse(value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(&Label::root(), value)?;
        fields.constant("schema_version", REQUEST_SCHEMA)?;
        let evaluated_at = fields.timestamp("evaluated_at")?;
        let request = Self {
            evaluated_at,
            profile: fields.with("profile", ProfileRef::parse)?,
            trigger_policy: TriggerPolicy::parse_or_default(&mut fields)?,
            last_report: fields.optional("last_report", LastReport::parse)?,
            candidates: parse_candidates(&mut fields, evaluated_at)?,
        };
        fields.finish(request)
    }
}

fn parse_candidates(
    fields: &mut Fields<'_>,
    evaluated_at: Timestamp,
) -> Result<Vec<Candidate>, ContractError> {
    let list = fields.list("candidates")?;
    let at = fields.at("candidates");
    at_most(&at, &list, MAX_CANDIDATES)?;
    if list.is_empty() {
        return Err(ContractError::invalid(
            at,
            "must hold at least one candidate",
        ));
    }
    let mut seen = BTreeSet::new();
    let mut candidates = Vec::with_capacity(list.len());
    for (at, value) in list {
        let candidate = Candidate::parse(&at, value, evaluated_at)?;
        if !seen.insert(candidate.trigger_id.clone()) {
            return Err(ContractError::invalid(
                at,
                "has the same kind, source and evidence as another candidate",
            ));
        }
        candidates.push(candidate);
    }
    Ok(candidates)
}
