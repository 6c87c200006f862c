//! Trigger, document, artifacts and bundle, through the same core as the pure commands.

use serde_json::{Value, json};

use super::command::GenerateCommand;
use super::setting::Setting;
use super::sources::Readings;
use crate::contract::error::{ContractError, ErrorCode};
use crate::contract::ids::Token;
use crate::contract::packet::Refusal;
use crate::contract::parse::Label;
use crate::contract::periodic_report::artifact::{Artifact, RendererAdapter};
use crate::contract::periodic_report::document::{
    Document, DocumentParts, DocumentProfile, GivenDocument,
};
use crate::contract::periodic_report::editorial::EditorialProfile;
use crate::contract::periodic_report::facts::{Claim, Facts};
use crate::contract::periodic_report::generation::BundleRequest;
use crate::contract::periodic_report::identity::{digest_of, value_of};
use crate::contract::periodic_report::limits;
use crate::contract::periodic_report::trigger::{
    Candidate, ProfileRef, TriggerRequest, trigger_id,
};
use crate::contract::periodic_report::trigger_receipt::TriggerReceipt;
use crate::contract::periodic_report::vocabulary::TriggerKind;
use crate::contract::time::Window;
use crate::contract::{json as json_text, public_safety, text};
use crate::kernel::periodic_report::{document, editorial, generation, trigger, window as windows};
use crate::render::report;

/// Everything that is published.
pub(super) struct Composed {
    pub document: Document,
    pub artifacts: Vec<(RendererAdapter, Artifact)>,
    pub generation_id: String,
    pub bundle: String,
}

/// Composes the report of one window.
pub(super) fn compose(
    command: &GenerateCommand,
    setting: &Setting,
    heading: &Heading<'_>,
    readings: &Readings,
) -> Result<Composed, Refusal> {
    let receipt = justify(command, setting, heading.window, readings)?;
    let label = windows::label(&heading.window, &setting.zone);
    let label =
        label.ok_or_else(|| ContractError::invalid("the window", "lies outside the calendar"))?;
    let parts = DocumentParts {
        title: heading.title(command, &label)?,
        generated_at: setting.generated_at,
        period_window: heading.window,
        profile: document_profile(command)?,
        sources: readings
            .readings
            .iter()
            .map(|reading| reading.result.clone())
            .collect(),
        editorial: Some(EditorialProfile {
            language: Some(command.language.tag().to_owned()),
            period_label: Some(label),
            ..EditorialProfile::default()
        }),
        trigger_receipt: Some(receipt),
    };
    let document = document::build(parts)?;
    let value = value_of(&document)?;
    public_safety::guard(&value)?;
    let artifacts = render(&value, &setting.renderers)?;
    let request = request(value, &artifacts)?;
    let bundle = generation::bundle(&BundleRequest::parse(&request)?)?;
    let text = json_text::pretty(&bundle)
        .map_err(|_| Refusal::new(ErrorCode::InternalError, "the bundle could not be written"))?;
    Ok(Composed {
        generation_id: bundle.generation_receipt.generation_id.clone(),
        bundle: text,
        document,
        artifacts,
    })
}

fn render(
    value: &Value,
    renderers: &[RendererAdapter],
) -> Result<Vec<(RendererAdapter, Artifact)>, ContractError> {
    let given = GivenDocument::read(&Label::named("document"), value)?;
    let verified = editorial::verify(given)?;
    renderers
        .iter()
        .map(|adapter| Ok((*adapter, report::render(*adapter, &verified)?)))
        .collect()
}

fn request(
    document: Value,
    artifacts: &[(RendererAdapter, Artifact)],
) -> Result<Value, ContractError> {
    let artifacts = artifacts
        .iter()
        .map(|(_, artifact)| value_of(artifact))
        .collect::<Result<Vec<_>, _>>()?;
    Ok(json!({"document": document, "artifacts": artifacts}))
}

/// The request of a person is what justifies a local report; it is decided like any other trigger.
fn justify(
    command: &GenerateCommand,
    setting: &Setting,
    window: Window,
    readings: &Readings,
) -> Result<TriggerReceipt, Refusal> {
    let mut digests: Vec<&str> = readings
        .readings
        .iter()
        .map(|reading| reading.result.snapshot_digest.as_str())
        .collect();
    digests.sort_unstable();
    let evidence_digest = digest_of(&digests)?;
    let source_ref = format!("generate:{}/{}", window.start_at(), window.end_at());
    let profile = document_profile(command)?;
    let candidate = Candidate {
        trigger_id: trigger_id(TriggerKind::Manual, &source_ref, &evidence_digest)?,
        trigger_kind: TriggerKind::Manual,
        observed_at: setting.generated_at,
        source_ref,
        evidence_digest,
        facts: json!({"authorized": true}),
        typed_facts: Facts::Manual {
            authorized: Claim::of(true),
        },
    };
    let request = TriggerRequest {
        evaluated_at: setting.generated_at,
        profile: ProfileRef {
            profile_id: profile.profile_id,
            profile_version: profile.profile_version,
            profile_ref: None,
        },
        trigger_policy: command.profile.trigger_policy.clone(),
        last_report: None,
        candidates: vec![candidate],
    };
    let decision = trigger::decide(&request)?;
    TriggerReceipt::of(&decision).ok_or_else(|| {
        let message = "the profile does not allow a manual report";
        Refusal::new(ErrorCode::ReportGenerationNotAllowed, message)
    })
}

fn document_profile(command: &GenerateCommand) -> Result<DocumentProfile, ContractError> {
    let version = command.profile.profile_version.as_str();
    let profile_version = Token::new(version).ok_or_else(|| {
        let reason = "must start with a letter to stand in a report, such as v1";
        ContractError::invalid("profile_version", reason)
    })?;
    Ok(DocumentProfile {
        profile_id: command.profile.profile_id.clone(),
        profile_version,
    })
}

/// What the heading is made of.
pub(super) struct Heading<'a> {
    pub window: Window,
    pub goal_title: Option<&'a str>,
    pub folder_name: Option<&'a str>,
}

impl Heading<'_> {
    fn title(&self, command: &GenerateCommand, label: &str) -> Result<String, Refusal> {
        if let Some(title) = &command.title {
            return given_title(title);
        }
        let is_usable =
            |name: &&str| !text::trim(name).is_empty() && public_safety::is_public(name);
        let names = [self.goal_title, self.folder_name];
        let name = names
            .into_iter()
            .flatten()
            .find(is_usable)
            .unwrap_or("Project");
        let room = limits::DOCUMENT_TITLE - 2 - text::length(label);
        let name = text::cut(&text::collapse(name), room);
        Ok(format!("{name}, {label}"))
    }
}

fn given_title(title: &str) -> Result<String, Refusal> {
    let value = Value::from(title);
    public_safety::guard_at(&Label::named("--title"), &value)?;
    let title = crate::contract::parse::read_text(
        &Label::named("--title"),
        &value,
        limits::DOCUMENT_TITLE,
    )?;
    Ok(title)
}
