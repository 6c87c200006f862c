//! One goal as the registry holds it: the configuration an operator may edit by hand.
//!
//! Known members are read strictly, because a permission is drawn from them; every other member is kept as it came and
//! given back. Nothing here is runtime state: todos, gates and spends live in the store.

use serde_json::{Map, Number, Value, json};

use super::ids::{AgentId, GoalId};
use super::parse::Label;
use super::quota_policy::QuotaPolicy;
use super::registry_entry::{Parsed, invalid, object, text, texts};

/// Whether a goal may work at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GoalStatus {
    /// At work.
    Active,
    /// Stopped by an operator.
    Stopped,
    /// Paused by an operator.
    Paused,
    /// Put away.
    Archived,
}

impl GoalStatus {
    /// The word in the registry.
    pub const fn as_str(self) -> &'static str {
        match self {
            GoalStatus::Active => "active",
            GoalStatus::Stopped => "stopped",
            GoalStatus::Paused => "paused",
            GoalStatus::Archived => "archived",
        }
    }

    /// A misspelt pause gives no permission: what is no known word is `None`.
    fn parse(text: Option<&str>) -> Option<Self> {
        match text {
            None | Some("active") => Some(GoalStatus::Active),
            Some("stopped") => Some(GoalStatus::Stopped),
            Some("paused") => Some(GoalStatus::Paused),
            Some("archived") => Some(GoalStatus::Archived),
            Some(text) if text.starts_with("active-") => Some(GoalStatus::Active),
            Some(_) => None,
        }
    }
}

/// Whom a goal waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WaitingOn {
    /// The agents: it may work.
    Codex,
    /// The user or the controller.
    UserOrController,
    /// The controller.
    Controller,
    /// Evidence from outside.
    ExternalEvidence,
    /// Nobody is named, or somebody this version does not know.
    Unnamed,
}

impl WaitingOn {
    /// The words the command line takes.
    pub const WORDS: [&'static str; 4] = [
        "codex",
        "user_or_controller",
        "controller",
        "external_evidence",
    ];

    fn parse(text: Option<&str>) -> Self {
        match text {
            Some("codex") => WaitingOn::Codex,
            Some("user_or_controller") => WaitingOn::UserOrController,
            Some("controller") => WaitingOn::Controller,
            Some("external_evidence") => WaitingOn::ExternalEvidence,
            _ => WaitingOn::Unnamed,
        }
    }
}

/// One goal entry.
#[derive(Clone, Debug)]
pub struct Goal {
    /// The goal.
    pub id: GoalId,
    /// Ties the entry to its rows in the store.
    pub instance_id: Option<String>,
    /// Whether it may work.
    pub status: GoalStatus,
    /// Whom it waits for.
    pub waiting_on: WaitingOn,
    /// True when health blocks it.
    pub severity_high: bool,
    /// Free markers, such as `focus_wait`.
    pub lifecycle_flags: Vec<String>,
    /// Named gates an operator has to decide.
    pub missing_gates: Vec<String>,
    /// The spending policy.
    pub quota: QuotaPolicy,
    /// The registered agents in the given order.
    pub agents: Vec<AgentId>,
    /// Paths this goal may write.
    pub write_scope: Vec<String>,
    entry: Map<String, Value>,
}

impl Goal {
    /// Reads one entry of the registry's goal list.
    pub fn parse(at: &Label, entry: &Value) -> Parsed<Self> {
        let map = object(at, entry)?;
        let id = text(at, map, "id")?
            .and_then(GoalId::new)
            .ok_or_else(|| invalid(at.field("id"), "must name a goal"))?;
        let coordination = map.get("coordination").filter(|value| !value.is_null());
        let at_agents = at.field("coordination").field("registered_agents");
        let agents = match coordination {
            None => Vec::new(),
            Some(value) => texts(
                &at_agents,
                object(&at.field("coordination"), value)?.get("registered_agents"),
            )?,
        };
        let agents = agents
            .into_iter()
            .map(|name| {
                AgentId::new(name).ok_or_else(|| invalid(&at_agents, "must hold agent ids"))
            })
            .collect::<Parsed<Vec<_>>>()?;
        Ok(Self {
            instance_id: text(at, map, "instance_id")?.map(str::to_owned),
            status: GoalStatus::parse(text(at, map, "status")?).ok_or_else(|| {
                invalid(
                    at.field("status"),
                    "must be active, stopped, paused or archived",
                )
            })?,
            waiting_on: WaitingOn::parse(text(at, map, "waiting_on")?),
            // An unknown word is no permission: only what is known to be harmless is.
            severity_high: !matches!(text(at, map, "severity")?, None | Some("" | "normal")),
            lifecycle_flags: texts(&at.field("lifecycle_flags"), map.get("lifecycle_flags"))?,
            missing_gates: texts(&at.field("missing_gates"), map.get("missing_gates"))?,
            quota: QuotaPolicy::parse(&at.field("quota"), map.get("quota"))?,
            agents,
            write_scope: texts(&at.field("write_scope"), map.get("write_scope"))?,
            entry: map.clone(),
            id,
        })
    }

