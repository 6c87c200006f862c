//! The single steps of a drive: live admission, one host, one validation.

use serde_json::{Map, Value, json};

use super::asked::Run;
use super::journal_file::{self, Loaded};
use crate::contract::error::ErrorCode;
use crate::contract::ids::{AgentId, TurnKey};
use crate::contract::packet::Refusal;
use crate::contract::settlement::{Binding, SettlementIdentity};
use crate::contract::todo::Status;
use crate::contract::turn::failure::{Cause, FailureKind};
use crate::contract::turn::result::{HostResult, MAX_BYTES, ResultKind};
use crate::failpoint::Point;
use crate::flow::open::{Answer, Place};
use crate::flow::ports::Ports;
use crate::flow::quota_admission::{ReceiptFacts, record_admission};
use crate::flow::snapshot;
use crate::kernel::quota::frontier::Frontier;
use crate::kernel::quota::row::Row;
use crate::kernel::quota::snapshot::Question;
use crate::kernel::refresh::Content;
use crate::kernel::replan::{self, Obligation};
use crate::kernel::todo::Continuation;
use crate::kernel::turn::admit as admission;
use crate::kernel::turn::envelope::{self, CaptureRef};
use crate::kernel::turn::journal::{Event, Journal};
use crate::port::host::{HostCall, HostOutcome};
use crate::store::rows::Rows;
use crate::store::state::Reader;
use crate::workspace::env;

/// Admits the Turn by today's state and anchors it; a refusal leaves the journal as it is.
pub fn admit(
    (ports, place): (&Ports, &mut Place),
    loaded: &Loaded,
    identity: &SettlementIdentity,
    question: &Question,
) -> Answer<()> {
    place.reload()?;
    let reader = place.reader()?;
    let snapshot = snapshot::take(place, reader.as_ref().map(Reader::rows), question)?;
    drop(reader);
    let refuse = |reason: &str| {
        let text = "today's state does not admit this Turn and the host was not started; settle the reason, then run again";
        Err(Refusal::new(ErrorCode::TurnAdmissionRefused, text)
            .with("reason", reason)
            .with("admission", json!({"ok": false, "reason": reason})))
    };
    if let Err(reason) = admission::check(&snapshot, question, identity) {
        return refuse(reason);
    }
    if let Binding::Replan(id) = &identity.binding {
        let frontier = Frontier::new(&snapshot, question);
        let current = Obligation::derive(
            &snapshot,
            &identity.agent,
            replan::has_runnable_advancement(&frontier),
        );
        if current.is_none_or(|current| &current.id != id) {
            return refuse(ErrorCode::ReplanObligationMismatch.as_str());
        }
    }
    let decision = loaded
        .journal
        .as_ref()
        .map(|journal| journal.plan())
        .and_then(|plan| plan.get("turn_envelope"));
    let of = |name: &str| {
        decision
            .and_then(|decision| decision.get(name))
            .and_then(Value::as_str)
    };
    let row = row_of(of("effective_action").unwrap_or(""));
    let spends = decision
        .and_then(|decision| decision.get("writeback"))
        .and_then(|writeback| writeback.get("spend_after_validation"));
    let facts = ReceiptFacts {
        action: row.columns().effective_action,
        should_run: true,
        mode: row.columns().mode,
        spends: spends == Some(&Value::Bool(true)),
        status: Some("turn_run_once"),
        capture_id: loaded.row.capture_id.clone(),
    };
    record_admission(ports, place, identity, &facts)?;
    crate::failpoint!(Point::AdmissionCommitted);
    Ok(())
}

fn row_of(action: &str) -> Row {
    const HOST_ROWS: [Row; 6] = [
        Row::NormalRun,
        Row::GateFallback,
        Row::MonitorDue,
        Row::CapabilityRepair,
        Row::AutonomousReplan,
        Row::SuccessorReplan,
    ];
    HOST_ROWS
        .into_iter()
        .find(|row| row.columns().effective_action == action)
        .unwrap_or(Row::NormalRun)
}

/// The JSON object a host printed, or what was seen instead.
fn answered(outcome: HostOutcome) -> Result<Vec<u8>, Cause> {
    match outcome {
        HostOutcome::TimedOut => Err(Cause::TimedOut),
        HostOutcome::NotStarted => Err(Cause::NotStarted),
        HostOutcome::Exited { status: None, .. } => Err(Cause::Signal),
        HostOutcome::Exited {
            status: Some(0),
            stdout,
            is_cut,
        } => {
            if is_cut || stdout.len() > MAX_BYTES {
                return Err(Cause::AnswerTooLong);
            }
            match crate::contract::json::parse_object(&stdout) {
                Ok(_) => Ok(stdout),
                Err(_) => Err(Cause::AnswerNotJson),
            }
        }
        HostOutcome::Exited {
            status: Some(status),
            ..
        } => Err(Cause::ExitStatus(status)),
    }
}

