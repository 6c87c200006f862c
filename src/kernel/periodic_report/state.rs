//! Where a run stands and whether it may be tried again.

use crate::contract::periodic_report::run::{Retry, RetryReason, RunRequest, RunStatus};
use crate::contract::periodic_report::vocabulary::{ArtifactStatus, SinkStatus, SourceStatus};

/// Derives where a run stands; the first rule that applies holds.
pub fn derive(request: &RunRequest) -> RunStatus {
    let source = |wanted| {
        request
            .source_snapshots
            .iter()
            .any(|part| part.status == wanted)
    };
    let sink = |wanted| {
        request
            .sink_receipts
            .iter()
            .any(|part| part.status == wanted)
    };
    let artifact = request.artifact_receipt.status;
    if source(SourceStatus::Unknown)
        || artifact == ArtifactStatus::Unknown
        || sink(SinkStatus::Unknown)
    {
        RunStatus::Unknown
    } else if source(SourceStatus::Failed) || artifact == ArtifactStatus::Failed {
        RunStatus::Failed
    } else if artifact == ArtifactStatus::Pending || sink(SinkStatus::Pending) {
        RunStatus::Pending
    } else if sink(SinkStatus::Failed) && !sink(SinkStatus::Sent) {
        RunStatus::Failed
    } else if sink(SinkStatus::Failed) || source(SourceStatus::Partial) || sink(SinkStatus::Skipped)
    {
        RunStatus::Partial
    } else {
        RunStatus::Succeeded
    }
}

/// Decides whether a run may be tried again, and what of it.
pub fn retry(request: &RunRequest, status: RunStatus) -> Retry {
    let components = retryable_components(request);
    let policy = request.retry_policy;
    let reason = match status {
        RunStatus::Succeeded => RetryReason::RunSucceeded,
        RunStatus::Pending => RetryReason::RunNotTerminal,
        _ if policy.attempt >= policy.max_attempts => RetryReason::AttemptLimitReached,
        _ if components.is_empty() => RetryReason::NoRetryableComponent,
        _ => RetryReason::RetryableComponentFailure,
    };
    let allowed = reason == RetryReason::RetryableComponentFailure;
    Retry {
        allowed,
        reason,
        attempt: policy.attempt,
        max_attempts: policy.max_attempts,
        next_attempt: allowed.then_some(policy.attempt + 1),
        retryable_components: components,
    }
}

/// Names every part that has not settled and may be tried again, whatever the state.
fn retryable_components(request: &RunRequest) -> Vec<String> {
    let sources = request
        .source_snapshots
        .iter()
        .filter(|part| part.status != SourceStatus::Complete && part.retryable)
        .map(|part| format!("source:{}", part.source_id));
    let artifact = &request.artifact_receipt;
    let is_open = !matches!(
        artifact.status,
        ArtifactStatus::Rendered | ArtifactStatus::Pending
    );
    let artifact =
        (is_open && artifact.retryable).then(|| format!("artifact:{}", artifact.artifact_id));
    let sinks = request
        .sink_receipts
        .iter()
        .filter(|part| !matches!(part.status, SinkStatus::Sent | SinkStatus::Pending))
        .filter(|part| part.retryable)
        .map(|part| format!("{}:{}", part.sink_role.as_str(), part.sink_id));
    sources.chain(artifact).chain(sinks).collect()
}
