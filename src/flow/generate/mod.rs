//! `periodic-report generate`: from nothing to a report on disk (`docs/spec/generate.md`).
//!
//! | file | does |
//! |---|---|
//! | `run` | the order of things |
//! | `command` | what was asked for |
//! | `setting` | profile, instant, zone and window, before anything is read |
//! | `sources` | which sources, and what they say |
//! | `journal` | the rows of a goal, handed to its source |
//! | `compose` | trigger, document, artifacts, bundle: the same core as everywhere |
//! | `publish` | the files on disk |
//! | `answer`, `again` | the packet and the next useful step |
//!
//! Everything it computes goes through the same contracts as the pure commands; nothing leaves the
//! machine.

mod again;
mod answer;
mod command;
mod compose;
mod journal;
mod publish;
mod run;
mod setting;
mod sources;

pub use command::{GenerateCommand, GenerateMode, ReportLanguage, SourceChoice};
pub use run::{Generated, run};
