//! `refresh-state`: writes back what was done, settles the Turn if asked to, then runs what may follow a writeback.
//!
//! 1. identity  2. recovery decision  3. pause of outside sinks  4. one transaction  5. exact readback  6. hooks  7. sinks

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::hooks;
use super::mode::Mode;
use super::open::{self, Answer, Place};
use super::ports::Ports;
use super::quota;
use super::receipt_repair;
use super::settle::{self, Spent1};
use super::state_file;
use super::writeback::{self, Ask, Written};
use crate::contract::error::ErrorCode;
use crate::contract::event::EventDraft;
use crate::contract::ids::{AgentId, GoalId};
use crate::contract::packet::Refusal;
use crate::contract::settlement::{Binding, SettlementIdentity};
use crate::contract::time::Timestamp;
use crate::contract::todo::Status;
use crate::failpoint::Point;
use crate::kernel::quota::packet as quota_packet;
use crate::kernel::quota::snapshot::Question;
use crate::kernel::refresh::{self, Committed, Content, Link, Recovery, SinkDecision, SinkRequest};
use crate::store::journal::settlement::ExternalDelivery;
use crate::store::rows::Rows;
use crate::store::state::Writer;

/// The way a Turn is closed when its todo is blocked.
pub const BLOCKED_CLOSEOUT: &str = "typed_blocked_writeback_no_spend";

/// A vision as the command line brings it.
#[derive(Clone, Debug, PartialEq)]
pub enum VisionInput {
    /// The whole contract object.
    Whole(Value),
    /// A field-level patch over the agent's latest open vision.
    Patch {
        /// The new state.
        state: Option<String>,
        /// The patched members.
        members: Map<String, Value>,
    },
}

/// One refresh as it is asked for.
#[derive(Clone, Debug)]
pub struct Refresh {
    /// The goal.
    pub goal: GoalId,
    /// The acting agent.
    pub agent: Option<AgentId>,
    /// The Turn: its instance and its one binding.
    pub identity: Option<SettlementIdentity>,
    /// What is written, without the vision.
    pub content: Content,
    /// The vision.
    pub vision: Option<VisionInput>,
    /// Spends for the Turn in the same transaction.
    pub settle: bool,
    /// What is said about outside sinks.
    pub sinks: SinkRequest,
    /// The project.
    pub project: Option<PathBuf>,
    /// A projection of the state in the project.
    pub state_file: Option<PathBuf>,
}

/// Runs a refresh.
pub fn run(ports: &Ports, mode: Mode, asked: &Refresh) -> Answer {
    let mut place = open::goal(ports, &asked.goal)?;
    state_file::check(
        &place,
        asked.project.as_deref(),
        asked.state_file.as_deref(),
    )?;
    if let Some(agent) = &asked.agent {
        place.require_actor(agent, ErrorCode::ActorNotRegistered)?;
    }
    let question = quota::standing(ports, &place, asked.agent.as_ref());
    let prepared = prepare(&place, asked)?;
    if mode.is_preview() {
        return Ok(preview(asked, &prepared));
    }
    let mut writer = place.writer(ports)?;
    if matches!(
        prepared.recovery,
        Recovery::Replay | Recovery::RepairReceipt
    ) {
        return replay((ports, &mut place), writer, asked, (&prepared, &question));
    }
    record_pause((ports, &place), &mut writer, asked, &prepared.sinks)?;
    let done = match prepared.recovery {
        Recovery::SupplementCheckpoint => {
            supplement((ports, &place), &mut writer, asked, &question)?
        }
        _ => append((ports, &place), &mut writer, asked, &question)?,
    };
    writer.bring_up_exports(&asked.goal, ports.now);
    drop(writer);
    finish((ports, &place), asked, &prepared, done)
}

impl Refresh {
    /// True when this call pays for its Turn: a closeout of a blocked todo settles without a spend.
    fn pays(&self) -> bool {
        self.settle && self.content.outcome.as_deref() != Some("outcome_gap")
    }
}

/// What is known before anything is written.
struct Prepared {
    recovery: Recovery,
    sinks: SinkDecision,
}

