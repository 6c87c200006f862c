//! Packets of one Turn: what a host is asked, what it may answer, how its failure is recorded.

pub mod failure;
pub mod result;

/// The reserved action of a due inbox reply.
pub const INBOX_REPLY_DUE: &str = "lark_inbox_reply_due";

/// The phases of a Turn in their only order.
pub const PHASES: [&str; 7] = [
    "host_execute",
    "typed_result",
    "validation",
    "durable_writeback",
    "quota_spend",
    "scheduler_apply",
    "scheduler_ack",
];
