//! `quota should-run`: the executing wake. It decides, and with a Turn instance records the admission that anchors it.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::open::{self, Answer, Place};
use super::ports::Ports;
use super::quota_admission::{ReceiptFacts, record_admission};
use super::snapshot;
use crate::contract::digest;
use crate::contract::error::ErrorCode;
use crate::contract::ids::{AgentId, GoalId, ReplanObligationId, TodoId, TurnInstanceId};
use crate::contract::packet::Refusal;
use crate::contract::settlement::{Binding, SettlementIdentity};
use crate::flow::inbox::turn_start;
use crate::kernel::quota::packet::{self, Decision};
use crate::kernel::quota::row::Row;
use crate::kernel::quota::snapshot::{Question, STANDARD_CAPABILITIES, Snapshot};
use crate::kernel::turn::envelope::{self, Frame};
use crate::kernel::turn::plan;
use crate::kernel::turn::source::{self, CompleteSource, Settler, Surface};
use crate::store::document::capture::{self, Target};
use crate::store::document::registry::RegistryError;

/// Where a packet says what ran at the turn start.
pub const TURN_START_HOOKS: &str = "turn_start_capability_hook_dispatch";

/// One question as the command line asks it.
#[derive(Clone, Debug)]
pub struct Ask {
    /// The goal.
    pub goal: GoalId,
    /// The agent as written.
    pub agent: Option<String>,
    /// The one todo.
    pub todo: Option<TodoId>,
    /// The obligation.
    pub obligation: Option<ReplanObligationId>,
    /// The Turn instance.
    pub instance: Option<TurnInstanceId>,
    /// What the agent can use; empty takes the standard set.
    pub capabilities: Vec<String>,
    /// Prints the envelope instead of the decision.
    pub envelope: bool,
    /// Where a copy of the decision goes.
    pub capture: Option<Capture>,
    /// The surface of the wake: host, execution mode, scheduler owner.
    pub surface: (String, String, String),
}

/// Where a copy of the decision goes.
#[derive(Clone, Debug)]
pub enum Capture {
    /// A new folder.
    Dir(PathBuf),
    /// A new `decision-*` below this folder.
    Root(PathBuf),
}

/// A live decision with everything it was made from.
pub struct Live {
    /// The goal.
    pub place: Place,
    /// The question.
    pub question: Question,
    /// The snapshot.
    pub snapshot: Snapshot,
    /// The decision.
    pub decision: Decision,
}

/// Decides for one agent without writing anything.
pub fn decide(ports: &Ports, ask: &Ask) -> Answer<Live> {
    let place = open::find(ports, &ask.goal).map_err(registry_refusal)?;
    let place = place.ok_or_else(|| refused(ask, open::unknown_goal(&ask.goal)))?;
    let agent = judge_agent(ask, &place)?;
    let mut question = Question {
        agent,
        todo: ask.todo.clone(),
        obligation: ask.obligation.clone(),
        instance: ask.instance.clone(),
        capabilities: capabilities(&ask.capabilities),
        now: ports.now,
        places: place.places(),
    };
    let reader = place.reader()?;
    let rows = reader.as_ref().map(|reader| reader.rows());
    if let (Some(rows), Some(agent), Some(instance)) = (rows, &question.agent, &question.instance) {
        let facts = snapshot::turn_facts(rows, &place.goal, agent, instance)?;
        bind_question(ask, &mut question, facts.admitted.as_ref())?;
    }
    let snapshot = snapshot::take(&place, rows, &question)?;
    drop(reader);
    let decision = packet::build(&snapshot, &question).map_err(|refusal| refused(ask, *refusal))?;
    Ok(Live {
        place,
        question,
        snapshot,
        decision,
    })
}

/// The stored binding of a Turn instance is looked at before anything is selected anew.
fn bind_question(
    ask: &Ask,
    question: &mut Question,
    admitted: Option<&SettlementIdentity>,
) -> Answer<()> {
    let Some(admitted) = admitted else {
        return Ok(());
    };
    let is_other = match &admitted.binding {
        Binding::Todo(todo) => {
            question.todo.as_ref().is_some_and(|asked| asked != todo)
                || question.obligation.is_some()
        }
        Binding::Replan(obligation) => {
            question
                .obligation
                .as_ref()
                .is_some_and(|asked| asked != obligation)
                || question.todo.is_some()
        }
        Binding::Unbound => false,
    };
    if is_other {
        let text = "this Turn instance is bound to something else and was left as it is; use a fresh instance id";
        return Err(refused(
            ask,
            Refusal::new(ErrorCode::HeartbeatReceiptIdentityConflict, text),
        ));
    }
    if let Binding::Todo(todo) = &admitted.binding {
        question.todo = Some(todo.clone());
    }
    Ok(())
}

