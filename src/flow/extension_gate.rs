//! The right to run of a gated command: installed, enabled, verified for this very program, and holding the permission.

use crate::contract::extension::{Activation, ExtensionEntry, Permission, Unavailable};
use crate::kernel::extension;
use crate::store::StoreError;
use crate::store::document::extension_state::ExtensionStateFile;
use crate::workspace::entrypoint;

/// Requires the right to run a command, before anything private is opened.
pub fn require(file: &ExtensionStateFile, permissions: &[Permission]) -> Result<Activation, Gate> {
    let state = file.read()?;
    extension::resolve(&state, permissions, is_same_program).map_err(Gate::Unavailable)
}

/// Why a gated command stops at the gate.
#[derive(Debug, thiserror::Error)]
pub enum Gate {
    #[error(transparent)]
    Unavailable(Unavailable),
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Tells whether the program is the one that was verified.
pub(super) fn is_same_program(entry: &ExtensionEntry) -> bool {
    // Untouched since it was verified: its bytes need not be read again.
    if entry.doctor_verified_entrypoint_facts.is_some()
        && entrypoint::facts().ok() == entry.doctor_verified_entrypoint_facts
    {
        return true;
    }
    let probe = entrypoint::probe().ok().map(|probe| probe.identity);
    probe.is_some() && probe == entry.doctor_verified_entrypoint_identity
}
