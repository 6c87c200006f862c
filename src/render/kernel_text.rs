//! The text of the kernel's commands for people: what was decided and what comes next, on one screen.
//!
//! Rendered from the packet alone. `quota should-run` shows the complete decision below its head
//! (docs/spec/kernel.md 6.4); the other commands leave the rest to `--format json`.

use serde_json::Value;

use super::packet_text::{body, scalar};

/// Lays out the packet of a command under its name.
pub(crate) fn titled(command: &str, packet: &Value) -> String {
    let short = match command {
        "quota should-run" if packet.get("view").is_none() => decision(packet),
        "turn plan" if packet.get("inspection") == Some(&Value::Bool(true)) => plan(packet),
        "turn run-once" => turn(packet),
        "status" => status(packet),
        "todo list" => todos(packet),
        _ => return format!("# loopx {command}\n\n{}", body(packet)),
    };
    let rest = match command {
        "quota should-run" => format!("\n{}", body(packet)),
        _ => format!("\nEverything else: `loopx {command}` with `--format json`\n"),
    };
    format!("# loopx {command}\n\n{}{rest}", short.0)
}

/// Lines of text, each with a label; what is absent has no line.
#[derive(Default)]
struct Lines(String);

impl Lines {
    fn line(&mut self, text: &str) {
        self.0.push_str(text);
        self.0.push('\n');
    }

    fn say(&mut self, label: &str, value: &Value) {
        if !is_empty(value) {
            self.line(&format!("{label}: {}", scalar(value)));
        }
    }

    fn list(&mut self, label: &str, values: &Value) {
        for value in items(values) {
            self.say(label, value);
        }
    }

    fn todo(&mut self, label: &str, todo: &Value) {
        if todo.is_object() {
            let id = scalar(&todo["todo_id"]);
            let words = shown(&todo["text"]);
            self.line(format!("{label}: {id} {words}").trim_end());
        }
    }
}

fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        _ => false,
    }
}

