//! The interaction contract: what the user, the agent and the command line are each told
//! (docs/spec/kernel.md 6.6).

use serde_json::{Map, Value, json};

use super::cooldown::Cooldown;
use super::policy::QuotaState;
use super::snapshot::{Question, Snapshot, shell_line};
use super::user::{self, UserSide};
use super::verdict::{Row, Verdict};
use crate::contract::settlement::{Binding, SettlementIdentity};

/// The three channels of one decision.
#[derive(Clone, Debug)]
pub struct Interaction {
    /// The mode.
    pub mode: &'static str,
    /// The user has to act.
    pub action_required: bool,
    /// The agent must work.
    pub must_attempt: bool,
    /// The agent may deliver.
    pub delivery_allowed: bool,
    /// Doing nothing quietly is fine.
    pub quiet_allowed: bool,
    /// A validated Turn spends.
    pub spends_after_validation: bool,
    /// The spend may be made now.
    pub spends_now: bool,
    /// What to run next.
    pub next_cli_actions: Vec<String>,
    packet: Value,
}

impl Interaction {
    /// Builds the contract of a verdict.
    pub fn of(snapshot: &Snapshot, question: &Question, verdict: &Verdict) -> Self {
        let side = UserSide::of(snapshot, verdict.quota);
        let cooldown = Cooldown::of(&snapshot.goal, question.now);
        let is_quiet = cooldown.is_suppressed() && side.requires_action;
        let columns = verdict.row.columns();
        let must_attempt = columns.should_run;
        let delivery_allowed = columns.should_run && verdict.row != Row::UnsettledRecovery;
        let action_required = side.requires_action && !is_quiet;
        let spends_now = verdict.row == Row::UnsettledRecovery
            || (snapshot.turn.is_written_back && !snapshot.turn.is_settled);
        let mut interaction = Self {
            mode: mode(verdict, &side, is_quiet),
            action_required,
            must_attempt,
            delivery_allowed,
            quiet_allowed: !action_required && !must_attempt && verdict.row != Row::BlockedHealth,
            spends_after_validation: columns.spends,
            spends_now,
            next_cli_actions: next_commands(snapshot, question, verdict),
            packet: Value::Null,
        };
        interaction.packet = interaction.build(snapshot, verdict);
        interaction
    }

    /// The packet.
    pub fn to_value(&self) -> Value {
        self.packet.clone()
    }

    fn build(&self, snapshot: &Snapshot, verdict: &Verdict) -> Value {
        let notify = if self.action_required {
            "NOTIFY"
        } else {
            "DONT_NOTIFY"
        };
        let actions = if self.action_required {
            user::actions(snapshot, verdict.quota)
        } else {
            Vec::new()
        };
        let mut packet = Map::new();
        packet.insert(
            "schema_version".to_owned(),
            json!("loopx_interaction_contract_v0"),
        );
        packet.insert("mode".to_owned(), json!(self.mode));
        let mut user_channel = json!({
            "action_required": self.action_required, "notify": notify, "max_items": 3, "actions": actions,
        });
        if self.action_required {
            user_channel["non_blocking"] = json!(self.delivery_allowed);
            user_channel["reason"] = json!(verdict.row.reason());
        }
        packet.insert("user_channel".to_owned(), user_channel);
        packet.insert(
            "agent_channel".to_owned(),
            json!({
                "must_attempt": self.must_attempt, "delivery_allowed": self.delivery_allowed,
                "quiet_noop_allowed": self.quiet_allowed, "primary_action": primary_action(snapshot, verdict),
            }),
        );
        packet.insert(
            "cli_channel".to_owned(),
            json!({
                "next_cli_actions": self.next_cli_actions,
                "spend_allowed_now": self.spends_now,
                "spend_after_validation": self.spends_after_validation,
                "spend_policy": spend_policy(self.spends_after_validation, self.spends_now),
            }),
        );
        if self.action_required && !self.must_attempt && is_gate_row(verdict) {
            packet.insert(
                "response_plan".to_owned(),
                json!({
                    "schema_version": "interaction_response_plan_v0", "kind": "surface_user_gate", "decision": "ask_user",
                    "action_sequence": ["notify", "wait"], "silent_wait_allowed": false,
                }),
            );
        }
        if let Some(intent) = snapshot
            .intent
            .as_ref()
            .filter(|_| verdict.row == Row::CapabilityIntent)
        {
            packet.insert(
                "pending_capability_intent".to_owned(),
                Value::Object(intent.clone()),
            );
        }
        Value::Object(packet)
    }
}

fn is_gate_row(verdict: &Verdict) -> bool {
    matches!(verdict.row, Row::OperatorGate | Row::GateCoversAll)
        || verdict.quota == QuotaState::OperatorGate
}

/// The mode: the row's own, unless the user has to act as well.
fn mode(verdict: &Verdict, side: &UserSide, is_quiet: bool) -> &'static str {
    let own = verdict.row.columns().mode;
    let stands = matches!(
        verdict.row,
        Row::Paused
            | Row::MonitorOnly
            | Row::MonitorDue
            | Row::TerminalNoFollowup
            | Row::GateFallback
            | Row::UnsettledRecovery
    );
    if stands || !side.requires_action {
        return own;
    }
    let may_deliver = verdict.row.columns().should_run;
    match (is_quiet, may_deliver) {
        (true, false) => "user_gate_cooldown_wait",
        (true, true) => own,
        (false, true)
            if matches!(
                verdict.row,
                Row::AutonomousReplan | Row::CapabilityRepair | Row::SuccessorReplan
            ) =>
        {
            own
        }
        (false, true) => "bounded_delivery_with_user_notice",
        (false, false) if side.notify_gate || verdict.quota == QuotaState::OperatorGate => {
            "user_gate"
        }
        (false, false) => "user_todo_blocker_push",
    }
}

