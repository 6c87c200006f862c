//! `loopx todo …` and `loopx task-lease …`.

use serde_json::{Value, json};

use super::args::Global;
use super::args::todo::{
    IntentWord, LeaseProofArgs, OutcomeWord, RoleWord, SeenArgs, StatusWord, TaskLeaseArgs,
    TaskLeaseCommand, TodoAddArgs, TodoArgs, TodoCommand, TodoCompleteArgs, TodoUpdateArgs,
};
use super::emit::Reply;
use super::kernel_reply::{answer, misuse, with_ports};
use crate::contract::error::ErrorCode;
use crate::contract::ids::{AgentId, TodoId};
use crate::contract::lease::DEFAULT_TTL_SECONDS;
use crate::contract::packet::Refusal;
use crate::contract::todo::{Role, Status};
use crate::flow::Mode;
use crate::flow::task_lease::{self, Action};
use crate::flow::todo::{self, Complete, NewTodo};
use crate::kernel::todo::{Continuation, LeaseProof, Update};

pub(super) fn run(args: &TodoArgs, global: &Global) -> Reply {
    match &args.command {
        TodoCommand::Add(args) => add(args, global),
        TodoCommand::List(args) => with_ports(global, "todo list", |ports| {
            todo::list(ports, &args.goal_id, args.include_archived)
        }),
        TodoCommand::Claim(args) => {
            let owner = args.claimed_by.as_ref().or(args.agent_id.as_ref());
            let actor = args.agent_id.as_ref().or(owner);
            let (Some(owner), Some(actor)) = (owner, actor) else {
                return answer(
                    Err(misuse("name the owner with --claimed-by or --agent-id")),
                    "todo claim",
                );
            };
            let at = (&args.at.goal_id, &args.at.todo_id);
            let proof = proof(&args.proof);
            with_ports(global, "todo claim", |ports| {
                todo::claim(
                    (ports, Mode::of_dry_run(args.dry_run)),
                    at,
                    (owner, actor),
                    proof.as_ref(),
                )
            })
        }
        TodoCommand::Update(args) => update(args, global),
        TodoCommand::Complete(args) => complete(args, global),
        TodoCommand::Supersede(args) => with_ports(global, "todo supersede", |ports| {
            let at = (&args.at.goal_id, &args.at.todo_id);
            todo::supersede(
                (ports, Mode::of_dry_run(args.dry_run)),
                at,
                args.superseded_by.as_ref(),
                args.reason.as_deref(),
            )
        }),
        TodoCommand::ArchiveCompleted(args) => {
            with_ports(global, "todo archive-completed", |ports| {
                todo::archive_completed(
                    ports,
                    Mode::of_dry_run(args.dry_run),
                    &args.goal_id,
                    args.todo_id.as_ref(),
                )
            })
        }
    }
}

fn add(args: &TodoAddArgs, global: &Global) -> Reply {
    let intent = match intent(args.completion_intent, &args.successor_todo_id) {
        Ok(intent) => intent,
        Err(refusal) => return answer(Err(refusal), "todo add"),
    };
    let role = match args.role {
        RoleWord::User => Role::User,
        RoleWord::Agent => Role::Agent,
    };
    let named = args
        .claimed_by
        .iter()
        .chain(&args.bound_agent)
        .chain(&args.exclude_agent)
        .chain(&args.blocks_agent);
    let agents: Vec<AgentId> = named.cloned().collect();
    let new = NewTodo {
        role,
        words: args.text.clone(),
        members: members(args, intent.as_ref()),
        agents,
    };
    with_ports(global, "todo add", |ports| {
        todo::add(ports, Mode::of_dry_run(args.dry_run), &args.goal_id, &new)
    })
}

/// A list member; an empty one is left out.
fn listed<T: serde::Serialize>(items: &[T]) -> Value {
    if items.is_empty() {
        Value::Null
    } else {
        json!(items)
    }
}

/// The members of a new todo; `null` leaves one out.
fn members(args: &TodoAddArgs, intent: Option<&Continuation>) -> Vec<(&'static str, Value)> {
    vec![
        ("priority", json!(args.priority)),
        ("task_class", json!(args.task_class)),
        ("action_kind", json!(args.action_kind)),
        ("claimed_by", json!(args.claimed_by)),
        ("bound_agent", json!(args.bound_agent)),
        ("excluded_agents", listed(&args.exclude_agent)),
        ("blocks_agent", json!(args.blocks_agent)),
        ("global_gate", json!(args.global_gate.then_some(true))),
        ("decision_scope", json!(args.decision_scope)),
        (
            "required_decision_scopes",
            listed(&args.required_decision_scope),
        ),
        ("required_capabilities", listed(&args.required_capability)),
        ("required_write_scopes", listed(&args.required_write_scope)),
        ("resume_when", json!(args.resume_when)),
        ("next_due_at", json!(args.next_due_at)),
        ("cadence", json!(args.cadence)),
        ("target_key", json!(args.target_key)),
        ("replan_obligation_id", json!(args.replan_obligation_id)),
        (
            "completion_intent",
            intent.map_or(Value::Null, |intent| intent.intent()),
        ),
    ]
}

fn update(args: &TodoUpdateArgs, global: &Global) -> Reply {
    let asked = match updates(args) {
        Ok(asked) => asked,
        Err(refusal) => return answer(Err(refusal), "todo update"),
    };
    with_ports(global, "todo update", |ports| {
        todo::update(
            ports,
            Mode::of_dry_run(args.dry_run),
            (&args.at.goal_id, &args.at.todo_id),
            &asked,
        )
    })
}

