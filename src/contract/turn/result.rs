//! What a host answers, `loopx_turn_result_v0`: a closed object whose kind fixes what it must hold.

use serde_json::{Map, Value, json};

use crate::contract::error::ContractError;
use crate::contract::ids::{AgentId, TurnKey};
use crate::contract::json;
use crate::contract::parse::Label;
use crate::contract::public_safety;
use crate::contract::text;
use crate::contract::vision::Vision;

type Parsed<T> = Result<T, ContractError>;

/// The most bytes a host may print.
pub const MAX_BYTES: usize = 12_000;

const FIELDS: [&str; 14] = [
    "schema_version",
    "turn_key",
    "result_kind",
    "completed_phases",
    "classification",
    "recommended_action",
    "next_action",
    "delivery_batch_scale",
    "delivery_outcome",
    "vision_unchanged_reason",
    "path_delta_mode",
    "agent_vision_json",
    "summary",
    "reward_memory_reflection_json",
];
/// The delivery scales.
pub const SCALES: [&str; 4] = [
    "test_only",
    "single_surface",
    "multi_surface",
    "implementation",
];
/// The delivery outcomes.
pub const OUTCOMES: [&str; 4] = [
    "surface_only",
    "outcome_gap",
    "outcome_progress",
    "primary_goal_outcome",
];

/// What kind of result it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum ResultKind {
    ValidatedProgress,
    RepairRequired,
    ReplanRequired,
    ValidatedCompletion,
    UserActionRequired,
    Wait,
}

impl ResultKind {
    fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "validated_progress" => ResultKind::ValidatedProgress,
            "repair_required" => ResultKind::RepairRequired,
            "replan_required" => ResultKind::ReplanRequired,
            "validated_completion" => ResultKind::ValidatedCompletion,
            "user_action_required" => ResultKind::UserActionRequired,
            "wait" => ResultKind::Wait,
            _ => return None,
        })
    }

    /// The word of the record.
    pub const fn as_str(self) -> &'static str {
        match self {
            ResultKind::ValidatedProgress => "validated_progress",
            ResultKind::RepairRequired => "repair_required",
            ResultKind::ReplanRequired => "replan_required",
            ResultKind::ValidatedCompletion => "validated_completion",
            ResultKind::UserActionRequired => "user_action_required",
            ResultKind::Wait => "wait",
        }
    }

    /// True when it has to be written back.
    pub const fn is_material(self) -> bool {
        !matches!(self, ResultKind::UserActionRequired | ResultKind::Wait)
    }
}

/// One accepted result.
#[derive(Clone, Debug, PartialEq)]
pub struct HostResult {
    /// Its kind.
    pub kind: ResultKind,
    /// The vision it writes, if it replans.
    pub vision: Option<Value>,
    body: Map<String, Value>,
}

impl HostResult {
    /// Reads what a host printed for this Turn.
    pub fn parse(bytes: &[u8], key: &TurnKey, agent: &AgentId) -> Parsed<Self> {
        let at = Label::named("result");
        let body = json::parse_object(bytes).map_err(|_| invalid(&at, "is not one JSON object"))?;
        // What the host says is told to others: the scan comes before anything is taken out of it. A result that is stored
        // already is read again without it.
        public_safety::guard_words(&at, &Value::Object(body.clone()))?;
        let result = Self::read(body, key, agent)?;
        if let Some(vision) = &result.vision {
            public_safety::guard_words(&at.field("agent_vision_json"), vision)?;
        }
        Ok(result)
    }

    /// Reads a result object.
    pub fn read(body: Map<String, Value>, key: &TurnKey, agent: &AgentId) -> Parsed<Self> {
        let at = Label::named("result");
        if let Some(unknown) = body.keys().find(|name| !FIELDS.contains(&name.as_str())) {
            return Err(invalid(at.field(unknown), "is not a field of a result"));
        }
        let word = |name: &str| body.get(name).and_then(Value::as_str);
        if word("schema_version") != Some("loopx_turn_result_v0") {
            return Err(invalid(
                at.field("schema_version"),
                "must be loopx_turn_result_v0",
            ));
        }
        if word("turn_key") != Some(key.as_str()) {
            return Err(invalid(at.field("turn_key"), "must be this Turn's"));
        }
        if body.get("completed_phases") != Some(&json!(["host_execute", "typed_result"])) {
            return Err(invalid(
                at.field("completed_phases"),
                "must be exactly host_execute and typed_result",
            ));
        }
        let kind = word("result_kind").and_then(ResultKind::parse);
        let kind = kind
            .ok_or_else(|| invalid(at.field("result_kind"), "must be a kind a host may answer"))?;
        for (name, max) in [
            ("classification", 120),
            ("recommended_action", 1200),
            ("next_action", 1200),
            ("vision_unchanged_reason", 240),
            ("agent_vision_json", 3200),
            ("summary", 400),
            ("reward_memory_reflection_json", 3200),
        ] {
            bounded(&at, &body, name, max)?;
        }
        let vision = if kind.is_material() {
            material(&at, &body, kind, agent)?
        } else {
            immaterial(&at, &body)?
        };
        Ok(Self { kind, vision, body })
    }

    /// The result object.
    pub fn body(&self) -> &Map<String, Value> {
        &self.body
    }

    /// A text of the result.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.body
            .get(name)
            .and_then(Value::as_str)
            .filter(|text| !text.is_empty())
    }
}

