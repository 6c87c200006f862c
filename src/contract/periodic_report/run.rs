//! `periodic_report_run_request_v0` and the run `periodic_report_v0` it composes.

mod component;

use serde::Serialize;
use serde_json::Value;

pub use component::{ArtifactReceipt, SinkReceipt, SourceSnapshot};

use super::identity::{id_of, require_derived};
use super::trigger::ProfileRef;
use super::trigger_receipt::TriggerReceipt;
use super::vocabulary::{ReportKind, SinkRole, Yes, boundary, schema_version, vocabulary};
use crate::contract::error::ContractError;
use crate::contract::ids::Token;
use crate::contract::parse::{Fields, Label, read_timestamp};
use crate::contract::time::{Timestamp, Window};

const REQUEST_SCHEMA: &str = "periodic_report_run_request_v0";

schema_version!(
    /// The schema of a run.
    RunSchema,
    "periodic_report_v0"
);

/// Reads `{start_at, end_at}`; the start must be strictly before the end.
pub fn read_window(at: &Label, value: &Value) -> Result<Window, ContractError> {
    let mut fields = Fields::open(at, value)?;
    let start_at = fields.with("start_at", read_timestamp)?;
    let end_at = fields.with("end_at", read_timestamp)?;
    let window = Window::new(start_at, end_at)
        .ok_or_else(|| ContractError::invalid(at, "must start strictly before it ends"))?;
    fields.finish(window)
}

/// Which attempt a run is, and how many there may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RetryPolicy {
    /// This attempt.
    pub attempt: i64,
    /// The last one.
    pub max_attempts: i64,
}

impl RetryPolicy {
    fn parse(fields: &mut Fields<'_>) -> Result<Self, ContractError> {
        let empty = Value::Object(serde_json::Map::new());
        let value = fields.given("retry_policy").unwrap_or(&empty);
        let at = fields.at("retry_policy");
        let mut policy = Fields::open(&at, value)?;
        let attempt = policy.integer_or("attempt", 1..=100, 1)?;
        let max_attempts = policy.integer_or("max_attempts", 1..=100, 3)?;
        if attempt > max_attempts {
            return Err(ContractError::invalid(
                at.field("attempt"),
                "must not exceed max_attempts",
            ));
        }
        policy.finish(Self {
            attempt,
            max_attempts,
        })
    }
}

/// A request to compose one run.
#[derive(Debug, Clone, PartialEq)]
pub struct RunRequest {
    /// When the run was generated.
    pub generated_at: Timestamp,
    /// The half-open period it covers.
    pub period_window: Window,
    /// For which profile.
    pub profile: ProfileRef,
    /// What justified it.
    pub trigger_receipt: Option<TriggerReceipt>,
    /// What each source gave, by id.
    pub source_snapshots: Vec<SourceSnapshot>,
    /// The rendered artifact.
    pub artifact_receipt: ArtifactReceipt,
    /// What each sink did, by role and id.
    pub sink_receipts: Vec<SinkReceipt>,
    /// Which attempt this is.
    pub retry_policy: RetryPolicy,
    /// Identity of the run.
    pub run_id: String,
    /// Its idempotency key.
    pub idempotency_key: String,
}

impl RunRequest {
    /// Reads a request; unknown members are dropped, supplied identities must be the derived ones.
    pub fn parse(value: &Value) -> Result<Self, ContractError> {
        let mut fields = Fields::open(&Label::root(), value)?;
        fields.constant("schema_version", REQUEST_SCHEMA)?;
        let retry_policy = RetryPolicy::parse(&mut fields)?;
        let mut request = Self {
            generated_at: fields.timestamp("generated_at")?,
            period_window: fields.with("period_window", read_window)?,
            profile: fields.with("profile", ProfileRef::parse)?,
            trigger_receipt: fields.optional("trigger_receipt", TriggerReceipt::parse)?,
            source_snapshots: SourceSnapshot::parse_all(&mut fields)?,
            artifact_receipt: fields.with("artifact_receipt", |at, value| {
                ArtifactReceipt::parse(at, value, retry_policy.attempt)
            })?,
            sink_receipts: SinkReceipt::parse_all(&mut fields, retry_policy.attempt)?,
            retry_policy,
            run_id: String::new(),
            idempotency_key: String::new(),
        };
        request.check_trigger()?;
        request.derive_identities()?;
        let run_id = fields.optional_text("run_id", 128)?;
        require_derived(fields.at("run_id"), run_id.as_deref(), &request.run_id)?;
        let key = fields.optional_text("idempotency_key", 128)?;
        let at = fields.at("idempotency_key");
        require_derived(at, key.as_deref(), &request.idempotency_key)?;
        fields.finish(request)
    }

    fn check_trigger(&self) -> Result<(), ContractError> {
        let Some(receipt) = &self.trigger_receipt else {
            return Ok(());
        };
        if receipt.profile != self.profile {
            return Err(ContractError::mismatch(
                "trigger_receipt.profile",
                "differs from the profile of the run",
            ));
        }
        let is_digest = receipt.report_kind == ReportKind::CadenceDigest;
        if is_digest && self.period_window.end_at() > self.generated_at {
            return Err(ContractError::invalid(
                "period_window.end_at",
                "must not be later than generated_at for a cadence digest; wait until the period is over",
            ));
        }
        Ok(())
    }

