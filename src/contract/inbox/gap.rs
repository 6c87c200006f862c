//! One instant range in which the live stream may have missed messages.

use crate::contract::time::Timestamp;

/// One possible hole; an open one has no end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GapRow {
    pub route_key: String,
    pub started_at: Timestamp,
    pub ended_at: Option<Timestamp>,
    pub reason: String,
}
