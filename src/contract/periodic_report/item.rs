//! One item of a report, in the normal form of a source and as a document gives it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde_json::Value;

use super::limits;
use super::trigger::read_token_set;
use super::vocabulary::{ContentKind, Visibility};
use crate::contract::error::ContractError;
use crate::contract::ids::Token;
use crate::contract::parse::{Fields, Label, at_most, read_text};
use crate::contract::text;
use crate::contract::time::Timestamp;

/// The rank of an item that names none.
pub const DEFAULT_RANK: i64 = 500;

/// One named detail.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Detail {
    /// What it is about.
    pub label: String,
    /// What there is to say.
    pub text: String,
}

/// One fact of a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Item {
    /// The item, unique within its section and source.
    pub item_id: Token,
    /// The source it came from, in a document.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_id: Option<Token>,
    /// The fact in one line.
    pub title: String,
    /// The fact in one paragraph.
    pub summary: String,
    /// Lower comes first.
    pub value_rank: i64,
    /// A short state.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Where the fact can be looked up.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source_ref: Option<String>,
    /// What follows from it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_action: Option<String>,
    /// Sorted tags.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tags: Vec<Token>,
    /// Sorted domains, for routing.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub domains: Vec<Token>,
    /// Local names of tags.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub tag_labels: BTreeMap<Token, String>,
    /// Named details in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub details: Vec<Detail>,
    /// What it speaks of.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub content_kind: Option<ContentKind>,
    /// Where it stands; absent is primary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub visibility: Option<Visibility>,
    /// When it happened.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub occurred_at: Option<Timestamp>,
}

impl Item {
    /// Starts an item that says nothing but its id, title, summary and kind.
    pub fn new(item_id: Token, title: String, summary: String, kind: ContentKind) -> Self {
        Self {
            item_id,
            source_id: None,
            title,
            summary,
            value_rank: DEFAULT_RANK,
            status: None,
            source_ref: None,
            next_action: None,
            tags: Vec::new(),
            domains: Vec::new(),
            tag_labels: BTreeMap::new(),
            details: Vec::new(),
            content_kind: Some(kind),
            visibility: None,
            occurred_at: None,
        }
    }

    /// Tells whether the item belongs to the body.
    pub fn is_primary(&self) -> bool {
        self.visibility != Some(Visibility::Supporting)
    }

    /// Tells whether a kind belongs to this item.
    pub fn is_kind(&self, kind: ContentKind) -> bool {
        self.content_kind == Some(kind)
    }

    /// Reads an item into its normal form; unknown members are dropped.
    pub fn parse(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        let item_id = fields.token("item_id")?;
        let tags = read_token_set(&mut fields, "tags")?;
        let item = Self {
            item_id,
            source_id: None,
            title: fields.text("title", limits::ITEM_TITLE)?,
            summary: fields.text("summary", limits::ITEM_SUMMARY)?,
            value_rank: fields.integer_or("value_rank", 0..=10_000, DEFAULT_RANK)?,
            status: fields.optional_text("status", limits::STATUS)?,
            source_ref: fields.optional_text("source_ref", limits::REFERENCE)?,
            next_action: fields.optional_text("next_action", limits::REFERENCE)?,
            tag_labels: parse_tag_labels(&mut fields, &tags)?,
            tags,
            domains: read_token_set(&mut fields, "domains")?,
            details: parse_details(&mut fields)?,
            content_kind: fields.optional_choice("content_kind", ContentKind::CHOICES)?,
            visibility: fields.optional_choice("visibility", Visibility::CHOICES)?,
            occurred_at: fields.optional_timestamp("occurred_at")?,
        };
        let item = fields.finish(item)?;
        item.check(at)?;
        Ok(item)
    }

    fn check(&self, at: &Label) -> Result<(), ContractError> {
        let is_supporting_kind = self
            .content_kind
            .is_some_and(ContentKind::is_supporting_only);
        if !self.is_primary() {
            return Ok(());
        }
        if is_supporting_kind {
            return Err(ContractError::invalid(
                at.field("visibility"),
                "must be supporting for this content kind",
            ));
        }
        if text::is_longer_than(&self.summary, limits::PRIMARY_SUMMARY) {
            return Err(ContractError::invalid(
                at.field("summary"),
                "must be at most 360 characters long for a primary item",
            ));
        }
        if self.is_kind(ContentKind::CapabilityChange) && self.details.len() < 2 {
            return Err(ContractError::invalid(
                at.field("details"),
                "must name at least two details for a primary capability change",
            ));
        }
        Ok(())
    }

