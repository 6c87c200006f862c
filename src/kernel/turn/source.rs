//! The complete source: composed once, before capture, and handed on unchanged (docs/spec/kernel.md 7.1, 7.2).

use serde_json::{Map, Value, json};

use super::controls;
use crate::contract::canonical;
use crate::contract::error::ErrorCode;
use crate::contract::packet::Refusal;
use crate::contract::settlement::SettlementIdentity;
use crate::contract::time::Timestamp;

/// The schema of a source.
pub const SCHEMA: &str = "loopx_turn_source_v1";
const MAX_BYTES: usize = 16_777_216;

/// Who settles a Turn of this source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settler {
    /// The driver, step by step.
    Driver,
    /// The agent, with one command.
    Agent,
}

impl Settler {
    const fn as_str(self) -> &'static str {
        match self {
            Settler::Driver => "driver",
            Settler::Agent => "agent",
        }
    }
}

/// Where and how a source will be executed.
#[derive(Clone, Debug)]
pub struct Surface {
    /// The kind of host.
    pub host: String,
    /// Visible or isolated.
    pub execution_mode: String,
    /// Who schedules the next wake.
    pub scheduler_owner: String,
    /// Canonical hash of the registry's path.
    pub registry_ref: String,
    /// Canonical hash of the runtime root's path.
    pub runtime_ref: String,
    /// Who settles.
    pub settler: Settler,
}

/// A complete source that may be executed.
#[derive(Clone, Debug, PartialEq)]
pub struct CompleteSource {
    value: Value,
}

impl CompleteSource {
    /// The source object.
    pub fn value(&self) -> &Value {
        &self.value
    }

    /// The complete decision in it.
    pub fn decision(&self) -> &Map<String, Value> {
        decision_of(&self.value)
    }

    /// A source read back from a plan; it is checked as strictly as a fresh one.
    pub fn stored(value: &Value) -> Result<Self, Refusal> {
        if value.get("schema_version").and_then(Value::as_str) != Some(SCHEMA) {
            return Err(controls::unsupported("the source is of another version"));
        }
        let source = Self {
            value: value.clone(),
        };
        controls::check(source.decision())?;
        check_receipt_place(source.decision())?;
        Ok(source)
    }
}

/// The decision inside a source object.
pub fn decision_of(source: &Value) -> &Map<String, Value> {
    static EMPTY: std::sync::LazyLock<Map<String, Value>> = std::sync::LazyLock::new(Map::new);
    source
        .get("decision")
        .and_then(Value::as_object)
        .unwrap_or(&EMPTY)
}

/// Composes the source of one decision. Nothing else builds one.
pub fn compose(
    decision: &Map<String, Value>,
    expected: (&str, &str),
    (surface, receipt): (&Surface, Option<&SettlementIdentity>),
    observed_at: Timestamp,
) -> Result<CompleteSource, Refusal> {
    check_identity(decision, expected)?;
    check_receipt(decision, receipt)?;
    check_receipt_place(decision)?;
    controls::check(decision)?;
    let has_receipt = decision.contains_key("heartbeat_receipt");
    let admission = if has_receipt {
        json!({"$ref": "#/decision/heartbeat_receipt"})
    } else {
        Value::Null
    };
    let mut value = json!({
        "schema_version": SCHEMA,
        "decision": null,
        "admission": admission,
        "execution": {
            "host_surface": surface.host,
            "execution_mode": surface.execution_mode,
            "scheduler_owner": surface.scheduler_owner,
            "registry_ref": surface.registry_ref,
            "runtime_ref": surface.runtime_ref,
            "settled_by": surface.settler.as_str(),
        },
        "observed_at": observed_at,
        "provider_revision": decision.get("provider_revision"),
        "registry_revision": decision.get("registry_revision"),
    });
    // The decision is moved, not serialised again: that would respell its numbers.
    value["decision"] = Value::Object(decision.clone());
    match canonical::compact(&value) {
        Ok(text) if text.len() <= MAX_BYTES => Ok(CompleteSource { value }),
        Ok(_) => Err(Refusal::new(
            ErrorCode::TurnSourceInvalidJson,
            "the source is larger than 16777216 bytes; shrink the goal's todos",
        )),
        Err(_) => Err(Refusal::new(
            ErrorCode::TurnSourceInvalidJson,
            "the source holds a number that is not finite; fix it",
        )),
    }
}

fn check_identity(
    decision: &Map<String, Value>,
    (goal, agent): (&str, &str),
) -> Result<(), Refusal> {
    let word = |name: &str| decision.get(name).and_then(Value::as_str);
    if word("goal_id") == Some(goal) && word("agent_id") == Some(agent) {
        return Ok(());
    }
    let text = "the decision belongs to another goal or agent; ask again for this one";
    Err(Refusal::new(ErrorCode::TurnSourceIdentityMismatch, text))
}

