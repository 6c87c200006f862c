//! The journal of one Turn, `loopx_turn_journal_v0`: a document whose status follows from its events alone
//! (docs/spec/kernel.md 10.1, 10.2).
//!
//! `advance` is the only place that changes a status or a phase; the driver records one event, stores the document and only
//! then goes on. What this version does not know in a stored journal is kept.

use serde_json::{Map, Value, json};

use crate::contract::ids::{GoalId, TurnKey};
use crate::contract::turn::PHASES;
use crate::contract::turn::failure::Cause;

/// Where a Turn stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Status {
    InProgress,
    SchedulerActionRequired,
    Committed,
    Stopped,
    Failed,
}

impl Status {
    const ALL: [(Status, &'static str); 5] = [
        (Status::InProgress, "in_progress"),
        (Status::SchedulerActionRequired, "scheduler_action_required"),
        (Status::Committed, "committed"),
        (Status::Stopped, "stopped"),
        (Status::Failed, "failed"),
    ];

    /// The word of the document.
    pub fn as_str(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(status, _)| *status == self)
            .map_or("", |(_, word)| word)
    }

    fn parse(word: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(_, known)| *known == word)
            .map(|(status, _)| *status)
    }
}

/// What happened to a Turn.
#[derive(Clone, Debug)]
pub enum Event {
    /// A host is about to be started once more.
    HostStarting,
    /// The host gave a result that was accepted.
    ResultAccepted(Value),
    /// The host gave none.
    HostFailed {
        /// The failure record.
        failure: Value,
        /// A code of ours beside it.
        error_code: Option<String>,
    },
    /// The result was validated, or needs no validation.
    Validated(Value),
    /// The validator did not pass it.
    ValidationFailed(Value),
    /// A result that is not material ends the Turn.
    Stopped,
    /// The writeback is committed.
    WrittenBack(Value),
    /// The spend is committed, or none is owed.
    Spent(Value),
    /// Nothing follows: the todo is closed for good.
    ClosedOut(Value),
    /// A settlement step was refused.
    SettlementFailed {
        /// The result kind that fixes the phase.
        result_kind: &'static str,
        /// Why.
        reason: String,
    },
    /// The scheduler has been told, or needs nothing.
    Acknowledged(Value),
    /// A failed Turn is tried again.
    Retried,
}

impl Event {
    /// True for a host whose program could not be started.
    pub fn is_never_started(&self) -> bool {
        matches!(self, Event::HostFailed { failure, .. } if failure["cause"] == Cause::NotStarted.as_str())
    }
}

/// An event that cannot happen in this state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this step does not follow from where the Turn stands")]
pub struct IllegalEvent;

/// One journal.
#[derive(Clone, Debug, PartialEq)]
pub struct Journal {
    body: Map<String, Value>,
}

impl Journal {
    /// A fresh journal over a stored plan.
    pub fn open(key: &TurnKey, (goal, host): (&GoalId, &str), plan: Value, capture: Value) -> Self {
        let mut body = json!({
            "schema_version": "loopx_turn_journal_v0",
            "turn_key": key,
            "goal_id": goal,
            "status": "in_progress",
            "host": host,
            "completed_phases": [],
            "plan": null,
            "host_attempt_count": 0,
            "decision_capture": capture,
        });
        body["plan"] = plan;
        Self {
            body: body.as_object().cloned().unwrap_or_default(),
        }
    }

    /// A stored document.
    pub fn stored(body: Map<String, Value>) -> Self {
        Self { body }
    }

    /// The document.
    pub fn body(&self) -> &Map<String, Value> {
        &self.body
    }

