//! Where things are: the project, the registry, the runtime root, the environment.

pub mod contained;
pub mod entrypoint;
pub mod env;
pub mod input;
mod locate;
pub mod scratch;
pub mod zone;

pub use locate::{Workspace, find_project, project_beside};
