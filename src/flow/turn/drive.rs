//! Drives a Turn through its phases: one step is performed, recorded durably, and only then the next one starts.
//!
//! A host and a validator may run for hours, so every step reads the clock anew: leases, the window of the cap, pauses and what
//! is stamped are those of its own moment.

use serde_json::{Value, json};

use super::asked::Run;
use super::closing;
use super::journal_file::{self, Loaded, Stored};
use super::packet::Effects;
use super::steps;
use crate::contract::error::ErrorCode;
use crate::contract::packet::Refusal;
use crate::contract::settlement::SettlementIdentity;
use crate::failpoint::Point;
use crate::flow::open::{Answer, Place};
use crate::flow::ports::Ports;
use crate::flow::receipt_repair;
use crate::flow::settle::{self, SpendAsk};
use crate::flow::writeback::{self, Ask};
use crate::kernel::quota::snapshot::Question;
use crate::kernel::refresh::Content;
use crate::kernel::turn::envelope::CaptureRef;
use crate::kernel::turn::journal::{Event, Status};
use crate::store::journal::settlement::Writeback;
use crate::store::state::{GoalTx, Writer};

/// How a drive starts.
pub struct Start {
    /// A failed Turn is tried again.
    pub retries: bool,
    /// The capture the host's envelope is bound to, when a host runs.
    pub bound: Option<CaptureRef>,
}

/// Drives until the Turn ends, fails or waits for its scheduler.
pub fn phases(
    (ports, place): (&Ports, &mut Place),
    run: &Run,
    loaded: &mut Loaded,
    start: Start,
) -> Answer<Effects> {
    let mut effects = Effects::default();
    match drive((ports, place), (run, loaded), start, &mut effects) {
        Ok(()) => Ok(effects),
        Err(refusal) => Err(refusal.with("effects", effects.to_value())),
    }
}

fn drive(
    (ports, place): (&Ports, &mut Place),
    (run, loaded): (&Run, &mut Loaded),
    start: Start,
    effects: &mut Effects,
) -> Answer<()> {
    let mut writer = place.writer(ports)?;
    let was_waiting = loaded.journal()?.status() == Some(Status::SchedulerActionRequired);
    let identity = journal_file::identity_of(loaded.journal()?.plan())
        .ok_or_else(journal_file::inconsistent)?;
    if let Some(bound) = &start.bound {
        let ports = &ports.later();
        let question = question(ports, place, &identity);
        steps::admit((ports, place), loaded, &identity, &question)?;
        if start.retries {
            record((ports, place), &mut writer, loaded, Event::Retried)?;
        }
        record((ports, place), &mut writer, loaded, Event::HostStarting)?;
        effects.host_invoked = true;
        let outcome = steps::run_host((ports, place), run, loaded, (&identity, bound))?;
        effects.host_invoked = !outcome.is_never_started();
        record((ports, place), &mut writer, loaded, outcome)?;
        crate::failpoint!(Point::TypedResultStored);
    } else if start.retries {
        record((ports, place), &mut writer, loaded, Event::Retried)?;
    }
    let turn = Settling {
        ports,
        place,
        identity: &identity,
        was_waiting,
    };
    while turn.next(&mut writer, loaded, (run, effects))? {}
    writer.bring_up_exports(&place.goal.id, ports.later().now);
    Ok(())
}

/// Records one event of the journal alone.
fn record(
    (ports, place): (&Ports, &Place),
    writer: &mut Writer,
    loaded: &mut Loaded,
    event: Event,
) -> Answer<()> {
    let desk = (&ports.later(), place);
    journal_file::step(desk, writer, loaded, (|_| Ok(vec![event]), None))?.file()
}

/// A Turn whose typed result is stored.
struct Settling<'a> {
    ports: &'a Ports,
    place: &'a Place,
    identity: &'a SettlementIdentity,
    was_waiting: bool,
}

