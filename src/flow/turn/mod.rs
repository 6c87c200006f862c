//! `loopx turn …`: plans, runs, resumes and reads Turns.

pub mod asked;
pub mod capture;
mod closing;
pub mod drive;
pub mod health;
mod historical;
pub mod inspect;
pub mod journal_file;
mod journal_lock;
mod lookup;
pub mod managed;
pub mod packet;
pub mod plan;
mod preview;
pub mod read;
pub mod run_once;
pub mod steps;
pub mod unfinished;
