//! The vision contract of one agent, `goal_vision_replan_contract_v0`: known members are bounded, unknown ones are kept.

use serde_json::{Map, Value};

use super::error::{ContractError, ErrorCode};
use super::ids::AgentId;
use super::parse::Label;
use super::text;

type Parsed<T> = Result<T, ContractError>;

/// The schema of a vision.
pub const SCHEMA: &str = "goal_vision_replan_contract_v0";

const CLOSED: [&str; 5] = [
    "vision_closed",
    "retired",
    "retired_or_superseded",
    "superseded",
    "no_followup",
];
const PATCH_LIMITS: [(&str, usize); 7] = [
    ("vision_summary", 420),
    ("role_scope", 280),
    ("acceptance_summary", 420),
    ("advancement_policy", 32),
    ("replan_trigger_summary", 240),
    ("dreaming_policy", 240),
    ("last_patch_summary", 240),
];
const PATCH_TOTAL: usize = 1200;
const PATH_TEXTS: [(&str, usize); 3] = [
    ("prior_assumption", 220),
    ("observed_reality", 220),
    ("reentry_condition", 180),
];
const PATH_LISTS: [(&str, usize, usize); 5] = [
    ("retained", 3, 120),
    ("changed", 3, 120),
    ("stopped", 3, 120),
    ("unresolved_questions", 2, 140),
    ("evidence_refs", 4, 140),
];
const PATH_OUTCOMES: [&str; 6] = [
    "continue",
    "replan",
    "wait",
    "no_change",
    "ask_human",
    "stop",
];

/// One vision.
#[derive(Clone, Debug, PartialEq)]
pub struct Vision {
    body: Map<String, Value>,
}

impl Vision {
    /// Reads a vision written by `agent`.
    pub fn parse(value: &Value, agent: &AgentId) -> Parsed<Self> {
        let at = Label::named("agent_vision");
        let map = value
            .as_object()
            .ok_or_else(|| invalid(&at, "must be an object"))?;
        let mut body = map.clone();
        if body
            .get("schema_version")
            .is_some_and(|found| found != SCHEMA)
        {
            return Err(invalid(
                at.field("schema_version"),
                "must be goal_vision_replan_contract_v0",
            ));
        }
        body.insert("schema_version".to_owned(), SCHEMA.into());
        let state = body.get("state").and_then(Value::as_str).unwrap_or("open");
        if !is_state(state) {
            return Err(invalid(at.field("state"), "must be lower snake case"));
        }
        let state = match state {
            "satisfied" | "vision_satisfied" => "vision_closed".to_owned(),
            other => other.to_owned(),
        };
        body.insert("state".to_owned(), state.into());
        if body
            .get("agent_id")
            .is_some_and(|found| !found.is_null() && found != agent.as_str())
        {
            return Err(invalid(
                at.field("agent_id"),
                "must be the agent that writes it",
            ));
        }
        body.insert("agent_id".to_owned(), agent.as_str().into());
        check_patch(&at.field("vision_patch"), body.get("vision_patch"))?;
        check_path(&at.field("path_delta"), body.get("path_delta"))?;
        Ok(Self { body })
    }

    /// A stored vision.
    pub fn stored(body: Map<String, Value>) -> Self {
        Self { body }
    }

    /// The contract object.
    pub fn body(&self) -> &Map<String, Value> {
        &self.body
    }

    /// The contract object as a value.
    pub fn to_value(&self) -> Value {
        Value::Object(self.body.clone())
    }

    /// Where it stands.
    pub fn state(&self) -> &str {
        self.body
            .get("state")
            .and_then(Value::as_str)
            .unwrap_or("open")
    }

    /// True unless it is in one of the closed states.
    pub fn is_open(&self) -> bool {
        !CLOSED.contains(&self.state())
    }

    /// True when it was closed as reached, which asks for a successor.
    pub fn is_reached(&self) -> bool {
        self.state() == "vision_closed"
    }

    /// The instant of the run that wrote it.
    pub fn generated_at(&self) -> Option<&str> {
        self.body.get("generated_at").and_then(Value::as_str)
    }

    /// Sets the instant of the run that writes it.
    pub fn set_generated_at(&mut self, instant: &str) {
        self.body.insert("generated_at".to_owned(), instant.into());
    }

    /// The agent.
    pub fn agent_id(&self) -> Option<&str> {
        self.body.get("agent_id").and_then(Value::as_str)
    }

    /// A member of the patch.
    pub fn patch(&self, name: &str) -> Option<&str> {
        self.member("vision_patch", name)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    }

    /// The outcome of the path.
    pub fn path_outcome(&self) -> Option<&str> {
        self.member("path_delta", "outcome").and_then(Value::as_str)
    }

    /// True when the path names evidence.
    pub fn has_evidence(&self) -> bool {
        self.member("path_delta", "evidence_refs")
            .and_then(Value::as_array)
            .is_some_and(|refs| !refs.is_empty())
    }

    /// The same contract with some members of the patch replaced and no path: what the inline flags write.
    pub fn patched(
        base: Option<&Vision>,
        state: Option<&str>,
        patch: &Map<String, Value>,
    ) -> Value {
        let mut body = base.map(|vision| vision.body.clone()).unwrap_or_default();
        body.shift_remove("path_delta");
        body.shift_remove("generated_at");
        if let Some(state) = state {
            body.insert("state".to_owned(), state.into());
        }
        let mut merged = body
            .get("vision_patch")
            .and_then(Value::as_object)
            .cloned()
            .unwrap_or_default();
        merged.extend(patch.clone());
        body.insert("vision_patch".to_owned(), Value::Object(merged));
        Value::Object(body)
    }