fn items(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

/// The beginning of a text, or nothing.
fn shown(value: &Value) -> String {
    const LONGEST: usize = 100;
    if is_empty(value) {
        return String::new();
    }
    let text = scalar(value);
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

fn decision(packet: &Value) -> Lines {
    let mut out = Lines::default();
    let contract = &packet["interaction_contract"];
    let (does, action) = (
        scalar(&packet["decision"]),
        scalar(&packet["effective_action"]),
    );
    out.line(&format!("Decision: {does} ({action})"));
    out.say("Reason", &packet["reason"]);
    if packet["should_run"] == false {
        out.say("Quota", &packet["quota"]["reason"]);
    }
    out.todo("Todo", &packet["selected_todo"]);
    turned_down(
        &mut out,
        "",
        &packet["agent_scope_frontier"]["refused_gates"],
    );
    if packet["requires_user_action"] == true {
        out.list("Needed from you", &contract["user_channel"]["actions"]);
    }
    out.list("Next", &contract["cli_channel"]["next_cli_actions"]);
    out
}

fn plan(packet: &Value) -> Lines {
    let mut out = Lines::default();
    let (envelope, route) = (&packet["turn_envelope"], &packet["route"]);
    let (kind, action) = (scalar(&route["kind"]), scalar(&route["effective_action"]));
    out.line(&format!("Route: {kind} ({action})"));
    out.say("Would start a host", &route["would_invoke_host"]);
    out.say("Reason", &envelope["reason"]);
    let selected = &envelope["action"]["selected_todo"];
    out.say("Todo", &selected["todo_id"]);
    out.say("Action", &envelope["action"]["recommended_action"]);
    out.list("Needed from you", &envelope["user"]["actions"]);
    out.say("Next", &packet["capability_action"]["command"]);
    out.list("Next", &envelope["writeback"]["next_cli_actions"]);
    out.say("Error", &packet["error"]);
    out
}

fn turn(packet: &Value) -> Lines {
    let mut out = Lines::default();
    let effects = &packet["effects"];
    out.say("Status", &packet["status"]);
    out.say("Route", &packet["route"]["kind"]);
    out.say("Todo", &packet["route"]["selected_todo_id"]);
    out.say("Turn", &packet["resume_turn_key"]);
    out.say("Replayed", &packet["replayed"]);
    out.say("Result", &packet["result_kind"]);
    out.say("Reason", &packet["reason"]);
    out.say("Validation", &packet["validation"]["summary"]);
    out.say("Host failure", &packet["host_failure"]["cause"]);
    out.say("Host exit code", &packet["host_failure"]["exit_code"]);
    out.say("Host started", &effects["host_invoked"]);
    out.say("State written", &effects["state_written"]);
    out.say(
        "Slots spent by this Turn",
        &packet["quota_slot_spend_count"],
    );
    out.say("Question", &packet["operator_question"]);
    out.say("Error", &packet["error"]);
    out.say("Error code", &packet["error_code"]);
    out.say("Next", &packet["capability_action"]["command"]);
    out.say("Next", &packet["settlement_owed"]["command"]);
    out.say("Next", &packet["next_step"]);
    out
}

fn status(packet: &Value) -> Lines {
    let mut out = Lines::default();
    let count = packet["goal_count"].as_u64().unwrap_or(0);
    if count == 0 {
        out.line("No goals; `loopx bootstrap --goal-id ID` makes one.");
    }
    for asked in items(&packet["attention_queue"]) {
        let (goal, reason) = (scalar(&asked["goal_id"]), scalar(&asked["reason"]));
        out.line(&format!("Needs you: {goal}: {reason}"));
    }
    for goal in items(&packet["goals"]) {
        one_goal(&mut out, goal);
    }
    out
}

fn one_goal(out: &mut Lines, goal: &Value) {
    let quota = &goal["quota"];
    let slots = (
        scalar(&quota["spent_slots"]),
        scalar(&quota["allowed_slots"]),
    );
    out.line(&format!(
        "\n{}: {} ({}), {} of {} slots spent",
        scalar(&goal["goal_id"]),
        scalar(&goal["state"]),
        scalar(&quota["reason"]),
        slots.0,
        slots.1
    ));
    out.list("  Missing gate", &goal["missing_gates"]);
    turned_down(out, "  ", &goal["refused_gates"]);
    for turn in items(&goal["unfinished_turns"]) {
        unfinished(out, turn);
    }
    for turn in items(&goal["unsettled_turns"]) {
        let (agent, id) = (&turn["agent_id"], &turn["prior_turn_instance_id"]);
        let (agent, id) = (scalar(agent), scalar(id));
        out.line(&format!("  Turn {id} of {agent}: written back, not paid"));
        out.say("    Next", &turn["next_command"]);
    }
    for inbox in items(&goal["inboxes"]) {
        out.line(&format!("  {}", one_inbox(inbox)));
    }
    for (label, name) in [("user", "user_todos"), ("agent", "agent_todos")] {
        for todo in items(&goal[name]) {
            out.line(&format!("  {}", one_todo(todo, label)));
        }
    }
    if goal["todos_omitted"].is_object() {
        out.line("  More: `loopx todo list`");
    }
}

/// A Turn that is not finished, and how it goes on.
fn unfinished(out: &mut Lines, turn: &Value) {
    let word = |name: &str| scalar(&turn[name]);
    let about = match is_empty(&turn["binding_id"]) {
        true => String::new(),
        false => format!(" on {}", word("binding_id")),
    };
    let stands = match is_empty(&turn["running_since"]) {
        true => format!("{}, owes {}", word("status"), word("owed_step")),
        false => format!("running since {}", word("running_since")),
    };
    let (agent, phase) = (word("agent_id"), word("phase"));
    out.line(&format!("  Turn of {agent}{about}: {phase}; {stands}"));
    out.say("    Turn", &turn["turn_key"]);
    out.say("    Blocked by", &turn["blocked_by"]);
    out.say("    Next", &turn["next_command"]);
}

fn one_inbox(inbox: &Value) -> String {
    if inbox["unavailable"].is_string() {
        return format!("Inbox: unavailable ({})", scalar(&inbox["unavailable"]));
    }
    let count = |name: &str| inbox[name].as_u64().unwrap_or(0);
    let (pending, asked) = (count("pending_count"), count("attention_required_count"));
    if pending == 0 {
        return "Inbox: nothing waits".to_owned();
    }
    let drain = scalar(&inbox["drain_command"]);
    format!("Inbox: {pending} wait, {asked} of them for an answer; `{drain}`")
}

/// The gates that were turned down and hold work, each with the command that decides it anew.
fn turned_down(out: &mut Lines, indent: &str, gates: &Value) {
    for gate in items(gates) {
        let (id, outcome) = (scalar(&gate["gate_id"]), scalar(&gate["outcome"]));
        let reopen = scalar(&gate["reopen_command"]);
        out.line(&format!(
            "{indent}Turned down: {id} ({outcome}); to approve it after all: {reopen}"
        ));
    }
}

fn todos(packet: &Value) -> Lines {
    let mut out = Lines::default();
    if is_empty(&packet["todos"]) {
        out.line("No todos; `loopx todo add` makes one.");
    }
    for todo in items(&packet["todos"]) {
        let role = scalar(&todo["role"]);
        out.line(&one_todo(todo, &role));
    }
    out
}

/// One todo in one line, with why it is held or how it was decided in a second one.
fn one_todo(todo: &Value, role: &str) -> String {
    let mut line = format!("{} {}", scalar(&todo["todo_id"]), scalar(&todo["status"]));
    for (before, name) in [
        (" ", "priority"),
        (" ", "task_class"),
        (" by ", "claimed_by"),
    ] {
        if !is_empty(&todo[name]) {
            line.push_str(&format!("{before}{}", scalar(&todo[name])));
        }
    }
    line.push_str(&format!(" [{role}] {}", shown(&todo["text"])));
    let facts = [
        ("decided", "decision_outcome"),
        ("reason", "reason"),
        ("waits for", "resume_when"),
        ("holds up", "blocks_agent"),
        ("decides", "decision_scope"),
    ];
    let told: Vec<String> = facts
        .iter()
        .filter(|(_, name)| !is_empty(&todo[*name]))
        .map(|(label, name)| format!("{label}: {}", shown(&todo[*name])))
        .collect();
    if !told.is_empty() {
        line.push_str(&format!("\n    {}", told.join("; ")));
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_list_has_one_line_a_todo_and_says_why_one_is_held() {
        let packet = json!({"ok": true, "todos": [
            {"todo_id": "todo_a", "role": "agent", "status": "open", "text": "Measure", "priority": "P1"},
            {"todo_id": "todo_b", "role": "agent", "status": "blocked", "text": "Read", "reason": "no key"},
        ]});
        assert_eq!(
            titled("todo list", &packet),
            "# loopx todo list\n\ntodo_a open P1 [agent] Measure\ntodo_b blocked [agent] Read\n    reason: no key\n\
             \nEverything else: `loopx todo list` with `--format json`\n"
        );
    }

    #[test]
    fn a_decision_is_headed_by_what_comes_next_and_stays_complete() {
        let packet = json!({"ok": true, "decision": "run", "effective_action": "normal_run", "reason": "a todo is selected",
            "should_run": true, "selected_todo": {"todo_id": "todo_a", "text": "Measure"},
            "interaction_contract": {"cli_channel": {"next_cli_actions": ["loopx status"]}}});
        let text = titled("quota should-run", &packet);
        assert!(text.starts_with(
            "# loopx quota should-run\n\nDecision: run (normal_run)\nReason: a todo is selected\nTodo: todo_a Measure\nNext: loopx status\n"
        ));
        assert!(text.contains("- should_run: true\n"));
    }

    #[test]
    fn any_other_command_heads_its_packet_with_its_name() {
        assert_eq!(
            titled("todo add", &json!({"ok": true})),
            "# loopx todo add\n\n- ok: true\n"
        );
    }
}
