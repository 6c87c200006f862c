//! `loopx handoff prepare|inspect|adopt`.

use serde_json::Value;

use super::args::handoff::{
    AdoptArgs, HandoffArgs, HandoffCommand, OperationArgs, PrepareArgs, SubjectArgs,
};
use super::args::{Format, Global};
use super::emit::Reply;
use super::input;
use super::kernel_reply::{answer, misused, with_ports};
use crate::contract::error::{ContractError, ErrorCode};
use crate::contract::handoff::Context;
use crate::contract::packet::Refusal;
use crate::flow::Mode;
use crate::flow::handoff::{self, Operation, Subject, Target};
use crate::kernel::todo::LeaseProof;
use crate::workspace::contained;
use crate::workspace::env;

const MAX_ARTIFACTS: usize = 8;

/// Runs one handoff command.
pub(super) fn run(args: &HandoffArgs, global: &Global) -> Reply {
    match &args.command {
        HandoffCommand::Prepare(args) => prepare(args, global),
        HandoffCommand::Inspect(args) => inspect(args, global),
        HandoffCommand::Adopt(args) => adopt(args, global),
    }
}

fn inspect(args: &SubjectArgs, global: &Global) -> Reply {
    let subject = match subject(args) {
        Ok(subject) => subject,
        Err(refusal) => return misused(&refusal, "handoff inspect"),
    };
    with_ports(global, "handoff inspect", |ports| {
        handoff::inspect(ports, &subject, global.format == Format::Digest)
    })
}

fn prepare(args: &PrepareArgs, global: &Global) -> Reply {
    let subject = match subject(&args.subject) {
        Ok(subject) => subject,
        Err(refusal) => return misused(&refusal, "handoff prepare"),
    };
    let context = match context(args) {
        Ok(context) => context,
        Err(refusal) => return answer(Err::<Value, _>(refusal), "handoff prepare"),
    };
    let operation = operation(&args.operation);
    with_ports(global, "handoff prepare", |ports| {
        let mode = Mode::of_dry_run(args.operation.dry_run);
        handoff::prepare(ports, mode, (&subject, &operation), &context)
    })
}

fn adopt(args: &AdoptArgs, global: &Global) -> Reply {
    let subject = match subject(&args.subject) {
        Ok(subject) => subject,
        Err(refusal) => return misused(&refusal, "handoff adopt"),
    };
    let proof = args
        .task_lease_idempotency_key
        .as_ref()
        .map(|key| LeaseProof {
            key: key.clone(),
            version: args.task_lease_expected_version,
        });
    let agent = args
        .target_agent_id
        .clone()
        .unwrap_or_else(|| subject.agent.clone());
    let (operation, target) = (operation(&args.operation), Target { agent, proof });
    with_ports(global, "handoff adopt", |ports| {
        let mode = Mode::of_dry_run(args.operation.dry_run);
        handoff::adopt(ports, mode, (&subject, &operation), &target)
    })
}

fn subject(args: &SubjectArgs) -> Result<Subject, Refusal> {
    let is_plain = args.artifact.iter().all(|name| contained::is_plain(name));
    if args.artifact.len() > MAX_ARTIFACTS || !is_plain {
        let text = "artifacts are at most eight relative paths without `..`";
        return Err(Refusal::new(ErrorCode::InvalidContinuationRequest, text));
    }
    Ok(Subject {
        goal: args.goal_id.clone(),
        todo: args.todo_id.clone(),
        agent: args.agent_id.clone(),
        session: args.session_id.clone(),
        workspace: args.workspace.as_deref().map(env::expand_home),
        artifacts: args.artifact.clone(),
    })
}

fn operation(args: &OperationArgs) -> Operation {
    Operation {
        id: args.operation_id.clone(),
        expected_revision: args.expected_revision.clone(),
    }
}

fn context(args: &PrepareArgs) -> Result<Context, Refusal> {
    let read = match &args.from_context {
        Some(file) => {
            let value = input::json_object(file).map_err(|refusal| {
                Refusal::new(ErrorCode::InvalidContinuationRequest, refusal.message)
            })?;
            Context::parse(&value)
        }
        None if args.rationale.is_none() => {
            let text =
                "a handoff needs a note: give --rationale, or a whole one with --from-context FILE";
            return Err(Refusal::new(ErrorCode::InvalidContinuationRequest, text));
        }
        None => Context::of_rationale(args.rationale.as_deref().unwrap_or(""), &args.source_ref),
    };
    read.map_err(|error: ContractError| {
        Refusal::new(ErrorCode::InvalidContinuationRequest, error.to_string())
    })
}