/// Answers `quota should-run`.
pub fn should_run(ports: &Ports, ask: &Ask) -> Answer {
    let target = check_capture(ports, ask)?;
    let (mut live, hooks) = wake(ports, ask)?;
    if live.question.instance.is_some()
        && live.question.agent.is_some()
        && let Err(refusal) = admit(ports, &mut live)
    {
        return Err(match refusal.code {
            ErrorCode::StoreBusy | ErrorCode::StoreWriteFailed | ErrorCode::LockAcquireTimeout => {
                write_failed(ask, &refusal)
            }
            _ => refused(ask, refusal),
        });
    }
    let decision = live.decision.packet.clone();
    if let Some(target) = target {
        let made = compose(&live, ask)?;
        let bytes = crate::contract::json::pretty(made.value()).unwrap_or_default();
        let written = match &target {
            (path, None) => capture::write_decision(&Target::Dir(path), bytes.as_bytes()),
            (path, Some(name)) => {
                capture::write_decision(&Target::Root(path, name), bytes.as_bytes())
            }
        };
        written.map_err(|_| {
            let text = "the decision could not be captured; the Turn receipt may already exist, so repeat the same Turn instance";
            Refusal::new(ErrorCode::TurnCaptureWriteFailed, text)
        })?;
    }
    let mut answer = match ask.envelope {
        false => decision,
        true => agent_envelope(&live, ask)?,
    };
    if let Some(hooks) = hooks {
        answer.insert(TURN_START_HOOKS.to_owned(), hooks);
    }
    Ok(Value::Object(answer))
}

/// Judges the question, runs what the goal wants at a turn start, and decides on what is there then.
pub fn wake(ports: &Ports, ask: &Ask) -> Answer<(Live, Option<Value>)> {
    let live = decide(ports, ask)?;
    match turn_start::dispatch(ports, &live.place, live.question.agent.as_ref()) {
        None => Ok((live, None)),
        Some(hooks) => Ok((decide(ports, ask)?, Some(hooks))),
    }
}

/// Composes the source of a live decision.
fn compose(live: &Live, ask: &Ask) -> Answer<CompleteSource> {
    let (host, execution_mode, scheduler_owner) = ask.surface.clone();
    let surface = surface(
        &live.place,
        (host, execution_mode, scheduler_owner),
        Settler::Agent,
    );
    let agent = live
        .question
        .agent
        .as_ref()
        .map_or("", |agent| agent.as_str());
    let expected = (ask.goal.as_str(), agent);
    source::compose(
        &live.decision.packet,
        expected,
        (&surface, None),
        live.question.now,
    )
}

/// Where a source runs, with the places as digests.
pub fn surface(place: &Place, words: (String, String, String), settler: Settler) -> Surface {
    let places = place.places();
    let hash = |path: &str| {
        digest::digest(&json!(path))
            .map(|digest| digest.to_string())
            .unwrap_or_default()
    };
    Surface {
        host: words.0,
        execution_mode: words.1,
        scheduler_owner: words.2,
        registry_ref: hash(&places.registry),
        runtime_ref: hash(&places.runtime_root),
        settler,
    }
}

fn agent_envelope(live: &Live, ask: &Ask) -> Answer<Map<String, Value>> {
    let made = compose(live, ask)?;
    let binding = plan::binding_of(made.decision());
    let identity = match (&live.question.agent, &live.question.instance) {
        (Some(agent), Some(instance)) if binding != Binding::Unbound => Some(SettlementIdentity {
            goal: ask.goal.clone(),
            agent: agent.clone(),
            binding: binding.clone(),
            instance: instance.clone(),
        }),
        _ => None,
    };
    let settlement_argv = identity
        .as_ref()
        .map(|identity| settle_argv(live, identity));
    let frame = Frame {
        host: ask.surface.0.clone(),
        execution_mode: ask.surface.1.clone(),
        instance: live.question.instance.as_ref().map(ToString::to_string),
        binding,
        identity,
        turn_key: None,
        settlement_argv,
    };
    envelope::build(&made, &frame)
}

fn settle_argv(live: &Live, identity: &SettlementIdentity) -> Vec<String> {
    let mut rest = vec![
        "refresh-state",
        "--goal-id",
        identity.goal.as_str(),
        "--agent-id",
        identity.agent.as_str(),
    ];
    match &identity.binding {
        Binding::Todo(todo) => rest.extend(["--todo-id", todo.as_str()]),
        Binding::Replan(obligation) => rest.extend(["--replan-obligation-id", obligation.as_str()]),
        Binding::Unbound => {}
    }
    rest.extend([
        "--turn-instance-id",
        identity.instance.as_str(),
        "--settle-turn",
    ]);
    live.question.places.argv(&rest)
}

/// Records the admission of the asked Turn instance and puts its receipt into the decision, once.
fn admit(ports: &Ports, live: &mut Live) -> Answer<()> {
    let row = live.decision.verdict.row;
    if matches!(row, Row::UnsettledRecovery | Row::Paused) && live.snapshot.turn.admitted.is_none()
    {
        return Ok(());
    }
    let (Some(agent), Some(instance)) =
        (live.question.agent.clone(), live.question.instance.clone())
    else {
        return Ok(());
    };
    let binding = match row {
        Row::Settled | Row::UnsettledRecovery | Row::Paused | Row::CapabilityIntent => {
            Binding::Unbound
        }
        _ => plan::binding_of(&live.decision.packet),
    };
    let wanted = SettlementIdentity {
        goal: live.place.goal.id.clone(),
        agent,
        binding,
        instance,
    };
    let details = ReceiptFacts {
        action: row.columns().effective_action,
        should_run: row.columns().should_run,
        mode: live.decision.interaction.mode,
        spends: row.columns().spends,
        status: None,
        capture_id: None,
    };
    let receipt = record_admission(ports, &mut live.place, &wanted, &details)?;
    let facts = super::settle::progress_of_turn(&live.place, &receipt.identity)?;
    live.decision
        .packet
        .insert("heartbeat_receipt".to_owned(), receipt.view());
    if let Some(progress) = facts {
        live.decision
            .packet
            .insert("settlement_progress".to_owned(), progress);
    }
    Ok(())
}

