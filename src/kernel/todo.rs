//! What may happen to a todo: pure transitions of one record (docs/spec/kernel.md 4.1, 4.4, 5.2).

use serde_json::{Value, json};

use crate::contract::error::ErrorCode;
use crate::contract::ids::{AgentId, TodoId, TurnInstanceId};
use crate::contract::lease::Lease;
use crate::contract::packet::Refusal;
use crate::contract::time::Timestamp;
use crate::contract::todo::{Role, Status, Todo};

type Outcome<T> = Result<T, Refusal>;

/// How a finished todo goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Continuation {
    /// The goal goes on.
    ActiveGoal,
    /// Nothing follows.
    NoFollowup,
    /// These todos follow.
    Successor(Vec<TodoId>),
}

impl Continuation {
    /// The word of the record.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Continuation::ActiveGoal => "active_goal",
            Continuation::NoFollowup => "no_followup",
            Continuation::Successor(_) => "successor",
        }
    }

    /// The declaration a driver completes by.
    pub fn intent(&self) -> Value {
        let successors: &[TodoId] = match self {
            Continuation::Successor(successors) => successors,
            _ => &[],
        };
        json!({"continuation": self.as_str(), "successor_todo_ids": successors})
    }

    /// Reads the declaration of a record.
    pub fn of_intent(todo: &Todo) -> Option<Self> {
        let intent = todo.get("completion_intent")?;
        match todo.completion_intent()? {
            "active_goal" => Some(Continuation::ActiveGoal),
            "no_followup" => Some(Continuation::NoFollowup),
            "successor" => {
                let ids = intent.get("successor_todo_ids").and_then(Value::as_array)?;
                let ids: Option<Vec<TodoId>> = ids
                    .iter()
                    .map(|id| id.as_str().and_then(TodoId::new))
                    .collect();
                ids.filter(|ids| !ids.is_empty())
                    .map(Continuation::Successor)
            }
            _ => None,
        }
    }
}

/// A proof of a lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseProof {
    /// The key of the acquisition.
    pub key: String,
    /// The version it was at.
    pub version: Option<i64>,
}

/// Checks the proof against the lease of a todo; without a live lease none is needed.
pub fn check_lease(
    lease: Option<&Lease>,
    proof: Option<&LeaseProof>,
    agent: &AgentId,
    now: Timestamp,
) -> Outcome<()> {
    let Some(lease) = lease.filter(|lease| lease.is_live(now)) else {
        return match proof {
            None => Ok(()),
            Some(_) => Err(Refusal::new(
                ErrorCode::LeaseNotActive,
                "the named lease is not active; acquire one, or leave its proof out",
            )),
        };
    };
    let is_proven =
        proof.is_some_and(|proof| proof.key == lease.idempotency_key) && &lease.owner == agent;
    if !is_proven {
        let text = "a live lease covers this todo and the proof does not match it; use the holder's key, or wait for its end";
        return Err(
            Refusal::new(ErrorCode::TodoLeaseConflict, text).with("owner", lease.owner.as_str())
        );
    }
    match proof.and_then(|proof| proof.version) {
        Some(version) if version != lease.version => {
            let text = "the lease has moved on; `loopx task-lease inspect` shows its version";
            Err(Refusal::new(ErrorCode::VersionMismatch, text).with("version", lease.version))
        }
        _ => Ok(()),
    }
}

/// Refuses a change of where a todo stands while somebody else holds a live lease on it. Without an acting agent nobody
/// can be the holder.
pub fn require_unleased(
    lease: Option<&Lease>,
    agent: Option<&AgentId>,
    now: Timestamp,
) -> Outcome<()> {
    let Some(lease) = lease.filter(|lease| lease.is_live(now)) else {
        return Ok(());
    };
    if agent == Some(&lease.owner) {
        return Ok(());
    }
    let text = "a live lease covers this todo and this call does not hold it; its holder completes it with the key, or wait for its end";
    Err(Refusal::new(ErrorCode::TodoLeaseConflict, text).with("owner", lease.owner.as_str()))
}

/// Refuses a todo that would follow itself.
fn require_others(todo: &Todo, successors: &[TodoId]) -> Outcome<()> {
    if successors.contains(todo.id()) {
        let text = "a todo cannot follow itself; name another one";
        return Err(Refusal::new(ErrorCode::InvalidArguments, text));
    }
    Ok(())
}

