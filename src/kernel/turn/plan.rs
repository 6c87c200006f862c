//! The plan of one Turn: its route, its session and its transaction (docs/spec/kernel.md 9.2, 9.3).

use serde_json::{Map, Value, json};

use super::envelope::{self, Frame};
use super::project;
use super::source::{CompleteSource, decision_of};
use crate::contract::digest;
use crate::contract::error::ErrorCode;
use crate::contract::ids::{TurnInstanceId, TurnKey};
use crate::contract::packet::Refusal;
use crate::contract::settlement::{Binding, SettlementIdentity};
use crate::contract::turn::PHASES;

/// Where a plan leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Route {
    ReadyForHost,
    RepairRequired,
    ReplanRequired,
    CapabilityActionRequired,
    UserActionRequired,
    Wait,
    Blocked,
    ContractError,
}

impl Route {
    /// The word of a packet.
    pub const fn as_str(self) -> &'static str {
        match self {
            Route::ReadyForHost => "ready_for_host",
            Route::RepairRequired => "repair_required",
            Route::ReplanRequired => "replan_required",
            Route::CapabilityActionRequired => "capability_action_required",
            Route::UserActionRequired => "user_action_required",
            Route::Wait => "wait",
            Route::Blocked => "blocked",
            Route::ContractError => "contract_error",
        }
    }

    /// True when a host is the way on.
    pub const fn needs_host(self) -> bool {
        matches!(
            self,
            Route::ReadyForHost | Route::RepairRequired | Route::ReplanRequired
        )
    }
}

/// The route of a projection.
pub fn route(envelope: &Map<String, Value>) -> Route {
    let flag = |object: &str, name: &str| {
        envelope.get(object).and_then(|object| object.get(name)) == Some(&Value::Bool(true))
    };
    if envelope.get("should_run") != Some(&Value::Bool(true)) {
        return match (
            flag("user", "action_required"),
            flag("action", "quiet_noop_allowed"),
        ) {
            (true, _) => Route::UserActionRequired,
            (false, true) => Route::Wait,
            (false, false) => Route::Blocked,
        };
    }
    if !flag("action", "delivery_allowed") || !flag("action", "must_attempt") {
        return Route::Blocked;
    }
    match envelope
        .get("effective_action")
        .and_then(Value::as_str)
        .unwrap_or("")
    {
        "governed_capability_intent" if is_own_intent(envelope) => Route::CapabilityActionRequired,
        "governed_capability_intent" => Route::ContractError,
        "autonomous_replan" | "autonomous_replan_required" | "successor_replan_required" => {
            Route::ReplanRequired
        }
        action if action.ends_with("_repair") => Route::RepairRequired,
        _ => Route::ReadyForHost,
    }
}

fn is_own_intent(envelope: &Map<String, Value>) -> bool {
    let Some(intent) = envelope
        .get("action")
        .and_then(|action| action.get("capability_intent"))
    else {
        return false;
    };
    let same = |name: &str| intent.get(name).is_some() && intent.get(name) == envelope.get(name);
    let has_command = intent
        .get("command")
        .and_then(Value::as_str)
        .is_some_and(|command| !command.is_empty());
    let schema = intent.get("schema_version").and_then(Value::as_str);
    schema == Some("pending_capability_intent_projection_v0")
        && same("goal_id")
        && same("agent_id")
        && has_command
}

/// How a Turn is to be run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostChoice {
    /// The kind of host.
    pub kind: String,
    /// Visible or isolated.
    pub execution_mode: String,
    /// Who schedules the next wake.
    pub scheduler_owner: String,
    /// Start fresh, or resume when there is something to resume.
    pub context: String,
}

/// One planned Turn.
#[derive(Clone, Debug)]
pub struct TurnPlan {
    /// Where it leads.
    pub route: Route,
    /// The complete envelope.
    pub envelope: Map<String, Value>,
    /// Its key, when it has a lineage.
    pub turn_key: Option<TurnKey>,
    /// What it settles under.
    pub identity: Option<SettlementIdentity>,
    /// How it is run.
    pub host: HostChoice,
    /// The instance the caller named.
    pub instance: Option<TurnInstanceId>,
}

/// Plans a Turn over a complete source.
pub fn plan(
    source: &CompleteSource,
    host: &HostChoice,
    instance: Option<&TurnInstanceId>,
) -> Result<TurnPlan, Refusal> {
    let decision = source.decision();
    let projected = project::project(decision);
    let route = route(&projected);
    let binding = binding_of(decision);
    let has_lineage = route.needs_host() && binding != Binding::Unbound;
    let turn_key = if has_lineage {
        Some(turn_key(decision, &projected, host, instance)?)
    } else {
        None
    };
    let identity = turn_key
        .as_ref()
        .and_then(|key| identity_of(decision, &binding, instance, key));
    let frame = Frame {
        host: host.kind.clone(),
        execution_mode: host.execution_mode.clone(),
        instance: instance.map(ToString::to_string),
        binding,
        identity: identity.clone(),
        turn_key: turn_key.as_ref().map(ToString::to_string),
        settlement_argv: None,
    };
    let envelope = envelope::build(source, &frame)?;
    Ok(TurnPlan {
        route,
        envelope,
        turn_key,
        identity,
        host: host.clone(),
        instance: instance.cloned(),
    })
}

/// What a decision binds its Turn to.
pub fn binding_of(decision: &Map<String, Value>) -> Binding {
    let obligation = decision
        .get("autonomous_replan_obligation")
        .and_then(|value| value.get("obligation_id"))
        .and_then(Value::as_str);
    if let Some(binding) = obligation.and_then(|id| Binding::parse("autonomous_replan", id)) {
        return binding;
    }
    let todo = decision
        .get("selected_todo")
        .and_then(|todo| todo.get("todo_id"))
        .and_then(Value::as_str);
    todo.and_then(|id| Binding::parse("todo", id))
        .unwrap_or(Binding::Unbound)
}

