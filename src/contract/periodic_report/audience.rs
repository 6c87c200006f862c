//! `periodic_report_audience_policy_v0` and the announcement plan it leads to.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::trigger::read_token_set;
use super::vocabulary::{ContentKind, Visibility, Yes, boundary, schema_version, vocabulary};
use crate::contract::error::ContractError;
use crate::contract::ids::Token;
use crate::contract::parse::{Fields, Label, at_most, read_choice};

const MOST: usize = 64;

schema_version!(
    /// The schema of an audience policy.
    AudiencePolicySchema,
    "periodic_report_audience_policy_v0"
);
schema_version!(
    /// The schema of a recipient.
    RecipientSchema,
    "periodic_report_audience_recipient_v0"
);
schema_version!(
    /// The schema of a routing rule.
    RoutingRuleSchema,
    "periodic_report_audience_routing_rule_v0"
);
schema_version!(
    /// The schema of a plan.
    AnnouncementPlanSchema,
    "periodic_report_announcement_plan_v0"
);

/// A rule that makes items relevant for a recipient; every selector given must match one item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RoutingRule {
    schema_version: RoutingRuleSchema,
    /// The rule, unique within the recipient.
    pub rule_id: Token,
    /// Kinds of which the item must have one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub content_kinds: Vec<Token>,
    /// Domains of which the item must have one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub domains_any: Vec<Token>,
    /// Sections of which the item must stand in one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub section_ids: Vec<Token>,
    /// Sources of which the item must come from one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub source_ids: Vec<Token>,
    /// Tags of which the item must carry one.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags_any: Vec<Token>,
}

impl RoutingRule {
    fn parse(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::closed(at, value)?;
        fields.constant_if_given("schema_version", RoutingRuleSchema::TEXT)?;
        let rule = Self {
            schema_version: RoutingRuleSchema,
            rule_id: fields.token("rule_id")?,
            content_kinds: bounded_set(&mut fields, "content_kinds")?,
            domains_any: bounded_set(&mut fields, "domains_any")?,
            section_ids: bounded_set(&mut fields, "section_ids")?,
            source_ids: bounded_set(&mut fields, "source_ids")?,
            tags_any: bounded_set(&mut fields, "tags_any")?,
        };
        let selectors = [
            &rule.content_kinds,
            &rule.domains_any,
            &rule.section_ids,
            &rule.source_ids,
            &rule.tags_any,
        ];
        if selectors.into_iter().all(Vec::is_empty) {
            return Err(ContractError::invalid(
                at,
                "must declare at least one selector",
            ));
        }
        fields.finish(rule)
    }
}

/// Reads a set of tokens; the limit counts entries before duplicates fall together.
fn bounded_set(fields: &mut Fields<'_>, name: &'static str) -> Result<Vec<Token>, ContractError> {
    let entries = fields.list_or_empty(name)?;
    at_most(&fields.at(name), &entries, MOST)?;
    read_token_set(fields, name)
}

/// A symbolic recipient; it names no provider identity.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Recipient {
    schema_version: RecipientSchema,
    /// The recipient.
    pub recipient_id: Token,
    /// The domains that are theirs.
    pub owned_domains: Vec<Token>,
    /// Their rules, by id.
    pub routing_rules: Vec<RoutingRule>,
}

impl Recipient {
    fn parse(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::closed(at, value)?;
        fields.constant_if_given("schema_version", RecipientSchema::TEXT)?;
        let recipient_id = fields.token("recipient_id")?;
        let owned_domains = bounded_set(&mut fields, "owned_domains")?;
        let rules = fields.list_or_empty("routing_rules")?;
        at_most(&fields.at("routing_rules"), &rules, MOST)?;
        let mut sorted = BTreeMap::new();
        for (at, value) in rules {
            let rule = RoutingRule::parse(&at, value)?;
            if sorted.insert(rule.rule_id.clone(), rule).is_some() {
                return Err(ContractError::invalid(
                    at.field("rule_id"),
                    "names a rule twice",
                ));
            }
        }
        if owned_domains.is_empty() && sorted.is_empty() {
            let reason = "must own a domain or declare a routing rule";
            return Err(ContractError::invalid(at, reason));
        }
        fields.finish(Self {
            schema_version: RecipientSchema,
            recipient_id,
            owned_domains,
            routing_rules: sorted.into_values().collect(),
        })
    }
}

