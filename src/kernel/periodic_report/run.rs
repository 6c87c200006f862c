//! Composing one run from its receipts.

use super::state;
use crate::contract::periodic_report::run::{Run, RunBoundary, RunRequest, RunSchema};
use crate::contract::periodic_report::vocabulary::Yes;

/// Composes a run.
pub fn compose(request: RunRequest) -> Run {
    let status = state::derive(&request);
    Run {
        ok: Yes,
        schema_version: RunSchema,
        run_state: status.into(),
        retry: state::retry(&request, status),
        run_id: request.run_id,
        idempotency_key: request.idempotency_key,
        generated_at: request.generated_at,
        period_window: request.period_window,
        profile: request.profile,
        source_snapshots: request.source_snapshots,
        artifact_receipt: request.artifact_receipt,
        sink_receipts: request.sink_receipts,
        boundary: RunBoundary,
        trigger_receipt: request.trigger_receipt,
    }
}
