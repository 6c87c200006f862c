//! `periodic_report_sink_binding_v0`: which extension a profile trusts with a report.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::vocabulary::{DependencyPolicy, SinkRole, schema_version};
use crate::contract::error::ContractError;
use crate::contract::ids::{Token, Version};
use crate::contract::parse::{Fields, Label};

schema_version!(
    /// The schema of a sink binding.
    SinkBindingSchema,
    "periodic_report_sink_binding_v0"
);

/// A capability at one exact version.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Capability {
    /// What the extension can do.
    pub capability_id: Token,
    /// The version of that ability.
    pub capability_version: Version,
}

impl Capability {
    /// Reads a capability; unknown members are dropped.
    pub fn parse(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        let capability = Self {
            capability_id: fields.token("capability_id")?,
            capability_version: fields.version("capability_version")?,
        };
        fields.finish(capability)
    }
}

/// An extension at one exact version and protocol.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExtensionRef {
    /// The extension.
    pub extension_id: Token,
    /// Its manifest version, compared as it stands.
    pub extension_version: Version,
    /// The protocol both sides speak.
    pub protocol: Token,
}

impl ExtensionRef {
    fn parse(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        let extension = Self {
            extension_id: fields.token("extension_id")?,
            extension_version: fields.version("extension_version")?,
            protocol: fields.token("protocol")?,
        };
        fields.finish(extension)
    }
}

/// One sink of a profile.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SinkBinding {
    /// The schema constant.
    pub schema_version: SinkBindingSchema,
    /// The sink, unique within its role.
    pub sink_id: Token,
    /// What the sink is.
    pub sink_kind: Token,
    /// Archive or delivery.
    pub sink_role: SinkRole,
    /// Whether delivery needs it.
    pub dependency_policy: DependencyPolicy,
    /// The ability it must have.
    pub capability: Capability,
    /// The extension that must offer it.
    pub extension: ExtensionRef,
}

impl SinkBinding {
    /// Reads one binding; unknown members are dropped.
    pub fn parse(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        fields.constant_if_given("schema_version", SinkBindingSchema::TEXT)?;
        let binding = Self {
            schema_version: SinkBindingSchema,
            sink_id: fields.token("sink_id")?,
            sink_kind: fields.token("sink_kind")?,
            sink_role: fields.choice("sink_role", SinkRole::CHOICES)?,
            dependency_policy: fields.choice("dependency_policy", DependencyPolicy::CHOICES)?,
            capability: fields.with("capability", Capability::parse)?,
            extension: fields.with("extension", ExtensionRef::parse)?,
        };
        fields.finish(binding)
    }

    /// Reads a list of bindings, unique and sorted by role and id.
    pub fn parse_all(
        fields: &mut Fields<'_>,
        name: &'static str,
    ) -> Result<Vec<Self>, ContractError> {
        let mut sorted = BTreeMap::new();
        for (at, value) in fields.list_or_empty(name)? {
            let binding = Self::parse(&at, value)?;
            let key = (binding.sink_role, binding.sink_id.clone());
            if sorted.insert(key, binding).is_some() {
                return Err(ContractError::invalid(
                    at.field("sink_id"),
                    "names a sink of this role twice",
                ));
            }
        }
        Ok(sorted.into_values().collect())
    }
}
