//! `turn run-once`: one bounded host process on exactly the decision that was captured before it.
//!
//! 1. lane  2. the stored Turn, or a live plan  3. route  4. journal and recovery  5. capture  6. agreement
//! 7. live admission  8. the phases, one durable step each  (docs/spec/kernel.md 9.4)

use serde_json::{Value, json};

use super::asked::RunOnce;
use super::capture;
use super::drive;
use super::journal_file::{self, Loaded};
use super::packet::{self, Effects};
use super::plan::{self, LivePlan};
use crate::contract::error::ErrorCode;
use crate::contract::ids::{AgentId, TurnKey};
use crate::contract::packet::Refusal;
use crate::contract::settlement::Binding;
use crate::failpoint::Point;
use crate::flow::inbox::turn_start;
use crate::flow::mode::Mode;
use crate::flow::open::{Answer, Place};
use crate::flow::ports::Ports;
use crate::flow::{hooks, quota, settle};
use crate::kernel::turn::plan::Route;
use crate::kernel::turn::recover::{self, Recovery};
use crate::store::lock::{Held, Lane};
use crate::store::rows::Rows;

/// Previews or executes.
pub fn run(ports: &Ports, mode: Mode, asked: &RunOnce) -> Answer {
    if mode.is_preview() {
        return preview(ports, asked);
    }
    execute(ports, asked)
}

fn preview(ports: &Ports, asked: &RunOnce) -> Answer {
    if let Some(key) = &asked.resume {
        return preview_stored(ports, asked, key);
    }
    let made = plan::make(ports, &asked.ask)?;
    if made.plan.route == Route::CapabilityActionRequired {
        return capability(&made, Mode::Preview);
    }
    let route = made.plan.route;
    let selected = made
        .live
        .decision
        .verdict
        .selected
        .as_ref()
        .map(|todo| todo.id().clone());
    Ok(json!({
        "ok": route != Route::ContractError,
        "schema_version": "loopx_turn_execution_v0",
        "mode": "run_once",
        "dry_run": true,
        "replayed": false,
        "resume_turn_key": made.plan.turn_key,
        "status": "preview",
        "execution_mode": made.plan.host.execution_mode,
        "host": made.plan.host.kind,
        "route": {"kind": route.as_str(), "selected_todo_id": selected, "would_invoke_host": made.plan.turn_key.is_some()},
        "effects": Effects::default().to_value(),
        "quota_slot_spend_count": 0,
    }))
}

fn preview_stored(ports: &Ports, asked: &RunOnce, key: &TurnKey) -> Answer {
    let (place, agent) = judge(ports, asked)?;
    let reader = place.reader()?;
    let rows = reader
        .as_ref()
        .map(|reader| reader.rows())
        .ok_or_else(|| journal_file::not_found(key))?;
    let row = journal_file::find_row(rows, &place.goal.id, &agent, key)?
        .ok_or_else(|| journal_file::not_found(key))?;
    Ok(json!({
        "ok": true, "schema_version": "loopx_turn_execution_v0", "mode": "run_once", "dry_run": true, "replayed": false,
        "resume_turn_key": key, "status": "preview", "journal_status": row.status, "effects": Effects::default().to_value(),
        "quota_slot_spend_count": 0,
    }))
}

/// Judges goal and agent as every decision does, before anything stored is shown.
fn judge(ports: &Ports, asked: &RunOnce) -> Answer<(Place, AgentId)> {
    let mut question = asked.ask.question.clone();
    question.instance = None;
    question.todo = None;
    let live = quota::decide(ports, &question)?;
    let agent = live.question.agent.ok_or_else(|| {
        Refusal::new(
            ErrorCode::InvalidArguments,
            "name the agent with --agent-id",
        )
    })?;
    Ok((live.place, agent))
}

fn execute(ports: &Ports, asked: &RunOnce) -> Answer {
    let (mut place, agent) = judge(ports, asked)?;
    let refuse =
        |refusal: Refusal, key: Option<&TurnKey>| packet::refusal(refusal, key, Effects::default());
    let lane =
        journal_file::lock_lane(ports, &place, &agent).map_err(|refusal| refuse(refusal, None))?;
    let key = stored_key(&place, &agent, asked)
        .map_err(|refusal| refuse(refusal, asked.resume.as_ref()))?;
    if let Some(key) = key {
        return resume((ports, &mut place), &agent, &lane, (asked, &key));
    }
    let started = turn_start::dispatch(ports, &place, Some(&agent));
    let answer = first((ports, &mut place), (&agent, &lane), asked)?;
    Ok(with_turn_start(answer, started))
}