fn identity_of(
    decision: &Map<String, Value>,
    binding: &Binding,
    instance: Option<&TurnInstanceId>,
    key: &TurnKey,
) -> Option<SettlementIdentity> {
    let word = |name: &str| decision.get(name).and_then(Value::as_str);
    let instance = match instance {
        Some(instance) => instance.clone(),
        None => TurnInstanceId::new(key.as_str())?,
    };
    Some(SettlementIdentity {
        goal: crate::contract::ids::GoalId::new(word("goal_id")?)?,
        agent: crate::contract::ids::AgentId::new(word("agent_id")?)?,
        binding: binding.clone(),
        instance,
    })
}

/// The key of a Turn: its lineage, its host and its session.
pub fn turn_key(
    decision: &Map<String, Value>,
    projected: &Map<String, Value>,
    host: &HostChoice,
    instance: Option<&TurnInstanceId>,
) -> Result<TurnKey, Refusal> {
    let broken = || {
        Refusal::new(
            ErrorCode::TurnSourceInvalidJson,
            "the source holds a number that is not finite; fix it",
        )
    };
    let action_hash = project::action_hash(projected, decision).map_err(|_| broken())?;
    let binding = binding_of(decision);
    let mut document = json!({
        "lineage": {
            "goal_id": decision.get("goal_id"), "agent_id": decision.get("agent_id"), "todo_id": binding.todo(),
            "action_hash": action_hash,
        },
        "host": host.kind,
        "execution_mode": host.execution_mode,
        "scheduler_owner": host.scheduler_owner,
        "session_action": "start_new",
    });
    if let Some(instance) = instance {
        document["turn_instance_id"] = json!(instance);
    }
    let key = digest::digest(&document).map_err(|_| broken())?;
    TurnKey::new(key.to_string()).ok_or_else(broken)
}

impl TurnPlan {
    /// The plan as it is stored and executed: everything a retry needs.
    pub fn stored(&self) -> Value {
        let mut plan = self.head("execute", Value::Object(self.envelope.clone()));
        plan["session"] = self.session();
        plan["transaction"] = self.transaction();
        if let Some(identity) = &self.identity {
            plan["transaction"]["settlement_plan"] = envelope::plan(identity);
        }
        plan
    }

    /// The plan for looking at.
    pub fn inspection(&self) -> Value {
        let mut plan = self.head(
            "plan",
            Value::Object(envelope::inspection(self.envelope.clone())),
        );
        plan["inspection"] = json!(true);
        plan["executable"] = json!(false);
        plan
    }

    /// The plan with source, session and transaction, still executed through `run-once` alone.
    pub fn detailed(&self) -> Value {
        let mut plan = self.head("plan", Value::Object(self.envelope.clone()));
        plan["inspection"] = json!(false);
        plan["executable"] = json!(self.turn_key.is_some());
        plan["session"] = self.session();
        plan["transaction"] = self.transaction();
        plan
    }

    fn head(&self, mode: &str, envelope: Value) -> Value {
        let selected = self
            .envelope
            .get("action")
            .and_then(|action| action.get("selected_todo"))
            .cloned();
        let mut plan = json!({
            "ok": self.route != Route::ContractError,
            "schema_version": "loopx_turn_plan_v0",
            "mode": mode,
            "inspection": false,
            "executable": false,
            "host": {
                "kind": self.host.kind, "execution_mode": self.host.execution_mode, "scheduler_owner": self.host.scheduler_owner,
                "explicit_isolation": self.host.execution_mode == "isolated-headless",
            },
            "scheduler_execution_context": {"owner": self.host.scheduler_owner, "valid": true},
            "route": {
                "schema_version": "loopx_turn_route_v0",
                "kind": self.route.as_str(),
                "effective_action": self.envelope.get("effective_action"),
                "would_invoke_host": self.turn_key.is_some(),
                "host_invocation_allowed": false,
                "selected_todo": selected,
            },
            "turn_envelope": null,
            "effects": {"host_invoked": false, "state_written": false, "scheduler_acknowledged": false, "quota_spent": false},
            "boundary": {"read_only": true, "requires_explicit_execute_surface": true, "preserves_turn_envelope": true},
        });
        plan["turn_envelope"] = envelope;
        if self.route == Route::ContractError {
            plan["error"] = json!("the pending intent of this decision breaks its contract");
            plan["error_code"] = json!(ErrorCode::TurnSourceUnsupportedSemantics);
        }
        plan
    }

    fn session(&self) -> Value {
        let action = if self.route.needs_host() {
            "start_new"
        } else {
            "none"
        };
        json!({"schema_version": "loopx_turn_session_binding_v0", "action": action, "context_policy": self.host.context})
    }

    fn transaction(&self) -> Value {
        let is_planned = self.turn_key.is_some();
        let mut transaction = json!({
            "schema_version": "loopx_turn_transaction_plan_v0",
            "status": if is_planned { "planned" } else { "not_applicable" },
            "turn_key": self.turn_key,
            "phases": PHASES,
            "commit_policy": "result<validate<writeback<spend;apply<ack;cadence:no-spend",
            "receipt_seed": {"schema_version": "loopx_turn_receipt_v0", "status": "not_executed", "next_phase": "host_execute"},
        });
        if let Some(instance) = &self.instance {
            transaction["turn_instance_id"] = json!(instance);
        }
        transaction
    }
}

/// The route a stored plan has to have.
pub fn stored_route(plan: &Value) -> Option<Route> {
    let source = plan.get("turn_envelope")?.get("source")?;
    Some(route(&project::project(decision_of(source))))
}
