//! One todo record, `todo_item_v0`: known members are checked, unknown ones are kept and given back.

use serde_json::{Map, Value, json};

use super::ids::{AgentId, TodoId};
use super::scope::DecisionScope;
use super::text;
use super::time::Timestamp;

/// Who a todo is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// A person.
    User,
    /// An agent.
    Agent,
}

impl Role {
    /// The word of the record.
    pub const fn as_str(self) -> &'static str {
        match self {
            Role::User => "user",
            Role::Agent => "agent",
        }
    }
}

/// Where a todo stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// To be done.
    Open,
    /// Finished.
    Done,
    /// Held up, with a reason.
    Blocked,
    /// Put off.
    Deferred,
}

impl Status {
    /// The word of the record.
    pub const fn as_str(self) -> &'static str {
        match self {
            Status::Open => "open",
            Status::Done => "done",
            Status::Blocked => "blocked",
            Status::Deferred => "deferred",
        }
    }

    /// Reads the word.
    pub fn parse(text: &str) -> Option<Self> {
        [
            Status::Open,
            Status::Done,
            Status::Blocked,
            Status::Deferred,
        ]
        .into_iter()
        .find(|status| status.as_str() == text)
    }
}

/// The task classes a todo may have.
pub const TASK_CLASSES: [&str; 5] = [
    "advancement_task",
    "continuous_monitor",
    "user_gate",
    "user_action",
    "blocker",
];

/// The rank of a todo without priority.
pub const UNRANKED: i64 = 50;

/// One todo.
#[derive(Clone, Debug, PartialEq)]
pub struct Todo {
    id: TodoId,
    role: Role,
    status: Status,
    body: Map<String, Value>,
}

impl Todo {
    /// Reads a stored record; `None` when it is not one.
    pub fn parse(body: Map<String, Value>) -> Option<Self> {
        let word = |name: &str| body.get(name).and_then(Value::as_str);
        let id = TodoId::new(word("todo_id")?)?;
        let role = match word("role")? {
            "user" => Role::User,
            "agent" => Role::Agent,
            _ => return None,
        };
        let status = Status::parse(word("status")?)?;
        word("text")?;
        Some(Self {
            id,
            role,
            status,
            body,
        })
    }

    /// A new open record.
    pub fn new(id: TodoId, role: Role, words: &str) -> Self {
        let body = json!({
            "schema_version": "todo_item_v0", "todo_id": id, "role": role.as_str(), "status": "open", "done": false,
            "text": words, "archive_state": "active",
        });
        let body = match body {
            Value::Object(map) => map,
            _ => Map::new(),
        };
        Self {
            id,
            role,
            status: Status::Open,
            body,
        }
    }

    /// The todo's id.
    pub fn id(&self) -> &TodoId {
        &self.id
    }

    /// Who it is for.
    pub fn role(&self) -> Role {
        self.role
    }

    /// Where it stands.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Sets where it stands, with the `done` member that follows from it.
    pub fn set_status(&mut self, status: Status) {
        self.status = status;
        self.set("status", json!(status.as_str()));
        self.set("done", json!(status == Status::Done));
    }

