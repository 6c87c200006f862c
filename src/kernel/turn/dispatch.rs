//! The agreement check before anything is dispatched (docs/spec/kernel.md 7.4): envelope, plan and source have to say the same.
//!
//! Everything is recomputed from the source; no stored digest is trusted. Whether the authority still holds today is another
//! check, made at admission.

use serde_json::{Map, Value};

use super::controls;
use super::envelope::{self, Frame};
use super::plan::{self, HostChoice};
use super::project;
use super::source::CompleteSource;
use crate::contract::digest;
use crate::contract::error::ErrorCode;
use crate::contract::ids::TurnInstanceId;
use crate::contract::packet::Refusal;
use crate::contract::settlement::SettlementIdentity;

/// Members that are measured or replaced after projection.
const NOT_COMPARED: [&str; 2] = ["detail_ref", "compaction"];

/// Checks a stored plan; returns the identity it settles under.
pub fn admit_for_dispatch(plan: &Value) -> Result<SettlementIdentity, Refusal> {
    let envelope = plan
        .get("turn_envelope")
        .and_then(Value::as_object)
        .ok_or_else(|| refuse(ErrorCode::TurnSourceMissing))?;
    let source = complete_source(envelope)?;
    check_source(envelope, &source)?;
    check_action(envelope, &source)?;
    let (frame, key) = frame_of(plan, &source)?;
    let decision = source.decision();
    let blocks = [
        (
            "identity",
            envelope::identity(decision, &frame),
            ErrorCode::TurnIdentityMismatch,
        ),
        (
            "authority",
            envelope::authority(decision),
            ErrorCode::TurnAuthorityMismatch,
        ),
        (
            "settlement",
            envelope::settlement(decision, &frame),
            ErrorCode::TurnSettlementMismatch,
        ),
    ];
    for (name, expected, code) in blocks {
        let stored = bound(envelope, &format!("{name}_digest"));
        let computed = digest::digest(&expected)
            .map(|digest| digest.to_string())
            .ok();
        if envelope
            .get(name)
            .is_none_or(|found| !equal(found, &expected))
            || computed.as_deref() != stored
        {
            return Err(refuse(code));
        }
    }
    check_plan(plan, envelope, &frame, &key)
}

fn complete_source(envelope: &Map<String, Value>) -> Result<CompleteSource, Refusal> {
    if envelope.get("schema_version").and_then(Value::as_str) != Some("loopx_turn_envelope_v1") {
        return Err(refuse(ErrorCode::TurnEnvelopeUnsupportedVersion));
    }
    let is_executable = envelope
        .get("execution")
        .and_then(|execution| execution.get("kind"))
        .and_then(Value::as_str)
        == Some("executable");
    match envelope.get("source") {
        Some(source) if is_executable && source.is_object() => {
            controls::check_required(envelope.get("required_controls"), &envelope::CONTROLS)?;
            CompleteSource::stored(source)
        }
        _ => Err(refuse(ErrorCode::TurnSourceMissing)),
    }
}

fn check_source(envelope: &Map<String, Value>, source: &CompleteSource) -> Result<(), Refusal> {
    let of = |value: &Value| digest::digest(value).map(|digest| digest.to_string()).ok();
    let decision = of(&Value::Object(source.decision().clone()));
    let signed = envelope
        .get("action_signature")
        .and_then(|signature| signature.get("source_decision_hash"))
        .and_then(Value::as_str);
    let is_equal = of(source.value()).as_deref() == bound(envelope, "source_digest")
        && decision.as_deref() == bound(envelope, "source_decision_hash")
        && decision.as_deref() == signed;
    if is_equal {
        Ok(())
    } else {
        Err(refuse(ErrorCode::TurnSourceDigestMismatch))
    }
}

fn check_action(envelope: &Map<String, Value>, source: &CompleteSource) -> Result<(), Refusal> {
    let mismatch = || refuse(ErrorCode::TurnActionMismatch);
    let expected = project::project(source.decision());
    for (name, value) in &expected {
        if !NOT_COMPARED.contains(&name.as_str())
            && envelope.get(name).is_none_or(|found| !equal(found, value))
        {
            return Err(mismatch());
        }
    }
    let recomputed = project::signature_hash(&expected)
        .map_err(|_| mismatch())?
        .to_string();
    let signature = envelope.get("action_signature").ok_or_else(mismatch)?;
    let word = |name: &str| signature.get(name).and_then(Value::as_str).unwrap_or("");
    let is_equal = word("source_hash") == recomputed
        && word("envelope_hash") == recomputed
        && bound(envelope, "action_source_hash") == Some(recomputed.as_str())
        && signature.get("matches") == Some(&Value::Bool(true));
    if is_equal { Ok(()) } else { Err(mismatch()) }
}