fn result_of(stdout: &[u8], key: &TurnKey, agent: &AgentId) -> Result<HostResult, Cause> {
    HostResult::parse(stdout, key, agent).map_err(|error| match error.code {
        ErrorCode::InputUnsafe => Cause::AnswerUnsafe,
        _ => Cause::AnswerRejected,
    })
}

/// Runs one host on the captured decision and reads its answer.
pub fn run_host(
    (ports, place): (&Ports, &Place),
    run: &Run,
    loaded: &Loaded,
    (identity, bound): (&SettlementIdentity, &CaptureRef),
) -> Answer<Event> {
    let journal = loaded
        .journal
        .as_ref()
        .ok_or_else(journal_file::inconsistent)?;
    let key = TurnKey::new(loaded.row.turn_key.clone()).ok_or_else(journal_file::inconsistent)?;
    let request = request(journal, &key, bound);
    let places = place.places();
    let call = HostCall {
        argv: run.host_argv.clone(),
        folder: run.project.clone(),
        stdin: serde_json::to_vec(&request).map_err(|_| journal_file::inconsistent())?,
        environment: vec![
            (env::TURN_KEY.to_owned(), key.to_string()),
            (env::GOAL_ID.to_owned(), identity.goal.to_string()),
            (env::AGENT_ID.to_owned(), identity.agent.to_string()),
            (env::REGISTRY.to_owned(), places.registry),
            (env::RUNTIME_ROOT.to_owned(), places.runtime_root),
        ],
        timeout_seconds: run.host_timeout.max(1),
        is_host: true,
    };
    let outcome = ports.host.run(&call);
    crate::failpoint!(Point::HostExited);
    let attempt = journal.attempts();
    let failed =
        |(kind, cause): (FailureKind, Cause), error_code: Option<&str>| Event::HostFailed {
            failure: kind.record_of(attempt, &cause),
            error_code: error_code.map(str::to_owned),
        };
    let stdout = match answered(outcome) {
        Ok(stdout) => stdout,
        Err(Cause::TimedOut) => {
            return Ok(failed(
                (FailureKind::ExecutorTimeout, Cause::TimedOut),
                None,
            ));
        }
        Err(cause) => return Ok(failed((FailureKind::Unknown, cause), None)),
    };
    let result = match result_of(&stdout, &key, &identity.agent) {
        Ok(result) => result,
        Err(cause) => return Ok(failed((FailureKind::ContractRejected, cause), None)),
    };
    if result.kind == ResultKind::ValidatedCompletion && intent_of(place, identity)?.is_none() {
        return Ok(failed(
            (FailureKind::ContractRejected, Cause::AnswerRejected),
            Some(ErrorCode::CompletionIntentMissing.as_str()),
        ));
    }
    Ok(Event::ResultAccepted(Value::Object(result.body().clone())))
}

/// What the host reads: the bound envelope with its complete source. Equal on every attempt but for the attempt.
fn request(journal: &Journal, key: &TurnKey, bound: &CaptureRef) -> Value {
    let plan = journal.plan();
    let envelope = plan
        .get("turn_envelope")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let mut request = json!({
        "schema_version": "loopx_turn_host_request_v0",
        "turn_key": key,
        "route": plan.get("route"),
        "session": plan.get("session"),
        "turn_envelope": null,
        "result_contract": {
            "schema_version": "loopx_turn_result_v0",
            "completed_phases": ["host_execute", "typed_result"],
            "stdout": "one public-safe JSON object",
        },
        "attempt": journal.attempts(),
    });
    request["turn_envelope"] = Value::Object(envelope::bind(&envelope, bound));
    request
}

/// The continuation the bound todo declares now.
fn intent_of(place: &Place, identity: &SettlementIdentity) -> Answer<Option<Continuation>> {
    let (Some(reader), Some(todo)) = (place.reader()?, identity.binding.todo()) else {
        return Ok(None);
    };
    let stored = reader.rows().todo(&identity.goal, todo)?;
    Ok(stored.and_then(|stored| Continuation::of_intent(&stored.todo)))
}

/// How the writeback completes the todo, and whether a terminal closeout follows the spend.
pub fn completion(
    rows: Rows<'_>,
    identity: &SettlementIdentity,
    result: &Map<String, Value>,
) -> Answer<Option<(Continuation, bool)>> {
    if result.get("result_kind").and_then(Value::as_str) != Some("validated_completion") {
        return Ok(None);
    }
    let missing = || {
        let text = "the todo declares no completion intent; `loopx todo update --completion-intent` declares one";
        Refusal::new(ErrorCode::CompletionIntentMissing, text)
    };
    let todo = identity.binding.todo().ok_or_else(missing)?;
    let stored = rows.todo(&identity.goal, todo)?.ok_or_else(missing)?;
    let declared = Continuation::of_intent(&stored.todo).ok_or_else(missing)?;
    Ok(Some(match declared {
        Continuation::NoFollowup => (Continuation::ActiveGoal, true),
        other => (other, false),
    }))
}

