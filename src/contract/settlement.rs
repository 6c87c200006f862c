//! The identity a Turn settles under: exactly one binding and the effect id that follows from it.

use serde_json::{Map, Value, json};

use super::ids::{AgentId, GoalId, ReplanObligationId, TodoId, TurnInstanceId};

/// What a Turn is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Binding {
    /// One todo.
    Todo(TodoId),
    /// One replan obligation.
    Replan(ReplanObligationId),
    /// Nothing yet.
    Unbound,
}

impl Binding {
    /// The kind word.
    pub const fn kind(&self) -> &'static str {
        match self {
            Binding::Todo(_) => "todo",
            Binding::Replan(_) => "autonomous_replan",
            Binding::Unbound => "unbound",
        }
    }

    /// The id of the bound thing, empty when there is none.
    pub fn id(&self) -> &str {
        match self {
            Binding::Todo(todo) => todo.as_str(),
            Binding::Replan(obligation) => obligation.as_str(),
            Binding::Unbound => "",
        }
    }

    /// Reads a stored pair.
    pub fn parse(kind: &str, id: &str) -> Option<Self> {
        match kind {
            "todo" => TodoId::new(id).map(Binding::Todo),
            "autonomous_replan" => ReplanObligationId::new(id).map(Binding::Replan),
            "unbound" => Some(Binding::Unbound),
            _ => None,
        }
    }

    /// The bound todo.
    pub fn todo(&self) -> Option<&TodoId> {
        match self {
            Binding::Todo(todo) => Some(todo),
            _ => None,
        }
    }

    /// The bound obligation.
    pub fn obligation(&self) -> Option<&ReplanObligationId> {
        match self {
            Binding::Replan(obligation) => Some(obligation),
            _ => None,
        }
    }
}

/// Goal, agent, binding and Turn instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettlementIdentity {
    /// The goal.
    pub goal: GoalId,
    /// The agent.
    pub agent: AgentId,
    /// The bound thing.
    pub binding: Binding,
    /// The instance: what the caller named, or the Turn key of a driven Turn without one.
    pub instance: TurnInstanceId,
}

impl SettlementIdentity {
    /// The key of everything this Turn does (docs/spec/kernel.md 2.3).
    pub fn effect_id(&self) -> String {
        let (goal, agent, instance) = (&self.goal, &self.agent, &self.instance);
        match &self.binding {
            Binding::Todo(todo) => format!("{goal}:{agent}:{todo}:{instance}"),
            Binding::Replan(obligation) => {
                format!("{goal}:{agent}:autonomous_replan:{obligation}:{instance}")
            }
            Binding::Unbound => format!("{goal}:{agent}::{instance}"),
        }
    }

    /// The key of one step.
    pub fn effect_ref(&self, step: &str) -> String {
        format!("{}#{step}", self.effect_id())
    }

    /// The payload of a packet.
    pub fn to_value(&self) -> Value {
        let mut map = Map::new();
        let schema = match self.binding {
            Binding::Replan(_) => "quota_settlement_identity_v1",
            _ => "quota_settlement_identity_v0",
        };
        map.insert("schema_version".to_owned(), json!(schema));
        map.insert("effect_id".to_owned(), json!(self.effect_id()));
        map.insert("goal_id".to_owned(), json!(self.goal));
        map.insert("agent_id".to_owned(), json!(self.agent));
        map.insert("todo_id".to_owned(), json!(self.binding.todo()));
        map.insert("turn_instance_id".to_owned(), json!(self.instance));
        map.insert("binding_kind".to_owned(), json!(self.binding.kind()));
        map.insert("binding_id".to_owned(), json!(self.binding.id()));
        if let Binding::Replan(obligation) = &self.binding {
            map.insert("replan_obligation_id".to_owned(), json!(obligation));
        }
        Value::Object(map)
    }

    /// Reads the payload of a stored plan; `None` when it names both a todo and an obligation, or neither form.
    pub fn parse(value: &Value) -> Option<Self> {
        let word = |name: &str| value.get(name).and_then(Value::as_str);
        let todo = word("todo_id").filter(|id| !id.is_empty());
        let obligation = word("replan_obligation_id");
        let binding = match (todo, obligation) {
            (Some(todo), None) => Binding::Todo(TodoId::new(todo)?),
            (None, Some(obligation)) => Binding::Replan(ReplanObligationId::new(obligation)?),
            (None, None) => Binding::Unbound,
            (Some(_), Some(_)) => return None,
        };
        let identity = Self {
            goal: GoalId::new(word("goal_id")?)?,
            agent: AgentId::new(word("agent_id")?)?,
            binding,
            instance: TurnInstanceId::new(word("turn_instance_id")?)?,
        };
        (word("effect_id")? == identity.effect_id()).then_some(identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(binding: Binding) -> SettlementIdentity {
        SettlementIdentity {
            goal: GoalId::new("demo-goal").unwrap(),
            agent: AgentId::new("lane-a").unwrap(),
            binding,
            instance: TurnInstanceId::new("turn-2").unwrap(),
        }
    }

    #[test]
    fn effect_ids_follow_the_binding() {
        let obligation = ReplanObligationId::new("replan-90740ca02eede1e1").unwrap();
        let replan = identity(Binding::Replan(obligation));
        assert_eq!(
            replan.effect_id(),
            "demo-goal:lane-a:autonomous_replan:replan-90740ca02eede1e1:turn-2"
        );
        assert_eq!(
            identity(Binding::Unbound).effect_id(),
            "demo-goal:lane-a::turn-2"
        );
    }

    #[test]
    fn what_is_printed_reads_back_equal_and_a_double_binding_is_refused() {
        let todo = identity(Binding::Todo(TodoId::new("todo_abc").unwrap()));
        assert_eq!(
            SettlementIdentity::parse(&todo.to_value()),
            Some(todo.clone())
        );
        let mut both = todo.to_value();
        both["replan_obligation_id"] = json!("replan-90740ca02eede1e1");
        assert_eq!(SettlementIdentity::parse(&both), None);
    }
}
