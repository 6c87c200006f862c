//! The complete decision packet (docs/spec/kernel.md 6.4): everything capture, plan, host and reader work from.

use serde_json::{Map, Value, json};

use super::cooldown::Cooldown;
use super::interaction::{self, Interaction};
use super::policy::{self, QuotaState};
use super::refusal;
use super::row::Row;
use super::snapshot::{Owed, Question, Snapshot};
use super::summary;
use super::user::{self, UserSide};
use super::verdict::Verdict;
use crate::contract::error::ErrorCode;
use crate::contract::packet::Refusal;
use crate::contract::settlement::SettlementIdentity;
use crate::kernel::replan;

/// A decision and the contract that goes with it.
#[derive(Clone, Debug)]
pub struct Decision {
    /// The verdict.
    pub verdict: Verdict,
    /// The channels.
    pub interaction: Interaction,
    /// The packet.
    pub packet: Map<String, Value>,
}

/// Decides and builds the packet.
pub fn build(snapshot: &Snapshot, question: &Question) -> Result<Decision, Box<Refusal>> {
    let verdict = super::verdict::decide(snapshot, question)?;
    let interaction = Interaction::of(snapshot, question, &verdict);
    let mut packet = Map::new();
    root(&mut packet, snapshot, question);
    decision(&mut packet, snapshot, &verdict);
    quota(&mut packet, snapshot, &verdict);
    goal(&mut packet, snapshot);
    user_gate(&mut packet, snapshot, question, &verdict);
    work(&mut packet, snapshot, question, &verdict);
    packet.insert("interaction_contract".to_owned(), interaction.to_value());
    if let Some(owed) = verdict.owed.as_ref().filter(|owed| !owed.lacks_receipt) {
        packet.insert(
            "settlement_owed".to_owned(),
            settlement_owed(question, &owed.identity),
        );
    }
    Ok(Decision {
        verdict,
        interaction,
        packet,
    })
}

/// The packet of a question that is refused: nothing is selected and nothing may run.
pub fn refusal_details(goal_id: &str, code: ErrorCode) -> Value {
    let is_unknown = code == ErrorCode::GoalNotFound;
    json!({
        "mode": "should-run",
        "goal_id": goal_id,
        "decision": "skip",
        "should_run": false,
        "effective_action": "quota_skip",
        "state": if is_unknown { "unknown" } else { "blocked_health" },
        "status": code,
        "actionable_by_codex": false,
        "normal_delivery_allowed": false,
        "recovery_delivery_allowed": false,
        "self_repair_allowed": false,
        "capability_repair_allowed": false,
        "workspace_repair_allowed": false,
        "requires_user_action": false,
        "interaction_contract": {
            "schema_version": "loopx_interaction_contract_v0",
            "mode": "skip",
            "user_channel": {"action_required": false, "notify": "DONT_NOTIFY", "max_items": 3, "actions": []},
            "agent_channel": {"must_attempt": false, "delivery_allowed": false, "quiet_noop_allowed": true, "primary_action": ""},
            "cli_channel": {"next_cli_actions": [], "spend_allowed_now": false, "spend_after_validation": false, "spend_policy": "no spend"},
        },
    })
}

fn set(packet: &mut Map<String, Value>, members: Value) {
    if let Value::Object(members) = members {
        packet.extend(members);
    }
}

fn root(packet: &mut Map<String, Value>, snapshot: &Snapshot, question: &Question) {
    set(
        packet,
        json!({
            "ok": true,
            "mode": "should-run",
            "goal_id": snapshot.goal.id,
            "agent_id": question.agent,
            "status_health_ok": !snapshot.goal.severity_high,
            "provider_revision": snapshot.provider_revision,
            "registry_revision": snapshot.registry_revision,
            "goal_instance_id": snapshot.goal.instance_id,
            "available_capabilities": question.capabilities,
        }),
    );
    if let Some(agent) = &question.agent {
        let mode = if snapshot.goal.is_monitor_only(agent) {
            "monitor_only"
        } else {
            "normal"
        };
        packet.insert(
            "agent_identity".to_owned(),
            json!({"agent_id": agent, "registered": true, "work_mode": mode}),
        );
    }
}

