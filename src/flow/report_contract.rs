//! The pure report commands: one packet from one request, nothing else read, opened or spawned.
//!
//! They stand here and not behind `Ports` because they need none; tests and the fuzz target reach
//! every contract through [`ReportContract::answer`].

use serde::Serialize;
use serde_json::{Value, json};

use crate::contract::error::ContractError;
use crate::contract::parse::{Fields, Label};
use crate::contract::periodic_report::archive::ArchiveRequest;
use crate::contract::periodic_report::artifact::RendererAdapter;
use crate::contract::periodic_report::audience::AudiencePolicy;
use crate::contract::periodic_report::delivery::DeliveryRequest;
use crate::contract::periodic_report::document::{DocumentParts, GivenDocument, GivenFacts};
use crate::contract::periodic_report::generation::BundleRequest;
use crate::contract::periodic_report::identity::value_of;
use crate::contract::periodic_report::profile::Profile;
use crate::contract::periodic_report::projection::read_progress;
use crate::contract::periodic_report::readiness::ReadinessRequest;
use crate::contract::periodic_report::run::RunRequest;
use crate::contract::periodic_report::trigger::TriggerRequest;
use crate::contract::public_safety;
use crate::kernel::periodic_report as kernel;
use crate::render::report;

type Answer = Result<Value, ContractError>;

/// One pure command of the report family.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ReportContract {
    InspectProfile,
    EvaluateTrigger,
    ComposeRun,
    BuildSource,
    BuildDocument,
    Render,
    PlanAudience,
    Bundle,
    Readiness,
    DeliveryReceipt,
    ArchiveBundle,
}

impl ReportContract {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::InspectProfile,
        Self::EvaluateTrigger,
        Self::ComposeRun,
        Self::BuildSource,
        Self::BuildDocument,
        Self::Render,
        Self::PlanAudience,
        Self::Bundle,
        Self::Readiness,
        Self::DeliveryReceipt,
        Self::ArchiveBundle,
    ];

    /// Returns the subcommand.
    pub const fn name(self) -> &'static str {
        match self {
            Self::InspectProfile => "inspect-profile",
            Self::EvaluateTrigger => "evaluate-trigger",
            Self::ComposeRun => "compose-run",
            Self::BuildSource => "build-source",
            Self::BuildDocument => "build-document",
            Self::Render => "render",
            Self::PlanAudience => "plan-audience",
            Self::Bundle => "bundle",
            Self::Readiness => "readiness",
            Self::DeliveryReceipt => "delivery-receipt",
            Self::ArchiveBundle => "archive-bundle",
        }
    }

    /// Scans the whole request, then answers it with the packet to print.
    pub fn answer(self, request: &Value) -> Result<Value, ContractError> {
        public_safety::guard(request)?;
        match self {
            Self::InspectProfile => {
                let profile = Profile::parse(&Label::root(), request)?;
                value_of(&kernel::activation::inspect(profile)?)
            }
            Self::EvaluateTrigger => {
                value_of(&kernel::trigger::decide(&TriggerRequest::parse(request)?)?)
            }
            Self::ComposeRun => value_of(&kernel::run::compose(RunRequest::parse(request)?)),
            Self::BuildSource => build_source(request),
            Self::BuildDocument => build_document(request),
            Self::Render => render(request),
            Self::PlanAudience => plan_audience(request),
            Self::Bundle => value_of(&kernel::generation::bundle(&BundleRequest::parse(
                request,
            )?)?),
            Self::Readiness => value_of(&kernel::readiness::judge(ReadinessRequest::parse(
                request,
            )?)?),
            Self::DeliveryReceipt => {
                let receipt = kernel::delivery::settle(&DeliveryRequest::parse(request)?)?;
                wrapped("delivery_receipt", &receipt)
            }
            Self::ArchiveBundle => {
                let request = ArchiveRequest::parse(request)?;
                wrapped("archive_bundle", &kernel::archive::bundle(&request)?)
            }
        }
    }
}

/// A result without an `ok` of its own about the command; it then says that the command worked.
fn wrapped(name: &str, result: &impl Serialize) -> Answer {
    let result = value_of(result)?;
    Ok(json!({"ok": true, name: result}))
}

fn build_source(request: &Value) -> Answer {
    let mut fields = Fields::open(&Label::root(), request)?;
    let result = fields.with("project_progress", |at, value| {
        read_progress(at, value, None)
    })?;
    wrapped("source_result", &fields.finish(result)?)
}

fn build_document(request: &Value) -> Answer {
    let document = kernel::document::build(DocumentParts::parse(request)?)?;
    let packet = wrapped("document", &document)?;
    public_safety::guard(&packet)?;
    Ok(packet)
}

fn render(request: &Value) -> Answer {
    let mut fields = Fields::open(&Label::root(), request)?;
    let adapter = fields.choice("renderer_id", RendererAdapter::CHOICES)?;
    let document = fields.with("document", GivenDocument::read)?;
    let verified = kernel::editorial::verify(fields.finish(document)?)?;
    wrapped("artifact", &report::render(adapter, &verified)?)
}

fn plan_audience(request: &Value) -> Answer {
    let mut fields = Fields::open(&Label::root(), request)?;
    let document = fields.with("document", GivenFacts::read)?;
    let policy = fields.with("audience_policy", AudiencePolicy::parse)?;
    value_of(&kernel::audience::plan(&fields.finish(document)?, &policy)?)
}
