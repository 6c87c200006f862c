//! What every flow is handed: the places, the instant, fresh names, and whoever runs a Turn.

use std::rc::Rc;

use crate::contract::time::Timestamp;
use crate::flow::inbox::ports::Providers;
use crate::port::clock::Clock;
use crate::port::host::TurnHost;
use crate::port::ids::Ids;
use crate::port::placement::ConfigPlacement;
use crate::workspace::Workspace;

/// The outside of a flow. The clock is read once per command, so a packet never holds two instants; a command that waited for
/// other programs goes on with `later`.
#[derive(Clone)]
pub struct Ports {
    /// Where registry and runtime root are.
    pub workspace: Workspace,
    /// The instant of the command.
    pub now: Timestamp,
    /// The clock, for what is decided long after the command began.
    pub clock: Rc<dyn Clock>,
    /// Fresh names.
    pub ids: Rc<dyn Ids>,
    /// Runs hosts and validators.
    pub host: Rc<dyn TurnHost>,
    /// Makes the providers of an inbox that is looked at when a turn starts.
    pub inbox: Rc<dyn Providers>,
    /// Looks where a configuration file lies.
    pub placement: Rc<dyn ConfigPlacement>,
    /// The command, for lock records.
    pub operation: String,
}

impl Ports {
    /// The same outside at the instant it is now: a host may have run for hours since the command began.
    pub fn later(&self) -> Self {
        Self {
            now: self.clock.now(),
            ..self.clone()
        }
    }
}