/// Says in a packet what ran before its decision.
fn with_turn_start(mut answer: Value, started: Option<Value>) -> Value {
    let Some(started) = started else {
        return answer;
    };
    if turn_start::has_written(&started) {
        answer["effects"]["state_written"] = json!(true);
        if answer.get("boundary").is_some() {
            answer["boundary"]["read_only"] = json!(false);
        }
    }
    answer[quota::TURN_START_HOOKS] = started;
    answer
}

/// Decides anew and starts what the decision asks for.
fn first(
    (ports, place): (&Ports, &mut Place),
    (agent, lane): (&AgentId, &Held<Lane>),
    asked: &RunOnce,
) -> Answer {
    let refuse =
        |refusal: Refusal, key: Option<&TurnKey>| packet::refusal(refusal, key, Effects::default());
    let made = plan::make(ports, &asked.ask)?;
    crate::failpoint!(Point::DecisionComposed);
    match made.plan.route {
        Route::CapabilityActionRequired => return capability(&made, Mode::Execute),
        route if !route.needs_host() => return Ok(not_for_host(&made)),
        _ => {}
    }
    let (Some(key), Some(identity)) = (made.plan.turn_key.clone(), made.plan.identity.clone())
    else {
        let text = "a host needs a todo or an obligation to work on; add a todo first";
        return Err(refuse(
            Refusal::new(ErrorCode::MissingTurnLineage, text),
            None,
        ));
    };
    // Neither the key nor a freshly derived effect may open a second journal for one effect.
    if let Some(reader) = place.reader()?
        && let Some(row) = reader.rows().turn_of_effect(&identity.effect_id())?
        && let Some(stored) = TurnKey::new(row.turn_key)
    {
        drop(reader);
        return resume((ports, place), agent, lane, (asked, &stored));
    }
    fresh((ports, place), lane, asked, (&made, &key)).map_err(|refusal| refuse(refusal, Some(&key)))
}

/// The Turn this call is about, when one is stored: by its key, or by its instance.
fn stored_key(place: &Place, agent: &AgentId, asked: &RunOnce) -> Answer<Option<TurnKey>> {
    let reader = place.reader()?;
    let rows = reader.as_ref().map(|reader| reader.rows());
    if let Some(key) = &asked.resume {
        let row = match rows {
            Some(rows) => journal_file::find_row(rows, &place.goal.id, agent, key)?,
            None => None,
        };
        let is_stored = row.is_some() || journal_file::path(place, key).exists();
        return if is_stored {
            Ok(Some(key.clone()))
        } else {
            Err(journal_file::not_found(key))
        };
    }
    let (Some(rows), Some(instance)) = (rows, &asked.ask.question.instance) else {
        return Ok(None);
    };
    let row = match rows.turn_of_instance(&place.goal.id, agent, instance)? {
        Some(row) => Some(row),
        None => turn_of_admission(rows, place, agent, asked)?,
    };
    let Some(row) = row else { return Ok(None) };
    if let Some(todo) = &asked.ask.question.todo {
        let bound = rows
            .admission(&place.goal.id, agent, instance)?
            .map(|admission| admission.binding);
        let effect_names = row.effect_id.contains(&format!(":{todo}:"));
        if bound
            .as_ref()
            .and_then(Binding::todo)
            .is_some_and(|bound| bound != todo)
            || !effect_names
        {
            let text = "this Turn instance is bound to another todo; leave --todo-id out, or use a fresh instance id";
            return Err(Refusal::new(
                ErrorCode::HeartbeatReceiptIdentityConflict,
                text,
            ));
        }
    }
    Ok(TurnKey::new(row.turn_key))
}

fn turn_of_admission(
    rows: Rows<'_>,
    place: &Place,
    agent: &AgentId,
    asked: &RunOnce,
) -> Answer<Option<crate::store::journal::turn::TurnRow>> {
    let Some(instance) = &asked.ask.question.instance else {
        return Ok(None);
    };
    let Some(admission) = rows.admission(&place.goal.id, agent, instance)? else {
        return Ok(None);
    };
    let identity = crate::contract::settlement::SettlementIdentity {
        goal: place.goal.id.clone(),
        agent: agent.clone(),
        binding: admission.binding,
        instance: instance.clone(),
    };
    Ok(rows.turn_of_effect(&identity.effect_id())?)
}