impl Settling<'_> {
    /// Performs and records the next step; `false` when there is none for this call.
    fn next(
        &self,
        writer: &mut Writer,
        loaded: &mut Loaded,
        (run, effects): (&Run, &mut Effects),
    ) -> Answer<bool> {
        let ports = &self.ports.later();
        let desk = (ports, self.place);
        let question = question(ports, self.place, self.identity);
        let named = (self.identity, &question);
        let now = loaded.journal()?;
        match (now.status(), now.phases()) {
            (Some(Status::InProgress), Some(2)) => {
                let events = steps::validate(ports, run, now)?;
                let desk = (&ports.later(), self.place);
                journal_file::step(desk, writer, loaded, (|_| Ok(events), None))?.file()?;
                crate::failpoint!(Point::ValidationStored);
            }
            (Some(Status::InProgress), Some(3)) => {
                let done = write_back(desk, writer, loaded, named);
                let done = settled_or_failed(desk, writer, loaded, (done, "writeback_failed"))?;
                effects.state_written |= done.is_new;
                done.stored.file()?;
            }
            (Some(Status::InProgress), Some(4)) => {
                let done = spend(desk, writer, loaded, named);
                let done = settled_or_failed(desk, writer, loaded, (done, "quota_spend_failed"))?;
                effects.quota_spent |= done.is_new;
                done.stored.file()?;
            }
            (Some(Status::SchedulerActionRequired), Some(5)) => {
                closing::close_out(desk, writer, loaded, self.identity)?;
                let owner = closing::scheduler_owner(loaded.journal()?);
                if owner == "host_automation" && !self.was_waiting {
                    return Ok(false);
                }
                let receipt = closing::scheduler_receipt(&owner);
                record(desk, writer, loaded, Event::Acknowledged(receipt))?;
                effects.scheduler_acknowledged = true;
            }
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// A settlement step that is committed.
struct Done {
    /// True when this call did it, false when it was there already, is not owed, or failed.
    is_new: bool,
    /// Its file.
    stored: Stored,
}

/// The question today's state is asked about this Turn.
pub fn question(ports: &Ports, place: &Place, identity: &SettlementIdentity) -> Question {
    Question {
        agent: Some(identity.agent.clone()),
        todo: identity.binding.todo().cloned(),
        obligation: identity.binding.obligation().cloned(),
        instance: Some(identity.instance.clone()),
        capabilities: crate::kernel::quota::snapshot::STANDARD_CAPABILITIES
            .map(str::to_owned)
            .to_vec(),
        now: ports.now,
        places: place.places(),
    }
}

fn write_back(
    (ports, place): (&Ports, &Place),
    writer: &mut Writer,
    loaded: &mut Loaded,
    (identity, question): (&SettlementIdentity, &Question),
) -> Answer<Done> {
    let result = loaded
        .journal()?
        .get("host_result")
        .and_then(Value::as_object)
        .cloned()
        .unwrap_or_default();
    let content = steps::content(&result, identity)?;
    let mut is_new = false;
    let make = |tx: &mut GoalTx<'_>| -> Answer<Vec<Event>> {
        let effect = identity.effect_id();
        place.goal_of(&identity.agent)?;
        if let Some(stored) = settle::steps(tx.rows(), identity)?.writeback {
            let closes_later = require_same(tx, identity, &stored, (&content, &result))?;
            receipt_repair::writeback(tx, (place, question), identity)?;
            let mut record =
                json!({"effect_id": effect, "run_generated_at": stored.run_generated_at});
            if closes_later {
                record["terminal_closeout_owed"] = json!(true);
            }
            return Ok(vec![Event::WrittenBack(record)]);
        }
        let record = write_back_in(tx, (place, question), identity, (&content, &result))?;
        is_new = true;
        Ok(vec![Event::WrittenBack(record)])
    };
    let between = Some(Point::WritebackCommitted);
    let stored = journal_file::step((ports, place), writer, loaded, (make, between))?;
    Ok(Done { is_new, stored })
}

/// The host may have written its Turn back itself: exactly its result counts, and nothing is written twice. Anything else
/// was not stored and is never called committed. Says whether a terminal closeout follows.
fn require_same(
    tx: &GoalTx<'_>,
    identity: &SettlementIdentity,
    stored: &Writeback,
    (content, result): (&Content, &serde_json::Map<String, Value>),
) -> Answer<bool> {
    let completion = steps::completion(tx.rows(), identity, result)?;
    let is_open = completion.is_some() && !steps::is_done(tx.rows(), identity)?;
    let is_same = stored.mutation_digest == content.mutation_digest()
        && stored.vision_digest == content.vision_digest();
    if is_same && !is_open {
        return Ok(completion.is_some_and(|(_, later)| later));
    }
    let text = "this Turn is written back with other content than its host answered, and nothing was added; look at the stored run, then use a fresh instance id";
    Err(Refusal::new(
        ErrorCode::CommittedWritebackPayloadConflict,
        text,
    ))
}

fn write_back_in(
    tx: &mut GoalTx<'_>,
    (place, question): (&Place, &Question),
    identity: &SettlementIdentity,
    (content, result): (&Content, &serde_json::Map<String, Value>),
) -> Answer<Value> {
    let completion = steps::completion(tx.rows(), identity, result)?;
    let closeout = settle::free_closeout(tx.rows(), identity)?;
    let mut more = serde_json::Map::new();
    more.insert(
        "effect_ref".to_owned(),
        json!(identity.effect_ref("durable_writeback")),
    );
    if let Some(summary) = result.get("summary") {
        more.insert("summary".to_owned(), summary.clone());
    }
    let ask = Ask {
        identity: Some(identity),
        agent: Some(&identity.agent),
        content,
        completion: completion.as_ref().map(|(now, _)| now.clone()),
        closeout_kind: closeout,
        more,
    };
    let written = writeback::write_back(tx, place, question, &ask)?;
    tx.put_step(&identity.effect_id(), "validation", None)?;
    let mut record = json!({
        "effect_id": identity.effect_id(),
        "effect_ref": identity.effect_ref("durable_writeback"),
        "run_generated_at": written.run.generated_at,
        "spend_owed": closeout.is_none(),
    });
    if let Some((_, later)) = completion {
        record["terminal_closeout_owed"] = json!(later);
        record["todo_completion"] =
            json!({"todo_id": identity.binding.todo(), "completed": written.completed.is_some()});
    }
    Ok(record)
}

/// Spends the Turn's slot, if one is owed.
fn spend(
    (ports, place): (&Ports, &Place),
    writer: &mut Writer,
    loaded: &mut Loaded,
    (identity, question): (&SettlementIdentity, &Question),
) -> Answer<Done> {
    let effect_ref = identity.effect_ref("quota_spend");
    let mut is_new = false;
    let make = |tx: &mut GoalTx<'_>| -> Answer<Vec<Event>> {
        // Cap, pause and roster are those of this moment, as the window of the question is.
        let goal = place.goal_of(&identity.agent)?;
        receipt_repair::writeback(tx, (place, question), identity)?;
        let steps = settle::steps(tx.rows(), identity)?;
        if steps
            .writeback
            .as_ref()
            .is_some_and(|writeback| writeback.closeout_kind.is_some())
        {
            return Ok(vec![Event::Spent(
                json!({"status": "not_owed", "slots": 0}),
            )]);
        }
        let asked = SpendAsk {
            identity,
            source: "adapter",
            effect_ref: Some(effect_ref.clone()),
        };
        let spent = settle::spend_in(tx, &goal, question, &asked)?;
        is_new = !spent.is_replay;
        let record = json!({"status": "spent", "slots": 1, "effect_ref": effect_ref, "run_generated_at": spent.generated_at});
        Ok(vec![Event::Spent(record)])
    };
    let between = Some(Point::SpendCommitted);
    let stored = journal_file::step((ports, place), writer, loaded, (make, between))?;
    crate::failpoint!(Point::SpendCheckpointed);
    Ok(Done { is_new, stored })
}

