//! `loopx quota …`.

use super::args::Global;
use super::args::quota::{
    MonitorPollArgs, PollWord, QuotaArgs, QuotaCommand, ShouldRunArgs, SourceWord, SpendSlotArgs,
    VoidSlotArgs,
};
use super::emit::Reply;
use super::kernel_reply::{answer, misuse, with_ports};
use crate::contract::ids::{AgentId, GoalId, ReplanObligationId, TodoId, TurnInstanceId};
use crate::contract::packet::Refusal;
use crate::contract::public_safety;
use crate::contract::settlement::{Binding, SettlementIdentity};
use crate::flow::Mode;
use crate::flow::monitor_poll::{Poll, monitor_poll};
use crate::flow::quota::{self, Ask, Capture};
use crate::flow::quota_ranking::ranking;
use crate::flow::quota_spend::{self, SpendRequest};

pub(super) fn run(args: &QuotaArgs, global: &Global) -> Reply {
    match &args.command {
        QuotaCommand::ShouldRun(args) => should_run(args, global),
        QuotaCommand::Status(args) => with_ports(global, "quota status", |ports| {
            ranking(ports, "status", args.include_archived)
        }),
        QuotaCommand::Plan(args) => with_ports(global, "quota plan", |ports| {
            ranking(ports, "plan", args.include_archived)
        }),
        QuotaCommand::SpendSlot(args) => spend(args, global),
        QuotaCommand::VoidSlot(args) => void(args, global),
        QuotaCommand::MonitorPoll(args) => poll(args, global),
    }
}

fn should_run(args: &ShouldRunArgs, global: &Global) -> Reply {
    let absolute =
        |path: &std::path::Path| std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
    let capture = match (&args.decision_output_dir, &args.decision_output_root) {
        (Some(dir), _) => Some(Capture::Dir(absolute(dir))),
        (None, Some(root)) => Some(Capture::Root(absolute(root))),
        (None, None) => None,
    };
    let ask = Ask {
        goal: args.goal_id.clone(),
        agent: args.agent_id.clone(),
        todo: args.todo_id.clone(),
        obligation: args.replan_obligation_id.clone(),
        instance: args.turn_instance_id.clone(),
        capabilities: args.available_capability.clone(),
        envelope: args.turn_envelope,
        capture,
        surface: (
            args.host_surface.clone(),
            args.execution_mode.clone(),
            args.scheduler_owner.clone(),
        ),
    };
    if ask.agent.is_none() && (ask.instance.is_some() || ask.envelope) {
        let refusal = misuse("--turn-instance-id and --turn-envelope need --agent-id");
        return answer(Err(refusal), "quota should-run");
    }
    with_ports(global, "quota should-run", |ports| {
        quota::should_run(ports, &ask)
    })
}

fn spend(args: &SpendSlotArgs, global: &Global) -> Reply {
    let source = match args.source {
        SourceWord::Heartbeat => "heartbeat",
        SourceWord::Controller => "controller",
        SourceWord::Adapter => "adapter",
        SourceWord::VisibleGoal => "visible-goal",
    };
    let turn = Turn {
        goal: &args.goal_id,
        agent: args.agent_id.as_ref(),
        todo: args.todo_id.as_ref(),
        obligation: args.replan_obligation_id.as_ref(),
        instance: args.turn_instance_id.as_ref(),
    };
    let identity = match turn.identity() {
        Ok(Some(_)) if source != "heartbeat" => {
            Err(misuse("a Turn is settled with --source heartbeat only"))
        }
        Ok(Some(_)) if args.slots != 1 => Err(misuse("a Turn spends exactly one slot")),
        Ok(None) if source == "heartbeat" && args.slots != 1 => {
            Err(misuse("a Turn spends exactly one slot"))
        }
        other => other,
    };
    let identity = match identity {
        Ok(identity) => identity,
        Err(refusal) => return answer(Err(refusal), "quota spend-slot"),
    };
    let asked = SpendRequest {
        goal: args.goal_id.clone(),
        agent: args.agent_id.clone(),
        identity,
        slots: args.slots,
        source: source.to_owned(),
    };
    with_ports(global, "quota spend-slot", |ports| {
        quota_spend::spend(ports, Mode::of_switch(args.execute), &asked)
    })
}

fn void(args: &VoidSlotArgs, global: &Global) -> Reply {
    let reason = args.reason_summary.as_str();
    // The reason stands in an event, which leaves out what others may not read: better to say so than to lose it.
    if !public_safety::is_pathless(reason) {
        let text = "--reason-summary names a path of a machine or a credential; say it without";
        return answer(Err(misuse(text)), "quota void-slot");
    }
    with_ports(global, "quota void-slot", |ports| {
        let mode = Mode::of_switch(args.execute);
        let asked = (args.void_generated_at.as_str(), reason);
        quota_spend::void((ports, mode), &args.goal_id, args.agent_id.as_ref(), asked)
    })
}

/// The flags that name one Turn.
pub(super) struct Turn<'a> {
    pub(super) goal: &'a GoalId,
    pub(super) agent: Option<&'a AgentId>,
    pub(super) todo: Option<&'a TodoId>,
    pub(super) obligation: Option<&'a ReplanObligationId>,
    pub(super) instance: Option<&'a TurnInstanceId>,
}

impl Turn<'_> {
    /// The identity they name: all of it, or nothing.
    pub(super) fn identity(&self) -> Result<Option<SettlementIdentity>, Refusal> {
        let binding = match (self.todo, self.obligation) {
            (Some(todo), _) => Some(Binding::Todo(todo.clone())),
            (None, Some(obligation)) => Some(Binding::Replan(obligation.clone())),
            (None, None) => None,
        };
        match (binding, self.instance, self.agent) {
            (None, None, _) => Ok(None),
            (Some(binding), Some(instance), Some(agent)) => Ok(Some(SettlementIdentity {
                goal: self.goal.clone(),
                agent: agent.clone(),
                binding,
                instance: instance.clone(),
            })),
            _ => Err(misuse(
                "a Turn is named by --agent-id, --turn-instance-id and one of --todo-id and --replan-obligation-id together",
            )),
        }
    }
}

fn poll(args: &MonitorPollArgs, global: &Global) -> Reply {
    let asked = Poll {
        agent: args.agent_id.clone(),
        todo: args.todo_id.clone(),
        result: match args.result {
            PollWord::Changed => "changed",
            PollWord::Unchanged => "unchanged",
        },
        next_due_at: args.next_due_at.clone(),
        instance: args.turn_instance_id.clone(),
    };
    with_ports(global, "quota monitor-poll", |ports| {
        monitor_poll(ports, Mode::of_switch(args.execute), &args.goal_id, &asked)
    })
}
