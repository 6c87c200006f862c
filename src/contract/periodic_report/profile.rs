//! `periodic_report_profile_v0`: what a project wants reported, from where, and how it looks.
//!
//! The shape of a schedule is checked here; whether its rule is one we can follow is decided where
//! a subscription is made.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::audience::AudiencePolicy;
use super::sink::SinkBinding;
use super::trigger_policy::TriggerPolicy;
use super::vocabulary::{schema_version, vocabulary};
use crate::contract::error::ContractError;
use crate::contract::ids::{Token, Version};
use crate::contract::parse::{Fields, Label};

schema_version!(
    /// The schema of a profile.
    ProfileSchema,
    "periodic_report_profile_v0"
);
schema_version!(
    /// The schema of a schedule.
    ScheduleSchema,
    "periodic_report_schedule_v0"
);
schema_version!(
    /// The schema of a source binding.
    SourceBindingSchema,
    "periodic_report_source_binding_v0"
);
schema_version!(
    /// The schema of a renderer binding.
    RendererBindingSchema,
    "periodic_report_renderer_binding_v0"
);

vocabulary!(
    /// Who offers an adapter.
    ProviderKind {
        Builtin => "builtin",
        Extension => "extension",
    }
);

/// The provider of an adapter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AdapterProvider {
    kind: ProviderKind,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_id: Option<Token>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_version: Option<Version>,
}

impl AdapterProvider {
    /// The adapter is part of the program.
    pub const BUILTIN: Self = Self {
        kind: ProviderKind::Builtin,
        provider_id: None,
        provider_version: None,
    };

    fn parse(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::closed(at, value)?;
        let kind = match fields.given("kind") {
            None => ProviderKind::Builtin,
            Some(_) => fields.choice("kind", ProviderKind::CHOICES)?,
        };
        let provider = match kind {
            ProviderKind::Extension => Self {
                kind,
                provider_id: Some(fields.token("provider_id")?),
                provider_version: Some(fields.version("provider_version")?),
            },
            ProviderKind::Builtin => {
                refuse_filled(&mut fields, "provider_id")?;
                refuse_filled(&mut fields, "provider_version")?;
                Self::BUILTIN
            }
        };
        fields.finish(provider)
    }
}

/// A builtin adapter has no provider; an empty text says the same.
fn refuse_filled(fields: &mut Fields<'_>, name: &'static str) -> Result<(), ContractError> {
    match fields.some(name) {
        None => Ok(()),
        Some(Value::String(text)) if text.is_empty() => Ok(()),
        Some(_) => Err(ContractError::invalid(
            fields.at(name),
            "must be absent for a builtin adapter",
        )),
    }
}

/// One source a profile reads.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SourceBinding {
    schema_version: SourceBindingSchema,
    /// The source, unique within the profile.
    pub source_id: Token,
    /// What the source is.
    pub source_kind: Token,
    /// The adapter that reads it.
    pub adapter_id: Token,
    provider: AdapterProvider,
}

/// One renderer a profile uses.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RendererBinding {
    schema_version: RendererBindingSchema,
    /// The renderer, unique within the profile.
    pub renderer_id: Token,
    /// What it makes.
    pub renderer_kind: Token,
    /// The adapter that renders.
    pub adapter_id: Token,
    provider: AdapterProvider,
}

fn read_provider(fields: &mut Fields<'_>) -> Result<AdapterProvider, ContractError> {
    match fields.given("provider") {
        None => Ok(AdapterProvider::BUILTIN),
        Some(value) => AdapterProvider::parse(&fields.at("provider"), value),
    }
}

fn unique<T>(
    sorted: &mut BTreeMap<Token, T>,
    at: &Label,
    id: &Token,
    binding: T,
) -> Result<(), ContractError> {
    match sorted.insert(id.clone(), binding) {
        None => Ok(()),
        Some(_) => Err(ContractError::invalid(
            at,
            "names an id that is already bound",
        )),
    }
}