fn check_capture(ports: &Ports, ask: &Ask) -> Answer<Option<(PathBuf, Option<String>)>> {
    let Some(wanted) = &ask.capture else {
        return Ok(None);
    };
    if ask.instance.is_none() {
        let text = "a captured decision needs --turn-instance-id";
        return Err(Refusal::new(ErrorCode::InvalidArguments, text));
    }
    let fresh = ports.ids.fresh().ok_or_else(open::no_randomness)?;
    let target = match wanted {
        Capture::Dir(path) => (path.clone(), None),
        Capture::Root(path) => (path.clone(), Some(format!("decision-{fresh}"))),
    };
    let is_free = match &target {
        (path, None) => Target::Dir(path).is_free(),
        (path, Some(name)) => Target::Root(path, name).is_free(),
    };
    if is_free {
        return Ok(Some(target));
    }
    let text = "the place for the decision is taken or missing; name a new folder, or an existing one with --decision-output-root";
    Err(Refusal::new(ErrorCode::TurnCaptureWriteFailed, text))
}

fn capabilities(named: &[String]) -> Vec<String> {
    if named.is_empty() {
        STANDARD_CAPABILITIES.map(str::to_owned).to_vec()
    } else {
        named.to_vec()
    }
}

fn judge_agent(ask: &Ask, place: &Place) -> Answer<Option<AgentId>> {
    let Some(written) = &ask.agent else {
        return Ok(None);
    };
    let refuse = |code, text: &str| Err(refused(ask, Refusal::new(code, text)));
    let Some(agent) = AgentId::normalize(written) else {
        return refuse(
            ErrorCode::QuotaAgentIdInvalid,
            "the agent id is malformed; it starts with a letter and holds letters, digits and _.:@-",
        );
    };
    if place.goal.agents.is_empty() {
        return refuse(
            ErrorCode::QuotaAgentRegistryRosterMissing,
            "the goal has no registered agents; `loopx register-agent` adds one",
        );
    }
    if !place.goal.has_agent(&agent) {
        return refuse(
            ErrorCode::QuotaAgentNotRegistered,
            "the agent is not registered for this goal; `loopx register-agent` adds it",
        );
    }
    Ok(Some(agent))
}

/// A refusal in the form of a decision: nothing may run.
fn refused(ask: &Ask, mut refusal: Refusal) -> Refusal {
    if let Value::Object(details) = packet::refusal_details(ask.goal.as_str(), refusal.code) {
        for (name, value) in details {
            refusal.details.entry(name).or_insert(value);
        }
    }
    refusal.details.insert(
        "agent_id".to_owned(),
        json!(ask.agent.as_deref().and_then(AgentId::normalize)),
    );
    refusal
}

fn write_failed(ask: &Ask, cause: &Refusal) -> Refusal {
    let text = "the admission could not be stored and nothing may run; repair the store, then repeat the same Turn instance";
    let refusal = Refusal::new(ErrorCode::HeartbeatReceiptWriteFailed, text)
        .with("cause", cause.code.as_str());
    let mut refusal = refused(ask, refusal);
    refusal.details.insert(
        "effective_action".to_owned(),
        json!("heartbeat_receipt_write_failed"),
    );
    refusal
        .details
        .insert("state".to_owned(), json!("blocked_health"));
    refusal
}

/// The question of a command that selects nothing: who acts, with the standard capabilities, now.
pub fn standing(ports: &Ports, place: &Place, agent: Option<&AgentId>) -> Question {
    Question {
        agent: agent.cloned(),
        todo: None,
        obligation: None,
        instance: None,
        capabilities: STANDARD_CAPABILITIES.map(str::to_owned).to_vec(),
        now: ports.now,
        places: place.places(),
    }
}

/// An unreadable registry under the names quota prints.
pub fn registry_refusal(error: RegistryError) -> Refusal {
    let code = match &error {
        RegistryError::InvalidJson(_) => ErrorCode::QuotaStateInvalidJson,
        RegistryError::PermissionDenied => ErrorCode::QuotaStatePermissionDenied,
        RegistryError::Io(_) => ErrorCode::QuotaStateIoFailed,
        RegistryError::Field(_) => ErrorCode::QuotaStateMissingField,
        RegistryError::Changed { .. } | RegistryError::Store(_) => return error.into(),
    };
    Refusal::new(
        code,
        format!("{error}; fix the file, nothing may run from it"),
    )
    .with("should_run", false)
}
