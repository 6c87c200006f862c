//! Why a host gave no result, and whether the same call may be made again (docs/spec/kernel.md 9.4).

use serde_json::{Value, json};

/// The kinds of host failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum FailureKind {
    ExecutorTimeout,
    ProviderCapacity,
    ProviderOverloaded,
    RateLimited,
    TransportLost,
    AuthFailed,
    ContractRejected,
    OutputBudgetExhausted,
    QuotaExhausted,
    SessionMissing,
    Unknown,
}

/// What was seen of a host that gave no result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// The program could not be started.
    NotStarted,
    /// It did not end in time.
    TimedOut,
    /// It ended with this exit code.
    ExitStatus(i32),
    /// A signal ended it.
    Signal,
    /// It printed more than an answer may have.
    AnswerTooLong,
    /// What it printed is not one JSON object.
    AnswerNotJson,
    /// Its answer is not a result of this Turn.
    AnswerRejected,
    /// Its answer holds what may not be shown to others.
    AnswerUnsafe,
}

impl Cause {
    /// What to look at, by the word of a record.
    pub fn advice(word: &str) -> Option<&'static str> {
        Some(match word {
            "program_not_started" => {
                "the host program could not be started; check the first word of the host command and the project folder"
            }
            "timed_out" => "the host did not end in time; give it more with --timeout-seconds",
            "exit_status" => "the host ended with an exit code other than 0",
            "signal" => "a signal ended the host",
            "answer_too_long" => "the host printed more than 12000 bytes",
            "answer_not_json" => "the host did not print exactly one JSON object",
            "answer_rejected" => {
                "the host's answer is not a loopx_turn_result_v0 of this Turn; compare its fields with the request's result_contract"
            }
            "answer_unsafe" => {
                "the host's answer names a path of this machine, a credential or a raw key; it must say what others may read"
            }
            _ => return None,
        })
    }

    /// The word of the record.
    pub const fn as_str(self) -> &'static str {
        match self {
            Cause::NotStarted => "program_not_started",
            Cause::TimedOut => "timed_out",
            Cause::ExitStatus(_) => "exit_status",
            Cause::Signal => "signal",
            Cause::AnswerTooLong => "answer_too_long",
            Cause::AnswerNotJson => "answer_not_json",
            Cause::AnswerRejected => "answer_rejected",
            Cause::AnswerUnsafe => "answer_unsafe",
        }
    }
}

impl FailureKind {
    const ALL: [(FailureKind, &'static str); 11] = [
        (FailureKind::ExecutorTimeout, "executor_timeout"),
        (FailureKind::ProviderCapacity, "provider_capacity"),
        (FailureKind::ProviderOverloaded, "provider_overloaded"),
        (FailureKind::RateLimited, "rate_limited"),
        (FailureKind::TransportLost, "transport_lost"),
        (FailureKind::AuthFailed, "auth_failed"),
        (FailureKind::ContractRejected, "contract_rejected"),
        (
            FailureKind::OutputBudgetExhausted,
            "output_budget_exhausted",
        ),
        (FailureKind::QuotaExhausted, "quota_exhausted"),
        (FailureKind::SessionMissing, "session_missing"),
        (FailureKind::Unknown, "unknown"),
    ];

    /// The word of the record.
    pub fn as_str(self) -> &'static str {
        Self::ALL
            .iter()
            .find(|(kind, _)| *kind == self)
            .map_or("unknown", |(_, word)| word)
    }

    /// Reads the word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL
            .iter()
            .find(|(_, known)| *known == word)
            .map(|(kind, _)| *kind)
    }

    /// How often it may be tried in all and how long to wait first, for kinds that are worth it.
    pub fn retry(self) -> Option<(i64, i64)> {
        match self {
            FailureKind::ExecutorTimeout => Some((2, 5)),
            FailureKind::ProviderCapacity | FailureKind::ProviderOverloaded => Some((3, 30)),
            FailureKind::RateLimited => Some((3, 60)),
            FailureKind::TransportLost => Some((3, 10)),
            _ => None,
        }
    }

    /// The record of one failed attempt, with what is known about it; nothing of what the host said.
    pub fn record_of(self, attempt: i64, cause: &Cause) -> Value {
        let mut record = self.record(attempt);
        record["cause"] = json!(cause.as_str());
        if let Cause::ExitStatus(status) = cause {
            record["exit_code"] = json!(status);
        }
        record
    }

    /// The record of one failed attempt.
    pub fn record(self, attempt: i64) -> Value {
        let mut record = json!({
            "schema_version": "loopx_turn_host_failure_v0", "kind": self.as_str(), "attempt": attempt, "retryable": false,
        });
        if let Some((max, base)) = self.retry() {
            let doublings = u32::try_from(attempt - 1).unwrap_or(0).min(16);
            record["retryable"] = json!(attempt < max);
            record["retry"] = json!({
                "strategy": "same_configuration", "max_attempts": max, "backoff_seconds": (base << doublings).min(300),
            });
        }
        record
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_wait_doubles_and_is_bounded() {
        assert_eq!(
            FailureKind::RateLimited.record(1)["retry"]["backoff_seconds"],
            60
        );
        assert_eq!(
            FailureKind::RateLimited.record(2)["retry"]["backoff_seconds"],
            120
        );
        assert_eq!(
            FailureKind::RateLimited.record(9)["retry"]["backoff_seconds"],
            300
        );
        assert_eq!(FailureKind::Unknown.record(1).get("retry"), None);
    }
}