/// Takes a todo for an owner; `None` when it has it already.
pub fn claim(
    todo: &Todo,
    owner: &AgentId,
    actor: &AgentId,
    now: Timestamp,
) -> Outcome<Option<Todo>> {
    if todo.status() == Status::Done || todo.is_archived() {
        return Err(not_open(todo));
    }
    match todo.claimed_by() {
        Some(current) if current == owner.as_str() => Ok(None),
        Some(current) => {
            let text = "another agent owns this todo; it has to release it or hand it over";
            Err(Refusal::new(ErrorCode::ClaimOwnerMismatch, text).with("claimed_by", current))
        }
        None => {
            let mut taken = todo.clone();
            taken.set("claimed_by", json!(owner));
            touch(&mut taken, Some(actor), now);
            Ok(Some(taken))
        }
    }
}

/// A completion as it is asked for.
#[derive(Clone, Debug)]
pub struct Completion<'a> {
    /// The acting agent.
    pub agent: &'a AgentId,
    /// How it goes on.
    pub continuation: Continuation,
    /// What was found.
    pub evidence: Option<&'a str>,
    /// A remark.
    pub note: Option<&'a str>,
    /// The Turn it belongs to.
    pub instance: Option<&'a TurnInstanceId>,
    /// True when that Turn's writeback and spend are stored.
    pub is_turn_settled: bool,
    /// The instant.
    pub now: Timestamp,
}

/// Completes a todo; `None` when this exact completion is stored already.
pub fn complete(todo: &Todo, asked: &Completion<'_>) -> Outcome<Option<Todo>> {
    if todo.is_user_gate() {
        return Err(gate_decision_required());
    }
    if let Continuation::Successor(successors) = &asked.continuation {
        require_others(todo, successors)?;
    }
    if todo.status() == Status::Done {
        return again(todo, asked);
    }
    if todo.status() != Status::Open || todo.is_archived() {
        return Err(not_open(todo));
    }
    if todo.role() == Role::Agent
        && let Some(owner) = todo.claimed_by()
        && owner != asked.agent.as_str()
    {
        let text = "another agent owns this todo; only its owner completes it";
        return Err(Refusal::new(ErrorCode::ClaimOwnerMismatch, text).with("claimed_by", owner));
    }
    let mut done = todo.clone();
    if done.claimed_by().is_none() {
        done.set("claimed_by", json!(asked.agent));
    }
    done.set_status(Status::Done);
    set_continuation(&mut done, &asked.continuation);
    done.set("completion_turn_key", json!(asked.instance));
    done.set("completed_at", json!(asked.now));
    set_words(&mut done, asked);
    touch(&mut done, Some(asked.agent), asked.now);
    Ok(Some(done))
}

/// The same completion again, or the one change that is allowed later: nothing follows after all, inside the settled Turn.
fn again(todo: &Todo, asked: &Completion<'_>) -> Outcome<Option<Todo>> {
    let instance = asked.instance.map(|instance| instance.as_str());
    let is_same_turn = instance.is_some()
        && todo.text("completion_turn_key") == instance
        && todo.is_claimed_by(asked.agent);
    if !is_same_turn {
        return Err(not_open(todo));
    }
    if todo.text("completion_continuation") == Some(asked.continuation.as_str()) {
        return Ok(None);
    }
    let is_closeout = asked.continuation == Continuation::NoFollowup
        && todo.text("completion_continuation") == Some("active_goal");
    if is_closeout && asked.is_turn_settled {
        return Ok(Some(closed_out(todo, asked.now)));
    }
    Err(not_open(todo))
}

/// The terminal closeout of a completed todo: nothing follows.
pub fn closed_out(todo: &Todo, now: Timestamp) -> Todo {
    let mut closed = todo.clone();
    set_continuation(&mut closed, &Continuation::NoFollowup);
    closed.set("completion_recovery", json!("same_turn_terminal_closeout"));
    touch(&mut closed, None, now);
    closed
}

fn set_continuation(todo: &mut Todo, continuation: &Continuation) {
    todo.set("completion_continuation", json!(continuation.as_str()));
    todo.set(
        "no_followup",
        if *continuation == Continuation::NoFollowup {
            json!(true)
        } else {
            Value::Null
        },
    );
    if let Continuation::Successor(successors) = continuation {
        todo.set("successor_todo_ids", json!(successors));
    }
}

fn set_words(todo: &mut Todo, asked: &Completion<'_>) {
    if let Some(evidence) = asked.evidence {
        todo.set("evidence", json!(evidence));
    }
    if let Some(note) = asked.note {
        todo.set("note", json!(note));
    }
}