fn prepare(place: &Place, asked: &Refresh) -> Answer<Prepared> {
    let untied = SinkDecision {
        authorized: asked.sinks != SinkRequest::Suppress,
        reason: if asked.sinks == SinkRequest::Suppress {
            "suppressed"
        } else {
            "legacy_per_call"
        },
        resume_key: None,
        append: None,
    };
    let Some(identity) = &asked.identity else {
        return Ok(Prepared {
            recovery: Recovery::Append,
            sinks: untied,
        });
    };
    let missing = || {
        Refusal::new(
            ErrorCode::ReceiptMissing,
            "there is no admission for this Turn; run `loopx quota should-run` first",
        )
    };
    let reader = place
        .reader()?
        .ok_or_else(missing)
        .map_err(|refusal| settle::failed(refusal, "admission"))?;
    let rows = reader.rows();
    settle::require_admission(rows, identity)
        .map_err(|refusal| settle::failed(refusal, "admission"))?;
    let chain: Vec<Link> = rows
        .external_delivery(&identity.effect_id())?
        .into_iter()
        .map(link)
        .collect();
    let sinks = refresh::sinks(&identity.effect_id(), &chain, &asked.sinks)?;
    let steps = settle::steps(rows, identity)
        .map_err(|refusal| settle::failed(refusal, "durable_writeback"))?;
    let recovery = recovery(rows, asked, identity, &steps)
        .map_err(|refusal| settle::failed(refusal, "durable_writeback"))?;
    if recovery == Recovery::Append {
        check_outcome(rows, asked, identity)?;
    }
    Ok(Prepared { recovery, sinks })
}

fn link(stored: ExternalDelivery) -> Link {
    Link {
        state: stored.state,
        resume_key: stored.resume_key,
        event_id: stored.event_id,
    }
}

fn recovery(
    rows: Rows<'_>,
    asked: &Refresh,
    identity: &SettlementIdentity,
    steps: &settle::Steps,
) -> Answer<Recovery> {
    let Some(writeback) = &steps.writeback else {
        return Ok(Recovery::Append);
    };
    let run = rows.run(&identity.goal, &writeback.run_generated_at)?;
    let checkpoint = run
        .as_ref()
        .and_then(|run| run.body.get("vision_checkpoint"))
        .and_then(|checkpoint| checkpoint.get("decision"));
    let latest = rows.vision(&identity.goal, &identity.agent)?;
    let instant = |text: &str| Timestamp::parse(text);
    let written = instant(&writeback.run_generated_at);
    let has_later_vision =
        latest.is_some_and(|vision| vision.generated_at().and_then(instant) > written);
    let committed = Committed {
        mutation_digest: &writeback.mutation_digest,
        vision_digest: writeback.vision_digest.as_deref(),
        checkpoint: checkpoint.and_then(Value::as_str).unwrap_or("not_required"),
        has_later_vision,
        lacks_receipt: steps.writeback_lacks_event,
    };
    refresh::recover(&content_of(rows, asked)?, Some(&committed))
}

/// The content with its vision; a patch is laid over the latest open vision, or over what this Turn already wrote.
fn content_of(rows: Rows<'_>, asked: &Refresh) -> Answer<Content> {
    let mut content = asked.content.clone();
    content.vision = match (&asked.vision, &asked.agent) {
        (None, _) | (_, None) => None,
        (Some(VisionInput::Whole(value)), _) => Some(value.clone()),
        (Some(VisionInput::Patch { state, members }), Some(agent)) => {
            let committed = match &asked.identity {
                Some(identity) => rows.writeback(&identity.effect_id())?,
                None => None,
            };
            let base = match &committed {
                Some(writeback) => {
                    rows.open_vision_before(&asked.goal, agent, &writeback.run_generated_at)?
                }
                None => rows.open_vision(&asked.goal, agent)?,
            };
            Some(crate::contract::vision::Vision::patched(
                base.as_ref(),
                state.as_deref(),
                members,
            ))
        }
    };
    Ok(content)
}

