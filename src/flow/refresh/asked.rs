//! One refresh as it is asked for.

use std::path::PathBuf;

use serde_json::{Map, Value};

use crate::contract::ids::{AgentId, GoalId};
use crate::contract::settlement::SettlementIdentity;
use crate::kernel::refresh::{Content, SinkRequest};

/// The way a Turn is closed when its todo is blocked.
pub const BLOCKED_CLOSEOUT: &str = "typed_blocked_writeback_no_spend";

/// A vision as the command line brings it.
#[derive(Clone, Debug, PartialEq)]
pub enum VisionInput {
    /// The whole contract object.
    Whole(Value),
    /// A field-level patch over the agent's latest open vision.
    Patch {
        /// The new state.
        state: Option<String>,
        /// The patched members.
        members: Map<String, Value>,
    },
}

/// One refresh as it is asked for.
#[derive(Clone, Debug)]
pub struct Refresh {
    /// The goal.
    pub goal: GoalId,
    /// The acting agent.
    pub agent: Option<AgentId>,
    /// The Turn: its instance and its one binding.
    pub identity: Option<SettlementIdentity>,
    /// What is written, without the vision.
    pub content: Content,
    /// The vision.
    pub vision: Option<VisionInput>,
    /// Spends for the Turn in the same transaction.
    pub settle: bool,
    /// What is said about outside sinks.
    pub sinks: SinkRequest,
    /// The project.
    pub project: Option<PathBuf>,
    /// A projection of the state in the project.
    pub state_file: Option<PathBuf>,
}

impl Refresh {
    /// True when this call pays for its Turn: a closeout of a blocked todo settles without a spend.
    pub(super) fn pays(&self) -> bool {
        self.settle && self.content.outcome.as_deref() != Some("outcome_gap")
    }
}
