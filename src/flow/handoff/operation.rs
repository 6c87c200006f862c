//! What every handoff rests on: its subject, its operation id and the revision it names.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use crate::contract::digest;
use crate::contract::error::ErrorCode;
use crate::contract::handoff::{self, Note};
use crate::contract::ids::{AgentId, GoalId, TodoId};
use crate::contract::packet::Refusal;
use crate::contract::todo::Todo;
use crate::flow::open::Answer;
use crate::flow::todo::unknown_todo;
use crate::kernel::handoff::{Adoption, Watch};
use crate::store::StoreError;
use crate::store::rows::{Receipt, Rows};
use crate::store::state::GoalTx;

/// Which Todo, who acts and in which session.
#[derive(Debug, Clone)]
pub struct Subject {
    /// The goal.
    pub goal: GoalId,
    /// The Todo.
    pub todo: TodoId,
    /// The acting agent.
    pub agent: AgentId,
    /// The acting session.
    pub session: String,
    /// The folder artifacts are looked for in.
    pub workspace: Option<PathBuf>,
    /// Relative paths that have to be there.
    pub artifacts: Vec<String>,
}

/// A change, made once.
#[derive(Debug, Clone)]
pub struct Operation {
    /// Names the change for replays.
    pub id: String,
    /// The revision it rests on.
    pub expected_revision: String,
}

pub(super) fn stored(rows: Rows<'_>, subject: &Subject) -> Answer<Todo> {
    let found = rows.todo(&subject.goal, &subject.todo)?;
    found
        .map(|stored| stored.todo)
        .ok_or_else(|| unknown_todo(&subject.todo))
}

pub(super) fn revision(rows: Rows<'_>, goal: &GoalId) -> Answer<String> {
    let head = rows
        .head(goal)?
        .ok_or(StoreError::Corrupt("the rows of a known goal are gone"))?;
    Ok(head.provider_revision())
}

/// Refuses when anything the transfer rests on changed after the named revision.
pub(super) fn guard(
    rows: Rows<'_>,
    (subject, todo): (&Subject, &Todo),
    operation: &Operation,
    target: &AgentId,
) -> Answer<()> {
    let current = revision(rows, &subject.goal)?;
    let Some(seen) = rows.had_revision(&subject.goal, &operation.expected_revision)? else {
        return Err(moved_on(&current));
    };
    let watch = Watch {
        todo,
        agents: [&subject.agent, target],
    };
    let after = (&subject.goal, seen);
    match rows.any_event_after(after, todo.id(), |event| watch.concerns(event))? {
        true => Err(moved_on(&current)),
        false => Ok(()),
    }
}

pub(super) fn moved_on(current: &str) -> Refusal {
    let text = "the todo, its lease, its gates or its agents changed since that revision; inspect it again and use the revision shown";
    Refusal::new(ErrorCode::ProviderRevisionMismatch, text).with("provider_revision", current)
}

/// The request as it is compared on a replay.
pub(super) fn intent(
    action: &str,
    subject: &Subject,
    operation: &Operation,
    more: &Value,
) -> Answer<String> {
    let mut intent: Map<String, Value> = more.as_object().cloned().unwrap_or_default();
    for (name, value) in [
        ("action", action),
        ("goal_id", subject.goal.as_str()),
        ("todo_id", subject.todo.as_str()),
        ("agent_id", subject.agent.as_str()),
        ("session_id", &subject.session),
        ("operation_id", &operation.id),
        ("expected_revision", &operation.expected_revision),
    ] {
        intent.insert(name.to_owned(), json!(value));
    }
    intent.insert("artifacts".to_owned(), json!(subject.artifacts));
    let digest = digest::digest_hex(&Value::Object(intent));
    digest.map_err(|_| StoreError::Corrupt("an intent has no canonical form").into())
}

/// The stored answer of the same request; another request under this operation id is refused.
pub(super) fn replayed(
    rows: Rows<'_>,
    subject: &Subject,
    operation: &Operation,
    intent: &str,
) -> Answer<Option<Receipt>> {
    match rows.receipt(&subject.goal, &operation.id)? {
        None => Ok(None),
        Some(receipt) if receipt.request_sha256 == intent => Ok(Some(receipt)),
        Some(_) => {
            let text = "this operation id was used for another request; choose a new one";
            Err(Refusal::new(ErrorCode::OperationIdConflict, text))
        }
    }
}

/// Keeps what was sealed: digests of the note and of the Todo without its owner.
pub(super) fn seal(
    tx: &GoalTx<'_>,
    operation: &Operation,
    (intent, todo, target): (&str, &Todo, &AgentId),
) -> Answer<(String, String)> {
    let note_facts = Note::of(todo).map(|note| note.facts()).unwrap_or_default();
    let stable_facts = handoff::stable_facts(todo);
    let claim = match todo.claimed_by() == Some(target.as_str()) {
        true => Adoption::ReceiptOnly.as_str(),
        false => "transferred",
    };
    let result = json!({
        "schema_version": "loopx_continuation_adoption_receipt_v0", "claim": claim, "target_agent_id": target,
        "note_facts": note_facts, "stable_facts": stable_facts,
    });
    tx.put_receipt(
        &operation.id,
        &Receipt {
            request_sha256: intent.to_owned(),
            result,
            revision_after: tx.revision_after(),
        },
    )?;
    Ok((note_facts, stable_facts))
}
