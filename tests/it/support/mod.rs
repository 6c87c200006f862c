//! A sandbox for the binary: its own HOME, project and runtime root, and a cleared environment.

pub(crate) mod lark;
mod run;
mod sandbox;
pub(crate) mod schemas;
pub(crate) mod world;

pub(crate) use run::{Finished, Run};
pub(crate) use sandbox::Sandbox;