/// A receipt has to be of the same goal, agent, Turn and binding as the selection.
fn check_receipt(
    decision: &Map<String, Value>,
    receipt: Option<&SettlementIdentity>,
) -> Result<(), Refusal> {
    let mismatch = || {
        Refusal::new(
            ErrorCode::TurnSourceReceiptMismatch,
            "the receipt belongs to another Turn or binding; use a fresh instance id",
        )
    };
    let Some(view) = decision.get("heartbeat_receipt") else {
        return Ok(());
    };
    let Some(identity) = view
        .get("settlement_identity")
        .filter(|identity| !identity.is_null())
    else {
        return Ok(());
    };
    let found = SettlementIdentity::parse(identity).ok_or_else(mismatch)?;
    let is_same_place = decision.get("goal_id").and_then(Value::as_str)
        == Some(found.goal.as_str())
        && decision.get("agent_id").and_then(Value::as_str) == Some(found.agent.as_str())
        && view.get("turn_instance_id").and_then(Value::as_str) == Some(found.instance.as_str());
    let selected = decision
        .get("selected_todo")
        .and_then(|todo| todo.get("todo_id"))
        .and_then(Value::as_str);
    let is_same_binding = match (selected, found.binding.todo()) {
        (Some(selected), Some(bound)) => selected == bound.as_str(),
        (Some(_), None) => false,
        (None, _) => true,
    };
    let is_expected = receipt.is_none_or(|receipt| *receipt == found);
    if is_same_place && is_same_binding && is_expected {
        Ok(())
    } else {
        Err(mismatch())
    }
}

/// The receipt stands at one place only.
fn check_receipt_place(decision: &Map<String, Value>) -> Result<(), Refusal> {
    let elsewhere = decision
        .iter()
        .filter(|(name, _)| *name != "heartbeat_receipt");
    let count = elsewhere
        .map(|(_, value)| receipts_in(value))
        .sum::<usize>();
    let inner = decision.get("heartbeat_receipt").map_or(0, receipts_in);
    if count == 0 && inner <= 1 {
        return Ok(());
    }
    Err(Refusal::new(
        ErrorCode::TurnSourceReceiptDuplicated,
        "the receipt stands at two places of the decision; nothing was started",
    ))
}

fn receipts_in(value: &Value) -> usize {
    match value {
        Value::Array(items) => items.iter().map(receipts_in).sum(),
        Value::Object(map) => {
            let own = usize::from(
                map.get("schema_version").and_then(Value::as_str)
                    == Some("heartbeat_quota_receipt_v0"),
            );
            own + map.values().map(receipts_in).sum::<usize>()
        }
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision() -> Map<String, Value> {
        let value = json!({
            "goal_id": "g", "agent_id": "lane-a", "decision": "run", "effective_action": "normal_run", "state": "eligible",
            "mode": "should-run", "interaction_contract": {"schema_version": "loopx_interaction_contract_v0", "mode": "bounded_delivery",
                "agent_channel": {"must_attempt": true}}, "anything": {"deep": 1},
        });
        value.as_object().unwrap().clone()
    }

    fn compose_of(decision: &Map<String, Value>) -> Result<CompleteSource, Refusal> {
        let surface = Surface {
            host: "generic-cli".into(),
            execution_mode: "isolated-headless".into(),
            scheduler_owner: "outer_controller".into(),
            registry_ref: "r".into(),
            runtime_ref: "t".into(),
            settler: Settler::Driver,
        };
        compose(
            decision,
            ("g", "lane-a"),
            (&surface, None),
            Timestamp::parse("2026-01-01T00:00:00Z").unwrap(),
        )
    }

    #[test]
    fn unknown_facts_pass_unchanged_and_unknown_controls_refuse() {
        assert_eq!(compose_of(&decision()).unwrap().decision(), &decision());
        for (path, value) in [
            ("effective_action", json!("format_the_disk")),
            ("state", json!("odd")),
            ("decision", json!(1)),
        ] {
            let mut broken = decision();
            broken.insert(path.to_owned(), value);
            assert_eq!(
                compose_of(&broken).unwrap_err().code,
                ErrorCode::TurnSourceUnsupportedSemantics
            );
        }
        let mut broken = decision();
        broken["interaction_contract"]["agent_channel"]["second_review_required"] = json!(true);
        assert_eq!(
            compose_of(&broken).unwrap_err().code,
            ErrorCode::TurnSourceUnsupportedSemantics
        );
        broken["interaction_contract"]["agent_channel"]["second_review_required"] = json!(false);
        assert!(compose_of(&broken).is_ok());
    }

    #[test]
    fn a_receipt_stands_once_and_belongs_to_the_selection() {
        let receipt = json!({"schema_version": "heartbeat_quota_receipt_v0", "turn_instance_id": "t", "settlement_identity": {
            "schema_version": "quota_settlement_identity_v0", "effect_id": "g:lane-a:todo_abc:t", "goal_id": "g", "agent_id": "lane-a",
            "todo_id": "todo_abc", "turn_instance_id": "t"}});
        let mut with = decision();
        with.insert("heartbeat_receipt".to_owned(), receipt.clone());
        with.insert("selected_todo".to_owned(), json!({"todo_id": "todo_abc"}));
        assert!(compose_of(&with).is_ok());
        with.insert("selected_todo".to_owned(), json!({"todo_id": "todo_other"}));
        assert_eq!(
            compose_of(&with).unwrap_err().code,
            ErrorCode::TurnSourceReceiptMismatch
        );
        with.insert("selected_todo".to_owned(), json!({"todo_id": "todo_abc"}));
        with.insert("copy".to_owned(), json!([receipt]));
        assert_eq!(
            compose_of(&with).unwrap_err().code,
            ErrorCode::TurnSourceReceiptDuplicated
        );
    }
}
