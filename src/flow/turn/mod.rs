//! `loopx turn …`: plans, runs, resumes and reads Turns.

pub mod asked;
pub mod capture;
pub mod drive;
pub mod journal_file;
pub mod packet;
pub mod plan;
pub mod read;
pub mod run_once;
pub mod steps;
