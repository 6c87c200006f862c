//! What happens, in order: one file per effectful command, each reads like a numbered list.
//!
//! A flow opens what it needs, asks the kernel, makes the change durable and returns one packet. Nothing here names a
//! provider, a source or a host; nothing here prints.

pub mod backup;
pub mod channel_target;
pub mod doctor;
mod doctor_counts;
mod doctor_receipts;
mod doctor_turns;
pub mod extension;
pub mod extension_catalogue;
pub mod extension_gate;
pub mod generate;
pub mod goal;
pub mod goal_report;
pub mod handoff;
pub mod hooks;
pub mod inbox;
mod mode;
pub mod monitor_poll;
pub mod open;
pub mod operator_gate;
pub mod place;
pub mod ports;
pub mod quota;
pub mod quota_admission;
pub mod quota_ranking;
pub mod quota_spend;
pub mod receipt_repair;
pub mod refresh;
pub mod registry_edit;
pub mod report_contract;
pub mod settle;
pub mod snapshot;
pub mod state_file;
pub mod status;
pub(crate) mod store_code;
pub mod task_lease;
pub mod todo;
pub mod turn;
pub mod writeback;

pub use mode::Mode;
pub use ports::Ports;
