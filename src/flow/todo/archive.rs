//! Puts finished todos away: one, or all of a goal.
//!
//! All of a goal are taken in batches, each a transaction of its own, so that a million of them neither fill the memory
//! nor keep other writers out. A kill leaves whole batches; the same command puts the rest away.

use serde_json::{Value, json};

use super::store::{change, end_lease};
use crate::contract::event::EventDraft;
use crate::contract::ids::{GoalId, TodoId};
use crate::contract::todo::Todo;
use crate::flow::mode::Mode;
use crate::flow::open::{self, Answer, Place};
use crate::flow::ports::Ports;
use crate::kernel::todo;
use crate::store::rows::Rows;
use crate::store::state::Writer;

/// Todos of one transaction.
const BATCH: usize = 1_000;
/// Ids an answer names; it counts the rest.
const MAX_NAMED: usize = 1_000;

/// Puts finished todos away: one, or all of a goal.
pub fn archive_completed(ports: &Ports, mode: Mode, id: &GoalId, only: Option<&TodoId>) -> Answer {
    let mut place = open::goal(ports, id)?;
    if let Some(only) = only {
        return one((ports, mode), &mut place, only);
    }
    let mut done = Archived::default();
    if mode.is_preview() {
        if let Some(reader) = place.reader()? {
            done.look(ports, (reader.rows(), id))?;
        }
        return Ok(done.packet(mode, id));
    }
    // Without a store nothing is made; with one, what a kill left of the exports is completed even if nothing changes.
    if place.reader()?.is_none() {
        return Ok(done.packet(mode, id));
    }
    let mut writer = place.writer(ports)?;
    let mut after = 0;
    while let Some(next) = batch((ports, &place), &mut writer, after, &mut done)? {
        after = next;
    }
    writer.bring_up_exports(id, ports.now);
    Ok(done.packet(mode, id))
}

fn one((ports, mode): (&Ports, Mode), place: &mut Place, only: &TodoId) -> Answer {
    change(
        (ports, mode),
        place,
        (only, "loopx_todo_archive_v0"),
        &|todo, _| {
            let archived = todo::archive(todo, ports.now)?;
            Ok(Some((archived, event(), None)))
        },
    )
}

fn event() -> EventDraft {
    EventDraft::new("todo_update", "todo archived").status("archived")
}

/// What was put away, or would be.
#[derive(Default)]
struct Archived {
    named: Vec<TodoId>,
    rest: usize,
    revision: Option<String>,
}

impl Archived {
    fn note(&mut self, todo: &Todo) {
        if self.named.len() < MAX_NAMED {
            self.named.push(todo.id().clone());
        } else {
            self.rest += 1;
        }
    }

    fn look(&mut self, ports: &Ports, (rows, id): (Rows<'_>, &GoalId)) -> Answer<()> {
        let mut after = 0;
        loop {
            let (todos, next) = rows.done_and_active(id, (after, BATCH))?;
            if todos.is_empty() {
                return Ok(());
            }
            let archivable = |todo: &&Todo| todo::archive(todo, ports.now).is_ok();
            todos
                .iter()
                .filter(archivable)
                .for_each(|todo| self.note(todo));
            after = next;
        }
    }

    fn packet(&self, mode: Mode, id: &GoalId) -> Value {
        let mut packet = json!({
            "ok": true, "schema_version": "loopx_todo_archive_v0", "dry_run": mode.is_preview(), "goal_id": id,
            "changed": !self.named.is_empty(), "archived_todo_ids": self.named,
        });
        if self.rest > 0 {
            packet["archived_todo_ids_omitted"] = json!(self.rest);
        }
        if let Some(revision) = &self.revision {
            packet["provider_revision"] = json!(revision);
        }
        packet
    }
}

/// Puts one batch away; the place it ended at, or nothing when none was left.
fn batch(
    (ports, place): (&Ports, &Place),
    writer: &mut Writer,
    after: i64,
    done: &mut Archived,
) -> Answer<Option<i64>> {
    let mut tx = place.begin(ports, writer)?;
    let (todos, next) = tx.rows().done_and_active(&place.goal.id, (after, BATCH))?;
    if todos.is_empty() {
        return Ok(None);
    }
    for before in todos {
        let Ok(archived) = todo::archive(&before, ports.now) else {
            continue;
        };
        tx.update_todo(&before, &archived, None)?;
        tx.event(event().todo(Some(archived.id().as_str())))?;
        end_lease(&mut tx, &archived)?;
        done.note(&archived);
    }
    done.revision = Some(tx.commit()?.provider_revision());
    Ok(Some(next))
}