/// Who is told about what, by typed facts alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AudiencePolicy {
    schema_version: AudiencePolicySchema,
    /// Which items count, sorted.
    pub eligible_visibilities: Vec<Visibility>,
    /// The recipients, by id.
    pub recipients: Vec<Recipient>,
}

impl AudiencePolicy {
    /// Reads a policy into its normal form.
    pub fn parse(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::closed(at, value)?;
        fields.constant("schema_version", AudiencePolicySchema::TEXT)?;
        let eligible_visibilities = parse_visibilities(&mut fields)?;
        let list = fields.list("recipients")?;
        let place = fields.at("recipients");
        at_most(&place, &list, MOST)?;
        if list.is_empty() {
            return Err(ContractError::invalid(
                place,
                "must hold at least one recipient",
            ));
        }
        let mut sorted = BTreeMap::new();
        for (at, value) in list {
            let recipient = Recipient::parse(&at, value)?;
            if sorted
                .insert(recipient.recipient_id.clone(), recipient)
                .is_some()
            {
                let place = at.field("recipient_id");
                return Err(ContractError::invalid(place, "names a recipient twice"));
            }
        }
        fields.finish(Self {
            schema_version: AudiencePolicySchema,
            eligible_visibilities,
            recipients: sorted.into_values().collect(),
        })
    }
}

fn parse_visibilities(fields: &mut Fields<'_>) -> Result<Vec<Visibility>, ContractError> {
    if fields.given("eligible_visibilities").is_none() {
        return Ok(vec![Visibility::Primary]);
    }
    let list = fields.list("eligible_visibilities")?;
    let place = fields.at("eligible_visibilities");
    at_most(&place, &list, Visibility::CHOICES.len())?;
    if list.is_empty() {
        return Err(ContractError::invalid(
            place,
            "must name at least one visibility",
        ));
    }
    let mut set = std::collections::BTreeSet::new();
    for (at, value) in list {
        set.insert(read_choice(&at, value, Visibility::CHOICES)?);
    }
    Ok(set.into_iter().collect())
}

/// Why an item is relevant for a recipient.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum MatchReason {
    /// The item lies in a domain the recipient owns.
    OwnedDomain {
        /// The domain.
        domain: Token,
    },
    /// A rule of the recipient selects the item.
    RoutingRule {
        /// The rule.
        rule_id: Token,
    },
}

/// One relevant item.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MatchingItemRef {
    /// Its source.
    pub source_id: Option<Token>,
    /// Its section.
    pub section_id: Token,
    /// The item.
    pub item_id: Token,
    /// Its kind.
    pub content_kind: Option<ContentKind>,
    /// Where it stands.
    pub visibility: Visibility,
    /// Why it is relevant.
    pub reasons: Vec<MatchReason>,
}

/// What the plan says about one recipient.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RecipientPlan {
    /// The recipient.
    pub recipient_id: Token,
    /// Whether to mention them.
    pub mention: bool,
    /// How many items are relevant.
    pub matching_item_count: usize,
    /// Which.
    pub matching_item_refs: Vec<MatchingItemRef>,
}

vocabulary!(
    /// Whether anybody is mentioned.
    PlanStatus {
        MentionsSelected => "mentions_selected",
        NoRelevantRecipient => "no_relevant_recipient",
    }
);

boundary!(
    /// What a plan does not do.
    PlanBoundary {
        default_action: "omit_mention",
        normalized_items_only: true,
        owned_domain_or_typed_rule_required: true,
        title_or_summary_text_inference: false,
        provider_identities_resolved: false,
        external_writes_performed: false,
    }
);

/// The plan packet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AnnouncementPlan {
    /// Always true: nobody is an answer too.
    pub ok: Yes,
    /// The schema constant.
    pub schema_version: AnnouncementPlanSchema,
    /// Whether anybody is mentioned.
    pub status: PlanStatus,
    /// Digest of the policy's normal form.
    pub policy_digest: String,
    /// Digest of the document as given.
    pub document_digest: String,
    /// Who is mentioned, in policy order.
    pub mentioned_recipient_ids: Vec<Token>,
    /// How many.
    pub mentioned_recipient_count: usize,
    /// How many distinct items are relevant for somebody.
    pub matched_item_count: usize,
    /// Every recipient.
    pub recipients: Vec<RecipientPlan>,
    /// What this plan did not do.
    pub boundary: PlanBoundary,
}
