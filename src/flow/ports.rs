//! What every flow is handed: the places, the instant, fresh names, and whoever runs a Turn.

use crate::contract::time::Timestamp;
use crate::flow::inbox::ports::Providers;
use crate::port::host::TurnHost;
use crate::port::ids::Ids;
use crate::port::placement::ConfigPlacement;
use crate::workspace::Workspace;

/// The outside of a flow. The clock is read once per command, so a packet never holds two instants.
pub struct Ports {
    /// Where registry and runtime root are.
    pub workspace: Workspace,
    /// The instant of the command.
    pub now: Timestamp,
    /// Fresh names.
    pub ids: Box<dyn Ids>,
    /// Runs hosts and validators.
    pub host: Box<dyn TurnHost>,
    /// Makes the providers of an inbox that is looked at when a turn starts.
    pub inbox: Box<dyn Providers>,
    /// Looks where a configuration file lies.
    pub placement: Box<dyn ConfigPlacement>,
    /// The command, for lock records.
    pub operation: String,
}
