//! Where a stored Turn goes on (docs/spec/kernel.md 10.3): it replays, continues at its phase, or is blocked.

use serde_json::{Value, json};

use super::journal::{Journal, Status};
use crate::contract::error::ErrorCode;
use crate::contract::turn::PHASES;
use crate::contract::turn::failure::FailureKind;

/// What to do with a stored Turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Go on at this phase.
    Continue {
        /// The phase.
        from: &'static str,
        /// Why.
        reason: &'static str,
        /// True when a host has to run again.
        reinvokes_host: bool,
        /// True when a failed Turn is tried again.
        retries: bool,
    },
    /// Give back what is stored.
    ReturnExisting(&'static str),
    /// Stop.
    Blocked(ErrorCode),
}

/// What a call wants with a Turn that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFailed {
    /// To see its stored result.
    Show,
    /// To have it tried again.
    Retry,
}

impl OnFailed {
    /// By the flag of the command line.
    pub const fn of_flag(is_set: bool) -> Self {
        match is_set {
            true => Self::Retry,
            false => Self::Show,
        }
    }
}

/// Assesses a journal.
pub fn assess(journal: &Journal, on_failed: OnFailed) -> Recovery {
    let (Some(status), Some(done)) = (journal.status(), journal.phases()) else {
        return Recovery::Blocked(ErrorCode::JournalInconsistent);
    };
    if !is_consistent(journal, status, done) {
        return Recovery::Blocked(ErrorCode::JournalInconsistent);
    }
    let from = PHASES.get(done).copied().unwrap_or("scheduler_ack");
    match status {
        Status::Committed | Status::Stopped => Recovery::ReturnExisting("terminal_result_retained"),
        Status::Failed if on_failed == OnFailed::Show => {
            Recovery::ReturnExisting("failed_retry_not_requested")
        }
        Status::Failed => failed(journal, from),
        Status::InProgress => Recovery::Continue {
            from,
            reason: "resume_in_progress",
            reinvokes_host: journal.needs_host(),
            retries: false,
        },
        Status::SchedulerActionRequired => Recovery::Continue {
            from,
            reason: "resume_scheduler",
            reinvokes_host: false,
            retries: false,
        },
    }
}

fn failed(journal: &Journal, from: &'static str) -> Recovery {
    if !journal.needs_host() {
        return Recovery::Continue {
            from,
            reason: "retry_failed_phase",
            reinvokes_host: false,
            retries: true,
        };
    }
    if let Some(failure) = journal.get("host_failure") {
        let kind = failure
            .get("kind")
            .and_then(Value::as_str)
            .and_then(FailureKind::parse);
        let attempt = failure.get("attempt").and_then(Value::as_i64);
        let (Some(kind), Some(attempt)) = (kind, attempt) else {
            return Recovery::Blocked(ErrorCode::HostRetryContractInvalid);
        };
        if attempt < 1 || attempt != journal.attempts() {
            return Recovery::Blocked(ErrorCode::HostRetryContractInvalid);
        }
        if kind == FailureKind::OutputBudgetExhausted {
            return Recovery::Blocked(ErrorCode::HostRetryNotAvailable);
        }
        if kind.retry().is_some_and(|(max, _)| attempt >= max) {
            return Recovery::Blocked(ErrorCode::HostRetryBudgetExhausted);
        }
    }
    Recovery::Continue {
        from: "host_execute",
        reason: "retry_failed_phase",
        reinvokes_host: true,
        retries: true,
    }
}

/// A status, its phases and its members have to fit each other.
fn is_consistent(journal: &Journal, status: Status, done: usize) -> bool {
    let has = |name: &str| journal.get(name).is_some();
    let needs = [(2, "host_result"), (3, "host_result")];
    if needs
        .iter()
        .any(|(count, name)| done >= *count && !has(name))
        || done == 1
    {
        return false;
    }
    match status {
        Status::Committed => done == PHASES.len(),
        Status::Stopped => done == 3,
        Status::SchedulerActionRequired => done == 5,
        Status::InProgress => done < 5,
        Status::Failed => done < PHASES.len(),
    }
}