    fn derive_identities(&mut self) -> Result<(), ContractError> {
        let identity = RunIdentity::of(self);
        let run_id = id_of("periodic_report", &identity)?;
        self.idempotency_key = id_of("run", &identity)?;
        self.run_id = run_id;
        for sink in &mut self.sink_receipts {
            sink.derive_key(&self.run_id)?;
        }
        Ok(())
    }
}

/// What makes two runs the same run: no status, digest, count, attempt or instant of generation.
#[derive(Serialize)]
struct RunIdentity<'a> {
    period_window: Window,
    profile: &'a ProfileRef,
    sources: Vec<SourceIdentity<'a>>,
    renderer: RendererIdentity<'a>,
    sinks: Vec<SinkIdentity<'a>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trigger: Option<TriggerIdentity<'a>>,
}

#[derive(Serialize)]
struct SourceIdentity<'a> {
    source_id: &'a Token,
    source_kind: &'a Token,
}

#[derive(Serialize)]
struct RendererIdentity<'a> {
    renderer_id: &'a Token,
    renderer_kind: &'a Token,
}

#[derive(Serialize)]
struct SinkIdentity<'a> {
    sink_id: &'a Token,
    sink_kind: &'a Token,
    sink_role: SinkRole,
}

#[derive(Serialize)]
struct TriggerIdentity<'a> {
    report_key: &'a str,
    report_kind: ReportKind,
}

impl<'a> RunIdentity<'a> {
    fn of(request: &'a RunRequest) -> Self {
        let sources = request
            .source_snapshots
            .iter()
            .map(|source| SourceIdentity {
                source_id: &source.source_id,
                source_kind: &source.source_kind,
            });
        let sinks = request.sink_receipts.iter().map(|sink| SinkIdentity {
            sink_id: &sink.sink_id,
            sink_kind: &sink.sink_kind,
            sink_role: sink.sink_role,
        });
        let trigger = request
            .trigger_receipt
            .as_ref()
            .map(|receipt| TriggerIdentity {
                report_key: &receipt.report_key,
                report_kind: receipt.report_kind,
            });
        Self {
            period_window: request.period_window,
            profile: &request.profile,
            sources: sources.collect(),
            renderer: RendererIdentity {
                renderer_id: &request.artifact_receipt.renderer_id,
                renderer_kind: &request.artifact_receipt.renderer_kind,
            },
            sinks: sinks.collect(),
            trigger,
        }
    }
}

vocabulary!(
    /// Where a run stands.
    RunStatus {
        Pending => "pending",
        Succeeded => "succeeded",
        Partial => "partial",
        Failed => "failed",
        Unknown => "unknown",
    }
);

/// The derived state of a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct RunState {
    /// Where it stands.
    pub status: RunStatus,
    /// Whether it is over.
    pub terminal: bool,
    /// Whether part of it was usable.
    pub partial: bool,
    /// Whether something could not be determined.
    pub unknown: bool,
}

impl From<RunStatus> for RunState {
    fn from(status: RunStatus) -> Self {
        Self {
            status,
            terminal: status != RunStatus::Pending,
            partial: status == RunStatus::Partial,
            unknown: status == RunStatus::Unknown,
        }
    }
}

vocabulary!(
    /// Why a run may or may not be tried again.
    RetryReason {
        RunSucceeded => "run_succeeded",
        RunNotTerminal => "run_not_terminal",
        AttemptLimitReached => "attempt_limit_reached",
        NoRetryableComponent => "no_retryable_component",
        RetryableComponentFailure => "retryable_component_failure",
    }
);

/// Whether and what to try again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Retry {
    /// Whether another attempt is allowed.
    pub allowed: bool,
    /// Why.
    pub reason: RetryReason,
    /// This attempt.
    pub attempt: i64,
    /// The last one.
    pub max_attempts: i64,
    /// The next attempt, when allowed.
    pub next_attempt: Option<i64>,
    /// What did not settle and may be tried again.
    pub retryable_components: Vec<String>,
}

boundary!(
    /// What composing a run does not do.
    RunBoundary {
        provider_neutral: true,
        schedule_policy_owned_by_profile: true,
        source_collection_executes_outside_core: true,
        rendering_executes_outside_core: true,
        sink_delivery_executes_outside_core: true,
        external_writes_performed: false,
        raw_content_persisted: false,
    }
);

/// The run packet.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Run {
    /// Always true: a failed run is an answer too.
    pub ok: Yes,
    /// The schema constant.
    pub schema_version: RunSchema,
    /// Identity of the run.
    pub run_id: String,
    /// Its idempotency key.
    pub idempotency_key: String,
    /// When it was generated.
    pub generated_at: Timestamp,
    /// The period it covers.
    pub period_window: Window,
    /// For which profile.
    pub profile: ProfileRef,
    /// What each source gave.
    pub source_snapshots: Vec<SourceSnapshot>,
    /// The rendered artifact.
    pub artifact_receipt: ArtifactReceipt,
    /// What each sink did.
    pub sink_receipts: Vec<SinkReceipt>,
    /// Where the run stands.
    pub run_state: RunState,
    /// Whether and what to try again.
    pub retry: Retry,
    /// What this composition did not do.
    pub boundary: RunBoundary,
    /// What justified the run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub trigger_receipt: Option<TriggerReceipt>,
}
