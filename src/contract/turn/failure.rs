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
