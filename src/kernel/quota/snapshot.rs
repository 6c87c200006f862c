//! What a decision is made from: configuration, unfinished work, decisions, spends and the state of Turns.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use super::places::Places;
use super::refused_gate::RefusedGate;
use crate::contract::goal::Goal;
use crate::contract::ids::{AgentId, ReplanObligationId, TodoId, TurnInstanceId};
use crate::contract::lease::Lease;
use crate::contract::settlement::SettlementIdentity;
use crate::contract::time::Timestamp;
use crate::contract::todo::{Status, Todo};
use crate::contract::vision::Vision;

/// The state of one goal as one agent meets it.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The registry entry.
    pub goal: Goal,
    /// The revision of the registry file.
    pub registry_revision: String,
    /// The revision of the goal's rows.
    pub provider_revision: String,
    /// Unfinished agent todos in selection order.
    pub agent_todos: Vec<Todo>,
    /// Unfinished user todos in selection order.
    pub user_todos: Vec<Todo>,
    /// Finished agent and user todos.
    pub done: (i64, i64),
    /// The todo the question names, if it exists.
    pub named: Option<Todo>,
    /// Gates whose ruling outcome is a refusal.
    pub refusals: Vec<RefusedGate>,
    /// Statuses of todos that others wait for.
    pub awaited: BTreeMap<TodoId, Status>,
    /// Leases that were not released, by their todo.
    pub leases: BTreeMap<TodoId, Lease>,
    /// What was spent inside the window.
    pub spent: Spent,
    /// The agent's newest vision.
    pub vision: Option<Vision>,
    /// True when the newest vision of any agent is open.
    pub has_open_vision: bool,
    /// The place of the run that wrote that vision among all runs.
    pub vision_seq: Option<i64>,
    /// The agent's newest required checkpoint, and the place of its run.
    pub checkpoint: Option<(Value, i64)>,
    /// The obligation the agent acknowledged last, and the place of its run.
    pub last_ack: Option<(ReplanObligationId, i64)>,
    /// True when the last completion said that nothing follows.
    pub ends_without_followup: bool,
    /// What the newest run says to do next.
    pub latest_recommendation: Option<String>,
    /// What is known about the Turn instance of the question.
    pub turn: TurnFacts,
    /// The newest earlier Turn that owes its spend.
    pub owed: Option<Owed>,
    /// The admitted capability intent that comes first.
    pub intent: Option<Map<String, Value>>,
}

/// Slots and counts inside the window.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Spent {
    /// Slots spent and not voided.
    pub slots: i64,
    /// Spends.
    pub spends: i64,
    /// Corrections.
    pub voids: i64,
}

/// A Turn that is written back and not settled.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owed {
    /// The Turn.
    pub identity: SettlementIdentity,
    /// True when the event of its writeback is gone and has to be repaired before anything is spent.
    pub lacks_receipt: bool,
}

/// What is stored about one Turn instance.
#[derive(Clone, Debug, Default)]
pub struct TurnFacts {
    /// The admission's identity.
    pub admitted: Option<SettlementIdentity>,
    /// True when its writeback is committed.
    pub is_written_back: bool,
    /// True when it is settled: spent, or closed without a spend.
    pub is_settled: bool,
}

/// One question.
#[derive(Clone, Debug)]
pub struct Question {
    /// The asking agent; `None` when none was named.
    pub agent: Option<AgentId>,
    /// The one todo it names.
    pub todo: Option<TodoId>,
    /// The obligation it names.
    pub obligation: Option<ReplanObligationId>,
    /// The Turn instance it asks for.
    pub instance: Option<TurnInstanceId>,
    /// What the agent can use.
    pub capabilities: Vec<String>,
    /// The instant.
    pub now: Timestamp,
    /// Registry and runtime root as arguments, for commands that are handed out.
    pub places: Places,
}

/// What an agent can use when it does not say.
pub const STANDARD_CAPABILITIES: [&str; 3] = ["shell", "filesystem_read", "filesystem_write"];
