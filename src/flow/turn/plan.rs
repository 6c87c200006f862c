//! `turn plan`, and the live plan every execution starts from. Reading a plan writes nothing.

use serde_json::{Value, json};

use crate::contract::packet::Refusal;
use crate::flow::open::Answer;
use crate::flow::ports::Ports;
use crate::flow::quota::{self, Ask, Live};
use crate::flow::quota_admission::AdmissionReceipt;
use crate::kernel::intent;
use crate::kernel::quota::places::shell_line;
use crate::kernel::turn::plan::{self, HostChoice, Route, TurnPlan};
use crate::kernel::turn::source::{self, Settler};

/// One Turn as it is asked for.
#[derive(Clone, Debug)]
pub struct TurnAsk {
    /// The question of the wake.
    pub question: Ask,
    /// How it is to be run.
    pub host: HostChoice,
}

/// A live decision and its plan.
pub struct LivePlan {
    /// The decision.
    pub live: Live,
    /// The plan.
    pub plan: TurnPlan,
}

/// Decides, composes the source once and plans.
pub fn make(ports: &Ports, ask: &TurnAsk) -> Answer<LivePlan> {
    let live = quota::decide(ports, &ask.question)?;
    let agent = live
        .question
        .agent
        .as_ref()
        .map_or("", |agent| agent.as_str());
    let words = (
        ask.host.kind.clone(),
        ask.host.execution_mode.clone(),
        ask.host.scheduler_owner.clone(),
    );
    let surface = quota::surface(&live.place, words, Settler::Driver);
    let mut packet = live.decision.packet.clone();
    if let Some(receipt) = stored_receipt(&live)? {
        packet.insert("heartbeat_receipt".to_owned(), receipt);
    }
    let expected = (ask.question.goal.as_str(), agent);
    let source = source::compose(&packet, expected, (&surface, None), ports.now)?;
    let plan = plan::plan(&source, &ask.host, ask.question.instance.as_ref())?;
    Ok(LivePlan { live, plan })
}

/// The receipt the Turn instance already has; the driver's own admission comes later and is never written back.
fn stored_receipt(live: &Live) -> Answer<Option<Value>> {
    let (Some(agent), Some(instance)) = (&live.question.agent, &live.question.instance) else {
        return Ok(None);
    };
    let Some(reader) = live.place.reader()? else {
        return Ok(None);
    };
    let Some(stored) = reader
        .rows()
        .admission(&live.place.goal.id, agent, instance)?
    else {
        return Ok(None);
    };
    let receipt = AdmissionReceipt {
        status: "replayed",
        identity: crate::contract::settlement::SettlementIdentity {
            goal: live.place.goal.id.clone(),
            agent: agent.clone(),
            binding: stored.binding,
            instance: instance.clone(),
        },
        event_id: stored.event_id,
        recorded_at: stored.recorded_at,
    };
    Ok(Some(receipt.view()))
}

/// Answers `turn plan`.
pub fn show(ports: &Ports, ask: &TurnAsk, with_detail: bool) -> Answer {
    let made = make(ports, ask)?;
    let packet = if with_detail {
        made.plan.detailed()
    } else {
        made.plan.inspection()
    };
    with_capability(packet, &made)
}

/// Adds the command of a pending intent, bound to this registry and runtime root; the signed one stays as it is.
pub fn with_capability(mut packet: Value, made: &LivePlan) -> Answer {
    if made.plan.route != Route::CapabilityActionRequired {
        return Ok(packet);
    }
    let Some(projected) = made.live.snapshot.intent.as_ref() else {
        return Ok(packet);
    };
    let argv = intent::bound_argv(projected, &made.live.question.places)
        .map_err(|refusal: Box<Refusal>| *refusal)?;
    packet["capability_action"] = json!({
        "status": "required",
        "intent": projected,
        "executed": false,
        "execution_owner": "capability_adapter",
        "reason": "a capability intent is pending",
        "command_argv": argv,
        "command": shell_line(&argv),
    });
    Ok(packet)
}
