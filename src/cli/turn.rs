//! `loopx turn …`.

use serde_json::Value;

use super::args::Global;
use super::args::turn::{
    ContextWord, HostWord, ModeWord, RecoveryWord, SchedulerWord, TurnArgs, TurnCommand,
    TurnCommon, TurnDetailArgs, TurnOwnerArgs, TurnReplanReviewArgs, TurnRunOnceArgs,
};
use super::emit::Reply;
use super::input;
use super::kernel_reply::{answer, misuse, with_ports};
use crate::compose::CodexCli;
use crate::contract::json;
use crate::contract::packet::Refusal;
use crate::flow::Mode;
use crate::flow::quota::Ask;
use crate::flow::turn::asked::{Run, RunOnce};
use crate::flow::turn::plan::{self, TurnAsk};
use crate::flow::turn::read::{self, Owner};
use crate::flow::turn::run_once;
use crate::flow::turn::{inspect, managed};
use crate::kernel::turn::plan::HostChoice;
use crate::kernel::turn::recover::OnFailed;

pub(super) fn run(args: &TurnArgs, global: &Global) -> Reply {
    match &args.command {
        TurnCommand::Plan(args) => match ask(
            &args.common,
            (HostWord::CodexCli, ModeWord::InteractiveVisible),
        ) {
            Ok(ask) => with_ports(global, "turn plan", |ports| {
                plan::show(ports, &ask, args.include_transaction_detail)
            }),
            Err(refusal) => answer(Err(refusal), "turn plan"),
        },
        TurnCommand::RunOnce(args) => match request(args) {
            Ok(asked) => with_ports(global, "turn run-once", |ports| {
                run_once::run(ports, Mode::of_switch(args.execute), &asked)
            }),
            Err(refusal) => answer(Err(refusal), "turn run-once"),
        },
        TurnCommand::InspectJournal(args) => with_ports(global, "turn inspect-journal", |ports| {
            inspect::inspect(
                ports,
                &owner(&args.owner),
                &args.turn_key,
                OnFailed::of_flag(args.retry_failed_turn),
            )
        }),
        TurnCommand::Detail(args) => detail(args, global),
        TurnCommand::ReplanReview(args) => replan_review(args, global),
        TurnCommand::ManagedStep(args) => match ask(
            &args.common,
            (HostWord::GenericCli, ModeWord::IsolatedHeadless),
        ) {
            Ok(ask) => with_ports(global, "turn managed-step", |ports| {
                managed::managed_step(ports, &ask, args.turn_key.as_ref())
            }),
            Err(refusal) => answer(Err(refusal), "turn managed-step"),
        },
    }
}

fn detail(args: &TurnDetailArgs, global: &Global) -> Reply {
    with_ports(global, "turn detail", |ports| {
        let mut packet = read::detail(ports, &owner(&args.owner), &args.turn_key, &args.select)?;
        if args.include_source && !args.select.is_empty() {
            let whole = read::detail(ports, &owner(&args.owner), &args.turn_key, &[])?;
            packet["source"] = whole["source"].clone();
        }
        Ok(packet)
    })
}

fn replan_review(args: &TurnReplanReviewArgs, global: &Global) -> Reply {
    let contract = match args
        .admitted_contract
        .as_deref()
        .map(input::json_object)
        .transpose()
    {
        Ok(contract) => contract,
        Err(refusal) => return answer(Err(refusal), "turn replan-review"),
    };
    let contract = contract.as_ref().and_then(Value::as_object);
    with_ports(global, "turn replan-review", |ports| {
        read::replan_review(ports, &owner(&args.owner), &args.reader_ref, contract)
    })
}

fn owner(args: &TurnOwnerArgs) -> Owner {
    Owner {
        goal: args.goal_id.clone(),
        agent: args.agent_id.clone(),
    }
}

fn ask(args: &TurnCommon, (host, mode): (HostWord, ModeWord)) -> Result<TurnAsk, Refusal> {
    if args.todo_id.is_some() && args.resume_goal_id.is_some() {
        return Err(misuse(
            "--todo-id cannot be combined with a resumed session",
        ));
    }
    let choice = choice(args, (args.host.unwrap_or(host), mode));
    Ok(TurnAsk {
        question: Ask {
            goal: args.goal_id.clone(),
            agent: Some(args.agent_id.clone()),
            todo: args.todo_id.clone(),
            obligation: None,
            instance: args.turn_instance_id.clone(),
            capabilities: args.available_capability.clone(),
            envelope: false,
            capture: None,
            surface: (
                choice.kind.clone(),
                choice.execution_mode.clone(),
                choice.scheduler_owner.clone(),
            ),
        },
        host: choice,
    })
}