    /// Any member.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.body.get(name).filter(|value| !value.is_null())
    }

    /// A text member.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Value::as_str)
    }

    /// The plan.
    pub fn plan(&self) -> &Value {
        self.body.get("plan").unwrap_or(&Value::Null)
    }

    /// Where it stands; `None` for a word of another version.
    pub fn status(&self) -> Option<Status> {
        self.text("status").and_then(Status::parse)
    }

    /// The completed phases, when they form a prefix of the order.
    pub fn phases(&self) -> Option<usize> {
        let phases = self.body.get("completed_phases")?.as_array()?;
        let is_prefix = phases.len() <= PHASES.len()
            && phases
                .iter()
                .zip(PHASES)
                .all(|(found, phase)| found == phase);
        is_prefix.then_some(phases.len())
    }

    /// True when a phase is completed.
    pub fn has(&self, phase: &str) -> bool {
        let index = PHASES.iter().position(|known| *known == phase);
        index.is_some_and(|index| self.phases().is_some_and(|done| done > index))
    }

    /// How often a host was started.
    pub fn attempts(&self) -> i64 {
        self.body
            .get("host_attempt_count")
            .and_then(Value::as_i64)
            .unwrap_or(0)
    }

    /// True when a failed Turn fell before a result was accepted, or at its host contract.
    pub fn needs_host(&self) -> bool {
        !self.has("typed_result")
            || (self.status() == Some(Status::Failed)
                && self.text("validation_stage") == Some("host_result_contract"))
    }

    fn with(mut self, name: &str, value: Value) -> Self {
        self.body.insert(name.to_owned(), value);
        self
    }

    fn without(mut self, name: &str) -> Self {
        self.body.shift_remove(name);
        self
    }

    fn complete(self, upto: &str) -> Self {
        let count = PHASES
            .iter()
            .position(|known| *known == upto)
            .map_or(0, |index| index + 1);
        self.with("completed_phases", json!(PHASES[..count]))
    }

    fn status_set(self, status: Status) -> Self {
        self.with("status", json!(status.as_str()))
    }
}

/// Returns the journal after an event. Recovery folds the same way.
pub fn advance(journal: Journal, event: Event) -> Result<Journal, IllegalEvent> {
    let status = journal.status().ok_or(IllegalEvent)?;
    let done = journal.phases().ok_or(IllegalEvent)?;
    match (status, event) {
        (Status::Failed, Event::Retried) => Ok(reopened(journal, done)),
        (Status::InProgress, event) if done < 3 => before_writeback(journal, done, event),
        (_, event) => from_writeback(journal, (status, done), event),
    }
}

/// Host, typed result and validation.
fn before_writeback(journal: Journal, done: usize, event: Event) -> Result<Journal, IllegalEvent> {
    Ok(match (done, event) {
        (0, Event::HostStarting) => {
            let attempts = json!(journal.attempts() + 1);
            let journal = journal.with("host_attempt_count", attempts);
            journal.without("host_failure")
        }
        (0, Event::ResultAccepted(result)) => {
            let kind = result.get("result_kind").cloned().unwrap_or(Value::Null);
            let journal = journal.with("host_result", result);
            let journal = journal.with("result_kind", kind).without("reason");
            journal.complete("typed_result")
        }
        (
            0,
            Event::HostFailed {
                failure,
                error_code,
            },
        ) => host_failed(journal, failure, error_code),
        (2, Event::Validated(receipt)) => journal
            .with("task_validation", receipt)
            .without("validation_stage")
            .complete("validation"),
        (2, Event::ValidationFailed(receipt)) => journal
            .with("task_validation", receipt)
            .with("validation_stage", json!("task_postcondition"))
            .with("reason", json!("validation_failed"))
            .status_set(Status::Failed),
        _ => return Err(IllegalEvent),
    })
}

fn host_failed(journal: Journal, failure: Value, error_code: Option<String>) -> Journal {
    let failed = journal
        .with("host_failure", failure)
        .with("result_kind", json!("host_failure"))
        .with("reason", json!("host_failure"))
        .status_set(Status::Failed);
    match error_code {
        Some(code) => failed
            .with("error_code", json!(code))
            .with("validation_stage", json!("host_result_contract")),
        None => failed,
    }
}