/// A refused settlement step fails the Turn and is recorded. A broken store and rows that contradict each other stop
/// everything: nothing is done on top of them, and the Turn stays where it was.
fn settled_or_failed(
    (ports, place): (&Ports, &Place),
    writer: &mut Writer,
    loaded: &mut Loaded,
    (done, result_kind): (Answer<Done>, &'static str),
) -> Answer<Done> {
    let refusal = match done {
        Ok(done) => return Ok(done),
        Err(refusal) => refusal,
    };
    if leaves_the_turn(&refusal) {
        return Err(refusal);
    }
    let reason = refusal.code.to_string();
    let event = Event::SettlementFailed {
        result_kind,
        reason,
    };
    let stored = journal_file::step((ports, place), writer, loaded, (|_| Ok(vec![event]), None))?;
    Ok(Done {
        is_new: false,
        stored,
    })
}

/// What keeps a Turn where it stands instead of failing it.
fn leaves_the_turn(refusal: &Refusal) -> bool {
    use ErrorCode as Code;
    matches!(
        refusal.code,
        Code::StoreBusy
            | Code::StoreCorrupt
            | Code::StoreWriteFailed
            | Code::SchemaUnsupported
            | Code::LockAcquireTimeout
            | Code::JournalInconsistent
            | Code::TurnJournalConflict
            | Code::RegistryInvalid
            | Code::GoalNotFound
            | Code::InternalError
            | Code::EffectOutcomeUnknown
            | Code::MalformedSettlementState
            | Code::WritebackMissing
            | Code::ReceiptMissing
    )
}
