//! `turn run-once`: one bounded host process on exactly the decision that was captured before it.
//!
//! 1. lane  2. the stored Turn, or a live plan  3. route  4. journal and recovery  5. capture  6. agreement
//! 7. live admission  8. the phases, one durable step each  (docs/spec/kernel.md 9.4)

use serde_json::{Value, json};

use super::asked::RunOnce;
use super::capture;
use super::drive;
use super::journal_file::{self, Loaded};
use super::lookup::{judge, load, reopen, stored_key};
use super::packet::{self, Effects};
use super::plan::{self, LivePlan};
use super::preview::{capability, not_for_host, preview};
use super::{historical, journal_lock};
use crate::contract::error::ErrorCode;
use crate::contract::ids::{AgentId, TurnKey};
use crate::contract::packet::Refusal;
use crate::failpoint::Point;
use crate::flow::inbox::turn_start;
use crate::flow::mode::Mode;
use crate::flow::open::{Answer, Place};
use crate::flow::ports::Ports;
use crate::flow::{hooks, quota, settle};
use crate::kernel::turn::plan::Route;
use crate::kernel::turn::recover::{self, OnFailed, Recovery};
use crate::store::lock::{Held, Lane};

/// Previews or executes.
pub fn run(ports: &Ports, mode: Mode, asked: &RunOnce) -> Answer {
    if mode.is_preview() {
        return preview(ports, asked);
    }
    execute(ports, asked)
}

fn execute(ports: &Ports, asked: &RunOnce) -> Answer {
    let (mut place, agent) = judge(ports, asked)?;
    let refuse =
        |refusal: Refusal, key: Option<&TurnKey>| packet::refusal(refusal, key, Effects::default());
    let lane =
        journal_lock::lock_lane(ports, &place, &agent).map_err(|refusal| refuse(refusal, None))?;
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
        if row.goal_id != place.goal.id.as_str() || row.agent_id != agent.as_str() {
            return Err(refuse(settle::foreign_effect(), None));
        }
        drop(reader);
        return resume((ports, place), agent, lane, (asked, &stored));
    }
    fresh((ports, place), lane, asked, (&made, &key)).map_err(|refusal| refuse(refusal, Some(&key)))
}

/// Starts a new Turn: capture, journal, then the phases.
fn fresh(
    (ports, place): (&Ports, &mut Place),
    lane: &Held<Lane>,
    asked: &RunOnce,
    (made, key): (&LivePlan, &TurnKey),
) -> Answer {
    let _journal = journal_lock::lock_journal(ports, place, lane, key)?;
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
    let _journal = journal_lock::lock_journal(ports, place, lane, key).map_err(refuse)?;
    let loaded = load(place, agent, key).map_err(refuse)?;
    historical::adopt_historical(ports, place, &loaded).map_err(refuse)?;
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
    let recovery = recover::assess(journal, asked.on_failed);
    match &recovery {
        Recovery::ReturnExisting(_) => replay((ports, place), &loaded, &recovery, asked.on_failed),
        Recovery::Blocked(code) => {
            let text = match code {
                ErrorCode::HostRetryBudgetExhausted => {
                    "the host failed as often as it may and nothing is owed for this Turn; start a new one with a fresh --turn-instance-id"
                }
                _ => {
                    "this Turn cannot go on from where it stands; `loopx turn inspect-journal` shows why"
                }
            };
            let refusal = Refusal::new(*code, text);
            Err(refuse(
                refusal.with("recovery", recovery.to_value(asked.on_failed)),
            ))
        }
        Recovery::Continue { .. } => {
            go_on((ports, place), asked, loaded, &recovery).map_err(refuse)
        }
    }
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
    let mut answer =
        packet::execution(reader.rows(), &loaded, effects, (recovery, asked.on_failed))?;
    drop(reader);
    // Hooks run by the goal as it is now, not as it was before its host.
    place.reload()?;
    add_hooks(place, &loaded, &mut answer);
    Ok(answer)
}

fn replay(
    (ports, place): (&Ports, &Place),
    loaded: &Loaded,
    recovery: &Recovery,
    on_failed: OnFailed,
) -> Answer {
    let reader = place.reader()?.ok_or_else(journal_file::inconsistent)?;
    let mut answer = packet::execution(
        reader.rows(),
        loaded,
        Effects::default(),
        (recovery, on_failed),
    )?;
    drop(reader);
    add_hooks(place, loaded, &mut answer);
    if let Ok(writer) = place.store.write() {
        writer.bring_up_exports(&place.goal.id, ports.now);
    }
    Ok(answer)
}

/// A written-back Turn dispatches its hooks, again on every replay, from the committed source.
fn add_hooks(place: &Place, loaded: &Loaded, answer: &mut Value) {
    let Some(journal) = &loaded.journal else {
        return;
    };
    if !journal.has("durable_writeback") {
        return;
    }
    if let Some(identity) = journal_file::identity_of(journal.plan())
        && let Some(dispatched) = hooks::dispatch(place, &identity)
    {
        answer["post_writeback_hooks"] = dispatched;
    }
}
