//! `turn managed-step`: how a loop goes on after one Turn. It writes nothing.

use serde_json::{Map, Value, json};

use super::journal_file;
use super::plan::TurnAsk;
use super::read::stored_journal;
use crate::contract::error::ErrorCode;
use crate::contract::ids::TurnKey;
use crate::contract::packet::Refusal;
use crate::flow::open::Answer;
use crate::flow::ports::Ports;
use crate::flow::quota;
use crate::kernel::turn::journal::{Journal, Status};
use crate::kernel::turn::plan::{self, Route};
use crate::kernel::turn::project;

/// Says how a loop goes on after one Turn: a pure look at its receipt and a fresh decision.
pub fn managed_step(ports: &Ports, ask: &TurnAsk, key: Option<&TurnKey>) -> Answer {
    let live = quota::decide(ports, &ask.question)?;
    let agent = live.question.agent.clone().ok_or_else(|| {
        Refusal::new(
            ErrorCode::InvalidArguments,
            "name the agent with --agent-id",
        )
    })?;
    let projected = project::project(&live.decision.packet);
    let fresh = disposition_of(plan::route(&projected), &live.decision.packet);
    let (disposition, reason) = match key {
        None => fresh,
        Some(key) => {
            let reader = live
                .place
                .reader()?
                .ok_or_else(|| journal_file::not_found(key))?;
            let row = journal_file::find_row(reader.rows(), &ask.question.goal, &agent, key)?
                .ok_or_else(|| journal_file::not_found(key))?;
            journal_file::check_file(&live.place, key, &row)?;
            let journal = stored_journal(&row).ok_or_else(journal_file::inconsistent)?;
            after_turn(&journal, fresh)?
        }
    };
    Ok(json!({
        "ok": true,
        "schema_version": "loop_turn_loop_disposition_v0",
        "goal_id": ask.question.goal,
        "agent_id": agent,
        "predecessor_turn_key": key,
        "disposition": disposition,
        "reason": reason,
        "spends_quota": false,
        "launches_host": false,
        "writes_state": false,
    }))
}

fn disposition_of(route: Route, decision: &Map<String, Value>) -> (&'static str, &'static str) {
    if decision.get("effective_action").and_then(Value::as_str) == Some("terminal_no_followup") {
        return ("stop", "terminal_frontier");
    }
    match route {
        Route::ReadyForHost => ("run_now", "fresh_decision_runs"),
        Route::RepairRequired => ("repair", "fresh_decision_repairs"),
        Route::ReplanRequired => ("replan", "fresh_decision_replans"),
        Route::CapabilityActionRequired => {
            ("capability_action_required", "capability_intent_pending")
        }
        Route::UserActionRequired => ("user_action_required", "user_has_to_act"),
        Route::Wait => ("wait", "nothing_to_run"),
        Route::Blocked | Route::ContractError => ("stop", "fresh_decision_blocks"),
    }
}

fn after_turn(
    journal: &Journal,
    fresh: (&'static str, &'static str),
) -> Answer<(&'static str, &'static str)> {
    let kind = journal.text("result_kind").unwrap_or("");
    Ok(match (journal.status(), kind) {
        (Some(Status::Failed), "host_failure") => {
            let is_retryable = journal
                .get("host_failure")
                .and_then(|failure| failure.get("retryable"))
                == Some(&json!(true));
            if is_retryable {
                ("wait", "retry_continuation")
            } else {
                ("repair", "host_failure")
            }
        }
        (Some(Status::Failed), _) => ("repair", "failed_turn"),
        (Some(Status::Committed), "repair_required") => ("repair", "repair_required"),
        (Some(Status::Committed), "replan_required") => ("replan", "replan_required"),
        (Some(Status::Committed), "validated_completion") if fresh.1 == "terminal_frontier" => {
            ("terminal", "validated_terminal_completion")
        }
        (Some(Status::Committed), _) => fresh,
        (Some(Status::Stopped), "user_action_required") => {
            ("user_action_required", "host_asked_for_the_user")
        }
        (Some(Status::Stopped), _) => ("wait", "host_waits"),
        _ => {
            return Err(Refusal::new(
                ErrorCode::JournalInconsistent,
                "the Turn is not finished; run it again first",
            ));
        }
    })
}
