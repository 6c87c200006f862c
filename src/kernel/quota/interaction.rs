//! The interaction contract: what the user, the agent and the command line are each told
//! (docs/spec/kernel.md 6.6).

use serde_json::{Value, json};

use super::cooldown::Cooldown;
use super::frontier::open_gates;
use super::places::shell_line;
use super::policy::{self, QuotaState};
use super::row::Row;
use super::snapshot::{Owed, Question, Snapshot};
use super::user::{self, UserSide};
use super::verdict::Verdict;
use crate::contract::settlement::{Binding, SettlementIdentity};

/// Work goes on while the user is shown what is open.
const USER_NOTICE: &str = "bounded_delivery_with_user_notice";

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
        let is_owed = verdict.row == Row::UnsettledRecovery
            || (snapshot.turn.is_written_back && !snapshot.turn.is_settled);
        let spends_now = is_owed && policy::may_spend(&snapshot.goal, snapshot.spent);
        let mut interaction = Self {
            mode: mode((snapshot, verdict), &side, is_quiet),
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
        let mut packet = json!({
            "schema_version": "loopx_interaction_contract_v0",
            "mode": self.mode,
            "user_channel": self.user_channel(snapshot, verdict),
            "agent_channel": {
                "must_attempt": self.must_attempt, "delivery_allowed": self.delivery_allowed,
                "quiet_noop_allowed": self.quiet_allowed, "primary_action": primary_action(snapshot, verdict),
            },
            "cli_channel": {
                "next_cli_actions": self.next_cli_actions,
                "spend_allowed_now": self.spends_now,
                "spend_after_validation": self.spends_after_validation,
                "spend_policy": spend_policy(self.spends_after_validation, self.spends_now),
            },
        });
        if self.action_required && !self.must_attempt && is_gate_row(verdict) {
            packet["response_plan"] = json!({
                "schema_version": "interaction_response_plan_v0", "kind": "surface_user_gate", "decision": "ask_user",
                "action_sequence": ["notify", "wait"], "silent_wait_allowed": false,
            });
        }
        let is_intent = verdict.row == Row::CapabilityIntent;
        if let Some(intent) = snapshot.intent.as_ref().filter(|_| is_intent) {
            packet["pending_capability_intent"] = Value::Object(intent.clone());
        }
        packet
    }

    fn user_channel(&self, snapshot: &Snapshot, verdict: &Verdict) -> Value {
        if !self.action_required {
            let mut channel = json!({"action_required": false, "notify": "DONT_NOTIFY", "max_items": 3, "actions": []});
            // Spec 6.3 row 3e: an open item that blocks nothing is shown beside the work; 6.4 notifies for none.
            if self.mode == USER_NOTICE {
                channel["actions"] = json!(user::actions(snapshot, verdict.quota));
                channel["non_blocking"] = json!(true);
            }
            return channel;
        }
        json!({
            "action_required": true,
            "notify": "NOTIFY",
            "max_items": 3,
            "actions": user::actions(snapshot, verdict.quota),
            "non_blocking": self.delivery_allowed,
            "reason": verdict.reason(),
        })
    }
}

fn is_gate_row(verdict: &Verdict) -> bool {
    matches!(verdict.row, Row::OperatorGate | Row::GateCoversAll)
        || verdict.quota == QuotaState::OperatorGate
}

