//! New todos, and the list of what there is.

use serde_json::{Value, json};

use super::store::{packet, revision_text};
use crate::contract::error::ErrorCode;
use crate::contract::event::EventDraft;
use crate::contract::ids::{AgentId, GoalId, TodoId};
use crate::contract::todo::{Role, Todo};
use crate::flow::mode::Mode;
use crate::flow::open::{self, Answer, Place};
use crate::flow::ports::Ports;
use crate::kernel::todo as rules;
use crate::store::StoreError;
use crate::store::rows::Head;

/// A todo as it is asked for.
#[derive(Clone, Debug)]
pub struct NewTodo {
    /// Who it is for.
    pub role: Role,
    /// Its words.
    pub words: String,
    /// Every further member in the order of the record.
    pub members: Vec<(&'static str, Value)>,
    /// The agents it names, which must be on the roster.
    pub agents: Vec<AgentId>,
}

/// Adds a todo.
pub fn add(ports: &Ports, mode: Mode, id: &GoalId, new: &NewTodo) -> Answer {
    let mut place = open::goal(ports, id)?;
    for agent in &new.agents {
        place.require_actor(agent, ErrorCode::ActorNotRegistered)?;
    }
    let fill = |todo: &mut Todo| {
        for (name, value) in &new.members {
            todo.set(name, value.clone());
        }
        todo.set("updated_at", json!(ports.now));
        rules::check_new(todo)
    };
    if mode.is_preview() {
        let head = head_of(&place)?;
        let mut todo = Todo::new(preview_id(&place, new)?, new.role, &new.words);
        fill(&mut todo)?;
        return Ok(added(mode, &todo, &revision_text(head.as_ref())));
    }
    let mut writer = place.writer(ports)?;
    let mut tx = place.begin(ports, &mut writer)?;
    let words = crate::contract::text::collapse(&new.words);
    let (todo_id, seq) = tx.new_todo_id(new.role, &words)?;
    let mut todo = Todo::new(todo_id, new.role, &new.words);
    fill(&mut todo)?;
    tx.insert_todo(&todo, seq)?;
    let draft = EventDraft::new("todo_add", "todo added")
        .status("open")
        .todo(Some(todo.id().as_str()));
    tx.event(
        draft
            .agent(todo.claimed_by())
            .detail("role", new.role.as_str()),
    )?;
    let head = tx.commit()?;
    writer.bring_up_exports(id, ports.now);
    Ok(added(mode, &todo, &head.provider_revision()))
}

/// What an addition answers: a gate that holds nothing up says how one is made that does.
fn added(mode: Mode, todo: &Todo, revision: &str) -> Value {
    let mut packet = packet(("loopx_todo_add_v0", mode), todo, true, revision);
    if todo.is_gate_without_target() {
        packet["next_step"] = json!(
            "this gate asks the user and holds no work up; a gate that does is added with --decision-scope, --blocks-agent or --global-gate"
        );
    }
    packet
}

/// The id the next todo of these words would get.
fn preview_id(place: &Place, new: &NewTodo) -> Answer<TodoId> {
    let seq = match place.reader()? {
        Some(reader) => reader.rows().next_todo_number(&place.goal.id)?,
        None => 1,
    };
    let words = crate::contract::text::collapse(&new.words);
    let suffix = crate::contract::digest::todo_suffix(new.role.as_str(), "", seq, &words);
    TodoId::new(format!("todo_{suffix}"))
        .ok_or_else(|| StoreError::Corrupt("a generated todo id has another form").into())
}

/// Lists the todos of a goal, full records.
pub fn list(ports: &Ports, id: &GoalId, with_archived: bool) -> Answer {
    let place = open::goal(ports, id)?;
    let reader = place.reader()?;
    let (todos, head) = match &reader {
        Some(reader) => (reader.rows().all_todos(id)?, reader.rows().head(id)?),
        None => (Vec::new(), None),
    };
    let shown: Vec<Value> = todos
        .iter()
        .filter(|todo| with_archived || !todo.is_archived())
        .map(Todo::to_value)
        .collect();
    let mut packet = json!({
        "ok": true, "schema_version": "loopx_todo_list_v0", "goal_id": id, "todos": [],
        "provider_revision": revision_text(head.as_ref()),
    });
    packet["todos"] = Value::Array(shown);
    Ok(packet)
}

fn head_of(place: &Place) -> Answer<Option<Head>> {
    Ok(match place.reader()? {
        Some(reader) => reader.rows().head(&place.goal.id)?,
        None => None,
    })
}