/// Starts a new Turn: capture, journal, then the phases.
fn fresh(
    (ports, place): (&Ports, &mut Place),
    lane: &Held<Lane>,
    asked: &RunOnce,
    (made, key): (&LivePlan, &TurnKey),
) -> Answer {
    let _journal = journal_file::lock_journal(ports, place, lane, key)?;
    let identity = made
        .plan
        .identity
        .clone()
        .ok_or_else(journal_file::inconsistent)?;
    if journal_file::path(place, key).exists() {
        return Err(journal_file::inconsistent());
    }
    let mut writer = place.writer(ports)?;
    settle::require_unwritten(writer.rows(), &identity)?;
    let loaded = capture::publish(
        (ports, place),
        &mut writer,
        &made.plan.stored(),
        (&identity, key),
    )?;
    drop(writer);
    let recovery = Recovery::Continue {
        from: "host_execute",
        reason: "new_turn",
        reinvokes_host: true,
        retries: false,
    };
    go_on((ports, place), asked, loaded, &recovery)
}

/// Replays, continues or refuses a stored Turn.
fn resume(
    (ports, place): (&Ports, &mut Place),
    agent: &AgentId,
    lane: &Held<Lane>,
    (asked, key): (&RunOnce, &TurnKey),
) -> Answer {
    let refuse = |refusal: Refusal| packet::refusal(refusal, Some(key), Effects::default());
    let _journal = journal_file::lock_journal(ports, place, lane, key).map_err(refuse)?;
    let loaded = load(place, agent, key).map_err(refuse)?;
    journal_file::adopt_historical(ports, place, &loaded).map_err(refuse)?;
    let loaded = match loaded.journal {
        Some(_) => loaded,
        None => reopen((ports, place), asked, loaded, key).map_err(refuse)?,
    };
    let journal = loaded
        .journal
        .as_ref()
        .ok_or_else(journal_file::inconsistent)?;
    if journal.text("host") != Some(asked.ask.host.kind.as_str()) {
        let text = "the Turn was started with another kind of host; use that kind";
        return Err(refuse(Refusal::new(ErrorCode::HostMismatch, text)));
    }
    let recovery = recover::assess(journal, asked.retry);
    match &recovery {
        Recovery::ReturnExisting(_) => replay((ports, place), &loaded, &recovery, asked.retry),
        Recovery::Blocked(code) => {
            let refusal = Refusal::new(
                *code,
                "this Turn cannot go on from where it stands; `loopx turn inspect-journal` shows why",
            );
            Err(refuse(
                refusal.with("recovery", recovery.to_value(asked.retry)),
            ))
        }
        Recovery::Continue { .. } => {
            go_on((ports, place), asked, loaded, &recovery).map_err(refuse)
        }
    }
}

fn load(place: &Place, agent: &AgentId, key: &TurnKey) -> Answer<Loaded> {
    let reader = place.reader()?;
    let loaded = match &reader {
        Some(reader) => journal_file::load(place, reader.rows(), key)?,
        None => None,
    };
    let loaded = loaded.ok_or_else(|| journal_file::not_found(key))?;
    journal_file::check_owner(&loaded.row, &place.goal.id, agent)?;
    Ok(loaded)
}

/// A kill between capture and journal left a row alone: its source is verified and the plan is made from it again.
fn reopen(
    (ports, place): (&Ports, &mut Place),
    asked: &RunOnce,
    loaded: Loaded,
    key: &TurnKey,
) -> Answer<Loaded> {
    let mut writer = place.writer(ports)?;
    let verified = capture::verify(place, writer.rows(), &loaded.row, None)?;
    let source = crate::kernel::turn::source::CompleteSource::stored(&verified.source)?;
    let instance = loaded
        .row
        .instance
        .clone()
        .and_then(crate::contract::ids::TurnInstanceId::new);
    let execution = verified.source.get("execution");
    let word = |name: &str| {
        execution
            .and_then(|execution| execution.get(name))
            .and_then(Value::as_str)
            .unwrap_or("")
            .to_owned()
    };
    let host = crate::kernel::turn::plan::HostChoice {
        kind: word("host_surface"),
        execution_mode: word("execution_mode"),
        scheduler_owner: word("scheduler_owner"),
        context: asked.ask.host.context.clone(),
    };
    let plan = crate::kernel::turn::plan::plan(&source, &host, instance.as_ref())?;
    if plan.turn_key.as_ref() != Some(key) {
        return Err(Refusal::new(
            ErrorCode::TurnKeyMismatch,
            "the captured decision gives another Turn; run `loopx doctor`",
        ));
    }
    capture::open_journal(
        (ports, place),
        &mut writer,
        plan.stored(),
        (key, loaded.row),
    )
}