/// The changes `todo update` can make.
#[derive(Clone, Debug, Default)]
pub struct Update {
    /// The acting agent.
    pub agent: Option<AgentId>,
    /// Members that are simply set; `null` removes one.
    pub members: Vec<(&'static str, Value)>,
    /// The new status.
    pub status: Option<Status>,
    /// The recorded outcome of a gate.
    pub outcome: Option<String>,
    /// Gives the claim back.
    pub clear_claim: bool,
}

/// Updates a todo; `None` when nothing differs.
pub fn update(todo: &Todo, asked: &Update, now: Timestamp) -> Outcome<Option<Todo>> {
    if todo.is_archived() {
        return Err(not_open(todo));
    }
    check_update(todo, asked)?;
    let mut changed = todo.clone();
    for (name, value) in &asked.members {
        changed.set(name, value.clone());
    }
    if asked.clear_claim {
        changed.set("claimed_by", Value::Null);
    }
    if let Some(outcome) = &asked.outcome {
        changed.set("decision_outcome", json!(outcome));
        changed.set_status(Status::Done);
        changed.set("completion_continuation", json!("active_goal"));
    } else if let Some(status) = asked.status {
        changed.set_status(status);
        if status == Status::Done && todo.status() != Status::Done {
            changed.set("completion_continuation", json!("active_goal"));
        }
    }
    if changed == *todo {
        return Ok(None);
    }
    if changed.status() == Status::Done && todo.status() != Status::Done {
        changed.set("completed_at", json!(now));
    }
    touch(&mut changed, asked.agent.as_ref(), now);
    Ok(Some(changed))
}

fn check_update(todo: &Todo, asked: &Update) -> Outcome<()> {
    let intents = asked
        .members
        .iter()
        .filter(|(name, _)| *name == "completion_intent");
    for (_, intent) in intents {
        let ids = intent.get("successor_todo_ids").and_then(Value::as_array);
        let ids = ids.into_iter().flatten().filter_map(Value::as_str);
        require_others(todo, &ids.filter_map(TodoId::new).collect::<Vec<_>>())?;
    }
    if asked.outcome.is_some() && !todo.is_user_gate() {
        let text = "an outcome is recorded on a user gate only; this todo is none";
        return Err(Refusal::new(ErrorCode::InvalidArguments, text));
    }
    if todo.is_user_gate() && asked.outcome.is_none() && asked.status == Some(Status::Done) {
        return Err(gate_decision_required());
    }
    if todo.status() == Status::Done
        && asked.outcome.is_none()
        && asked.status.is_some_and(|status| status != Status::Done)
    {
        return Err(not_open(todo));
    }
    if let (Some(agent), Some(owner)) = (&asked.agent, todo.claimed_by())
        && owner != agent.as_str()
        && (asked.clear_claim || asked.status.is_some())
    {
        let text = "another agent owns this todo; only its owner changes where it stands";
        return Err(Refusal::new(ErrorCode::ClaimOwnerMismatch, text).with("claimed_by", owner));
    }
    Ok(())
}

/// Takes a todo out of the work because another one stands in for it.
pub fn supersede(
    todo: &Todo,
    by: Option<&TodoId>,
    reason: Option<&str>,
    now: Timestamp,
) -> Outcome<Todo> {
    require_others(todo, by.map(std::slice::from_ref).unwrap_or_default())?;
    if todo.is_user_gate() && todo.text("decision_outcome").is_none() {
        return Err(gate_decision_required());
    }
    if todo.status() == Status::Done || todo.is_archived() {
        return Err(not_open(todo));
    }
    let mut superseded = todo.clone();
    superseded.set_status(Status::Done);
    let continuation = by.map_or(Continuation::ActiveGoal, |by| {
        Continuation::Successor(vec![by.clone()])
    });
    set_continuation(&mut superseded, &continuation);
    superseded.set("superseded_by", json!(by));
    if let Some(reason) = reason {
        superseded.set("reason", json!(reason));
    }
    touch(&mut superseded, None, now);
    Ok(superseded)
}

/// Puts a finished todo away.
pub fn archive(todo: &Todo, now: Timestamp) -> Outcome<Todo> {
    if todo.is_user_gate() && todo.text("decision_outcome").is_none() {
        return Err(gate_decision_required());
    }
    if todo.status() != Status::Done {
        let text = "only a finished todo is archived; complete or supersede it first";
        return Err(
            Refusal::new(ErrorCode::TodoNotOpen, text).with("todo_status", todo.status().as_str())
        );
    }
    let mut archived = todo.clone();
    archived.set("archive_state", json!("archived"));
    touch(&mut archived, None, now);
    Ok(archived)
}

/// Notes who changed a record and when.
pub fn touch(todo: &mut Todo, actor: Option<&AgentId>, now: Timestamp) {
    if let Some(actor) = actor {
        todo.set("last_actor_agent_id", json!(actor));
    }
    todo.set("updated_at", json!(now));
}

/// The refusal of a todo that is not open for this.
pub fn not_open(todo: &Todo) -> Refusal {
    Refusal::new(
        ErrorCode::TodoNotOpen,
        "the todo is not open for this; `loopx todo list` shows where it stands",
    )
    .with("todo_status", todo.status().as_str())
}

fn gate_decision_required() -> Refusal {
    let text = "a gate is closed by a recorded decision only; use `loopx todo update --decision-outcome approve|reject|cancel`";
    Refusal::new(ErrorCode::GateDecisionRequired, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn todo(role: Role) -> Todo {
        Todo::new(TodoId::new("todo_abc").unwrap(), role, "do it")
    }

    fn agent(name: &str) -> AgentId {
        AgentId::new(name).unwrap()
    }

    fn now() -> Timestamp {
        Timestamp::parse("2026-01-01T00:00:00Z").unwrap()
    }

    fn asked<'a>(agent: &'a AgentId, instance: Option<&'a TurnInstanceId>) -> Completion<'a> {
        Completion {
            agent,
            continuation: Continuation::ActiveGoal,
            evidence: None,
            note: None,
            instance,
            is_turn_settled: false,
            now: now(),
        }
    }

    #[test]
    fn a_completion_claims_writes_its_continuation_and_replays_in_its_turn() {
        let (a, turn) = (agent("lane-a"), TurnInstanceId::new("t1").unwrap());
        let done = complete(&todo(Role::Agent), &asked(&a, Some(&turn)))
            .unwrap()
            .unwrap();
        assert_eq!(done.text("completion_continuation"), Some("active_goal"));
        assert!(done.is_claimed_by(&a));
        assert_eq!(complete(&done, &asked(&a, Some(&turn))).unwrap(), None);
        assert_eq!(
            complete(&done, &asked(&a, None)).unwrap_err().code,
            ErrorCode::TodoNotOpen
        );
    }

    #[test]
    fn nothing_follows_only_after_the_turn_is_settled() {
        let (a, turn) = (agent("lane-a"), TurnInstanceId::new("t1").unwrap());
        let done = complete(&todo(Role::Agent), &asked(&a, Some(&turn)))
            .unwrap()
            .unwrap();
        let mut final_word = asked(&a, Some(&turn));
        final_word.continuation = Continuation::NoFollowup;
        assert!(complete(&done, &final_word).is_err());
        final_word.is_turn_settled = true;
        let closed = complete(&done, &final_word).unwrap().unwrap();
        assert!(closed.flag("no_followup"));
    }

    #[test]
    fn a_gate_is_closed_by_an_outcome_alone() {
        let mut gate = todo(Role::User);
        gate.set("task_class", json!("user_gate"));
        let done = Update {
            status: Some(Status::Done),
            ..Update::default()
        };
        assert_eq!(
            update(&gate, &done, now()).unwrap_err().code,
            ErrorCode::GateDecisionRequired
        );
        assert_eq!(
            supersede(&gate, None, None, now()).unwrap_err().code,
            ErrorCode::GateDecisionRequired
        );
        let decided = Update {
            outcome: Some("reject".into()),
            ..Update::default()
        };
        let decided = update(&gate, &decided, now()).unwrap().unwrap();
        assert_eq!(decided.status(), Status::Done);
    }

    #[test]
    fn a_foreign_owner_is_never_displaced() {
        let mut owned = todo(Role::Agent);
        owned.set("claimed_by", json!("lane-b"));
        let a = agent("lane-a");
        assert_eq!(
            claim(&owned, &a, &a, now()).unwrap_err().code,
            ErrorCode::ClaimOwnerMismatch
        );
        assert_eq!(
            complete(&owned, &asked(&a, None)).unwrap_err().code,
            ErrorCode::ClaimOwnerMismatch
        );
    }
}