/// The mode: the row's own, unless the user has to act as well.
fn mode(
    (snapshot, verdict): (&Snapshot, &Verdict),
    side: &UserSide,
    is_quiet: bool,
) -> &'static str {
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
    if verdict.row == Row::NormalRun && !side.requires_action && user::has_open(snapshot) {
        return USER_NOTICE;
    }
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
        (false, true) => USER_NOTICE,
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
        _ => verdict.reason().to_owned(),
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
            let intent = snapshot.intent.as_ref();
            let command = intent.and_then(|intent| intent.get("command"));
            let command = command.and_then(Value::as_str).map(str::to_owned);
            command.into_iter().collect()
        }
        Row::UnsettledRecovery => verdict.owed.iter().map(recovery_command).collect(),
        Row::OperatorGate => {
            let gates = snapshot.goal.missing_gates.iter().take(1);
            let approve = "loopx operator-gate --goal-id {} --gate {} --decision approve";
            gates.map(|gate| command(approve, &[goal, gate])).collect()
        }
        Row::GateCoversAll => {
            let decide = "loopx todo update --goal-id {} --todo-id {} --decision-outcome <approve|reject|cancel>";
            let first = open_gates(snapshot).next();
            first
                .map(|gate| command(decide, &[goal, gate.id().as_str()]))
                .into_iter()
                .collect()
        }
        row if !row.columns().should_run || agent.is_empty() => Vec::new(),
        Row::AutonomousReplan => {
            let obligation = verdict.obligation.as_ref();
            let id = obligation.map_or("", |obligation| obligation.id.as_str());
            let refresh = "loopx refresh-state --goal-id {} --agent-id {} --replan-obligation-id {} \
                           --turn-instance-id {turn} --classification <word> --delivery-outcome <outcome> \
                           --agent-vision-json <file> --autonomous-replan-recorded --settle-turn";
            vec![command(&with_turn(refresh, question), &[goal, agent, id])]
        }
        Row::MonitorDue => vec![poll_command(question, verdict, &[goal, agent])],
        Row::SuccessorReplan => {
            let add = "loopx todo add --goal-id {} --role agent --text <text>";
            vec![command(add, &[goal])]
        }
        _ => {
            let selected = verdict.selected.as_ref();
            let todo = selected.map_or("", |todo| todo.id().as_str());
            let refresh = "loopx refresh-state --goal-id {} --agent-id {} --todo-id {} \
                           --turn-instance-id {turn} --classification <word> --delivery-outcome <outcome> --settle-turn";
            vec![command(&with_turn(refresh, question), &[goal, agent, todo])]
        }
    }
}

/// A look at a monitor is recorded by its poll, which also says when it is due next; nothing else moves it on.
fn poll_command(question: &Question, verdict: &Verdict, names: &[&str; 2]) -> String {
    let todo = verdict.selected.as_ref();
    let todo = todo.map_or("", |todo| todo.id().as_str());
    let turn = question.instance.as_ref();
    let turn = turn.map_or(String::new(), |turn| format!("--turn-instance-id {turn} "));
    let poll = "loopx quota monitor-poll --goal-id {} --agent-id {} --todo-id {} {turn}\
                --result <changed|unchanged> --next-due-at <instant> --execute";
    command(&poll.replace("{turn}", &turn), &[names[0], names[1], todo])
}

/// Names the Turn of the question; without one its place stays marked for the agent to fill.
fn with_turn(template: &str, question: &Question) -> String {
    let turn = question.instance.as_ref();
    template.replace("{turn}", turn.map_or("<turn>", |turn| turn.as_str()))
}

/// Fills the blanks of a command line, each quoted as a shell needs it.
fn command(template: &str, values: &[&str]) -> String {
    let mut values = values.iter();
    let filled: Vec<String> = template
        .split(' ')
        .filter(|word| !word.is_empty())
        .map(|word| match word {
            "{}" => shell_line(&[values.next().copied().unwrap_or_default().to_owned()]),
            word => word.to_owned(),
        })
        .collect();
    filled.join(" ")
}

/// The command that pays what an earlier Turn owes, bound to this registry and runtime root.
pub fn owed_command(question: &Question, owed: &SettlementIdentity) -> String {
    shell_line(&question.places.argv(&owed_words(owed)))
}

/// The same command for whoever stands in the project: public packets name no path. A lost receipt is repaired first.
pub fn recovery_command(owed: &Owed) -> String {
    if owed.lacks_receipt {
        return "loopx doctor --execute".to_owned();
    }
    let mut argv = words(&["loopx"]);
    argv.extend(words(&owed_words(&owed.identity)));
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