    /// A text member of the entry.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.entry
            .get(name)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    }

    /// Any member of the entry.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.entry.get(name)
    }

    /// The whole entry.
    pub fn entry(&self) -> &Map<String, Value> {
        &self.entry
    }

    /// True when an agent is on the roster.
    pub fn has_agent(&self, agent: &AgentId) -> bool {
        self.agents.contains(agent)
    }

    /// True when an agent may only look after monitors; a mode nobody knows is no permission for more.
    pub fn is_monitor_only(&self, agent: &AgentId) -> bool {
        let profiles = self
            .entry
            .get("coordination")
            .and_then(|value| value.get("agent_profiles"));
        let profile = match profiles {
            None | Some(Value::Null) => return false,
            Some(Value::Object(profiles)) => profiles.get(agent.as_str()),
            Some(_) => return true,
        };
        match profile {
            None | Some(Value::Null) => false,
            Some(Value::Object(profile)) => match profile.get("work_mode") {
                None | Some(Value::Null) => false,
                Some(mode) => !matches!(mode.as_str(), Some("" | "normal")),
            },
            Some(_) => true,
        }
    }

    /// A namespace of `control_plane`, such as `periodic_report`.
    pub fn control(&self, namespace: &str) -> Option<&Value> {
        self.entry
            .get("control_plane")
            .and_then(|value| value.get(namespace))
            .filter(|value| !value.is_null())
    }

    /// True when the goal asks for its focus to be kept elsewhere for a while.
    pub fn has_focus_marker(&self) -> bool {
        let marks = ["focus_wait", "continuation_boundary"];
        self.text("lifecycle_phase")
            .is_some_and(|phase| marks.contains(&phase))
            || self
                .lifecycle_flags
                .iter()
                .any(|flag| marks.contains(&flag.as_str()))
    }

    /// The members of the entry nothing here knows; they travel with every decision.
    pub fn extra(&self) -> Map<String, Value> {
        const KNOWN: [&str; 20] = [
            "id",
            "instance_id",
            "title",
            "objective",
            "repo",
            "state_file",
            "source_registry",
            "status",
            "activation",
            "quota",
            "coordination",
            "waiting_on",
            "severity",
            "lifecycle_phase",
            "lifecycle_flags",
            "operator_question",
            "missing_gates",
            "next_action",
            "write_scope",
            "control_plane",
        ];
        let unknown = self
            .entry
            .iter()
            .filter(|(name, _)| !KNOWN.contains(&name.as_str()));
        unknown
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect()
    }
}

/// A fresh entry as `bootstrap` writes it.
pub fn new_entry(id: &GoalId, instance_id: &str, words: &NewGoal) -> Map<String, Value> {
    let entry = json!({
        "id": id, "instance_id": instance_id, "title": words.title, "objective": words.objective, "repo": words.repo,
        "status": "active", "quota": {"compute": Number::from_string_unchecked("1.0".to_owned())},
        "coordination": {"registered_agents": []}, "waiting_on": "codex",
    });
    match entry {
        Value::Object(map) => map,
        _ => Map::new(),
    }
}

/// What `bootstrap` is told about a goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewGoal {
    /// A short name for people.
    pub title: String,
    /// What it is for.
    pub objective: String,
    /// The project folder.
    pub repo: String,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::error::ErrorCode;

    fn goal(value: Value) -> Parsed<Goal> {
        Goal::parse(&Label::named("goals[0]"), &value)
    }

    #[test]
    fn a_mode_or_a_severity_nobody_knows_gives_no_permission() {
        let agent = AgentId::new("lane-a").expect("an id");
        let restricted = |profiles: Value| {
            goal(json!({"id": "g", "coordination": {"agent_profiles": profiles}}))
                .map(|goal| goal.is_monitor_only(&agent))
        };
        for mode in [
            json!("Monitor_only"),
            json!(7),
            json!("monitor_only"),
            json!("x"),
        ] {
            assert_eq!(restricted(json!({"lane-a": {"work_mode": mode}})), Ok(true));
        }
        for profiles in [json!("monitor_only"), json!({"lane-a": "monitor_only"})] {
            assert_eq!(restricted(profiles), Ok(true));
        }
        for profiles in [
            json!({"lane-a": {"work_mode": "normal"}}),
            json!({"lane-a": {}}),
            json!({"lane-b": 7}),
            Value::Null,
        ] {
            assert_eq!(restricted(profiles), Ok(false));
        }
        let is_high = |severity: &str| {
            goal(json!({"id": "g", "severity": severity})).map(|goal| goal.severity_high)
        };
        assert_eq!(is_high("HIGH"), Ok(true));
        assert_eq!(is_high("high"), Ok(true));
        assert_eq!(is_high("normal"), Ok(false));
    }

    #[test]
    fn a_status_nobody_knows_gives_no_permission() {
        for status in ["Paused", "stopped ", "weird"] {
            assert!(
                goal(json!({"id": "g", "status": status})).is_err(),
                "{status}"
            );
        }
    }

    #[test]
    fn an_entry_without_a_status_is_active() {
        for status in [json!(null), json!("active-since-spring")] {
            let goal = goal(json!({"id": "g", "status": status})).unwrap();
            assert_eq!(goal.status, GoalStatus::Active);
        }
    }

    #[test]
    fn unknown_members_are_kept_and_known_ones_are_strict() {
        let known = goal(json!({"id": "g", "title": "t", "weight": 1.50})).unwrap();
        assert_eq!(known.extra().len(), 1);
        for broken in [
            json!({"id": "a/b"}),
            json!({"id": "g", "quota": {"compute": -1}}),
            json!({"id": "g", "missing_gates": "x"}),
        ] {
            assert_eq!(goal(broken).unwrap_err().code, ErrorCode::RegistryInvalid);
        }
    }
}