/// Verifies what a host needs, then drives the phases.
fn go_on(
    (ports, place): (&Ports, &mut Place),
    asked: &RunOnce,
    mut loaded: Loaded,
    recovery: &Recovery,
) -> Answer {
    let Recovery::Continue {
        reinvokes_host,
        retries,
        ..
    } = recovery
    else {
        return Err(journal_file::inconsistent());
    };
    let mut bound = None;
    if *reinvokes_host {
        let reader = place.reader()?.ok_or_else(journal_file::inconsistent)?;
        let journal = loaded
            .journal
            .as_ref()
            .ok_or_else(journal_file::inconsistent)?;
        let identity =
            journal_file::identity_of(journal.plan()).ok_or_else(journal_file::inconsistent)?;
        settle::require_unwritten(reader.rows(), &identity)?;
        let verified = capture::verify(place, reader.rows(), &loaded.row, Some(journal))?;
        crate::kernel::turn::dispatch::admit_for_dispatch(journal.plan())?;
        bound = Some(verified.reference(place));
    }
    let effects = drive::phases(
        (ports, place),
        &asked.run,
        &mut loaded,
        drive::Start {
            retries: *retries,
            bound,
        },
    )?;
    let reader = place.reader()?.ok_or_else(journal_file::inconsistent)?;
    let mut answer = packet::execution(reader.rows(), &loaded, effects, (recovery, asked.retry))?;
    drop(reader);
    add_hooks(ports, place, &loaded, &mut answer);
    Ok(answer)
}

fn replay(
    (ports, place): (&Ports, &Place),
    loaded: &Loaded,
    recovery: &Recovery,
    retry: bool,
) -> Answer {
    let reader = place.reader()?.ok_or_else(journal_file::inconsistent)?;
    let mut answer =
        packet::execution(reader.rows(), loaded, Effects::default(), (recovery, retry))?;
    drop(reader);
    add_hooks(ports, place, loaded, &mut answer);
    if let Ok(writer) = place.store.write() {
        writer.bring_up_exports(&place.goal.id, ports.now);
    }
    Ok(answer)
}

/// A written-back Turn dispatches its hooks, again on every replay, from the committed source.
fn add_hooks(ports: &Ports, place: &Place, loaded: &Loaded, answer: &mut Value) {
    let Some(journal) = &loaded.journal else {
        return;
    };
    if !journal.has("durable_writeback") {
        return;
    }
    if let Some(identity) = journal_file::identity_of(journal.plan())
        && let Some(dispatched) = hooks::dispatch(ports, place, &identity)
    {
        answer["post_writeback_hooks"] = dispatched;
    }
}

fn capability(made: &LivePlan, mode: Mode) -> Answer {
    let mut packet = plan::with_capability(made.plan.inspection(), made)?;
    packet["mode"] = json!("run_once");
    packet["status"] = json!("capability_action_required");
    packet["execute"] = json!(mode.is_execute());
    packet["executed"] = json!(false);
    packet["dry_run"] = json!(mode.is_preview());
    packet["quota_slot_spend_count"] = json!(0);
    Ok(packet)
}

fn not_for_host(made: &LivePlan) -> Value {
    let route = made.plan.route;
    let mut packet = json!({
        "ok": route != Route::ContractError,
        "schema_version": "loopx_turn_execution_v0",
        "mode": "run_once",
        "dry_run": false,
        "replayed": false,
        "status": route.as_str(),
        "execution_mode": made.plan.host.execution_mode,
        "host": made.plan.host.kind,
        "route": {"kind": route.as_str(), "selected_todo_id": null, "would_invoke_host": false},
        "reason": made.live.decision.verdict.row.reason(),
        "effects": Effects::default().to_value(),
        "quota_slot_spend_count": 0,
    });
    for name in [
        "gate_prompt",
        "operator_question",
        "settlement_owed",
        "unsettled_host_turn_recovery",
    ] {
        if let Some(value) = made
            .live
            .decision
            .packet
            .get(name)
            .filter(|value| !value.is_null())
        {
            packet[name] = value.clone();
        }
    }
    if route == Route::ContractError {
        packet["error"] = json!("the pending intent of this decision breaks its contract");
        packet["error_code"] = json!(ErrorCode::TurnSourceUnsupportedSemantics);
    }
    packet
}