    /// A text member that is not empty.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.body
            .get(name)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    }

    /// The words of the todo.
    pub fn words(&self) -> &str {
        self.text("text").unwrap_or("")
    }

    /// Any member.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.body.get(name)
    }

    /// A list of texts; empty when absent.
    pub fn list(&self, name: &str) -> Vec<&str> {
        let items = self.body.get(name).and_then(Value::as_array);
        items
            .map(|items| items.iter().filter_map(Value::as_str).collect())
            .unwrap_or_default()
    }

    /// A boolean member.
    pub fn flag(&self, name: &str) -> bool {
        self.body.get(name) == Some(&Value::Bool(true))
    }

    /// Sets a member; `null` removes it.
    pub fn set(&mut self, name: &str, value: Value) {
        if value.is_null() {
            self.body.shift_remove(name);
        } else {
            self.body.insert(name.to_owned(), value);
        }
    }

    /// The record.
    pub fn body(&self) -> &Map<String, Value> {
        &self.body
    }

    /// The record as a value.
    pub fn to_value(&self) -> Value {
        Value::Object(self.body.clone())
    }

    /// The class, when one is set.
    pub fn task_class(&self) -> Option<&str> {
        self.text("task_class")
    }

    /// True for a todo that looks at something from time to time.
    pub fn is_monitor(&self) -> bool {
        self.role == Role::Agent && self.task_class() == Some("continuous_monitor")
    }

    /// True for a todo that asks a user for a decision: by class or, without one, by what it is about.
    pub fn is_user_gate(&self) -> bool {
        const ABOUT: [&str; 11] = [
            "approval",
            "approve",
            "boundary",
            "gate",
            "blocker",
            "credential",
            "private",
            "production",
            "leaderboard",
            "submission",
            "public_claim",
        ];
        match (self.role, self.task_class()) {
            (Role::User, Some(class)) => class == "user_gate",
            (Role::User, None) => self
                .text("action_kind")
                .is_some_and(|kind| ABOUT.iter().any(|word| kind.contains(word))),
            (Role::Agent, _) => false,
        }
    }

    /// The owner.
    pub fn claimed_by(&self) -> Option<&str> {
        self.text("claimed_by")
    }

    /// True when an agent holds it.
    pub fn is_claimed_by(&self, agent: &AgentId) -> bool {
        self.claimed_by() == Some(agent.as_str())
    }

    /// True when neither a binding nor an exclusion keeps it from an agent.
    pub fn may_go_to(&self, agent: &str) -> bool {
        let is_bound_elsewhere = self.text("bound_agent").is_some_and(|bound| bound != agent);
        !is_bound_elsewhere && !self.list("excluded_agents").contains(&agent)
    }

    /// True for a gate that names nothing it would hold up.
    pub fn is_gate_without_target(&self) -> bool {
        let has_target = self.flag("global_gate")
            || self.text("blocks_agent").is_some()
            || self.text("decision_scope").is_some();
        self.is_user_gate() && !has_target
    }

    /// True when it was put away.
    pub fn is_archived(&self) -> bool {
        self.text("archive_state") == Some("archived")
    }

    /// The rank of its priority, lower first.
    pub fn rank(&self) -> i64 {
        match self
            .text("priority")
            .and_then(|text| text.strip_prefix('P'))
            .map(str::as_bytes)
        {
            Some([digit @ b'0'..=b'4']) => i64::from(digit - b'0'),
            _ => UNRANKED,
        }
    }

    /// The scope this gate decides.
    pub fn decision_scope(&self) -> Option<DecisionScope> {
        self.text("decision_scope").and_then(DecisionScope::parse)
    }

    /// The scopes that must be decided before it may run.
    pub fn required_scopes(&self) -> Vec<DecisionScope> {
        self.list("required_decision_scopes")
            .into_iter()
            .filter_map(DecisionScope::parse)
            .collect()
    }

    /// When a monitor is due next.
    pub fn next_due_at(&self) -> Option<Timestamp> {
        self.text("next_due_at").and_then(Timestamp::parse)
    }

    /// The continuation its owner declared for a completing host, if any.
    pub fn completion_intent(&self) -> Option<&str> {
        self.body
            .get("completion_intent")
            .and_then(|value| value.get("continuation"))
            .and_then(Value::as_str)
    }

    /// The digest input of a handoff: the record without what changes when it is talked about.
    pub fn facts(&self) -> Value {
        let talk = ["note", "updated_at", "last_actor_agent_id"];
        let facts = self
            .body
            .iter()
            .filter(|(name, _)| !talk.contains(&name.as_str()));
        Value::Object(
            facts
                .map(|(name, value)| (name.clone(), value.clone()))
                .collect(),
        )
    }

    /// The text a generated id is made of.
    pub fn compact_words(&self) -> String {
        text::collapse(self.words())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn todo(extra: Value) -> Todo {
        let mut todo = Todo::new(TodoId::new("todo_abc").unwrap(), Role::Agent, "do it");
        for (name, value) in extra.as_object().unwrap() {
            todo.set(name, value.clone());
        }
        Todo::parse(todo.body().clone()).unwrap()
    }

    #[test]
    fn the_rank_follows_the_priority_and_a_missing_one_is_late() {
        assert_eq!(todo(json!({"priority": "P0"})).rank(), 0);
        assert_eq!(todo(json!({"priority": "P4"})).rank(), 4);
        assert_eq!(todo(json!({})).rank(), UNRANKED);
    }

    #[test]
    fn a_user_todo_without_class_is_a_gate_by_what_it_is_about() {
        let gate = todo(json!({"role": "user", "action_kind": "publish_approval"}));
        assert!(gate.is_user_gate());
        assert!(!todo(json!({"role": "user", "action_kind": "read_mail"})).is_user_gate());
        assert!(
            !todo(json!({"role": "user", "task_class": "user_action", "action_kind": "approve"}))
                .is_user_gate()
        );
    }

    #[test]
    fn unknown_members_survive() {
        assert_eq!(todo(json!({"weight": 1})).get("weight"), Some(&json!(1)));
    }
}
