//! The packets and documents of periodic reports (`docs/spec/periodic-report-core.md`).

pub mod activation;
pub mod archive;
pub mod archive_root;
pub mod artifact;
pub mod audience;
pub mod delivery;
pub mod document;
pub mod editorial;
pub mod facts;
pub mod generate;
pub mod generation;
pub mod goal_facts;
pub mod hosted;
pub mod identity;
pub mod item;
pub mod limits;
pub mod profile;
pub mod projection;
pub mod readiness;
pub mod run;
pub mod sink;
pub mod source;
pub mod trigger;
pub mod trigger_receipt;
pub mod vocabulary;
