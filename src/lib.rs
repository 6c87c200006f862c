//! `loopx`: a local-first control plane for long-running agent goals.
//!
//! | room | says |
//! |---|---|
//! | [`contract`] | what we say: typed packets, ids, canonical JSON, digests. No IO, no clock, no decisions |
//! | [`kernel`] | what we decide: pure functions and state machines over contract types |
//! | [`port`] | what we need from outside, as traits |
//! | [`store`] | what we keep: SQLite journals and owner-private files |
//! | `provider` | who we talk to: one folder per provider |
//! | `source` | where facts come from: one adapter each |
//! | `render` | how it looks, pure |
//! | `host` | who runs a turn |
//! | `process` | the one place that spawns |
//! | [`workspace`] | paths, the project, the runtime root, environment variables |
//! | [`flow`] | what happens, in order: one file per effectful command |
//! | [`mod@failpoint`] | named crash points, empty without `test-hooks` |
//! | `compose` | the door: the only place that names concrete providers, sources and hosts |
//! | [`cli`] | arguments in, one packet out |
//!
//! Imports point one way: `cli -> compose, flow -> port, store, kernel, render -> contract`.

#![cfg_attr(test, allow(clippy::too_many_lines))]

pub mod cli;
pub(crate) mod compose;
pub mod contract;
pub mod failpoint;
pub mod flow;
pub(crate) mod host;
pub mod kernel;
pub mod port;
pub(crate) mod process;
pub(crate) mod provider;
pub(crate) mod render;
pub(crate) mod source;
pub mod store;
pub mod workspace;