fn decision(packet: &mut Map<String, Value>, snapshot: &Snapshot, verdict: &Verdict) {
    let columns = verdict.row.columns();
    let is_normal = matches!(
        verdict.row,
        Row::NormalRun | Row::GateFallback | Row::MonitorDue
    );
    set(
        packet,
        json!({
            "decision": columns.decision,
            "should_run": columns.should_run,
            "effective_action": columns.effective_action,
            "state": state(snapshot, verdict),
            "reason": verdict.reason(),
            "recommended_action": interaction::primary_action(snapshot, verdict),
            "actionable_by_codex": columns.should_run,
            "normal_delivery_allowed": is_normal,
            "recovery_delivery_allowed": false,
            "self_repair_allowed": false,
            "capability_repair_allowed": verdict.row == Row::CapabilityRepair,
            "workspace_repair_allowed": false,
        }),
    );
    if verdict.row == Row::CapabilityIntent {
        packet.insert(
            "capability_intent_execution_allowed".to_owned(),
            json!(true),
        );
    }
}

fn state(snapshot: &Snapshot, verdict: &Verdict) -> &'static str {
    match verdict.row {
        Row::TerminalNoFollowup => "terminal_no_followup",
        // An open gate keeps its state beside the intent.
        Row::CapabilityIntent
            if verdict.quota != QuotaState::OperatorGate
                || !UserSide::of(snapshot, verdict.quota).requires_action =>
        {
            "eligible"
        }
        _ => verdict.quota.as_str(),
    }
}

fn quota(packet: &mut Map<String, Value>, snapshot: &Snapshot, verdict: &Verdict) {
    packet.insert(
        "quota".to_owned(),
        policy::packet(&snapshot.goal, snapshot.spent, verdict.quota),
    );
    if let QuotaState::Paused(cause) = verdict.quota {
        packet.insert("pause_cause".to_owned(), json!(cause));
    }
    let is_gate = verdict.quota == QuotaState::OperatorGate;
    packet.insert(
        "blocked_action_scope".to_owned(),
        json!(is_gate.then_some("gated_delivery")),
    );
    packet.insert(
        "safe_bypass_allowed".to_owned(),
        json!(is_gate || verdict.row == Row::GateFallback),
    );
    let kind = (verdict.row == Row::GateFallback).then_some("scoped_user_gate_fallback");
    packet.insert("safe_bypass_kind".to_owned(), json!(kind));
    if is_gate {
        packet.insert(
            "safe_bypass_policy".to_owned(),
            json!("only work outside the scope of the open gate"),
        );
    }
}

fn goal(packet: &mut Map<String, Value>, snapshot: &Snapshot) {
    let goal = &snapshot.goal;
    set(
        packet,
        json!({
            "waiting_on": goal.text("waiting_on"),
            "status": goal.status.as_str(),
            "lifecycle_phase": goal.text("lifecycle_phase"),
            "lifecycle_flags": goal.lifecycle_flags,
            "source": "registry_and_store",
            "active_state_next_action": goal.text("next_action"),
            "latest_run_recommended_action": snapshot.latest_recommendation,
            "goal_boundary": {
                "rule": "work inside the write scope and stop at open gates",
                "write_scope": goal.write_scope,
                "guards": [],
                "stop_condition": "stop when a gate, a pause or the end of the goal is reached",
            },
        }),
    );
    let extra = goal.extra();
    if !extra.is_empty() {
        packet.insert("goal_extra".to_owned(), Value::Object(extra));
    }
}