fn material(
    at: &Label,
    body: &Map<String, Value>,
    kind: ResultKind,
    agent: &AgentId,
) -> Parsed<Option<Value>> {
    let word = |name: &str| {
        body.get(name)
            .and_then(Value::as_str)
            .filter(|text| !text::trim(text).is_empty())
    };
    for name in ["classification", "recommended_action", "next_action"] {
        word(name).ok_or_else(|| invalid(at.field(name), "is required"))?;
    }
    if !word("delivery_batch_scale").is_some_and(|scale| SCALES.contains(&scale)) {
        return Err(invalid(
            at.field("delivery_batch_scale"),
            "must be a known scale",
        ));
    }
    if !word("delivery_outcome").is_some_and(|outcome| OUTCOMES.contains(&outcome)) {
        return Err(invalid(
            at.field("delivery_outcome"),
            "must be a known outcome",
        ));
    }
    match word("path_delta_mode") {
        Some("unchanged") => {
            word("vision_unchanged_reason")
                .ok_or_else(|| invalid(at.field("vision_unchanged_reason"), "is required"))?;
            match word("agent_vision_json") {
                None => Ok(None),
                Some(_) => Err(invalid(
                    at.field("agent_vision_json"),
                    "goes with material_replan only",
                )),
            }
        }
        Some("material_replan") if kind == ResultKind::ReplanRequired => {
            replan(at, word("agent_vision_json"), agent).map(Some)
        }
        _ => Err(invalid(
            at.field("path_delta_mode"),
            "must be unchanged, or material_replan with replan_required",
        )),
    }
}

fn replan(at: &Label, written: Option<&str>, agent: &AgentId) -> Parsed<Value> {
    let at = at.field("agent_vision_json");
    let written = written.ok_or_else(|| invalid(&at, "is required"))?;
    let value =
        json::parse(written.as_bytes()).map_err(|_| invalid(&at, "must hold one JSON object"))?;
    let vision = Vision::parse(&value, agent)?;
    if vision.path_outcome() != Some("replan") {
        return Err(invalid(
            at.field("path_delta"),
            "must have the outcome replan",
        ));
    }
    Ok(value)
}

fn immaterial(at: &Label, body: &Map<String, Value>) -> Parsed<Option<Value>> {
    for name in ["path_delta_mode", "agent_vision_json"] {
        if body.get(name).is_some_and(|value| !value.is_null()) {
            return Err(invalid(at.field(name), "goes with a material result only"));
        }
    }
    Ok(None)
}

fn bounded(at: &Label, body: &Map<String, Value>, name: &str, max: usize) -> Parsed<()> {
    match body.get(name) {
        None | Some(Value::Null) => Ok(()),
        Some(Value::String(text)) if !text::is_longer_than(text, max) => Ok(()),
        Some(Value::String(_)) => Err(invalid(at.field(name), "is too long")),
        Some(_) => Err(invalid(at.field(name), "must be a text")),
    }
}

fn invalid(at: impl std::fmt::Display, reason: &'static str) -> ContractError {
    ContractError::invalid(at, reason)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(change: &[(&str, Value)]) -> Parsed<HostResult> {
        let key = TurnKey::new(format!("sha256:{}", "0".repeat(64))).unwrap();
        let mut body = json!({
            "schema_version": "loopx_turn_result_v0", "turn_key": key, "result_kind": "validated_progress",
            "completed_phases": ["host_execute", "typed_result"], "classification": "c", "recommended_action": "r", "next_action": "n",
            "delivery_batch_scale": "implementation", "delivery_outcome": "outcome_progress", "path_delta_mode": "unchanged",
            "vision_unchanged_reason": "same",
        });
        for (name, value) in change {
            body[*name] = value.clone();
        }
        HostResult::read(
            body.as_object().unwrap().clone(),
            &key,
            &AgentId::new("lane-a").unwrap(),
        )
    }

    #[test]
    fn a_host_answers_only_kinds_of_its_own() {
        assert!(read(&[]).is_ok());
        for kind in [
            "host_failure",
            "validation_failed",
            "quota_spend_failed",
            "",
        ] {
            assert!(read(&[("result_kind", json!(kind))]).is_err(), "{kind}");
        }
    }

    #[test]
    fn unknown_fields_other_phases_and_long_texts_are_refused() {
        assert!(read(&[("quota_spent", json!(true))]).is_err());
        assert!(
            read(&[(
                "completed_phases",
                json!(["host_execute", "typed_result", "validation"])
            )])
            .is_err()
        );
        assert!(read(&[("classification", json!("x".repeat(121)))]).is_err());
        assert!(read(&[("error_code", json!("x"))]).is_err());
    }

    #[test]
    fn a_wait_carries_no_path() {
        assert!(read(&[("result_kind", json!("wait"))]).is_err());
        assert!(
            read(&[
                ("result_kind", json!("wait")),
                ("path_delta_mode", Value::Null)
            ])
            .is_ok()
        );
    }

    #[test]
    fn a_replan_brings_a_vision_that_replans() {
        let vision = json!({"path_delta": {"outcome": "replan"}}).to_string();
        let replan = [
            ("result_kind", json!("replan_required")),
            ("path_delta_mode", json!("material_replan")),
        ];
        assert!(read(&replan).is_err());
        let mut full = replan.to_vec();
        full.push(("agent_vision_json", json!(vision)));
        assert!(read(&full).unwrap().vision.is_some());
    }
}