fn updates(args: &TodoUpdateArgs) -> Result<Update, Refusal> {
    let status = args.status.map(|status| match status {
        StatusWord::Open => Status::Open,
        StatusWord::Blocked => Status::Blocked,
        StatusWord::Deferred => Status::Deferred,
        StatusWord::Done => Status::Done,
    });
    if status == Some(Status::Blocked) && args.reason.is_none() {
        return Err(misuse("--status blocked needs --reason"));
    }
    let outcome = args.decision_outcome.map(|outcome| match outcome {
        OutcomeWord::Approve => "approve",
        OutcomeWord::Reject => "reject",
        OutcomeWord::Cancel => "cancel",
    });
    if outcome.is_some() && status.is_some_and(|status| status != Status::Done) {
        return Err(misuse(
            "--decision-outcome closes the gate; leave --status out",
        ));
    }
    Ok(Update {
        agent: args.agent_id.clone(),
        members: changed_members(args)?,
        status,
        outcome: outcome.map(str::to_owned),
        clear_claim: args.clear_claim,
    })
}

fn changed_members(args: &TodoUpdateArgs) -> Result<Vec<(&'static str, Value)>, Refusal> {
    let mut members = Vec::new();
    let texts = [
        ("text", &args.text),
        ("priority", &args.priority),
        ("note", &args.note),
        ("evidence", &args.evidence),
        ("reason", &args.reason),
        ("resume_when", &args.resume_when),
        ("next_due_at", &args.next_due_at),
    ];
    members.extend(
        texts
            .into_iter()
            .filter_map(|(name, value)| value.as_ref().map(|value| (name, json!(value)))),
    );
    if !args.required_decision_scope.is_empty() {
        members.push((
            "required_decision_scopes",
            json!(args.required_decision_scope),
        ));
    }
    if args.clear_completion_intent {
        members.push(("completion_intent", Value::Null));
    } else if let Some(intent) = intent(args.completion_intent, &args.successor_todo_id)? {
        members.push(("completion_intent", intent.intent()));
    }
    Ok(members)
}

fn intent(
    word: Option<IntentWord>,
    successors: &[TodoId],
) -> Result<Option<Continuation>, Refusal> {
    match (word, successors) {
        (None, []) => Ok(None),
        (Some(IntentWord::ActiveGoal), []) => Ok(Some(Continuation::ActiveGoal)),
        (Some(IntentWord::NoFollowup), []) => Ok(Some(Continuation::NoFollowup)),
        (Some(IntentWord::Successor), [_, ..]) => {
            Ok(Some(Continuation::Successor(successors.to_vec())))
        }
        (Some(IntentWord::Successor), []) => Err(misuse(
            "--completion-intent successor needs --successor-todo-id",
        )),
        _ => Err(misuse(
            "--successor-todo-id goes with --completion-intent successor only",
        )),
    }
}

fn complete(args: &TodoCompleteArgs, global: &Global) -> Reply {
    let continuation = match (args.no_follow_up, args.successor_todo_id.is_empty()) {
        (true, _) => Continuation::NoFollowup,
        (false, true) => Continuation::ActiveGoal,
        (false, false) => Continuation::Successor(args.successor_todo_id.clone()),
    };
    let asked = Complete {
        agent: args.agent_id.clone(),
        continuation,
        evidence: args.evidence.clone(),
        note: args.note.clone(),
        instance: args.turn_instance_id.clone(),
        proof: proof(&args.proof),
    };
    with_ports(global, "todo complete", |ports| {
        todo::complete(
            ports,
            Mode::of_dry_run(args.dry_run),
            (&args.at.goal_id, &args.at.todo_id),
            &asked,
        )
    })
}

pub(super) fn proof(args: &LeaseProofArgs) -> Option<LeaseProof> {
    let key = args.task_lease_idempotency_key.clone()?;
    Some(LeaseProof {
        key,
        version: args.task_lease_expected_version,
    })
}

pub(super) fn lease(args: &TaskLeaseArgs, global: &Global) -> Reply {
    let (command, holder, action) = match &args.command {
        TaskLeaseCommand::Inspect(at) => {
            return with_ports(global, "task-lease inspect", |ports| {
                task_lease::inspect(ports, (&at.goal_id, &at.todo_id))
            });
        }
        TaskLeaseCommand::Acquire(args) => {
            let action = Action::Acquire {
                ttl_seconds: args.ttl_seconds.unwrap_or(DEFAULT_TTL_SECONDS),
                write_scopes: args.write_scope.clone(),
            };
            ("task-lease acquire", &args.holder, Ok(action))
        }
        TaskLeaseCommand::Renew(args) => {
            let ttl_seconds = args.ttl_seconds;
            let action = version(&args.seen).map(|version| Action::Renew {
                version,
                ttl_seconds,
            });
            ("task-lease renew", &args.holder, action)
        }
        TaskLeaseCommand::Transfer(args) => {
            let action = version(&args.seen).map(|version| Action::Transfer {
                version,
                to: args.new_owner.clone(),
                key: args.new_idempotency_key.clone(),
            });
            ("task-lease transfer", &args.holder, action)
        }
        TaskLeaseCommand::Release(args) => {
            let action = version(&args.seen).map(|version| Action::Release { version });
            ("task-lease release", &args.holder, action)
        }
    };
    match action {
        Ok(action) => with_ports(global, command, |ports| {
            task_lease::change(
                (ports, Mode::of_dry_run(holder.dry_run)),
                (&holder.at.goal_id, &holder.at.todo_id),
                (&holder.owner, &holder.idempotency_key),
                &action,
            )
        }),
        Err(refusal) => answer(Err(refusal), command),
    }
}

fn version(seen: &SeenArgs) -> Result<i64, Refusal> {
    let text = "name the version of the lease with --expected-version; `loopx task-lease inspect` shows it";
    seen.expected_version
        .ok_or_else(|| Refusal::new(ErrorCode::VersionRequired, text))
}