/// What the agent does first.
pub fn primary_action(snapshot: &Snapshot, verdict: &Verdict) -> String {
    match verdict.row {
        Row::NormalRun | Row::GateFallback | Row::MonitorDue => verdict
            .selected
            .as_ref()
            .map(|todo| todo.words().to_owned())
            .unwrap_or_default(),
        Row::CapabilityRepair => format!(
            "Provide the missing capability: {}",
            verdict.missing_capabilities.join(", ")
        ),
        Row::AutonomousReplan => {
            "Replan: write a fresh vision with evidence or add a runnable successor todo".to_owned()
        }
        Row::SuccessorReplan => {
            "Add the next todo, or complete the goal without follow-up".to_owned()
        }
        Row::CapabilityIntent => {
            let intent = snapshot.intent.as_ref();
            intent
                .and_then(|intent| intent.get("action_summary"))
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        }
        Row::UnsettledRecovery => "Settle the earlier Turn with the owed command".to_owned(),
        Row::OperatorGate | Row::GateCoversAll => {
            "Ask the user and wait for a recorded decision".to_owned()
        }
        row => row.reason().to_owned(),
    }
}

fn spend_policy(after: bool, now: bool) -> &'static str {
    match (now, after) {
        (true, _) => "spend exactly one slot for the written-back Turn now",
        (false, true) => "spend exactly one slot after validation and writeback, once per Turn",
        (false, false) => "no spend",
    }
}

fn next_commands(snapshot: &Snapshot, question: &Question, verdict: &Verdict) -> Vec<String> {
    let goal = snapshot.goal.id.as_str();
    let agent = question.agent.as_ref().map_or("", |agent| agent.as_str());
    match verdict.row {
        Row::CapabilityIntent => {
            let command = snapshot
                .intent
                .as_ref()
                .and_then(|intent| intent.get("command"))
                .and_then(Value::as_str);
            command.map(str::to_owned).into_iter().collect()
        }
        Row::UnsettledRecovery => verdict.owed.iter().map(neutral_owed_command).collect(),
        Row::OperatorGate if snapshot.goal.missing_gates.is_empty() => Vec::new(),
        Row::OperatorGate => {
            let gate = &snapshot.goal.missing_gates[0];
            vec![shell_line(&words(&[
                "loopx",
                "operator-gate",
                "--goal-id",
                goal,
                "--gate",
                gate,
                "--decision",
                "approve",
            ]))]
        }
        row if !row.columns().should_run || agent.is_empty() => Vec::new(),
        Row::AutonomousReplan => {
            let id = verdict
                .obligation
                .as_ref()
                .map_or("", |obligation| obligation.id.as_str());
            let refresh = [
                "loopx",
                "refresh-state",
                "--goal-id",
                goal,
                "--agent-id",
                agent,
                "--replan-obligation-id",
                id,
            ];
            vec![format!(
                "{} --turn-instance-id <turn> --autonomous-replan-recorded --settle-turn",
                shell_line(&words(&refresh))
            )]
        }
        Row::SuccessorReplan => {
            vec![format!(
                "{} --text <text>",
                shell_line(&words(&[
                    "loopx",
                    "todo",
                    "add",
                    "--goal-id",
                    goal,
                    "--role",
                    "agent"
                ]))
            )]
        }
        _ => {
            let todo = verdict
                .selected
                .as_ref()
                .map_or("", |todo| todo.id().as_str());
            let refresh = [
                "loopx",
                "refresh-state",
                "--goal-id",
                goal,
                "--agent-id",
                agent,
                "--todo-id",
                todo,
            ];
            vec![format!(
                "{} --turn-instance-id <turn> --settle-turn",
                shell_line(&words(&refresh))
            )]
        }
    }
}

/// The command that pays what an earlier Turn owes, bound to this registry and runtime root.
pub fn owed_command(question: &Question, owed: &SettlementIdentity) -> String {
    shell_line(&question.places.argv(&owed_words(owed)))
}

/// The same command for whoever stands in the project: public packets name no path.
fn neutral_owed_command(owed: &SettlementIdentity) -> String {
    let mut argv = words(&["loopx"]);
    argv.extend(words(&owed_words(owed)));
    shell_line(&argv)
}

fn owed_words(owed: &SettlementIdentity) -> Vec<&str> {
    let mut rest = vec![
        "quota",
        "spend-slot",
        "--goal-id",
        owed.goal.as_str(),
        "--agent-id",
        owed.agent.as_str(),
    ];
    match &owed.binding {
        Binding::Todo(todo) => rest.extend(["--todo-id", todo.as_str()]),
        Binding::Replan(obligation) => {
            rest.extend(["--replan-obligation-id", obligation.as_str()]);
        }
        Binding::Unbound => {}
    }
    let turn = ["--turn-instance-id", owed.instance.as_str()];
    rest.extend(turn);
    rest.extend(["--slots", "1", "--source", "heartbeat", "--execute"]);
    rest
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}