fn user_gate(
    packet: &mut Map<String, Value>,
    snapshot: &Snapshot,
    question: &Question,
    verdict: &Verdict,
) {
    let side = UserSide::of(snapshot, verdict.quota);
    let cooldown = Cooldown::of(&snapshot.goal, question.now);
    let is_quiet = cooldown.is_suppressed() && side.requires_action;
    let is_paused = matches!(verdict.quota, QuotaState::Paused(_));
    let requires = side.requires_action && !is_quiet;
    let policy = match (
        side.notify_gate || verdict.quota == QuotaState::OperatorGate,
        side.notify_todo,
    ) {
        (true, _) => Some("repeat_until_resolved"),
        (false, Some(_)) => Some("notify_while_blocking"),
        (false, None) => None,
    };
    set(
        packet,
        json!({
            "requires_user_action": requires,
            "action_required": requires,
            "open_count": snapshot.user_todos.len(),
            "notify_user_on_gate": side.notify_gate,
            "notify_user_on_open_todo": side.notify_todo.is_some(),
            "open_todo_notify_reason": side.notify_todo,
            "open_todo_notification_policy": policy,
            "gate_prompt": if is_paused { None } else { user::gate_prompt(snapshot, verdict.quota) },
            "operator_question": if is_paused { None } else { user::question(snapshot, verdict.quota) },
            "missing_gates": snapshot.goal.missing_gates,
            "user_todo_summary": null,
            "user_gate_notification_cooldown": cooldown.to_value(),
        }),
    );
    let summary = summary::summary(&snapshot.user_todos, snapshot.done.1);
    packet.insert("user_todo_summary".to_owned(), summary);
    if let Some(gate) = snapshot
        .goal
        .missing_gates
        .first()
        .filter(|_| verdict.quota == QuotaState::OperatorGate)
    {
        packet.insert("gate_id".to_owned(), json!(gate));
    }
    if is_quiet {
        packet.insert(
            "pending_user_action".to_owned(),
            json!({"required": true, "question": user::question(snapshot, verdict.quota)}),
        );
    }
}

fn work(
    packet: &mut Map<String, Value>,
    snapshot: &Snapshot,
    question: &Question,
    verdict: &Verdict,
) {
    let projection = replan::frontier_projection(snapshot, question, verdict.obligation.as_ref());
    set(
        packet,
        json!({
            "selected_todo": null,
            "agent_todo_summary": null,
            "execution_obligation": obligation(verdict, snapshot),
            "goal_frontier_projection": projection,
        }),
    );
    // Records are moved, not serialised again: that would respell their numbers.
    let selected = verdict
        .selected
        .as_ref()
        .map_or(Value::Null, |todo| todo.to_value());
    packet.insert("selected_todo".to_owned(), selected);
    let summary = summary::summary(&snapshot.agent_todos, snapshot.done.0);
    packet.insert("agent_todo_summary".to_owned(), summary);
    if let Some(selected) = &verdict.selected
        && let Some(lease) = snapshot
            .leases
            .get(selected.id())
            .filter(|lease| lease.is_live(question.now))
    {
        packet.insert("task_lease".to_owned(), json!(lease));
    }
    if let Some(vision) = &snapshot.vision {
        packet.insert("agent_vision".to_owned(), vision.to_value());
    }
    if let Some(obligation) = &verdict.obligation {
        packet.insert(
            "autonomous_replan_obligation".to_owned(),
            obligation.to_value(),
        );
        packet.insert(
            "replan_action_packet".to_owned(),
            replan::action_packet(obligation, &projection),
        );
    } else {
        packet.insert("replan_action_packet".to_owned(), Value::Null);
    }
    row_facts(packet, snapshot, verdict);
}

