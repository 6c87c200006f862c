//! The chat provider and its inboxes, met through the binary and a stand-in for the provider program.

mod collector;
mod crash;
mod crash_left;
mod desk;
mod document;
mod extension;
mod floor;
mod guidance;
mod history;
mod marks;
mod notify;
mod outbound;
mod outbound_late;
mod recorded;
mod refusals;
mod service;
mod service_run;
mod stop;
mod store;
mod turn_start;
mod urgency;
