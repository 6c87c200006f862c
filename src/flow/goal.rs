//! `bootstrap`, `register-agent`, `configure-goal`, `goal-lifecycle`: the goal and its standing configuration.

use serde_json::{Map, Value, json};

use super::mode::Mode;
use super::open::{self, Answer, entry_digest};
use super::ports::Ports;
use super::registry_edit::{self, Change, Edited};
use crate::contract::digest;
use crate::contract::error::ErrorCode;
use crate::contract::event::EventDraft;
use crate::contract::goal::{self, Goal, NewGoal, WaitingOn};
use crate::contract::ids::{AgentId, GoalId};
use crate::contract::packet::Refusal;
use crate::contract::parse::Label;
use crate::kernel::quota::places::shell_line;
use crate::store::document::registry::{self, Registry};
use crate::store::lock::{self, Held};
use crate::store::state::Store;
use crate::workspace::Workspace;

/// Makes a goal: its row first, then its registry entry. Repeating it finishes a half-made one.
pub fn bootstrap(ports: &Ports, mode: Mode, id: &GoalId, words: &NewGoal) -> Answer {
    if let Some(mut place) = open::find(ports, id)? {
        return known(ports, mode, &mut place, words);
    }
    let (workspace, registry) = open::home(ports, id)?;
    if mode.is_preview() {
        return Ok(bootstrap_packet(id, mode, true, registry.revision()));
    }
    if workspace.registry_dir().ends_with(".loopx") {
        registry::ignore_folder(workspace.registry_dir())?;
    }
    let held = registry::lock_for_edit(
        workspace.registry(),
        &open::registry_claim(ports, &ports.now.to_string()),
    )?;
    let registry = Registry::read(workspace.registry())?;
    if registry.goal(id)?.is_some() {
        // Another process made it while this one waited for the lock.
        drop(held);
        let mut place = open::goal(ports, id)?;
        return known(ports, mode, &mut place, words);
    }
    let after = create((ports, &workspace), (&registry, &held), id, words)?;
    let mut packet = bootstrap_packet(id, mode, true, registry.revision());
    packet["registry_revision_after"] = json!(after);
    Ok(packet)
}

fn create(
    (ports, workspace): (&Ports, &Workspace),
    (registry, held): (&Registry, &Held<lock::Registry>),
    id: &GoalId,
    words: &NewGoal,
) -> Answer<String> {
    let requested = workspace
        .requested_runtime_root()
        .filter(|_| !registry.is_present());
    let recorded = requested
        .as_ref()
        .map(|root| root.to_string_lossy().into_owned());
    let root = workspace.runtime_root(recorded.as_deref().or(registry.common_runtime_root()));
    let mut writer = Store::at(&root).write()?;
    let fresh = ports.ids.fresh().ok_or_else(open::no_randomness)?;
    let head = writer.ensure_head(id, &fresh, Some(&absent_entry_digest()))?;
    let entry = goal::new_entry(id, &head.instance_id, words);
    let made = Goal::parse(&Label::named("goal"), &Value::Object(entry.clone()))?;
    let document = registry.with_new_entry(entry, recorded.as_deref());
    let after = registry.replace(held, &document)?;
    let mut tx = writer.begin(id, ports.now)?;
    tx.event(EventDraft::new("goal_config", "goal created").status("created"))?;
    tx.set_entry(&entry_digest(&made));
    tx.commit()?;
    writer.bring_up_exports(id, ports.now);
    Ok(after)
}

/// What the head of a goal notes until its entry is written: a command that finds the entry then records it.
fn absent_entry_digest() -> String {
    digest::digest(&Value::Null)
        .map(|digest| digest.to_string())
        .unwrap_or_default()
}

fn known(ports: &Ports, mode: Mode, place: &mut open::Place, words: &NewGoal) -> Answer {
    let is_same = [
        ("title", &words.title),
        ("objective", &words.objective),
        ("repo", &words.repo),
    ]
    .into_iter()
    .all(|(name, value)| place.goal.text(name).unwrap_or("") == value);
    if !is_same {
        let text =
            "a goal of this id exists with other words; choose another id, or edit the registry";
        return Err(
            Refusal::new(ErrorCode::GoalExists, text).with("goal_id", place.goal.id.as_str())
        );
    }
    place.reader()?;
    if !mode.is_preview() {
        let mut writer = place.writer(ports)?;
        place.record_edits(ports, &mut writer)?;
    }
    Ok(bootstrap_packet(
        &place.goal.id,
        mode,
        false,
        place.registry.revision(),
    ))
}

fn bootstrap_packet(id: &GoalId, mode: Mode, is_changed: bool, revision: &str) -> Value {
    json!({
        "ok": true, "schema_version": "loopx_bootstrap_v0", "dry_run": mode.is_preview(), "goal_id": id,
        "changed": is_changed, "registry_revision": revision,
    })
}

