//! What reports decide: triggers, run states, summaries, audiences, readiness, archives.

pub mod activation;
pub mod archive;
pub mod audience;
pub mod delivery;
pub mod document;
pub mod editorial;
pub mod generation;
pub mod goal_facts;
pub mod materiality;
pub mod readiness;
pub mod run;
pub mod state;
pub mod trigger;
pub mod window;
