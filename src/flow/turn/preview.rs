//! Answers of `turn run-once` that start no host: previews, capability actions, routes that wait for somebody else.

use serde_json::{Value, json};

use super::asked::RunOnce;
use super::journal_file::{self};
use super::lookup::judge;
use super::packet::Effects;
use super::plan::{self, LivePlan};
use crate::contract::error::ErrorCode;
use crate::contract::ids::TurnKey;
use crate::flow::mode::Mode;
use crate::flow::open::Answer;
use crate::flow::ports::Ports;
use crate::kernel::turn::plan::Route;

pub(super) fn preview(ports: &Ports, asked: &RunOnce) -> Answer {
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
    let mut packet = json!({
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
    });
    if made.plan.turn_key.is_some() {
        // Spec 9.4: without a validator only a result that is not material can settle.
        packet["next_step"] = json!(match asked.run.validator_argv {
            Some(_) => "add --execute to run the host",
            None =>
                "no validator is named, so a material result will fail; give one with --validation-command-json, then add --execute",
        });
    }
    Ok(packet)
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

pub(super) fn capability(made: &LivePlan, mode: Mode) -> Answer {
    let mut packet = plan::with_capability(made.plan.inspection(), made)?;
    packet["mode"] = json!("run_once");
    packet["status"] = json!("capability_action_required");
    packet["execute"] = json!(mode.is_execute());
    packet["executed"] = json!(false);
    packet["dry_run"] = json!(mode.is_preview());
    packet["quota_slot_spend_count"] = json!(0);
    Ok(packet)
}

pub(super) fn not_for_host(made: &LivePlan) -> Value {
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
        "reason": made.live.decision.verdict.reason(),
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