/// A Turn-bound refresh says what it achieved, or that its todo is blocked.
fn check_outcome(rows: Rows<'_>, asked: &Refresh, identity: &SettlementIdentity) -> Answer<()> {
    if asked.content.outcome.as_deref() != Some("outcome_gap") {
        return Ok(());
    }
    let todo = match identity.binding.todo() {
        Some(todo) => rows.todo(&identity.goal, todo)?,
        None => None,
    };
    let is_blocked = todo.is_some_and(|stored| {
        stored.todo.status() == Status::Blocked && stored.todo.text("reason").is_some()
    });
    if is_blocked {
        return Ok(());
    }
    let text = "a Turn with an outcome gap is closed only while its todo is blocked with a reason, and spends nothing";
    Err(settle::failed(
        Refusal::new(ErrorCode::WritebackRejected, text),
        "durable_writeback",
    ))
}

fn record_pause(
    (ports, place): (&Ports, &Place),
    writer: &mut Writer,
    asked: &Refresh,
    sinks: &SinkDecision,
) -> Answer<()> {
    let (Some(identity), Some((state, key))) = (&asked.identity, &sinks.append) else {
        return Ok(());
    };
    let effect = identity.effect_id();
    let mut tx = place.begin(ports, writer)?;
    let chain = tx.rows().external_delivery(&effect)?;
    let is_stored = chain
        .last()
        .is_some_and(|link| link.state == *state && link.resume_key == *key);
    if is_stored {
        return Ok(());
    }
    let draft = EventDraft::new("refresh_external_delivery", "outside delivery changed")
        .agent(Some(identity.agent.as_str()))
        .todo(identity.binding.todo().map(|todo| todo.as_str()))
        .run(Some(identity.instance.as_str()))
        .status(state)
        .detail("schema_version", "refresh_external_delivery_v0")
        .detail("settlement_effect_id", effect.as_str())
        .detail("replan_obligation_id", json!(identity.binding.obligation()))
        .detail("state", *state)
        .detail("resume_key", key.as_str());
    let event = tx.event(draft)?;
    let seq = chain.last().map_or(1, |link| link.seq + 1);
    let link = ExternalDelivery {
        seq,
        state: (*state).to_owned(),
        resume_key: key.clone(),
        event_id: event.event_id,
    };
    tx.put_external_delivery(&effect, &link)?;
    tx.commit()?;
    crate::failpoint!(Point::PauseCommitted);
    Ok(())
}

/// What one transaction left behind.
struct Done {
    body: Map<String, Value>,
    appended: bool,
    spent: Option<Spent1>,
    repaired: bool,
}

fn append(
    (ports, place): (&Ports, &Place),
    writer: &mut Writer,
    asked: &Refresh,
    question: &Question,
) -> Answer<Done> {
    let mut tx = place.begin(ports, writer)?;
    let content = content_of(tx.rows(), asked)?;
    // Another process may have written this Turn back since it was looked at.
    let written = match &asked.identity {
        Some(identity) if is_written_back(tx.rows(), asked, identity)? => None,
        _ => {
            check_spendable(tx.rows(), asked)?;
            let gap = asked.identity.is_some() && content.outcome.as_deref() == Some("outcome_gap");
            let ask = Ask {
                identity: asked.identity.as_ref(),
                agent: asked.agent.as_ref(),
                content: &content,
                completion: None,
                closeout_kind: gap.then_some(BLOCKED_CLOSEOUT),
                more: Map::new(),
            };
            Some(writeback::write_back(&mut tx, place, question, &ask)?)
        }
    };
    let spent = match &asked.identity {
        Some(identity) if asked.pays() => Some(settle::spend_by_agent(
            &mut tx,
            &place.goal,
            question,
            identity,
        )?),
        _ => None,
    };
    tx.commit()?;
    crate::failpoint!(Point::WritebackCommitted);
    if spent.is_some() {
        crate::failpoint!(Point::SpendCommitted);
    }
    let mut done = match (&written, &asked.identity) {
        (None, Some(identity)) => stored(writer.rows(), asked, identity)?,
        (written, _) => Done {
            body: written.as_ref().map(body).unwrap_or_default(),
            appended: true,
            spent: None,
            repaired: false,
        },
    };
    done.spent = spent;
    Ok(done)
}

/// True when this exact refresh is committed already.
fn is_written_back(rows: Rows<'_>, asked: &Refresh, identity: &SettlementIdentity) -> Answer<bool> {
    let failed = |refusal| settle::failed(refusal, "durable_writeback");
    let steps = settle::steps(rows, identity)?;
    let recovered = recovery(rows, asked, identity, &steps).map_err(failed)?;
    Ok(matches!(
        recovered,
        Recovery::Replay | Recovery::RepairReceipt
    ))
}