fn parse_sources(fields: &mut Fields<'_>) -> Result<Vec<SourceBinding>, ContractError> {
    let mut sorted = BTreeMap::new();
    for (at, value) in fields.list_or_empty("source_bindings")? {
        let mut binding = Fields::closed(&at, value)?;
        binding.constant_if_given("schema_version", SourceBindingSchema::TEXT)?;
        let parsed = SourceBinding {
            schema_version: SourceBindingSchema,
            source_id: binding.token("source_id")?,
            source_kind: binding.token("source_kind")?,
            adapter_id: binding.token("adapter_id")?,
            provider: read_provider(&mut binding)?,
        };
        let parsed = binding.finish(parsed)?;
        let id = parsed.source_id.clone();
        unique(&mut sorted, &at.field("source_id"), &id, parsed)?;
    }
    Ok(sorted.into_values().collect())
}

fn parse_renderers(fields: &mut Fields<'_>) -> Result<Vec<RendererBinding>, ContractError> {
    let mut sorted = BTreeMap::new();
    for (at, value) in fields.list_or_empty("renderer_bindings")? {
        let mut binding = Fields::closed(&at, value)?;
        binding.constant_if_given("schema_version", RendererBindingSchema::TEXT)?;
        let parsed = RendererBinding {
            schema_version: RendererBindingSchema,
            renderer_id: binding.token("renderer_id")?,
            renderer_kind: binding.token("renderer_kind")?,
            adapter_id: binding.token("adapter_id")?,
            provider: read_provider(&mut binding)?,
        };
        let parsed = binding.finish(parsed)?;
        let id = parsed.renderer_id.clone();
        unique(&mut sorted, &at.field("renderer_id"), &id, parsed)?;
    }
    Ok(sorted.into_values().collect())
}

/// The shape of a calendar rule.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Schedule {
    schema_version: ScheduleSchema,
    /// The schedule.
    pub schedule_id: Token,
    /// The rule, upper case.
    pub rrule: String,
    /// The zone name as given.
    pub timezone: String,
}

impl Schedule {
    /// Reads the shape of a schedule.
    pub fn parse(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::closed(at, value)?;
        fields.constant_if_given("schema_version", ScheduleSchema::TEXT)?;
        let schedule_id = fields.token("schedule_id")?;
        let rrule = fields.text("rrule", 500)?.to_uppercase();
        if !rrule.starts_with("FREQ=") {
            return Err(ContractError::invalid(
                fields.at("rrule"),
                "must start with FREQ=",
            ));
        }
        let timezone = fields.text("timezone", 80)?;
        if !is_zone_shape(&timezone) {
            return Err(ContractError::invalid(
                fields.at("timezone"),
                "must be an IANA zone name such as Europe/Paris",
            ));
        }
        fields.finish(Self {
            schema_version: ScheduleSchema,
            schedule_id,
            rrule,
            timezone,
        })
    }
}

/// `[A-Za-z_+-]+(/[A-Za-z0-9_+-]+)*`
fn is_zone_shape(text: &str) -> bool {
    let is_mark = |byte: u8| matches!(byte, b'_' | b'+' | b'-');
    let mut parts = text.split('/');
    let first = parts.next().unwrap_or("");
    !first.is_empty()
        && first
            .bytes()
            .all(|byte| byte.is_ascii_alphabetic() || is_mark(byte))
        && parts.all(|part| {
            !part.is_empty()
                && part
                    .bytes()
                    .all(|byte| byte.is_ascii_alphanumeric() || is_mark(byte))
        })
}

/// A profile in its normal form.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Profile {
    schema_version: ProfileSchema,
    /// Whether reports are wanted at all.
    pub enabled: bool,
    /// The profile.
    pub profile_id: Token,
    /// Its version.
    pub profile_version: Version,
    /// What may trigger a report.
    pub trigger_policy: TriggerPolicy,
    /// Where facts come from, by id.
    pub source_bindings: Vec<SourceBinding>,
    /// How the report is rendered, by id.
    pub renderer_bindings: Vec<RendererBinding>,
    /// Where the report goes, by role and id.
    pub sink_bindings: Vec<SinkBinding>,
    /// When a host wants it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Schedule>,
    /// Who is told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub audience_policy: Option<AudiencePolicy>,
}