fn choice(args: &TurnCommon, (host, mode): (HostWord, ModeWord)) -> HostChoice {
    let kind = match host {
        HostWord::CodexCli => "codex-cli",
        HostWord::ClaudeCode => "claude-code",
        HostWord::GenericCli => "generic-cli",
    };
    let execution_mode = match args.execution_mode.unwrap_or(mode) {
        ModeWord::InteractiveVisible => "interactive-visible",
        ModeWord::IsolatedHeadless => "isolated-headless",
    };
    let scheduler = args.scheduler_owner.unwrap_or(match host {
        HostWord::GenericCli => SchedulerWord::OuterController,
        _ => SchedulerWord::AgentCliLoop,
    });
    let scheduler_owner = match scheduler {
        SchedulerWord::HostAutomation => "host_automation",
        SchedulerWord::AgentCliLoop => "agent_cli_loop",
        SchedulerWord::OuterController => "outer_controller",
        SchedulerWord::None => "none",
    };
    let context = match args.iteration_context {
        ContextWord::Fresh => "fresh",
        ContextWord::ResumeIfAvailable => "resume-if-available",
    };
    HostChoice {
        kind: kind.to_owned(),
        execution_mode: execution_mode.to_owned(),
        scheduler_owner: scheduler_owner.to_owned(),
        context: context.to_owned(),
    }
}

fn request(args: &TurnRunOnceArgs) -> Result<RunOnce, Refusal> {
    let common = &args.common;
    let host = common.host.unwrap_or(HostWord::GenericCli);
    if host == HostWord::ClaudeCode {
        return Err(misuse("run-once runs codex-cli or generic-cli hosts"));
    }
    if common.execution_mode == Some(ModeWord::InteractiveVisible) {
        return Err(misuse("run-once runs isolated-headless only"));
    }
    let is_resumed = args.resume_turn_key.is_some();
    if is_resumed && common.turn_instance_id.is_some() {
        return Err(misuse(
            "--resume-turn-key and --turn-instance-id exclude each other",
        ));
    }
    if is_resumed && (common.todo_id.is_some() || common.resume_goal_id.is_some()) {
        return Err(misuse("a resumed Turn brings its own todo and session"));
    }
    let host_argv = host_argv(args, host)?;
    let validator_argv = args
        .validation_command_json
        .as_deref()
        .map(|text| words(text, "--validation-command-json"))
        .transpose()?;
    let project = std::path::absolute(&args.project).unwrap_or_else(|_| args.project.clone());
    if !project.is_dir() {
        return Err(misuse("--project must be an existing folder"));
    }
    Ok(RunOnce {
        ask: ask(common, (HostWord::GenericCli, ModeWord::IsolatedHeadless))?,
        resume: args.resume_turn_key.clone(),
        on_failed: OnFailed::of_flag(args.retry_failed_turn),
        run: Run {
            host_argv,
            validator_argv,
            recovery_kind: match args.validation_failure_kind {
                RecoveryWord::RepairRequired => "repair_required",
                RecoveryWord::ReplanRequired => "replan_required",
            },
            project,
            host_timeout: args.timeout_seconds,
            validation_timeout: args.validation_timeout_seconds,
        },
    })
}

fn host_argv(args: &TurnRunOnceArgs, host: HostWord) -> Result<Vec<String>, Refusal> {
    match (host, &args.host_command_json) {
        (HostWord::GenericCli, Some(text)) => words(text, "--host-command-json"),
        (HostWord::GenericCli, None) => Err(misuse("a generic-cli host needs --host-command-json")),
        (_, Some(_)) => Err(misuse(
            "a codex-cli host brings its own command; leave --host-command-json out",
        )),
        (_, None) => Ok(CodexCli {
            program: &args.codex_bin,
            model: args.codex_model.as_deref(),
            sandbox: args.codex_sandbox.as_deref(),
        }
        .argv()),
    }
}

/// An argument vector: 1 to 32 words of 1 to 1024 characters.
fn words(text: &str, flag: &str) -> Result<Vec<String>, Refusal> {
    let refuse = || {
        misuse(&format!(
            "{flag} must be a JSON array of 1 to 32 words of 1 to 1024 characters"
        ))
    };
    let value = json::parse(text.as_bytes()).map_err(|_| refuse())?;
    let items = value
        .as_array()
        .filter(|items| (1..=32).contains(&items.len()))
        .ok_or_else(refuse)?;
    items
        .iter()
        .map(|item| {
            let word = item.as_str().ok_or_else(refuse)?;
            let is_sound = (1..=1024).contains(&word.chars().count()) && !word.contains('\0');
            if is_sound {
                Ok(word.to_owned())
            } else {
                Err(refuse())
            }
        })
        .collect()
}
