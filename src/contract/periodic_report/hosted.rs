//! What a hosting sink must read back before a page counts as published.
//!
//! Every claim is recomputed from the values beside it: a release counts only when it is the
//! requested one and finished, and the bytes of a hosted page can never be proven.

use serde::Serialize;
use serde_json::Value;

use super::vocabulary::SinkStatus;
use crate::contract::error::ContractError;
use crate::contract::ids::Token;
use crate::contract::parse::{Fields, Label};

/// The sink kind these objects belong to.
const HOSTED_KIND: &str = "miaoda_html";

/// The three readbacks of a hosted page.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct HostedReadback {
    #[serde(skip_serializing_if = "Option::is_none")]
    release_readback: Option<ReleaseReadback>,
    #[serde(skip_serializing_if = "Option::is_none")]
    access_scope_readback: Option<AccessScopeReadback>,
    #[serde(skip_serializing_if = "Option::is_none")]
    content_readback: Option<ContentReadback>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct ReleaseReadback {
    release_id: String,
    status: String,
    verified: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct AccessScopeReadback {
    status: &'static str,
    retryable: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    scope: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    require_login: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<Token>,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
struct ContentReadback {
    status: &'static str,
    digest_verified: bool,
    reason: Token,
}

impl HostedReadback {
    /// Reads the readbacks of a hosting sink; other kinds have none.
    pub fn parse(
        fields: &mut Fields<'_>,
        sink_kind: &str,
        status: SinkStatus,
    ) -> Result<Self, ContractError> {
        if sink_kind != HOSTED_KIND {
            return Ok(Self::default());
        }
        let requested = match fields.some("release_id") {
            None => None,
            Some(_) => Some(fields.text("release_id", 500)?),
        };
        let readback = Self {
            release_readback: fields.optional("release_readback", |at, value| {
                ReleaseReadback::parse(at, value, requested.as_deref())
            })?,
            access_scope_readback: fields
                .optional("access_scope_readback", AccessScopeReadback::parse)?,
            content_readback: fields.optional("content_readback", ContentReadback::parse)?,
        };
        if status == SinkStatus::Sent {
            readback.require_all(fields)?;
        }
        Ok(readback)
    }

    fn require_all(&self, fields: &Fields<'_>) -> Result<(), ContractError> {
        let given = [
            ("release_readback", self.release_readback.is_some()),
            (
                "access_scope_readback",
                self.access_scope_readback.is_some(),
            ),
            ("content_readback", self.content_readback.is_some()),
        ];
        if let Some((name, _)) = given.into_iter().find(|(_, is_given)| !is_given) {
            let reason = "is required for a hosted page that is sent";
            return Err(ContractError::invalid(fields.at(name), reason));
        }
        let is_released = self
            .release_readback
            .as_ref()
            .is_some_and(|release| release.verified);
        match is_released {
            true => Ok(()),
            false => Err(ContractError::invalid(
                fields.at("release_readback"),
                "must be the finished release that was requested; wait for it before calling it sent",
            )),
        }
    }
}

impl ReleaseReadback {
    fn parse(at: &Label, value: &Value, requested: Option<&str>) -> Result<Self, ContractError> {
        let mut fields = Fields::closed(at, value)?;
        let readback = Self {
            release_id: fields.text("release_id", 500)?,
            status: fields.text("status", 80)?,
            verified: fields.boolean("verified")?,
        };
        let is_requested = requested == Some(readback.release_id.as_str());
        let is_finished = readback.status == "finished";
        if readback.verified != (is_requested && is_finished) {
            return Err(ContractError::mismatch(
                at.field("verified"),
                "differs from what the release id and status say",
            ));
        }
        fields.finish(readback)
    }
}

impl AccessScopeReadback {
    fn parse(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::closed(at, value)?;
        const STATUSES: [(&str, &str); 3] = [
            ("verified", "verified"),
            ("unsupported_by_app_type", "unsupported_by_app_type"),
            ("unavailable", "unavailable"),
        ];
        let status = fields.choice("status", &STATUSES)?;
        let is_verified = status == "verified";
        let retryable = fields.boolean("retryable")?;
        if retryable != (status == "unavailable") {
            return Err(ContractError::invalid(
                at.field("retryable"),
                "must be true exactly for an unavailable scope",
            ));
        }
        let readback = match is_verified {
            true => Self {
                status,
                retryable,
                scope: Some(fields.text("scope", 500)?),
                require_login: Some(fields.boolean("require_login")?),
                reason: None,
            },
            false => Self {
                status,
                retryable,
                scope: None,
                require_login: None,
                reason: Some(fields.token("reason")?),
            },
        };
        fields.finish(readback)
    }
}

impl ContentReadback {
    fn parse(at: &Label, value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::closed(at, value)?;
        fields.constant("status", "unavailable")?;
        if fields.boolean("digest_verified")? {
            return Err(ContractError::invalid(
                at.field("digest_verified"),
                "must be false: the bytes of a hosted page cannot be proven",
            ));
        }
        let readback = Self {
            status: "unavailable",
            digest_verified: false,
            reason: fields.token("reason")?,
        };
        fields.finish(readback)
    }
}