impl Recovery {
    /// The packet.
    pub fn to_value(&self, on_failed: OnFailed) -> Value {
        let (action, can_continue, from, reinvokes, reason) = match self {
            Recovery::Continue {
                from,
                reason,
                reinvokes_host,
                ..
            } => (
                "continue",
                true,
                Some(*from),
                *reinvokes_host,
                (*reason).to_owned(),
            ),
            Recovery::ReturnExisting(reason) => {
                ("return_existing", false, None, false, (*reason).to_owned())
            }
            Recovery::Blocked(code) => ("blocked", false, None, false, code.to_string()),
        };
        json!({
            "schema_version": "loopx_turn_recovery_decision_v0",
            "action": action,
            "can_continue": can_continue,
            "resume_from": from,
            "reinvoke_host": reinvokes,
            "reason": reason,
            "retry_failed": on_failed == OnFailed::Retry,
            "checks": [],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn journal(status: &str, phases: usize, more: Value) -> Journal {
        let mut body = json!({"status": status, "completed_phases": PHASES[..phases], "host_attempt_count": 1});
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        Journal::stored(body.as_object().unwrap().clone())
    }

    #[test]
    fn ended_turns_are_given_back_and_failed_ones_wait_for_the_flag() {
        let done = journal("committed", 7, json!({"host_result": {}}));
        assert_eq!(
            assess(&done, OnFailed::Retry),
            Recovery::ReturnExisting("terminal_result_retained")
        );
        let failed = journal(
            "failed",
            0,
            json!({"host_failure": {"kind": "unknown", "attempt": 1}}),
        );
        assert_eq!(
            assess(&failed, OnFailed::Show),
            Recovery::ReturnExisting("failed_retry_not_requested")
        );
        assert!(matches!(
            assess(&failed, OnFailed::Retry),
            Recovery::Continue {
                from: "host_execute",
                reinvokes_host: true,
                ..
            }
        ));
    }

    #[test]
    fn a_spent_budget_and_a_broken_record_block_the_retry() {
        let spent = journal(
            "failed",
            0,
            json!({"host_failure": {"kind": "executor_timeout", "attempt": 2}, "host_attempt_count": 2}),
        );
        assert_eq!(
            assess(&spent, OnFailed::Retry),
            Recovery::Blocked(ErrorCode::HostRetryBudgetExhausted)
        );
        let broken = journal(
            "failed",
            0,
            json!({"host_failure": {"kind": "odd", "attempt": 1}}),
        );
        assert_eq!(
            assess(&broken, OnFailed::Retry),
            Recovery::Blocked(ErrorCode::HostRetryContractInvalid)
        );
        let output = journal(
            "failed",
            0,
            json!({"host_failure": {"kind": "output_budget_exhausted", "attempt": 1}}),
        );
        assert_eq!(
            assess(&output, OnFailed::Retry),
            Recovery::Blocked(ErrorCode::HostRetryNotAvailable)
        );
    }

    #[test]
    fn a_failed_validation_goes_on_without_the_host() {
        let failed = journal(
            "failed",
            2,
            json!({"host_result": {}, "validation_stage": "task_postcondition"}),
        );
        assert!(matches!(
            assess(&failed, OnFailed::Retry),
            Recovery::Continue {
                from: "validation",
                reinvokes_host: false,
                ..
            }
        ));
    }

    #[test]
    fn a_status_that_does_not_fit_its_phases_is_blocked() {
        for (status, phases) in [
            ("committed", 3),
            ("scheduler_action_required", 2),
            ("in_progress", 6),
            ("odd", 0),
        ] {
            let journal = journal(status, phases, json!({"host_result": {}}));
            assert_eq!(
                assess(&journal, OnFailed::Show),
                Recovery::Blocked(ErrorCode::JournalInconsistent),
                "{status}"
            );
        }
    }
}
