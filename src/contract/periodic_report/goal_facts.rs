//! What a goal's journal says about a period, before it becomes items.

use crate::contract::ids::{AgentId, GoalId, TodoId};
use crate::contract::time::Timestamp;

/// A todo that was completed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DoneTodo {
    /// The todo.
    pub todo_id: TodoId,
    /// What was to be done.
    pub text: String,
    /// What proves it: evidence, else a note.
    pub evidence: Option<String>,
    /// When it was completed.
    pub completed_at: Timestamp,
    /// When its row last changed.
    pub updated_at: Timestamp,
    /// Whose lane it was.
    pub agent: Option<AgentId>,
}

/// A todo that is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenTodo {
    /// The todo.
    pub todo_id: TodoId,
    /// What is to be done.
    pub text: String,
    /// More about it: a note, a question to the operator, the reason of a block.
    pub note: Option<String>,
}

/// Everything a goal says about a period.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GoalFacts {
    /// The goal.
    pub goal_id: GoalId,
    /// Todos completed in the period by any agent, the reporter's own first, then the newest.
    pub done: Vec<DoneTodo>,
    /// The first runnable todo that an agent claimed.
    pub next: Option<OpenTodo>,
    /// Open user gates in the order they are selected.
    pub gates: Vec<OpenTodo>,
    /// A blocked todo of the highest priority.
    pub blocked: Option<OpenTodo>,
    /// When the newest todo known at all was completed.
    pub newest: Option<Timestamp>,
}