/// True when the bound todo is done.
pub fn is_done(rows: Rows<'_>, identity: &SettlementIdentity) -> Answer<bool> {
    let Some(todo) = identity.binding.todo() else {
        return Ok(false);
    };
    let stored = rows.todo(&identity.goal, todo)?;
    Ok(stored.is_some_and(|stored| stored.todo.status() == Status::Done))
}

/// The business content of a host result.
pub fn content(result: &Map<String, Value>, identity: &SettlementIdentity) -> Answer<Content> {
    let word = |name: &str| {
        result
            .get(name)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
            .map(str::to_owned)
    };
    let vision = match word("agent_vision_json") {
        Some(text) => Some(
            crate::contract::json::parse(text.as_bytes())
                .map_err(|_| journal_file::inconsistent())?,
        ),
        None => None,
    };
    let is_replan = matches!(identity.binding, Binding::Replan(_));
    Ok(Content {
        classification: word("classification").unwrap_or_default(),
        recommended_action: word("recommended_action"),
        next_action: word("next_action"),
        scale: word("delivery_batch_scale"),
        outcome: word("delivery_outcome"),
        boundary: None,
        progress_scope: None,
        agent_lane: None,
        replan_recorded: is_replan,
        delta_kinds: if is_replan {
            vec!["goal_vision_patch".to_owned()]
        } else {
            Vec::new()
        },
        vision,
        unchanged_reason: word("vision_unchanged_reason"),
    })
}

/// Validates an accepted result: by the validator when it is material, not at all when it is not.
pub fn validate(ports: &Ports, run: &Run, journal: &Journal) -> Answer<Vec<Event>> {
    let result = journal.get("host_result").cloned().unwrap_or(Value::Null);
    let kind = result
        .get("result_kind")
        .and_then(Value::as_str)
        .unwrap_or("");
    if matches!(kind, "wait" | "user_action_required") {
        let receipt = receipt("not_required", "none", None);
        return Ok(vec![Event::Validated(receipt), Event::Stopped]);
    }
    let Some(argv) = &run.validator_argv else {
        let mut receipt = receipt("unavailable", "none", None);
        receipt["recovery_kind"] = json!("repair_required");
        return Ok(vec![Event::ValidationFailed(receipt)]);
    };
    let call = HostCall {
        argv: argv.clone(),
        folder: run.project.clone(),
        stdin: serde_json::to_vec(&result).map_err(|_| journal_file::inconsistent())?,
        environment: Vec::new(),
        timeout_seconds: run.validation_timeout.max(1),
        is_host: false,
    };
    Ok(vec![match ports.host.run(&call) {
        HostOutcome::Exited {
            status: Some(0), ..
        } => Event::Validated(receipt("passed", "command", Some(0))),
        HostOutcome::Exited { status, .. } => {
            let mut receipt = receipt("failed", "command", status);
            receipt["recovery_kind"] = json!(run.recovery_kind);
            Event::ValidationFailed(receipt)
        }
        silent @ (HostOutcome::TimedOut | HostOutcome::NotStarted) => {
            let mut receipt = receipt("inconclusive", "command", None);
            receipt["recovery_kind"] = json!("repair_required");
            let (error, summary) = match silent {
                HostOutcome::NotStarted => (
                    "program_not_started",
                    "the validator could not be started; check the first word of --validation-command-json",
                ),
                _ => (
                    "timed_out",
                    "the validator did not end in time; give it more with --validation-timeout-seconds",
                ),
            };
            receipt["summary"] = json!(summary);
            receipt["errors"] = json!([error]);
            Event::ValidationFailed(receipt)
        }
    }])
}

fn receipt(status: &str, kind: &str, exit_code: Option<i32>) -> Value {
    let summary = match status {
        "passed" => "the validator passed the result",
        "failed" => "the validator did not pass the result",
        "inconclusive" => "the validator did not answer",
        "unavailable" => {
            "a material result needs a validator; give one with --validation-command-json"
        }
        _ => "this result needs no validation",
    };
    json!({
        "schema_version": "loopx_turn_task_validation_v0",
        "ok": matches!(status, "passed" | "not_required"),
        "status": status,
        "validator_kind": kind,
        "summary": summary,
        "recovery_kind": null,
        "exit_code": exit_code,
        "errors": [],
    })
}