/// `--settle-turn` needs an admitted mode that spends; otherwise nothing is written at all.
fn check_spendable(rows: Rows<'_>, asked: &Refresh) -> Answer<()> {
    let Some(identity) = asked.identity.as_ref().filter(|_| asked.pays()) else {
        return Ok(());
    };
    if settle::require_admission(rows, identity)?.is_spendable {
        return Ok(());
    }
    let text = "the admitted mode does not spend and nothing was written; leave --settle-turn out";
    let refusal = Refusal::new(ErrorCode::SettleTurnNotSpendable, text);
    Err(settle::failed(refusal, "quota_spend"))
}

fn body(written: &Written) -> Map<String, Value> {
    written.run.body.as_object().cloned().unwrap_or_default()
}

/// Brings the vision decision a committed refresh lacked; it never spends.
fn supplement(
    (ports, place): (&Ports, &Place),
    writer: &mut Writer,
    asked: &Refresh,
    question: &Question,
) -> Answer<Done> {
    let Some(identity) = &asked.identity else {
        return append((ports, place), writer, asked, question);
    };
    let mut tx = place.begin(ports, writer)?;
    let content = content_of(tx.rows(), asked)?;
    if is_written_back(tx.rows(), asked, identity)? {
        drop(tx);
        return stored(writer.rows(), asked, identity);
    }
    let repaired = receipt_repair::writeback(&mut tx, (place, question), identity)?;
    let original = tx.rows().writeback(&identity.effect_id())?;
    let mut more = Map::new();
    more.insert(
        "recovery_decision".to_owned(),
        json!("supplement_checkpoint"),
    );
    more.insert(
        "original_generated_at".to_owned(),
        json!(original.map(|writeback| writeback.run_generated_at)),
    );
    let supplement = Content {
        classification: "vision_checkpoint_supplement".to_owned(),
        ..content.clone()
    };
    let ask = Ask {
        identity: None,
        agent: asked.agent.as_ref(),
        content: &supplement,
        completion: None,
        closeout_kind: None,
        more,
    };
    let written = writeback::write_back(&mut tx, place, question, &ask)?;
    if let Some(vision_digest) = content.vision_digest() {
        tx.supplement_writeback(
            &identity.effect_id(),
            &vision_digest,
            written.run.generated_at,
        )?;
    }
    tx.commit()?;
    crate::failpoint!(Point::WritebackCommitted);
    Ok(Done {
        body: body(&written),
        appended: true,
        spent: None,
        repaired,
    })
}

/// Answers an exact repeat from what is stored; only a spend that is asked for now can be added.
fn replay(
    (ports, place): (&Ports, &mut Place),
    mut writer: Writer,
    asked: &Refresh,
    (prepared, question): (&Prepared, &Question),
) -> Answer {
    record_pause((ports, place), &mut writer, asked, &prepared.sinks)?;
    let Some(identity) = &asked.identity else {
        return finish(
            (ports, place),
            asked,
            prepared,
            Done {
                body: Map::new(),
                appended: false,
                spent: None,
                repaired: false,
            },
        );
    };
    let mut done = stored(writer.rows(), asked, identity)?;
    let steps = settle::steps(writer.rows(), identity)?;
    let pays = asked.pays() && (steps.spend.is_none() || steps.spend_lacks_event);
    if pays || steps.writeback_lacks_event {
        let mut tx = place.begin(ports, &mut writer)?;
        done.repaired = receipt_repair::writeback(&mut tx, (&*place, question), identity)?;
        if pays {
            let spent = settle::spend_by_agent(&mut tx, &place.goal, question, identity)?;
            done.spent = Some(spent);
        }
        tx.commit()?;
        if pays {
            crate::failpoint!(Point::SpendCommitted);
        }
    }
    writer.bring_up_exports(&asked.goal, ports.now);
    drop(writer);
    finish((ports, place), asked, prepared, done)
}