/// The frame the plan says it has, with the Turn key recomputed from the source.
fn frame_of(plan: &Value, source: &CompleteSource) -> Result<(Frame, String), Refusal> {
    let text = |object: &str, name: &str| {
        plan.get(object)
            .and_then(|object| object.get(name))
            .and_then(Value::as_str)
    };
    let host = HostChoice {
        kind: text("host", "kind").unwrap_or("").to_owned(),
        execution_mode: text("host", "execution_mode").unwrap_or("").to_owned(),
        scheduler_owner: text("host", "scheduler_owner").unwrap_or("").to_owned(),
        context: String::new(),
    };
    let instance = text("transaction", "turn_instance_id").and_then(TurnInstanceId::new);
    let decision = source.decision();
    let projected = project::project(decision);
    let key = plan::turn_key(decision, &projected, &host, instance.as_ref())?;
    let identity = plan
        .get("transaction")
        .and_then(|transaction| transaction.get("settlement_plan"))
        .and_then(|plan| plan.get("identity"));
    let identity = identity
        .and_then(SettlementIdentity::parse)
        .ok_or_else(|| refuse(ErrorCode::TurnIdentityMismatch))?;
    let binding = plan::binding_of(decision);
    let expected_instance = instance
        .as_ref()
        .map_or(key.as_str(), |instance| instance.as_str());
    let is_own = identity.binding == binding
        && identity.instance.as_str() == expected_instance
        && decision.get("goal_id").and_then(Value::as_str) == Some(identity.goal.as_str())
        && decision.get("agent_id").and_then(Value::as_str) == Some(identity.agent.as_str());
    if !is_own {
        return Err(refuse(ErrorCode::TurnIdentityMismatch));
    }
    let frame = Frame {
        host: host.kind,
        execution_mode: host.execution_mode,
        instance: instance.map(|instance| instance.to_string()),
        binding,
        identity: Some(identity),
        turn_key: Some(key.to_string()),
        settlement_argv: None,
    };
    Ok((frame, key.to_string()))
}

fn check_plan(
    plan: &Value,
    envelope: &Map<String, Value>,
    frame: &Frame,
    key: &str,
) -> Result<SettlementIdentity, Refusal> {
    let planned = plan
        .get("transaction")
        .and_then(|transaction| transaction.get("turn_key"))
        .and_then(Value::as_str);
    if planned != Some(key) || bound(envelope, "turn_key") != Some(key) {
        return Err(refuse(ErrorCode::TurnKeyMismatch));
    }
    let identity = frame
        .identity
        .clone()
        .ok_or_else(|| refuse(ErrorCode::TurnIdentityMismatch))?;
    let route = plan
        .get("route")
        .and_then(|route| route.get("kind"))
        .and_then(Value::as_str);
    let expected = plan::stored_route(plan).map(super::plan::Route::as_str);
    let session = plan
        .get("session")
        .and_then(|session| session.get("action"))
        .and_then(Value::as_str);
    if route.is_none() || route != expected || session != Some("start_new") {
        return Err(refuse(ErrorCode::TurnActionMismatch));
    }
    Ok(identity)
}

fn bound<'a>(envelope: &'a Map<String, Value>, name: &str) -> Option<&'a str> {
    envelope.get("source_binding")?.get(name)?.as_str()
}

/// Equality of two values is equality of their canonical bytes.
pub fn equal(left: &Value, right: &Value) -> bool {
    match (digest::digest(left), digest::digest(right)) {
        (Ok(left), Ok(right)) => left == right,
        _ => false,
    }
}

fn refuse(code: ErrorCode) -> Refusal {
    let text = match code {
        ErrorCode::TurnEnvelopeUnsupportedVersion => {
            "the envelope is of a version this program does not run; use that version"
        }
        ErrorCode::TurnSourceMissing => {
            "the envelope is an inspection without its source; run `loopx turn run-once`"
        }
        ErrorCode::TurnSourceDigestMismatch => {
            "the source is not the one that was digested; restore the stored plan"
        }
        ErrorCode::TurnIdentityMismatch => {
            "the identity differs from what the source gives; restore the stored plan"
        }
        ErrorCode::TurnAuthorityMismatch => {
            "the authority differs from what the source gives; restore the stored plan"
        }
        ErrorCode::TurnSettlementMismatch => {
            "the settlement differs from what the source gives; restore the stored plan"
        }
        ErrorCode::TurnKeyMismatch => {
            "the Turn key does not follow from the plan; restore the stored plan"
        }
        _ => "the action differs from what the source gives; restore the stored plan",
    };
    Refusal::new(code, text)
}