/// Adds agents to the roster of a goal.
pub fn register_agents(
    (ports, mode): (&Ports, Mode),
    id: &GoalId,
    agents: &[AgentId],
    must_be_new: bool,
) -> Answer {
    let guard = |goal: &Goal| match agents.iter().find(|agent| goal.has_agent(agent)) {
        Some(known) if must_be_new => {
            let text = "an agent of this id is registered already; leave `--require-new` out to accept that";
            Err(Refusal::new(ErrorCode::AgentExists, text).with("agent_id", known.as_str()))
        }
        _ => Ok(()),
    };
    let added = |goal: &Goal| -> Vec<AgentId> {
        let mut fresh: Vec<AgentId> = Vec::new();
        for agent in agents {
            if !goal.has_agent(agent) && !fresh.contains(agent) {
                fresh.push(agent.clone());
            }
        }
        fresh
    };
    let edit = |goal: &Goal, entry: &mut Map<String, Value>| {
        let mut roster = goal.agents.clone();
        roster.extend(added(goal));
        if roster.len() != goal.agents.len() {
            set_roster(entry, &roster);
        }
    };
    let event = |before: &Goal, _: &Goal| {
        let names: Vec<String> = added(before).iter().map(ToString::to_string).collect();
        EventDraft::new("agent_register", "agents registered")
            .status("applied")
            .detail("agents", names.join(","))
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
    let mut packet = edit_packet("loopx_agent_registration_v0", mode, id, &edited);
    packet["registered_agents"] = json!(edited.after.agents);
    Ok(packet)
}

/// Replaces the roster in an entry.
pub fn set_roster(entry: &mut Map<String, Value>, roster: &[AgentId]) {
    let coordination = entry.entry("coordination").or_insert_with(|| json!({}));
    if let Some(coordination) = coordination.as_object_mut() {
        coordination.insert("registered_agents".to_owned(), json!(roster));
    }
}

/// One setting of `configure-goal`, in the order they are applied.
#[derive(Clone, Debug, PartialEq)]
pub enum Setting {
    /// A member of the entry, or of an object in it; `null` removes it.
    Member(&'static [&'static str], Value),
    /// Adds or removes a lifecycle flag.
    Flag(&'static str, bool),
    /// The work mode of an agent.
    WorkMode(AgentId, &'static str),
    /// The whole roster.
    Roster(Vec<AgentId>),
}

/// Changes the standing configuration of a goal.
pub fn configure(
    (ports, mode): (&Ports, Mode),
    id: &GoalId,
    settings: &[Setting],
    expected: Option<&str>,
) -> Answer {
    let edit = |_: &Goal, entry: &mut Map<String, Value>| {
        for setting in settings {
            set(entry, setting);
        }
    };
    let event = |before: &Goal, after: &Goal| configured(settings, before, after);
    let edited = registry_edit::apply(
        ports,
        mode,
        &Change {
            goal: id,
            expected,
            guard: registry_edit::ANY,
            edit: &edit,
            event: &event,
        },
    )?;
    let mut packet = edit_packet("loopx_goal_configuration_v0", mode, id, &edited);
    packet["waiting_on"] = json!(edited.after.text("waiting_on"));
    packet["allowed_slots"] = json!(edited.after.quota.allowed_slots());
    if edited.after.waiting_on == WaitingOn::Unnamed {
        // Spec 6.2: only `codex` lets a goal work; a goal that names nobody waits.
        let goal = shell_line(&[id.to_string()]);
        packet["next_step"] = json!(format!(
            "nobody is named, so the goal waits; `loopx configure-goal --goal-id {goal} --waiting-on codex --execute` lets agents work again"
        ));
    }
    Ok(packet)
}

fn configured(settings: &[Setting], before: &Goal, after: &Goal) -> EventDraft {
    let mut names: Vec<&str> = after
        .entry()
        .iter()
        .filter(|(name, value)| before.entry().get(*name) != Some(*value))
        .map(|(name, _)| name.as_str())
        .collect();
    names.extend(
        before
            .entry()
            .keys()
            .filter(|name| !after.entry().contains_key(*name))
            .map(String::as_str),
    );
    let mut draft = EventDraft::new("goal_config", "goal configured")
        .status("applied")
        .detail("changed_members", names.join(","));
    if before.agents != after.agents {
        let changed = before
            .agents
            .iter()
            .filter(|agent| !after.agents.contains(agent));
        let changed = changed.chain(
            after
                .agents
                .iter()
                .filter(|agent| !before.agents.contains(agent)),
        );
        let names: Vec<&str> = changed.map(AgentId::as_str).collect();
        draft = draft.detail("roster_agents", names.join(","));
    }
    let modes: Vec<&str> = settings
        .iter()
        .filter_map(|setting| match setting {
            Setting::WorkMode(agent, _) => Some(agent.as_str()),
            _ => None,
        })
        .collect();
    if modes.is_empty() {
        draft
    } else {
        draft.detail("work_mode_agents", modes.join(","))
    }
}

fn set(entry: &mut Map<String, Value>, setting: &Setting) {
    match setting {
        Setting::Member([name], value) => put(entry, name, value),
        Setting::Member([object, name], value) => {
            let inner = entry.entry(*object).or_insert_with(|| json!({}));
            if !inner.is_object() {
                *inner = json!({});
            }
            if let Some(inner) = inner.as_object_mut() {
                put(inner, name, value);
            }
        }
        Setting::Member(..) => {}
        Setting::Flag(flag, is_set) => {
            let flags = entry
                .get("lifecycle_flags")
                .and_then(Value::as_array)
                .cloned()
                .unwrap_or_default();
            let mut flags: Vec<Value> = flags.into_iter().filter(|have| have != flag).collect();
            if *is_set {
                flags.push(json!(flag));
            }
            put(
                entry,
                "lifecycle_flags",
                &if flags.is_empty() {
                    Value::Null
                } else {
                    Value::Array(flags)
                },
            );
        }
        Setting::WorkMode(agent, mode) => {
            let coordination = entry.entry("coordination").or_insert_with(|| json!({}));
            let Some(coordination) = coordination.as_object_mut() else {
                return;
            };
            let profiles = coordination
                .entry("agent_profiles")
                .or_insert_with(|| json!({}));
            let Some(profiles) = profiles.as_object_mut() else {
                return;
            };
            let profile = profiles.entry(agent.as_str()).or_insert_with(|| json!({}));
            if let Some(profile) = profile.as_object_mut() {
                profile.insert("work_mode".to_owned(), json!(mode));
            }
        }
        Setting::Roster(roster) => set_roster(entry, roster),
    }
}

fn put(entry: &mut Map<String, Value>, name: &str, value: &Value) {
    if value.is_null() {
        entry.shift_remove(name);
    } else {
        entry.insert(name.to_owned(), value.clone());
    }
}

/// What `goal-lifecycle` may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Stops the goal.
    Stop,
    /// Pauses the goal.
    Pause,
    /// Puts the goal away.
    Archive,
    /// Brings it back to work.
    Resume,
}

impl Operation {
    const fn words(self) -> (&'static str, &'static str) {
        match self {
            Operation::Stop => ("stop", "stopped"),
            Operation::Pause => ("pause", "paused"),
            Operation::Archive => ("archive", "archived"),
            Operation::Resume => ("resume", "active"),
        }
    }
}

/// Stops, pauses, archives or resumes a goal; quota policy, roster and runtime state stay.
pub fn lifecycle(
    (ports, mode): (&Ports, Mode),
    id: &GoalId,
    operation: Operation,
    asked: (&str, Option<&str>),
) -> Answer {
    let (word, status) = operation.words();
    let (reason, expected) = asked;
    let edit = |goal: &Goal, entry: &mut Map<String, Value>| {
        if goal.status.as_str() == status {
            return;
        }
        entry.insert("status".to_owned(), json!(status));
        let activation = json!({"operation": word, "reason": reason, "changed_at": ports.now});
        entry.insert("activation".to_owned(), activation);
    };
    let event = |before: &Goal, after: &Goal| {
        EventDraft::new("goal_lifecycle", "goal lifecycle changed")
            .status(status)
            .detail("operation", word)
            .with("from_state", before.status.as_str())
            .with("to_state", after.status.as_str())
    };
    let edited = registry_edit::apply(
        ports,
        mode,
        &Change {
            goal: id,
            expected,
            guard: registry_edit::ANY,
            edit: &edit,
            event: &event,
        },
    )?;
    let mut packet = edit_packet("loopx_goal_activation_transition_v1", mode, id, &edited);
    packet["operation"] = json!(word);
    packet["from_status"] = json!(edited.before.status.as_str());
    packet["to_status"] = json!(status);
    if operation != Operation::Resume {
        let goal = shell_line(&[id.to_string()]);
        packet["next_step"] = json!(format!(
            "`loopx goal-lifecycle --goal-id {goal} --operation resume --execute` brings the goal back to work"
        ));
    }
    Ok(packet)
}

fn edit_packet(schema: &str, mode: Mode, id: &GoalId, edited: &Edited) -> Value {
    let mut packet = json!({
        "ok": true, "schema_version": schema, "dry_run": mode.is_preview(), "execute": !mode.is_preview(), "goal_id": id,
        "changed": edited.is_changed(), "written": edited.revision_after.is_some(), "registry_revision": edited.revision,
    });
    if let Some(after) = &edited.revision_after {
        packet["registry_revision_after"] = json!(after);
    }
    packet
}