    /// Reads an item of a document as it stands: types and vocabularies, no limits.
    pub fn read(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        let item = Self {
            item_id: fields.with("item_id", read_token_as_given)?,
            source_id: fields.optional("source_id", read_token_as_given)?,
            title: fields.with("title", read_string)?,
            summary: fields.with("summary", read_string)?,
            value_rank: fields.integer_or("value_rank", i64::MIN..=i64::MAX, DEFAULT_RANK)?,
            status: fields.optional("status", read_string)?,
            source_ref: fields.optional("source_ref", read_string)?,
            next_action: fields.optional("next_action", read_string)?,
            tags: read_tokens_as_given(&mut fields, "tags")?,
            domains: read_tokens_as_given(&mut fields, "domains")?,
            tag_labels: read_labels_as_given(&mut fields)?,
            details: read_details_as_given(&mut fields)?,
            content_kind: fields.optional_choice("content_kind", ContentKind::CHOICES)?,
            visibility: fields.optional_choice("visibility", Visibility::CHOICES)?,
            occurred_at: fields.optional_timestamp("occurred_at")?,
        };
        fields.finish(item)
    }
}

fn parse_tag_labels(
    fields: &mut Fields<'_>,
    tags: &[Token],
) -> Result<BTreeMap<Token, String>, ContractError> {
    let Some(value) = fields.some("tag_labels") else {
        return Ok(BTreeMap::new());
    };
    let at = fields.at("tag_labels");
    let map = Fields::open(&at, value)?.as_map();
    let mut labels = BTreeMap::new();
    for (name, value) in map {
        let tag = Token::normalize(name).filter(|tag| tags.contains(tag));
        let tag = tag.ok_or_else(|| {
            ContractError::invalid(&at, "labels a tag that the item does not carry")
        })?;
        let label = read_text(&at.field(tag.as_str()), value, limits::TAG_LABEL)?;
        labels.insert(tag, label);
    }
    Ok(labels)
}

fn parse_details(fields: &mut Fields<'_>) -> Result<Vec<Detail>, ContractError> {
    let list = match fields.some("details") {
        None => Vec::new(),
        Some(_) => fields.list("details")?,
    };
    at_most(&fields.at("details"), &list, limits::DETAILS)?;
    let parse = |(at, value): (Label, &Value)| {
        let mut detail = Fields::open(&at, value)?;
        let row = Detail {
            label: detail.text("label", limits::DETAIL_LABEL)?,
            text: detail.text("text", limits::DETAIL_TEXT)?,
        };
        detail.finish(row)
    };
    list.into_iter().map(parse).collect()
}

/// Reads items that are unique within `seen`, sorted by rank and id.
pub fn parse_items(fields: &mut Fields<'_>) -> Result<Vec<Item>, ContractError> {
    let mut seen = BTreeSet::new();
    let mut items = Vec::new();
    for (at, value) in fields.list_or_empty("items")? {
        let item = Item::parse(&at, value)?;
        if !seen.insert(item.item_id.clone()) {
            return Err(ContractError::invalid(
                at.field("item_id"),
                "names an item of this section twice",
            ));
        }
        items.push(item);
    }
    sort_items(&mut items);
    Ok(items)
}

/// Sorts items by rank and id.
pub fn sort_items(items: &mut [Item]) {
    items.sort_by(|left, right| {
        (left.value_rank, &left.item_id).cmp(&(right.value_rank, &right.item_id))
    });
}

/// Reads a text as it stands.
pub(super) fn read_string(at: &Label, value: &Value) -> Result<String, ContractError> {
    let text = value.as_str().map(str::to_owned);
    text.ok_or_else(|| ContractError::invalid(at, "must be a text"))
}

pub(super) fn read_token_as_given(at: &Label, value: &Value) -> Result<Token, ContractError> {
    let token = value.as_str().and_then(Token::new);
    token.ok_or_else(|| {
        let reason = "must be a token in lower case: a given document is taken as it stands";
        ContractError::invalid(at, reason)
    })
}

fn read_tokens_as_given(
    fields: &mut Fields<'_>,
    name: &'static str,
) -> Result<Vec<Token>, ContractError> {
    let Some(value) = fields.some(name) else {
        return Ok(Vec::new());
    };
    let list = crate::contract::parse::read_list(&fields.at(name), value)?;
    list.into_iter()
        .map(|(at, value)| read_token_as_given(&at, value))
        .collect()
}

fn read_labels_as_given(fields: &mut Fields<'_>) -> Result<BTreeMap<Token, String>, ContractError> {
    let Some(value) = fields.some("tag_labels") else {
        return Ok(BTreeMap::new());
    };
    let at = fields.at("tag_labels");
    let map = Fields::open(&at, value)?.as_map();
    let mut labels = BTreeMap::new();
    for (name, value) in map {
        let tag = Token::new(name.as_str())
            .ok_or_else(|| ContractError::invalid(&at, "must be keyed by tags"))?;
        labels.insert(tag, read_string(&at, value)?);
    }
    Ok(labels)
}

fn read_details_as_given(fields: &mut Fields<'_>) -> Result<Vec<Detail>, ContractError> {
    let Some(value) = fields.some("details") else {
        return Ok(Vec::new());
    };
    let list = crate::contract::parse::read_list(&fields.at("details"), value)?;
    let read = |(at, value): (Label, &Value)| {
        let mut detail = Fields::open(&at, value)?;
        let row = Detail {
            label: detail.with("label", read_string)?,
            text: detail.with("text", read_string)?,
        };
        detail.finish(row)
    };
    list.into_iter().map(read).collect()
}