/// What is stored for this call: the run of the writeback, or that of the supplement this call repeats.
fn stored(rows: Rows<'_>, asked: &Refresh, identity: &SettlementIdentity) -> Answer<Done> {
    let writeback = rows.writeback(&identity.effect_id())?;
    let decides = content_of(rows, asked)?.vision_digest().is_some();
    let supplement = writeback
        .as_ref()
        .and_then(|writeback| writeback.body.get("supplement_generated_at"))
        .and_then(Value::as_str)
        .filter(|_| decides);
    let at = supplement.or(writeback
        .as_ref()
        .map(|writeback| writeback.run_generated_at.as_str()));
    let run = match at {
        Some(at) => rows.run(&identity.goal, at)?,
        None => None,
    };
    let body = run
        .and_then(|run| run.body.as_object().cloned())
        .unwrap_or_default();
    Ok(Done {
        body,
        appended: false,
        spent: None,
        repaired: false,
    })
}

/// Reads back, runs the hooks and answers.
fn finish(
    (ports, place): (&Ports, &Place),
    asked: &Refresh,
    prepared: &Prepared,
    done: Done,
) -> Answer {
    let mut packet = packet(asked, &done);
    packet.insert(
        "external_delivery".to_owned(),
        prepared.sinks.to_value(None),
    );
    packet.insert(
        "external_sink_delivery_authorized".to_owned(),
        json!(prepared.sinks.authorized),
    );
    if let Some(identity) = &asked.identity {
        let reader = place.reader()?.ok_or_else(|| {
            Refusal::new(
                ErrorCode::StoreCorrupt,
                "the store vanished; run `loopx doctor`",
            )
        })?;
        let steps = settle::steps(reader.rows(), identity)
            .map_err(|refusal| settle::failed(refusal, "durable_writeback"))?;
        let progress = settle::progress(&steps, "heartbeat");
        packet.insert("settlement_identity".to_owned(), identity.to_value());
        packet.insert(
            "settlement_result".to_owned(),
            settle::settlement_result(reader.rows(), identity)?,
        );
        if progress.get("next_step").and_then(Value::as_str) == Some("quota_spend") {
            let question = quota::standing(ports, place, asked.agent.as_ref());
            packet.insert(
                "settlement_owed".to_owned(),
                quota_packet::settlement_owed(&question, identity),
            );
        }
        packet.insert("settlement_progress".to_owned(), progress);
        drop(reader);
        if identity.binding != Binding::Unbound
            && let Some(hooks) = hooks::dispatch(ports, place, identity)
        {
            packet.insert("post_writeback_hooks".to_owned(), hooks);
        }
    }
    crate::failpoint!(Point::SinkCalled);
    Ok(Value::Object(packet))
}

fn packet(asked: &Refresh, done: &Done) -> Map<String, Value> {
    let mut packet = Map::new();
    packet.insert("ok".to_owned(), json!(true));
    packet.extend(done.body.clone());
    packet.insert("schema_version".to_owned(), json!("loopx_refresh_state_v0"));
    packet.insert("dry_run".to_owned(), json!(false));
    packet.insert("appended".to_owned(), json!(done.appended));
    if !done.appended {
        packet.insert("idempotent_replay".to_owned(), json!(true));
    }
    if done.repaired {
        packet.insert("receipt_repaired".to_owned(), json!(true));
    }
    packet.insert("goal_id".to_owned(), json!(asked.goal));
    if let Some(spent) = &done.spent {
        packet.insert("spend_generated_at".to_owned(), json!(spent.generated_at));
    }
    packet
}

fn preview(asked: &Refresh, prepared: &Prepared) -> Value {
    let word = match prepared.recovery {
        Recovery::Append => "preview_only",
        Recovery::Replay => "already_applied",
        Recovery::RepairReceipt => "repair_receipt",
        Recovery::SupplementCheckpoint => "supplement_checkpoint",
    };
    let mut sinks = prepared.sinks.clone();
    sinks.append = None;
    let mut packet = json!({
        "ok": true, "schema_version": "loopx_refresh_state_v0", "dry_run": true, "appended": false, "write_outcome": word,
        "goal_id": asked.goal, "agent_id": asked.agent, "classification": asked.content.classification,
        "settlement_identity": asked.identity.as_ref().map(SettlementIdentity::to_value),
        "external_delivery": sinks.to_value(None), "external_sink_delivery_authorized": prepared.sinks.authorized,
    });
    if prepared.recovery == Recovery::RepairReceipt {
        packet["receipt_repair_required"] = json!(true);
    }
    packet
}
