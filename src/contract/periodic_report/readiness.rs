//! `periodic_report_extension_readiness_v0`: whether the extensions a profile names are there.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::generation::GenerationReceipt;
use super::sink::{Capability, SinkBinding};
use super::vocabulary::{DeliveryMode, No, Yes, schema_version, vocabulary};
use crate::contract::error::ContractError;
use crate::contract::ids::{Token, Version};
use crate::contract::parse::{Fields, Label};

schema_version!(
    /// The schema of a readiness packet.
    ReadinessSchema,
    "periodic_report_extension_readiness_v0"
);

vocabulary!(
    /// What was observed of an extension.
    ProviderStatus {
        Ready => "ready",
        Unavailable => "unavailable",
        Unknown => "unknown",
    }
);

/// What was observed of one extension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ExtensionReceipt {
    /// The extension.
    pub extension_id: Token,
    /// Its version.
    pub extension_version: Version,
    /// The protocol it speaks.
    pub protocol: Token,
    /// Whether it answers.
    pub status: ProviderStatus,
    /// Whether the answer was read back.
    pub readback_verified: bool,
    /// What it offers, sorted.
    pub capabilities: Vec<Capability>,
}

impl ExtensionReceipt {
    /// Reads a receipt; unknown members are dropped.
    pub fn parse(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        let list = fields.list_or_empty("capabilities")?;
        let mut capabilities = list
            .into_iter()
            .map(|(at, value)| Capability::parse(&at, value))
            .collect::<Result<Vec<_>, _>>()?;
        capabilities.sort();
        let receipt = Self {
            extension_id: fields.token("extension_id")?,
            extension_version: fields.version("extension_version")?,
            protocol: fields.token("protocol")?,
            status: fields.choice("status", ProviderStatus::CHOICES)?,
            readback_verified: fields.boolean("readback_verified")?,
            capabilities,
        };
        fields.finish(receipt)
    }
}

/// A request to judge readiness.
#[derive(Debug, Clone, PartialEq)]
pub struct ReadinessRequest {
    /// The generation to be delivered.
    pub generation: GenerationReceipt,
    /// The sinks of the profile.
    pub bindings: Vec<SinkBinding>,
    /// What was observed, by extension.
    pub observed: BTreeMap<Token, ExtensionReceipt>,
}

impl ReadinessRequest {
    /// Reads the request of `readiness`; unknown members are dropped.
    pub fn parse(value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(&Label::root(), value)?;
        let mut observed = BTreeMap::new();
        for (at, value) in fields.list_or_empty("extension_receipts")? {
            let receipt = ExtensionReceipt::parse(&at, value)?;
            if observed
                .insert(receipt.extension_id.clone(), receipt)
                .is_some()
            {
                let place = at.field("extension_id");
                return Err(ContractError::invalid(place, "names an extension twice"));
            }
        }
        let request = Self {
            generation: fields.with("generation_receipt", GenerationReceipt::parse)?,
            bindings: SinkBinding::parse_all(&mut fields, "sink_bindings")?,
            observed,
        };
        fields.finish(request)
    }
}

vocabulary!(
    /// How ready one sink is.
    SinkReadinessStatus {
        Disabled => "disabled",
        Missing => "missing",
        Incompatible => "incompatible",
        Unavailable => "unavailable",
        Unknown => "unknown",
        Unverified => "unverified",
        Ready => "ready",
    }
);

/// A sink binding with what was observed of its extension.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SinkReadiness {
    /// The binding.
    #[serde(flatten)]
    pub binding: SinkBinding,
    /// How ready it is.
    pub status: SinkReadinessStatus,
    /// Whether it is ready.
    pub ready: bool,
    /// Whether delivery waits for it.
    pub blocks_delivery: bool,
    /// What was observed.
    pub provider_receipt: Option<ExtensionReceipt>,
}

vocabulary!(
    /// How ready all sinks together are.
    ReadinessStatus {
        NotRequired => "not_required",
        Blocked => "blocked",
        Degraded => "degraded",
        Ready => "ready",
    }
);

/// The readiness packet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Readiness {
    /// Always true: not ready is an answer too.
    pub ok: Yes,
    /// The schema constant.
    pub schema_version: ReadinessSchema,
    /// Identity of this judgement.
    pub readiness_id: String,
    /// The generation to be delivered.
    pub generation_id: String,
    /// How much delivery depends on extensions.
    pub delivery_mode: DeliveryMode,
    /// How ready all sinks together are.
    pub status: ReadinessStatus,
    /// The report can be used whatever the extensions do.
    pub generation_usable: Yes,
    /// Whether a sink is required.
    pub formal_delivery_required: bool,
    /// Whether anything may be sent.
    pub delivery_allowed: bool,
    /// Whether an optional sink is not ready.
    pub degraded: bool,
    /// Every sink.
    pub sink_readiness: Vec<SinkReadiness>,
    /// Whether everything that is switched on was read back.
    pub readback_verified: bool,
    /// Nothing was written.
    pub external_writes_performed: No,
}

/// A readiness packet that came back from outside; nothing of it is believed.
#[derive(Debug, Clone, PartialEq)]
pub struct GivenReadiness<'a> {
    /// Where it stood.
    pub at: Label,
    /// The bindings inside it.
    pub bindings: Vec<SinkBinding>,
    /// The receipts inside it, by extension.
    pub observed: BTreeMap<Token, ExtensionReceipt>,
    members: &'a serde_json::Map<String, Value>,
}

impl<'a> GivenReadiness<'a> {
    /// Reads the bindings and receipts of a packet.
    pub fn read(at: &Label, value: &'a Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(at, value)?;
        fields.constant("schema_version", ReadinessSchema::TEXT)?;
        let mut observed = BTreeMap::new();
        for (at, value) in fields.list("sink_readiness")? {
            let mut fields = Fields::open(&at, value)?;
            let receipt = fields.optional("provider_receipt", ExtensionReceipt::parse)?;
            observed.extend(receipt.map(|receipt| (receipt.extension_id.clone(), receipt)));
        }
        let given = Self {
            at: at.clone(),
            bindings: SinkBinding::parse_all(&mut fields, "sink_readiness")?,
            observed,
            members: fields.as_map(),
        };
        fields.finish(given)
    }

    /// Tells whether the packet says exactly this.
    pub fn says(&self, name: &str, value: &Value) -> bool {
        self.members.get(name) == Some(value)
    }
}
