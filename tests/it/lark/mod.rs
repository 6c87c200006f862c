//! The chat provider and its inboxes, met through the binary and a stand-in for the provider program.

mod crash;
mod history;
mod outbound;
mod recorded;
mod store;
