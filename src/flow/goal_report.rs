//! `configure-goal --periodic-report-json|--clear-periodic-report`: a goal's own report settings, by plan and apply
//! (docs/spec/periodic-report-runtime.md 1.4).

use serde_json::{Map, Value, json};

use super::mode::Mode;
use super::open::{self, Answer};
use super::ports::Ports;
use super::registry_edit::{self, Change};
use crate::contract::digest;
use crate::contract::error::{ContractError, ErrorCode};
use crate::contract::event::EventDraft;
use crate::contract::goal::Goal;
use crate::contract::ids::GoalId;
use crate::contract::packet::Refusal;
use crate::contract::parse::{Fields, Label};
use crate::kernel::zone::Zone;

const CAPABILITY: &str = "periodic_report";

/// Previews or applies the settings; `None` removes the override.
pub fn configure(
    (ports, mode): (&Ports, Mode),
    id: &GoalId,
    desired: Option<&Value>,
    expected_plan: Option<&str>,
) -> Answer {
    let place = open::goal(ports, id)?;
    let desired = desired.map(normal_form).transpose()?;
    let plan = Plan::of(&place.goal, desired.as_ref())?;
    if mode.is_preview() {
        return Ok(plan.packet(place.registry.revision()));
    }
    if expected_plan != Some(plan.revision.as_str()) {
        return Err(stale(&plan.revision));
    }
    let guard = |goal: &Goal| match base_revision(goal)? == plan.base {
        true => Ok(()),
        false => Err(stale(&plan.revision)),
    };
    let edit = |_: &Goal, entry: &mut Map<String, Value>| set(entry, desired.as_ref());
    let event = |_: &Goal, _: &Goal| {
        EventDraft::new("goal_config", "report settings changed")
            .status("applied")
            .detail("changed_members", "control_plane")
    };
    let edited = registry_edit::apply(
        ports,
        mode,
        &Change {
            goal: id,
            expected: None,
            guard: &guard,
            edit: &edit,
            event: &event,
        },
    )?;
    let applied = edited.after.control(CAPABILITY).cloned();
    let is_verified = applied == desired;
    let mut packet = json!({
        "ok": is_verified,
        "schema_version": "goal_configuration_transaction_v0",
        "status": if edited.is_changed() { "applied" } else { "unchanged" },
        "dry_run": false,
        "changed": edited.is_changed(),
        "goal_id": id,
        "capability_id": CAPABILITY,
        "plan_revision": plan.revision,
        "applied_revision": revision_of(applied.as_ref())?,
        "readback_verified": is_verified,
        "goal_configuration": applied,
        "registry_revision": edited.revision,
    });
    if let Some(after) = edited.revision_after {
        packet["registry_revision_after"] = json!(after);
    }
    Ok(packet)
}

fn stale(plan_revision: &str) -> Refusal {
    let text = "name the plan revision of a fresh preview with --expected-plan-revision; the settings may have changed since";
    Refusal::new(ErrorCode::RegistryRevisionMismatch, text).with("plan_revision", plan_revision)
}

fn set(entry: &mut Map<String, Value>, desired: Option<&Value>) {
    let plane = entry.entry("control_plane").or_insert_with(|| json!({}));
    let Some(plane) = plane.as_object_mut() else {
        return;
    };
    match desired {
        Some(desired) => {
            plane.insert(CAPABILITY.to_owned(), desired.clone());
        }
        None => {
            plane.shift_remove(CAPABILITY);
        }
    }
    if plane.is_empty() {
        entry.shift_remove("control_plane");
    }
}

struct Plan {
    identity: Value,
    revision: String,
    base: String,
    action: &'static str,
    desired: Option<Value>,
}

impl Plan {
    fn of(goal: &Goal, desired: Option<&Value>) -> Answer<Self> {
        let current = goal.control(CAPABILITY);
        let action = match (current, desired) {
            (None, None) => "unchanged",
            (None, Some(_)) => "create",
            (Some(_), None) => "delete",
            (Some(current), Some(desired)) if current == desired => "unchanged",
            (Some(_), Some(_)) => "update",
        };
        let base = base_revision(goal)?;
        let identity = json!({
            "current_revision": revision_of(current)?,
            "desired_revision": revision_of(desired)?,
            "goal_id": goal.id,
            "capability_id": CAPABILITY,
            "base_revision": base,
            "action": action,
            "changed_fields": changed_fields(current, desired),
        });
        let revision = digest_of(&identity)?;
        Ok(Self {
            identity,
            revision,
            base,
            action,
            desired: desired.cloned(),
        })
    }

    fn packet(self, registry_revision: &str) -> Value {
        let mut packet = json!({
            "ok": true, "schema_version": "goal_configuration_update_plan_v0", "status": "preview", "dry_run": true,
            "changed": self.action != "unchanged",
        });
        if let (Value::Object(packet), Value::Object(identity)) = (&mut packet, self.identity) {
            packet.extend(identity);
        }
        packet["plan_revision"] = json!(self.revision);
        packet["writes_required"] = json!(i32::from(self.action != "unchanged"));
        packet["goal_configuration"] = self.desired.unwrap_or(Value::Null);
        packet["registry_revision"] = json!(registry_revision);
        packet
    }
}

fn base_revision(goal: &Goal) -> Answer<String> {
    digest_of(&json!({"goal_id": goal.id, "current": {CAPABILITY: goal.control(CAPABILITY)}}))
}

fn changed_fields(current: Option<&Value>, desired: Option<&Value>) -> Vec<&'static str> {
    let get = |value: Option<&Value>, name: &str| value.and_then(|value| value.get(name)).cloned();
    let fields = [
        "enabled",
        "profile_preset",
        "route_ref",
        "schedule",
        "timezone",
    ];
    fields
        .into_iter()
        .filter(|name| get(current, name) != get(desired, name))
        .collect()
}

fn revision_of(value: Option<&Value>) -> Answer<String> {
    value.map_or_else(|| Ok("absent".to_owned()), digest_of)
}

fn digest_of(value: &Value) -> Answer<String> {
    let text = "the settings hold a number that is not finite; fix it";
    digest::digest(value)
        .map(|digest| digest.to_string())
        .map_err(|_| Refusal::new(ErrorCode::InputInvalid, text))
}

/// The five business fields in their normal form; a calendar needs the calendar commands.
fn normal_form(value: &Value) -> Answer<Value> {
    let at = Label::named("periodic_report");
    let mut fields = Fields::closed(&at, value)?;
    let enabled = fields.boolean("enabled")?;
    let preset = fields.optional_text("profile_preset", 160)?;
    let route = fields.optional_text("route_ref", 160)?;
    let timezone = fields
        .optional_text("timezone", 160)?
        .unwrap_or_else(|| "UTC".to_owned());
    if fields.some("schedule").is_some() {
        return Err(ContractError::invalid(
            fields.at("schedule"),
            "is set with the calendar commands, not here",
        )
        .into());
    }
    if timezone != "UTC" && Zone::named(&timezone).is_none() {
        return Err(ContractError::invalid(fields.at("timezone"), "must be an IANA zone").into());
    }
    if enabled && preset.is_none() {
        return Err(ContractError::invalid(
            fields.at("profile_preset"),
            "is required when enabled",
        )
        .into());
    }
    if enabled && route.is_none() {
        return Err(
            ContractError::invalid(fields.at("route_ref"), "is required when enabled").into(),
        );
    }
    let normal = json!({"enabled": enabled, "profile_preset": preset, "route_ref": route, "timezone": timezone});
    Ok(fields.finish(normal)?)
}
