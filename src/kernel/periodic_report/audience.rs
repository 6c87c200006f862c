//! Who is told about which items: typed matches only, titles and summaries are never read.

use std::collections::BTreeSet;

use crate::contract::error::ContractError;
use crate::contract::ids::Token;
use crate::contract::periodic_report::audience::{
    AnnouncementPlan, AnnouncementPlanSchema, AudiencePolicy, MatchReason, MatchingItemRef,
    PlanBoundary, PlanStatus, Recipient, RecipientPlan, RoutingRule,
};
use crate::contract::periodic_report::document::GivenFacts;
use crate::contract::periodic_report::identity::digest_of;
use crate::contract::periodic_report::item::Item;
use crate::contract::periodic_report::vocabulary::{Visibility, Yes};

/// An item with the section it stands in.
struct Placed<'a> {
    section_id: &'a Token,
    item: &'a Item,
    visibility: Visibility,
}

/// Plans who is mentioned for a document.
pub fn plan(
    document: &GivenFacts,
    policy: &AudiencePolicy,
) -> Result<AnnouncementPlan, ContractError> {
    let items: Vec<Placed<'_>> = document
        .sections
        .iter()
        .flat_map(|section| {
            section
                .items
                .iter()
                .map(|item| placed(&section.section_id, item))
        })
        .filter(|placed| policy.eligible_visibilities.contains(&placed.visibility))
        .collect();
    let recipients: Vec<RecipientPlan> = policy
        .recipients
        .iter()
        .map(|recipient| plan_recipient(recipient, &items))
        .collect();
    let mentioned: Vec<Token> = recipients
        .iter()
        .filter(|recipient| recipient.mention)
        .map(|recipient| recipient.recipient_id.clone())
        .collect();
    let matched: BTreeSet<(&Option<Token>, &Token, &Token)> = recipients
        .iter()
        .flat_map(|recipient| &recipient.matching_item_refs)
        .map(|found| (&found.source_id, &found.section_id, &found.item_id))
        .collect();
    Ok(AnnouncementPlan {
        ok: Yes,
        schema_version: AnnouncementPlanSchema,
        status: match mentioned.is_empty() {
            true => PlanStatus::NoRelevantRecipient,
            false => PlanStatus::MentionsSelected,
        },
        policy_digest: digest_of(policy)?,
        document_digest: document.digest.clone(),
        mentioned_recipient_count: mentioned.len(),
        mentioned_recipient_ids: mentioned,
        matched_item_count: matched.len(),
        recipients,
        boundary: PlanBoundary,
    })
}

fn placed<'a>(section_id: &'a Token, item: &'a Item) -> Placed<'a> {
    Placed {
        section_id,
        item,
        visibility: item.visibility.unwrap_or(Visibility::Primary),
    }
}

fn plan_recipient(recipient: &Recipient, items: &[Placed<'_>]) -> RecipientPlan {
    let found = items.iter().filter_map(|placed| {
        let reasons = reasons(recipient, placed);
        (!reasons.is_empty()).then(|| MatchingItemRef {
            source_id: placed.item.source_id.clone(),
            section_id: placed.section_id.clone(),
            item_id: placed.item.item_id.clone(),
            content_kind: placed.item.content_kind,
            visibility: placed.visibility,
            reasons,
        })
    });
    let matching_item_refs: Vec<MatchingItemRef> = found.collect();
    RecipientPlan {
        recipient_id: recipient.recipient_id.clone(),
        mention: !matching_item_refs.is_empty(),
        matching_item_count: matching_item_refs.len(),
        matching_item_refs,
    }
}

fn reasons(recipient: &Recipient, placed: &Placed<'_>) -> Vec<MatchReason> {
    let owned = recipient
        .owned_domains
        .iter()
        .filter(|domain| placed.item.domains.contains(domain))
        .map(|domain| MatchReason::OwnedDomain {
            domain: domain.clone(),
        });
    let rules = recipient
        .routing_rules
        .iter()
        .filter(|rule| selects(rule, placed))
        .map(|rule| MatchReason::RoutingRule {
            rule_id: rule.rule_id.clone(),
        });
    owned.chain(rules).collect()
}

/// Every declared selector must match this one item.
fn selects(rule: &RoutingRule, placed: &Placed<'_>) -> bool {
    let item = placed.item;
    let names = |selector: &[Token], name: Option<&str>| {
        selector.is_empty() || selector.iter().any(|one| Some(one.as_str()) == name)
    };
    let meets = |selector: &[Token], set: &[Token]| {
        selector.is_empty() || selector.iter().any(|one| set.contains(one))
    };
    names(
        &rule.content_kinds,
        item.content_kind.map(|kind| kind.as_str()),
    ) && names(&rule.section_ids, Some(placed.section_id.as_str()))
        && names(&rule.source_ids, item.source_id.as_ref().map(Token::as_str))
        && meets(&rule.tags_any, &item.tags)
        && meets(&rule.domains_any, &item.domains)
}
