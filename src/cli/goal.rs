//! `bootstrap`, `register-agent`, `configure-goal`, `goal-lifecycle`, `operator-gate`.

use serde_json::{Map, Value, json};

use super::args::Global;
use super::args::goal::{
    BootstrapArgs, ConfigureGoalArgs, GateWord, GoalLifecycleArgs, LifecycleWord, OperatorGateArgs,
    RegisterAgentArgs, Severity, Slots, StatusArgs,
};
use super::emit::Reply;
use super::input;
use super::kernel_reply::{answer, misuse, with_ports};
use crate::contract::goal::NewGoal;
use crate::flow::Mode;
use crate::flow::goal::{self, Operation, Setting};
use crate::flow::operator_gate::{self, Decision};
use crate::flow::{goal_report, status};

pub(super) fn bootstrap(args: &BootstrapArgs, global: &Global) -> Reply {
    with_ports(global, "bootstrap", |ports| {
        let project = args
            .project
            .clone()
            .unwrap_or_else(|| ports.workspace.project().to_path_buf());
        let project = std::path::absolute(&project).unwrap_or(project);
        let project = project.canonicalize().unwrap_or(project);
        let words = NewGoal {
            title: args
                .title
                .clone()
                .unwrap_or_else(|| args.goal_id.to_string()),
            objective: args.objective.clone().unwrap_or_default(),
            repo: project.to_string_lossy().into_owned(),
        };
        goal::bootstrap(ports, Mode::of_dry_run(args.dry_run), &args.goal_id, &words)
    })
}

pub(super) fn register(args: &RegisterAgentArgs, global: &Global) -> Reply {
    with_ports(global, "register-agent", |ports| {
        goal::register_agents(
            (ports, Mode::of_switch(args.execute)),
            &args.goal_id,
            &args.agent_id,
            args.require_new,
        )
    })
}

pub(super) fn configure(args: &ConfigureGoalArgs, global: &Global) -> Reply {
    let settings = settings(args);
    if args.periodic_report_json.is_some() || args.clear_periodic_report {
        return report_settings(args, global, settings.is_empty());
    }
    with_ports(global, "configure-goal", |ports| {
        let expected = args.expected_registry_revision.as_deref();
        goal::configure(
            (ports, Mode::of_switch(args.execute)),
            &args.goal_id,
            &settings,
            expected,
        )
    })
}

/// The goal's own report settings: by plan and apply, apart from every other setting.
fn report_settings(args: &ConfigureGoalArgs, global: &Global, is_alone: bool) -> Reply {
    if !is_alone {
        let text = "report settings are changed on their own; leave the other settings out";
        return answer(Err(misuse(text)), "configure-goal");
    }
    let desired = match args
        .periodic_report_json
        .as_deref()
        .map(input::json_object)
        .transpose()
    {
        Ok(desired) => desired,
        Err(refusal) => return answer(Err(refusal), "configure-goal"),
    };
    with_ports(global, "configure-goal", |ports| {
        let mode = Mode::of_switch(args.execute);
        let plan = args.expected_plan_revision.as_deref();
        goal_report::configure((ports, mode), &args.goal_id, desired.as_ref(), plan)
    })
}

pub(super) fn status(args: &StatusArgs, global: &Global) -> Reply {
    with_ports(global, "status", |ports| {
        status::show(ports, args.goal_id.as_ref())
    })
}

fn settings(args: &ConfigureGoalArgs) -> Vec<Setting> {
    let mut settings = members(args);
    if args.focus_wait || args.clear_focus_wait {
        settings.push(Setting::Flag("focus_wait", args.focus_wait));
    }
    if !args.registered_agent.is_empty() {
        settings.push(Setting::Roster(args.registered_agent.clone()));
    }
    settings.extend(
        args.agent_work_mode
            .iter()
            .map(|(agent, mode)| Setting::WorkMode(agent.clone(), mode)),
    );
    settings
}

fn members(args: &ConfigureGoalArgs) -> Vec<Setting> {
    let mut settings = Vec::new();
    let mut member = |path: &'static [&'static str], value: Option<Value>| {
        if let Some(value) = value {
            settings.push(Setting::Member(path, value));
        }
    };
    let cleared = |is_cleared: bool| is_cleared.then_some(Value::Null);
    let list = |items: &[String]| (!items.is_empty()).then(|| json!(items));
    member(
        &["quota", "compute"],
        args.quota_compute.clone().map(Value::Number),
    );
    member(
        &["quota", "window_hours"],
        args.quota_window_hours.clone().map(Value::Number),
    );
    let slots = args.quota_allowed_slots.map(|slots| match slots {
        Slots::Fixed(slots) => json!(slots),
        Slots::Share => Value::Null,
    });
    member(&["quota", "allowed_slots"], slots);
    member(
        &["waiting_on"],
        args.waiting_on
            .clone()
            .map(Value::String)
            .or(cleared(args.clear_waiting_on)),
    );
    let severity = args.severity.map(|severity| match severity {
        Severity::Normal => json!("normal"),
        Severity::High => json!("high"),
    });
    member(&["severity"], severity);
    member(
        &["operator_question"],
        args.operator_question
            .clone()
            .map(Value::String)
            .or(cleared(args.clear_operator_question)),
    );
    member(
        &["missing_gates"],
        list(&args.missing_gate).or(cleared(args.clear_missing_gates)),
    );
    member(&["write_scope"], list(&args.write_scope));
    settings
}

pub(super) fn lifecycle(args: &GoalLifecycleArgs, global: &Global) -> Reply {
    let operation = match args.operation {
        LifecycleWord::Stop => Operation::Stop,
        LifecycleWord::Pause => Operation::Pause,
        LifecycleWord::Archive => Operation::Archive,
        LifecycleWord::Resume => Operation::Resume,
    };
    with_ports(global, "goal-lifecycle", |ports| {
        let asked = (
            args.reason.as_deref().unwrap_or(""),
            args.expected_registry_revision.as_deref(),
        );
        goal::lifecycle(
            (ports, Mode::of_switch(args.execute)),
            &args.goal_id,
            operation,
            asked,
        )
    })
}

pub(super) fn operator_gate(args: &OperatorGateArgs, global: &Global) -> Reply {
    let outcome = match args.decision {
        GateWord::Approve => "approve",
        GateWord::Reject => "reject",
        GateWord::Defer => "defer",
    };
    let mut words = Map::new();
    let said = [
        ("reason_summary", &args.reason_summary),
        ("operator_question", &args.operator_question),
        ("agent_command", &args.agent_command),
        ("recommended_action", &args.recommended_action),
    ];
    for (name, value) in said {
        if let Some(value) = value {
            words.insert(name.to_owned(), json!(value));
        }
    }
    let asked = Decision {
        gate: args.gate.clone(),
        outcome,
        agent: args.agent_id.clone(),
        words,
    };
    with_ports(global, "operator-gate", |ports| {
        operator_gate::decide(ports, Mode::of_dry_run(args.dry_run), &args.goal_id, &asked)
    })
}
