//! `periodic_report_trigger_request_v0` and the decision it leads to.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::facts::Facts;
use super::identity::{id_of, require_derived};
use super::vocabulary::{ReportKind, TriggerKind, Yes, boundary, schema_version, vocabulary};
use crate::contract::error::ContractError;
use crate::contract::ids::Token;
use crate::contract::parse::{Fields, Label, at_most, read_token};
use crate::contract::time::Timestamp;

const REQUEST_SCHEMA: &str = "periodic_report_trigger_request_v0";
const MAX_CANDIDATES: usize = 64;
const LONGEST_INTERVAL: i64 = 2_678_400;

schema_version!(
    /// The schema of a decision.
    TriggerDecisionSchema,
    "periodic_report_trigger_decision_v0"
);

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
