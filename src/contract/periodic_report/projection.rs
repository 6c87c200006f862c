//! `periodic_report_project_progress_projection_v0`: typed project facts before they are grouped.

use std::collections::BTreeSet;

use serde::Serialize;
use serde_json::Value;

use super::item::Item;
use super::limits;
use super::source::{SourceHead, SourceResult, progress_sections};
use super::vocabulary::{SourceStatus, schema_version};
use crate::contract::error::ContractError;
use crate::contract::ids::Token;
use crate::contract::parse::{Fields, Label};
use crate::contract::text;
use crate::contract::{canonical, digest};

schema_version!(
    /// The schema of a projection.
    ProjectionSchema,
    "periodic_report_project_progress_projection_v0"
);

#[derive(Serialize)]
struct SnapshotRecipe<'a> {
    goal_id: &'a str,
    observed_at: &'a Value,
    language: &'a str,
    items: &'a Value,
}

/// Reads a projection and groups its facts; `language` replaces the one it names.
pub fn read_progress(
    at: &Label,
    value: &Value,
    language: Option<&str>,
) -> Result<SourceResult, ContractError> {
    let mut fields = Fields::open(at, value)?;
    fields.constant("schema_version", ProjectionSchema::TEXT)?;
    let language = match language {
        Some(language) => language.to_ascii_lowercase(),
        None => read_language(&mut fields)?,
    };
    let goal_id = fields.optional_text("goal_id", 500)?;
    let items = parse_items(&mut fields)?;
    let warnings = read_warnings(&mut fields)?;
    let recipe = SnapshotRecipe {
        goal_id: goal_id.as_deref().unwrap_or("project"),
        observed_at: fields.required("observed_at")?,
        language: &language,
        items: fields.required("items")?,
    };
    let head = SourceHead {
        source_id: constant_token("project_progress"),
        source_kind: constant_token("validated_project_progress"),
        status: read_status(&mut fields, &warnings)?,
        observed_at: fields.timestamp("observed_at")?,
        retryable: match fields.some("retryable") {
            None => !warnings.is_empty(),
            Some(_) => fields.boolean("retryable")?,
        },
        snapshot_ref: Some(snapshot_ref(&recipe)?),
    };
    let result = SourceResult::build(head, progress_sections(items, &language))?;
    fields.finish(result)
}

fn snapshot_ref(recipe: &SnapshotRecipe<'_>) -> Result<String, ContractError> {
    let value = super::identity::value_of(recipe)?;
    let text = canonical::compact(&value)
        .map_err(|fault| ContractError::invalid("items", fault.to_string()))?;
    let digest = digest::content_digest(text.as_bytes());
    Ok(format!("loopx-progress:{}", digest.short(24)))
}

fn constant_token(text: &str) -> Token {
    Token::new(text).expect("a constant of the token grammar")
}

fn read_language(fields: &mut Fields<'_>) -> Result<String, ContractError> {
    let Some(language) = fields.optional_text("language", 64)? else {
        return Ok("en".to_owned());
    };
    match text::is_language(&language) {
        true => Ok(language.to_ascii_lowercase()),
        false => Err(ContractError::invalid(
            fields.at("language"),
            "must be a language tag such as en or zh-CN",
        )),
    }
}

fn read_warnings<'a>(fields: &mut Fields<'a>) -> Result<Vec<(Label, &'a Value)>, ContractError> {
    match fields.some("warnings") {
        None => Ok(Vec::new()),
        Some(_) => fields.list("warnings"),
    }
}

/// A warning makes a source partial unless the file says otherwise.
fn read_status(
    fields: &mut Fields<'_>,
    warnings: &[(Label, &Value)],
) -> Result<SourceStatus, ContractError> {
    let derived = match warnings.is_empty() {
        true => SourceStatus::Complete,
        false => SourceStatus::Partial,
    };
    let given = fields.optional_choice("status", SourceStatus::CHOICES)?;
    Ok(given.unwrap_or(derived))
}

fn parse_items(fields: &mut Fields<'_>) -> Result<Vec<Item>, ContractError> {
    let at = fields.at("items");
    let mut seen = BTreeSet::new();
    let mut items = Vec::new();
    for (at, value) in fields.list("items")? {
        let item = Item::parse(&at, value)?;
        if item.content_kind.is_none() {
            return Err(ContractError::invalid(
                at.field("content_kind"),
                "is required",
            ));
        }
        if !seen.insert(item.item_id.clone()) {
            return Err(ContractError::invalid(
                at.field("item_id"),
                "names an item twice",
            ));
        }
        items.push(item);
    }
    let primary = items.iter().filter(|item| item.is_primary()).count();
    let fault = match (primary, items.len() - primary) {
        (0, 0) => Some("must hold at least one item"),
        (primary, _) if primary > limits::PRIMARY_ITEMS => {
            Some("must hold at most 8 primary items")
        }
        (_, rest) if rest > limits::SUPPORTING_ITEMS => {
            Some("must hold at most 16 supporting items")
        }
        _ => None,
    };
    fault.map_or(Ok(items), |reason| Err(ContractError::invalid(at, reason)))
}