impl Profile {
    /// Reads a profile into its normal form.
    pub fn parse(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::closed(at, value)?;
        fields.constant("schema_version", ProfileSchema::TEXT)?;
        let profile = Self {
            schema_version: ProfileSchema,
            enabled: fields.boolean_or("enabled", false)?,
            profile_id: fields.token("profile_id")?,
            profile_version: fields.version("profile_version")?,
            trigger_policy: TriggerPolicy::parse_or_default(&mut fields)?,
            source_bindings: parse_sources(&mut fields)?,
            renderer_bindings: parse_renderers(&mut fields)?,
            sink_bindings: SinkBinding::parse_all(&mut fields, "sink_bindings")?,
            schedule: fields.optional("schedule", Schedule::parse)?,
            audience_policy: fields.optional("audience_policy", AudiencePolicy::parse)?,
        };
        let profile = fields.finish(profile)?;
        profile.require_bindings(at)?;
        Ok(profile)
    }

    fn require_bindings(&self, at: &Label) -> Result<(), ContractError> {
        let missing = [
            ("source_bindings", self.source_bindings.is_empty()),
            ("renderer_bindings", self.renderer_bindings.is_empty()),
        ];
        match missing.into_iter().find(|(_, is_empty)| *is_empty) {
            Some((name, _)) if self.enabled => Err(ContractError::invalid(
                at.field(name),
                "must hold at least one binding when the profile is enabled",
            )),
            _ => Ok(()),
        }
    }

    /// The built-in weekly profile.
    pub fn weekly_progress() -> Self {
        let token = |text: &str| Token::new(text).expect("a constant of the token grammar");
        let renderer = |kind: &str, adapter: &str| RendererBinding {
            schema_version: RendererBindingSchema,
            renderer_id: token(kind),
            renderer_kind: token(kind),
            adapter_id: token(adapter),
            provider: AdapterProvider::BUILTIN,
        };
        Self {
            schema_version: ProfileSchema,
            enabled: true,
            profile_id: token("weekly_progress"),
            profile_version: Version::new("v1").expect("a constant of the version grammar"),
            trigger_policy: TriggerPolicy::default(),
            source_bindings: vec![SourceBinding {
                schema_version: SourceBindingSchema,
                source_id: token("project_progress"),
                source_kind: token("validated_project_progress"),
                adapter_id: token("project_progress_v0"),
                provider: AdapterProvider::BUILTIN,
            }],
            renderer_bindings: vec![
                renderer("html", "html_artifact_v0"),
                renderer("markdown", "markdown_v0"),
            ],
            sink_bindings: Vec::new(),
            schedule: None,
            audience_policy: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::periodic_report::identity::{digest_of, value_of};
    use serde_json::json;

    #[test]
    fn the_weekly_profile_has_the_digest_of_the_contract() {
        assert_eq!(
            digest_of(&Profile::weekly_progress()).as_deref(),
            Ok("sha256:a6bee8be104189e7cc3343423bae9731f11c6bd01172ce1f3247cdf35923faf4")
        );
    }

    #[test]
    fn normalizing_a_normal_form_changes_nothing() {
        let weekly = Profile::weekly_progress();
        let again = Profile::parse(&Label::root(), &value_of(&weekly).expect("serialises"));
        assert_eq!(again, Ok(weekly));
    }

    #[test]
    fn an_enabled_profile_needs_a_source_and_a_renderer() {
        let value = json!({"schema_version": "periodic_report_profile_v0", "enabled": true,
            "profile_id": "quay", "profile_version": "1"});
        let error = Profile::parse(&Label::root(), &value).expect_err("no bindings");
        assert_eq!(error.at, "source_bindings");
    }

    #[test]
    fn zone_names_are_checked_in_shape_only() {
        for zone in [
            "UTC",
            "Europe/Paris",
            "America/Argentina/Buenos_Aires",
            "Etc/GMT+8",
            "No/Such",
        ] {
            assert!(is_zone_shape(zone), "{zone}");
        }
        for zone in ["", "/x", "Europe/", "9/x", "A b"] {
            assert!(!is_zone_shape(zone), "{zone}");
        }
    }
}