    fn member(&self, object: &str, name: &str) -> Option<&Value> {
        self.body.get(object).and_then(|value| value.get(name))
    }
}

fn check_patch(at: &Label, value: Option<&Value>) -> Parsed<()> {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Ok(());
    };
    let map = value
        .as_object()
        .ok_or_else(|| invalid(at, "must be an object"))?;
    let mut total = 0;
    for (name, max) in PATCH_LIMITS {
        total += check_text(&at.field(name), map.get(name), max)?;
    }
    if total > PATCH_TOTAL {
        return Err(over_budget(at, "is longer than 1200 characters in all"));
    }
    match map.get("advancement_policy").and_then(Value::as_str) {
        None | Some("as_needed" | "repeat_until_closed") => Ok(()),
        Some(_) => Err(invalid(
            at.field("advancement_policy"),
            "must be as_needed or repeat_until_closed",
        )),
    }
}

fn check_path(at: &Label, value: Option<&Value>) -> Parsed<()> {
    let Some(value) = value.filter(|value| !value.is_null()) else {
        return Ok(());
    };
    let map = value
        .as_object()
        .ok_or_else(|| invalid(at, "must be an object"))?;
    if map
        .get("schema_version")
        .is_some_and(|found| found != "goal_path_delta_v0")
    {
        return Err(invalid(
            at.field("schema_version"),
            "must be goal_path_delta_v0",
        ));
    }
    match map.get("outcome").and_then(Value::as_str) {
        Some(outcome) if PATH_OUTCOMES.contains(&outcome) => {}
        _ => {
            return Err(invalid(
                at.field("outcome"),
                "must be continue, replan, wait, no_change, ask_human or stop",
            ));
        }
    }
    for (name, max) in PATH_TEXTS {
        check_text(&at.field(name), map.get(name), max)?;
    }
    for (name, items, max) in PATH_LISTS {
        check_list(&at.field(name), map.get(name), (items, max))?;
    }
    Ok(())
}

fn check_text(at: &Label, value: Option<&Value>, max: usize) -> Parsed<usize> {
    match value {
        None | Some(Value::Null) => Ok(0),
        Some(Value::String(text)) if text::is_longer_than(text, max) => {
            Err(over_budget(at, "is too long"))
        }
        Some(Value::String(text)) => Ok(text::length(text)),
        Some(_) => Err(invalid(at, "must be a text")),
    }
}

fn check_list(at: &Label, value: Option<&Value>, (items, max): (usize, usize)) -> Parsed<()> {
    match value {
        None | Some(Value::Null) => Ok(()),
        Some(Value::Array(list)) if list.len() > items => {
            Err(over_budget(at, "has too many items"))
        }
        Some(Value::Array(list)) => {
            for (index, item) in list.iter().enumerate() {
                check_text(&at.item(index), Some(item), max)?;
            }
            Ok(())
        }
        Some(_) => Err(invalid(at, "must be a list of texts")),
    }
}

fn is_state(text: &str) -> bool {
    let mut bytes = text.bytes();
    text.len() <= 64
        && bytes.next().is_some_and(|byte| byte.is_ascii_lowercase())
        && bytes.all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

fn invalid(at: impl std::fmt::Display, reason: &'static str) -> ContractError {
    ContractError::invalid(at, reason)
}

fn over_budget(at: impl std::fmt::Display, reason: &'static str) -> ContractError {
    ContractError::coded(ErrorCode::VisionBudgetExceeded, at, reason)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn agent() -> AgentId {
        AgentId::new("lane-a").unwrap()
    }

    #[test]
    fn closure_words_have_one_form_and_unknown_members_stay() {
        let vision = Vision::parse(
            &json!({"state": "satisfied", "weight": [1], "vision_patch": {"x": 1}}),
            &agent(),
        )
        .unwrap();
        assert!(vision.is_reached() && !vision.is_open());
        assert_eq!(vision.body().get("weight"), Some(&json!([1])));
    }

    #[test]
    fn what_is_over_budget_is_refused_as_a_whole() {
        let long = "x".repeat(421);
        let refused = Vision::parse(&json!({"vision_patch": {"vision_summary": long}}), &agent())
            .unwrap_err();
        assert_eq!(refused.code, ErrorCode::VisionBudgetExceeded);
        let many = json!({"path_delta": {"outcome": "continue", "retained": ["a", "b", "c", "d"]}});
        assert_eq!(
            Vision::parse(&many, &agent()).unwrap_err().code,
            ErrorCode::VisionBudgetExceeded
        );
    }

    #[test]
    fn another_agents_vision_is_refused() {
        assert!(Vision::parse(&json!({"agent_id": "lane-b"}), &agent()).is_err());
    }

    #[test]
    fn an_inline_patch_keeps_the_rest_and_drops_the_path() {
        let base = Vision::parse(
            &json!({"vision_patch": {"vision_summary": "a"}, "path_delta": {"outcome": "stop"}}),
            &agent(),
        )
        .unwrap();
        let patch = json!({"role_scope": "r"});
        let patched = Vision::patched(
            Some(&base),
            Some("vision_closed"),
            patch.as_object().unwrap(),
        );
        assert_eq!(
            patched["vision_patch"],
            json!({"vision_summary": "a", "role_scope": "r"})
        );
        assert_eq!(patched.get("path_delta"), None);
    }
}
