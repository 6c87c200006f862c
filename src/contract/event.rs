//! One event row, `loopx_rollout_event_v0`: public-safe text and scalars only.

use serde_json::{Map, Value, json};

use super::digest;
use super::ids::GoalId;
use super::public_safety;
use super::text;
use super::time::Timestamp;

const FORBIDDEN_KEYS: [&str; 12] = [
    "credential",
    "local_path",
    "log",
    "path",
    "raw",
    "secret",
    "stderr",
    "stdout",
    "task_text",
    "token",
    "trace",
    "trajectory",
];
/// What stands in for a summary that may not be kept.
const WITHHELD: &str = "withheld: not public-safe";

/// What a command wants to record; the store gives it its instant, number and id.
#[derive(Clone, Debug, Default)]
pub struct EventDraft {
    /// The kind.
    pub kind: &'static str,
    /// The acting agent.
    pub agent_id: Option<String>,
    /// The todo it is about.
    pub todo_id: Option<String>,
    /// The Turn instance, or the run.
    pub run_id: Option<String>,
    /// How it went.
    pub status: Option<String>,
    /// One sentence.
    pub summary: String,
    /// Scalars.
    pub details: Map<String, Value>,
    /// Further members of the row, such as `gate_id` or `delivery_outcome`.
    pub more: Map<String, Value>,
    /// Makes the row unique within its goal and kind.
    pub idem_key: Option<String>,
}

impl EventDraft {
    /// A draft of one kind.
    pub fn new(kind: &'static str, summary: &str) -> Self {
        Self {
            kind,
            summary: summary.to_owned(),
            ..Self::default()
        }
    }

    /// Names the agent.
    #[must_use]
    pub fn agent(mut self, agent: Option<&str>) -> Self {
        self.agent_id = agent.map(str::to_owned);
        self
    }

    /// Names the todo.
    #[must_use]
    pub fn todo(mut self, todo: Option<&str>) -> Self {
        self.todo_id = todo.map(str::to_owned);
        self
    }

    /// Names the Turn instance.
    #[must_use]
    pub fn run(mut self, run: Option<&str>) -> Self {
        self.run_id = run.map(str::to_owned);
        self
    }

    /// Says how it went.
    #[must_use]
    pub fn status(mut self, status: &str) -> Self {
        self.status = Some(status.to_owned());
        self
    }

    /// Adds a scalar; keys that could carry private material and values that are no scalar are left out.
    #[must_use]
    pub fn detail(mut self, name: &str, value: impl Into<Value>) -> Self {
        let value = value.into();
        let is_private = FORBIDDEN_KEYS.iter().any(|word| name.contains(word));
        let is_safe = match &value {
            Value::String(words) => public_safety::is_pathless(words),
            Value::Array(_) | Value::Object(_) => false,
            _ => true,
        };
        if !is_private && is_safe {
            self.details.insert(name.to_owned(), value);
        }
        self
    }

    /// Adds a member beside the fixed ones.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.more.insert(name.to_owned(), value.into());
        self
    }

    /// Makes the row unique within its goal and kind.
    #[must_use]
    pub fn once(mut self, key: impl Into<String>) -> Self {
        self.idem_key = Some(key.into());
        self
    }

    /// The row's body with its id; `None` when it has no canonical form.
    pub fn body(&self, goal: &GoalId, recorded_at: Timestamp) -> Option<(String, Value)> {
        let summary = text::collapse(&self.summary);
        let summary = if public_safety::is_pathless(&summary) {
            summary
        } else {
            WITHHELD.to_owned()
        };
        let mut body = json!({
            "schema_version": "loopx_rollout_event_v0",
            "goal_id": goal,
            "event_kind": self.kind,
            "recorded_at": recorded_at,
            "agent_id": self.agent_id,
            "todo_id": self.todo_id,
            "run_id": self.run_id,
            "status": self.status,
            "summary": summary,
            "details": self.details,
            "boundary": {
                "raw_task_text_recorded": false, "raw_logs_recorded": false, "raw_trajectory_recorded": false,
                "raw_session_transcript_recorded": false, "credential_values_recorded": false,
                "absolute_paths_recorded": false,
            },
        });
        let map = body.as_object_mut()?;
        map.extend(self.more.clone());
        let id = digest::event_id(&Value::Object(map.clone())).ok()?;
        map.insert("event_id".to_owned(), json!(id));
        Some((id, body))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_rows_of_the_contract_are_reproduced() {
        let draft = EventDraft::new("todo_complete", "todo completed")
            .agent(Some("lane-a"))
            .todo(Some("todo_a2a97e2e1385"))
            .run(Some("turn-1"))
            .status("done")
            .detail("completion_continuation", "active_goal");
        let at = Timestamp::parse("2026-09-18T09:00:00Z").unwrap();
        let (id, _) = draft.body(&GoalId::new("demo-goal").unwrap(), at).unwrap();
        assert_eq!(id, "ee7297850d695452");
    }

    #[test]
    fn private_details_and_paths_never_enter_a_row() {
        let draft = EventDraft::new("todo_add", "see /home/someone/notes")
            .detail("stdout_tail", "x")
            .detail("note", "/home/someone/x")
            .detail("classification", "/opt/zq/s")
            .detail("count", 1);
        let at = Timestamp::parse("2026-09-18T09:00:00Z").unwrap();
        let (_, body) = draft.body(&GoalId::new("g").unwrap(), at).unwrap();
        assert_eq!(body["details"], json!({"count": 1}));
        assert_eq!(body["summary"], WITHHELD);
    }
}
