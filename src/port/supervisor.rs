//! What keeps a service running on this machine.

use std::path::Path;

use crate::contract::inbox::collector::Supervisor;

/// The machine's supervisor of user services.
pub trait ServiceSupervisor {
    /// Starts an installed service, in place of one that runs.
    fn start(&self, kind: Supervisor, name: &str, file: &Path) -> bool;
    /// Says whether a service runs.
    fn is_active(&self, kind: Supervisor, name: &str) -> bool;
}
