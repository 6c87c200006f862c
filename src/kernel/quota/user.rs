//! What the user is asked and told: the notification flags and the prompt of a gate (docs/spec/kernel.md 6.4).

use super::frontier::open_gates;
use super::policy::QuotaState;
use super::snapshot::Snapshot;
use crate::contract::goal::WaitingOn;
use crate::contract::todo::{Status, Todo};

/// Open todos a prompt names one by one.
const PROMPT_TODOS: usize = 100;

/// What the user's side of a decision says.
#[derive(Clone, Debug, PartialEq)]
pub struct UserSide {
    /// An open gate asks for a decision.
    pub notify_gate: bool,
    /// An open todo holds the goal up.
    pub notify_todo: Option<&'static str>,
    /// The user has to act.
    pub requires_action: bool,
}

impl UserSide {
    /// Derives the flags of a quota state.
    pub fn of(snapshot: &Snapshot, state: QuotaState) -> Self {
        if matches!(state, QuotaState::Paused(_)) {
            return Self {
                notify_gate: false,
                notify_todo: None,
                requires_action: false,
            };
        }
        let notify_gate = open_gates(snapshot).next().is_some();
        let holds_up = match state {
            QuotaState::FocusWait => Some("focus_wait"),
            QuotaState::Waiting => Some("waiting"),
            QuotaState::OperatorGate => None,
            _ => match snapshot.goal.waiting_on {
                WaitingOn::UserOrController | WaitingOn::Controller => Some("waiting_on_user"),
                WaitingOn::ExternalEvidence => Some("waiting_on_external_evidence"),
                WaitingOn::Codex | WaitingOn::Unnamed => None,
            },
        };
        let has_open = !snapshot.user_todos.is_empty();
        let notify_todo = holds_up.filter(|_| !notify_gate && has_open);
        let requires_action =
            state == QuotaState::OperatorGate || notify_gate || notify_todo.is_some();
        Self {
            notify_gate,
            notify_todo,
            requires_action,
        }
    }
}

/// True when the user has something open, whether or not it holds anything up.
pub fn has_open(snapshot: &Snapshot) -> bool {
    let mut todos = snapshot.user_todos.iter();
    todos.any(|todo| todo.status() == Status::Open)
}

/// The one question the user is asked.
pub fn question(snapshot: &Snapshot, state: QuotaState) -> Option<String> {
    if let Some(asked) = snapshot.goal.text("operator_question") {
        return Some(asked.to_owned());
    }
    if state == QuotaState::OperatorGate {
        let gate = snapshot
            .goal
            .missing_gates
            .first()
            .map_or("the next step", String::as_str);
        return Some(format!("Goal {}: may {gate} go ahead?", snapshot.goal.id));
    }
    open_gates(snapshot)
        .next()
        .map(|gate| gate.words().to_owned())
}

/// The text a person gets, empty when there is nothing to ask.
pub fn gate_prompt(snapshot: &Snapshot, state: QuotaState) -> Option<String> {
    let question = question(snapshot, state);
    let goal = &snapshot.goal;
    let todos = &snapshot.user_todos;
    if question.is_none()
        && goal.missing_gates.is_empty()
        && todos.is_empty()
        && state != QuotaState::OperatorGate
    {
        return None;
    }
    let mut lines = vec![format!("Decision needed for goal {}", goal.id)];
    if let Some(question) = question {
        lines.push(format!("Question: {question}"));
    }
    if let Some(suggestion) = goal.text("next_action") {
        lines.push(format!("Current suggestion: {suggestion}"));
    }
    lines.push("Release condition: a recorded decision".to_owned());
    if !goal.missing_gates.is_empty() {
        lines.push(format!("Missing gates: {}", goal.missing_gates.join(", ")));
    }
    if !todos.is_empty() {
        lines.push(format!("Open user todos: {}", todos.len()));
        let line = |todo: &Todo| format!("- {} {}", todo.id(), todo.words());
        lines.extend(todos.iter().take(PROMPT_TODOS).map(line));
        if let Some(rest) = todos.len().checked_sub(PROMPT_TODOS + 1) {
            lines.push(format!("- and {} more", rest + 1));
        }
    }
    // The words the command of this gate takes.
    let words = match state {
        QuotaState::OperatorGate => "approve, reject or defer",
        _ => "approve, reject or cancel",
    };
    lines.push(format!("Reply with {words} and a short reason"));
    Some(lines.join("\n"))
}

/// What the user is asked to do, at most three lines; every line in an envelope of today.
pub fn actions(snapshot: &Snapshot, state: QuotaState) -> Vec<String> {
    let gates: Vec<String> = open_gates(snapshot)
        .map(|gate| gate.words().to_owned())
        .collect();
    if !gates.is_empty() {
        return gates.into_iter().take(3).collect();
    }
    let asked = question(snapshot, state);
    let todos = snapshot.user_todos.iter();
    let todos = todos.map(|todo| todo.words().to_owned());
    // What the goal itself waits for comes first; else a todo of the user is all there is to do.
    if state == QuotaState::OperatorGate {
        return asked.into_iter().chain(todos).take(3).collect();
    }
    let todos: Vec<String> = todos.take(3).collect();
    if todos.is_empty() {
        asked.into_iter().collect()
    } else {
        todos
    }
}
