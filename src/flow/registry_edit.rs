//! One revision-checked change of a goal's registry entry, with the event row that records it.

use serde_json::{Map, Value};

use super::mode::Mode;
use super::open::{self, Answer, Place, entry_digest};
use super::ports::Ports;
use crate::contract::error::ErrorCode;
use crate::contract::event::EventDraft;
use crate::contract::goal::Goal;
use crate::contract::ids::GoalId;
use crate::contract::packet::Refusal;
use crate::contract::parse::Label;
use crate::store::document::registry::{self, Registry};

/// What a change did.
pub struct Edited {
    /// The goal before.
    pub before: Goal,
    /// The goal after; equal entries when nothing changed.
    pub after: Goal,
    /// The registry revision before.
    pub revision: String,
    /// The registry revision after, when it was written.
    pub revision_after: Option<String>,
}

impl Edited {
    /// True when the entry differs.
    pub fn is_changed(&self) -> bool {
        self.before.entry() != self.after.entry()
    }
}

/// Looks at the goal a change is about to be made to.
pub type Guard<'a> = &'a dyn Fn(&Goal) -> Answer<()>;

/// The guard that takes any goal.
pub const ANY: Guard<'static> = &|_| Ok(());

/// A change: what the entry becomes, and the event that records it.
pub struct Change<'a> {
    /// The goal.
    pub goal: &'a GoalId,
    /// The registry revision the caller saw.
    pub expected: Option<&'a str>,
    /// Refuses the change for the goal as it is when the change is made.
    pub guard: Guard<'a>,
    /// Edits the entry in place.
    pub edit: &'a dyn Fn(&Goal, &mut Map<String, Value>),
    /// The event, from the goal before and after.
    pub event: &'a dyn Fn(&Goal, &Goal) -> EventDraft,
}

/// Previews or makes a change.
pub fn apply(ports: &Ports, mode: Mode, change: &Change<'_>) -> Answer<Edited> {
    let mut place = open::goal(ports, change.goal)?;
    if mode.is_preview() {
        check_revision(&place.registry, change.expected)?;
        (change.guard)(&place.goal)?;
        let after = edited(&place.registry, &place.goal, change)?.1;
        return Ok(Edited {
            revision: place.registry.revision().to_owned(),
            before: place.goal,
            after,
            revision_after: None,
        });
    }
    check_revision(&place.registry, change.expected)?;
    let seen = place.registry.revision().to_owned();
    let mut writer = place.writer(ports)?;
    let held = registry::lock_for_edit(
        place.registry.path(),
        &open::registry_claim(ports, &ports.now.to_string()),
    )?;
    let current = Registry::read(place.registry.path())?;
    if change.expected.is_some() && seen == place.registry.revision() {
        check_revision(&current, change.expected)?;
    }
    let before = current
        .goal(change.goal)?
        .ok_or_else(|| open::unknown_goal(change.goal))?;
    (change.guard)(&before)?;
    let (document, after) = edited(&current, &before, change)?;
    if before.entry() == after.entry() {
        place.goal = before.clone();
        place.record_edits(ports, &mut writer)?;
        return Ok(Edited {
            revision: current.revision().to_owned(),
            before,
            after,
            revision_after: None,
        });
    }
    let revision_after = current.replace(&held, &document)?;
    record((ports, &place), &mut writer, (&before, &after), change)?;
    Ok(Edited {
        revision: current.revision().to_owned(),
        before,
        after,
        revision_after: Some(revision_after),
    })
}

fn record(
    (ports, place): (&Ports, &Place),
    writer: &mut crate::store::state::Writer,
    goals: (&Goal, &Goal),
    change: &Change<'_>,
) -> Answer<()> {
    let mut tx = writer.begin(change.goal, ports.now)?;
    let after = entry_digest(goals.1);
    // Another command may have met the new entry already and recorded it: what was there before is no edit then.
    if tx.head().entry_digest.as_ref() != Some(&after) {
        tx.note_entry(&entry_digest(goals.0))?;
    }
    tx.event((change.event)(goals.0, goals.1))?;
    tx.set_entry(&after);
    tx.commit()?;
    writer.bring_up_exports(&place.goal.id, ports.now);
    Ok(())
}

fn edited(
    registry: &Registry,
    before: &Goal,
    change: &Change<'_>,
) -> Answer<(Map<String, Value>, Goal)> {
    let document = registry.with_entry(change.goal, |entry| (change.edit)(before, entry));
    let entries = document.get("goals").and_then(Value::as_array);
    let entry = entries.and_then(|entries| {
        entries
            .iter()
            .find(|entry| entry.get("id").and_then(Value::as_str) == Some(change.goal.as_str()))
    });
    let entry = entry.ok_or_else(|| open::unknown_goal(change.goal))?;
    let after = Goal::parse(&Label::named("goal"), entry)?;
    Ok((document, after))
}

fn check_revision(registry: &Registry, expected: Option<&str>) -> Answer<()> {
    match expected {
        Some(expected) if expected != registry.revision() => {
            let text =
                "the registry is not the one you saw; look at it and name its present revision";
            Err(Refusal::new(ErrorCode::RegistryRevisionMismatch, text)
                .with("registry_revision", registry.revision()))
        }
        _ => Ok(()),
    }
}
