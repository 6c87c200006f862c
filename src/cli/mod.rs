//! Arguments in, one packet out.
//!
//! `run` parses the command line, hands it to the family's file and prints what comes back. A
//! family file parses its input, calls the kernel (pure commands) or one flow, and returns an
//! `emit::Reply`; it never prints. A panic anywhere becomes a refusal with exit code 1.

mod args;
mod emit;
mod extension;
mod generate;
mod goal;
mod goal_channel;
mod handoff;
mod inbox_reply;
mod input;
mod kernel_reply;
mod lark_collector;
mod lark_inbox;
mod maintenance;
mod manual;
mod periodic_report;
mod progress;
mod quota;
mod refresh;
mod run;
mod todo;
mod turn;
mod values;

pub use run::run;
