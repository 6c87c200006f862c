//! What happens with messages, in order: one file per command.
//!
//! Every command finds its configuration, then asks for the right to run, then opens what it needs. A preview changes nothing.

pub mod ack;
mod backlog;
mod capture;
pub mod catch_up;
mod clearance;
pub mod collector_log;
mod collector_loop;
mod collector_report;
pub mod collector_run;
mod collector_signals;
pub mod collector_status;
mod connection;
pub mod context;
mod damage;
mod delivery;
mod document;
pub mod document_comment;
mod document_page;
pub mod document_reply;
pub mod drain;
pub mod error;
pub mod export;
mod hole;
pub mod ingest;
mod lane;
mod live_context;
pub mod marks;
pub mod material_review;
pub mod notify;
pub mod outbound;
mod page;
mod pending;
pub mod ports;
pub mod progress;
pub mod reconcile;
pub mod service;
pub mod turn_start;
mod turn_start_marks;
mod turn_start_route;
pub mod urgency;