/// What single rows add.
fn row_facts(packet: &mut Map<String, Value>, snapshot: &Snapshot, verdict: &Verdict) {
    if verdict.row == Row::CapabilityRepair {
        let required = verdict
            .selected
            .as_ref()
            .map(|todo| todo.list("required_capabilities"))
            .unwrap_or_default();
        packet.insert(
            "capability_gate".to_owned(),
            json!({
                "action": "capability_bridge_repair", "reason": "missing_capability", "required_capabilities": required,
                "missing_capabilities": verdict.missing_capabilities, "owner_action": "provide the capability or change the todo",
            }),
        );
    }
    if !verdict.refusing.is_empty() {
        let frontier = refusal::frontier_value(&snapshot.goal.id, &verdict.refusing);
        packet.insert("agent_scope_frontier".to_owned(), frontier);
    }
    if verdict.row == Row::GateFallback {
        let gates: Vec<&str> = super::frontier::open_gates(snapshot)
            .map(|gate| gate.id().as_str())
            .collect();
        packet.insert(
            "scoped_user_gate_fallback".to_owned(),
            json!({"open_gate_ids": gates, "user_still_notified": true}),
        );
    }
    if let Some(owed) = verdict
        .owed
        .as_ref()
        .filter(|_| verdict.row == Row::UnsettledRecovery)
    {
        packet.insert("unsettled_host_turn_recovery".to_owned(), unsettled(owed));
    }
    if let Some(intent) = snapshot
        .intent
        .as_ref()
        .filter(|_| verdict.row == Row::CapabilityIntent)
    {
        intent_facts(packet, intent);
    }
}

fn obligation(verdict: &Verdict, snapshot: &Snapshot) -> Value {
    let columns = verdict.row.columns();
    let only_user = snapshot.agent_todos.is_empty() && !snapshot.user_todos.is_empty();
    let (kind, contract) = match verdict.row {
        Row::CapabilityIntent => ("pending_capability_intent", "governed_capability_intent"),
        Row::UnsettledRecovery => ("unsettled_host_turn_recovery", "settle_prior_turn"),
        _ if columns.should_run => ("bounded_delivery", columns.mode),
        _ if only_user => ("user_gate_quiet_wait", "wait_for_user"),
        _ => ("none", "wait"),
    };
    let mut packet = json!({
        "kind": kind, "contract": contract, "must_attempt_work": columns.should_run, "notify_is_execution_gate": false,
    });
    if verdict.row == Row::CapabilityIntent {
        packet["contract_obligation"] = json!("execute_exact_projected_command");
    }
    packet
}

fn intent_facts(packet: &mut Map<String, Value>, intent: &Map<String, Value>) {
    set(
        packet,
        json!({
            "pending_capability_intent": intent,
            "work_lane_contract": {
                "schema_version": "work_lane_contract_v1", "lane": "capability_intent", "next_lane": "user_gate",
                "reason_code": "pending_capability_intent",
            },
            "heartbeat_recommendation": {
                "mode": "governed_capability_intent", "notify": "DONT_NOTIFY", "agent_must_attempt": true,
            },
            "automation_liveness": {"keep_active": true, "pause_allowed": false},
        }),
    );
}

/// The earlier Turn that is written back and not settled, and which receipts it lacks.
pub fn unsettled(owed: &Owed) -> Value {
    let missing: &[&str] = if owed.lacks_receipt {
        &["durable_writeback_receipt", "quota_spend_receipt"]
    } else {
        &["quota_spend_receipt"]
    };
    let owed = &owed.identity;
    json!({
        "schema_version": "unsettled_host_turn_recovery_v0",
        "prior_turn_instance_id": owed.instance,
        "binding_kind": owed.binding.kind(),
        "binding_id": owed.binding.id(),
        "effect_id": owed.effect_id(),
        "missing_receipts": missing,
        "repair": "resume_prior_turn",
    })
}

/// What a written-back Turn still owes, with the command that pays it.
pub fn settlement_owed(question: &Question, owed: &SettlementIdentity) -> Value {
    let mut packet = Map::new();
    packet.insert(
        "schema_version".to_owned(),
        json!("turn_settlement_owed_v0"),
    );
    if let Value::Object(identity) = owed.to_value() {
        packet.extend(
            identity
                .into_iter()
                .filter(|(name, _)| name != "schema_version"),
        );
    }
    packet.insert("kind".to_owned(), json!("quota_spend"));
    packet.insert("recovery_does_not_spend".to_owned(), json!(true));
    packet.insert(
        "reason".to_owned(),
        json!("the writeback is committed and its spend is missing"),
    );
    packet.insert(
        "command".to_owned(),
        json!(interaction::owed_command(question, owed)),
    );
    Value::Object(packet)
}