/// Writeback, spend, closeout and scheduler.
fn from_writeback(
    journal: Journal,
    (status, done): (Status, usize),
    event: Event,
) -> Result<Journal, IllegalEvent> {
    let is_open = status == Status::InProgress;
    let is_waiting = status == Status::SchedulerActionRequired && done == 5;
    Ok(match event {
        Event::Stopped if is_open && done == 3 => journal.status_set(Status::Stopped),
        Event::WrittenBack(writeback) if is_open && done == 3 => journal
            .with("writeback", writeback)
            .complete("durable_writeback"),
        Event::Spent(spend) if is_open && done == 4 => journal
            .with("quota_spend", spend)
            .complete("quota_spend")
            .status_set(Status::SchedulerActionRequired),
        Event::ClosedOut(receipt) if is_waiting => journal.with("terminal_closeout", receipt),
        Event::Acknowledged(scheduler) if is_waiting => journal
            .with("scheduler", scheduler)
            .complete("scheduler_ack")
            .without("reason")
            .status_set(Status::Committed),
        Event::SettlementFailed {
            result_kind,
            reason,
        } if (is_open && matches!(done, 3 | 4)) || is_waiting => {
            let failure = json!({"kind": reason, "result_kind": result_kind});
            let result = json!({"ok": false, "failure": failure});
            journal
                .with("reason", json!(reason))
                .with("settlement_result", result)
                .status_set(Status::Failed)
        }
        _ => return Err(IllegalEvent),
    })
}

/// A failed Turn goes on where it fell: after its spend only the scheduler is left.
fn reopened(journal: Journal, done: usize) -> Journal {
    let is_spent = done >= 5;
    let journal = journal.without("settlement_result").without("error_code");
    let journal = if journal.needs_host() {
        journal.without("validation_stage")
    } else {
        journal
    };
    journal.status_set(if is_spent {
        Status::SchedulerActionRequired
    } else {
        Status::InProgress
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fresh() -> Journal {
        let key = TurnKey::new(format!("sha256:{}", "0".repeat(64))).unwrap();
        Journal::open(
            &key,
            (&GoalId::new("g").unwrap(), "generic-cli"),
            json!({}),
            json!({}),
        )
    }

    fn any_event() -> impl Strategy<Value = Event> {
        (0..12_u8).prop_map(|index| match index {
            0 => Event::HostStarting,
            1 => Event::ResultAccepted(json!({"result_kind": "validated_progress"})),
            2 => Event::HostFailed {
                failure: json!({"kind": "unknown"}),
                error_code: None,
            },
            3 => Event::Validated(json!({})),
            4 => Event::ValidationFailed(json!({})),
            5 => Event::Stopped,
            6 => Event::WrittenBack(json!({})),
            7 => Event::Spent(json!({})),
            8 => Event::ClosedOut(json!({})),
            9 => Event::SettlementFailed {
                result_kind: "quota_spend_failed",
                reason: "budget_rejected".into(),
            },
            10 => Event::Acknowledged(json!({})),
            _ => Event::Retried,
        })
    }

    proptest! {
        #[test]
        fn no_order_of_events_skips_a_phase_or_spends_twice(events in proptest::collection::vec(any_event(), 0..40)) {
            let mut journal = fresh();
            let (mut writebacks, mut spends, mut last) = (0, 0, 0);
            for event in events {
                let is_writeback = matches!(event, Event::WrittenBack(_));
                let is_spend = matches!(event, Event::Spent(_));
                if let Ok(next) = advance(journal.clone(), event) {
                    writebacks += i32::from(is_writeback);
                    spends += i32::from(is_spend);
                    let done = next.phases().expect("a prefix");
                    prop_assert!(done >= last);
                    last = done;
                    prop_assert!(next.status() != Some(Status::Committed) || done == 7);
                    journal = next;
                }
            }
            prop_assert!(writebacks <= 1 && spends <= 1 && spends <= writebacks);
        }

        #[test]
        fn an_ended_turn_takes_no_event(event in any_event()) {
            for status in [Status::Committed, Status::Stopped] {
                let ended = fresh().complete("scheduler_ack").status_set(status);
                prop_assert!(advance(ended, event.clone()).is_err());
            }
        }
    }

    #[test]
    fn phases_out_of_order_are_no_prefix() {
        let mut journal = fresh();
        journal.body.insert(
            "completed_phases".into(),
            json!(["typed_result", "host_execute"]),
        );
        assert_eq!(journal.phases(), None);
        assert!(advance(journal, Event::HostStarting).is_err());
    }
}
