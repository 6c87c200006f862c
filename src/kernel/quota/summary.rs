//! The summary of unfinished todos in a decision: exact counts, and lists that stay small however many there are
//! (docs/spec/kernel.md 6.4).
//!
//! A goal of the ordinary size is listed whole. Above the bound the first todos in selection order are listed and
//! `listing` counts what is left out; an open gate is never left out, it is only shortened to what says whom it holds.

use serde_json::{Map, Value, json};

use crate::contract::todo::Todo;

/// Todos one list holds whole.
pub const MAX_ITEMS: usize = 1_000;
/// Bytes of todos one list holds whole; the first one is listed whatever its size.
pub const MAX_BYTES: usize = 1_048_576;
const FIRST: usize = 3;
/// What a shortened gate still says.
const GATE_REACH: [&str; 4] = [
    "task_class",
    "decision_scope",
    "blocks_agent",
    "global_gate",
];

/// One list with what did not go into it.
pub struct Listed {
    /// What was listed.
    pub items: Vec<Value>,
    /// How many were left out.
    pub rest: usize,
}

/// The summary of unfinished todos: the user's, or the agents' in the same shape.
pub fn summary(todos: &[Todo], done: i64) -> Value {
    let all = || todos.iter().enumerate();
    let whole = |(index, todo): (usize, &Todo)| item(index, todo);
    let items = bounded(all(), whole);
    let mut gates = bounded(all().filter(|(_, todo)| todo.is_user_gate()), whole);
    let actions = bounded(all().filter(|(_, todo)| !todo.is_user_gate()), whole);
    let listed_gates = gates.items.len();
    gates.items.extend(
        all()
            .filter(|(_, todo)| todo.is_user_gate())
            .skip(listed_gates)
            .map(|(index, todo)| short(index, todo)),
    );
    let listing = (items.rest + gates.rest + actions.rest > 0).then(|| {
        json!({
            "schema_version": "todo_listing_v0", "max_items": MAX_ITEMS, "max_bytes": MAX_BYTES, "items_omitted": items.rest,
            "gate_open_items_shortened": gates.rest, "user_action_items_omitted": actions.rest, "complete": "loopx todo list",
        })
    });
    let mut summary = Map::new();
    summary.insert("open_count".to_owned(), json!(todos.len()));
    let first = items.items.iter().take(FIRST).cloned().collect();
    // Records are moved, not serialised again: that would respell their numbers.
    for (name, list) in [
        ("items", items.items),
        ("first_open_items", first),
        ("gate_open_items", gates.items),
        ("user_action_items", actions.items),
    ] {
        summary.insert(name.to_owned(), Value::Array(list));
    }
    summary.insert("done_count".to_owned(), json!(done));
    summary.extend(listing.map(|listing| ("listing".to_owned(), listing)));
    Value::Object(summary)
}

/// The first todos that fit, in their order.
pub fn bounded<T>(todos: impl Iterator<Item = T>, line: impl Fn(T) -> Value) -> Listed {
    let mut listed = Listed {
        items: Vec::new(),
        rest: 0,
    };
    let mut left = MAX_BYTES;
    for todo in todos {
        if listed.rest > 0 || listed.items.len() == MAX_ITEMS {
            listed.rest += 1;
            continue;
        }
        let item = line(todo);
        let bytes = serde_json::to_string(&item).map_or(usize::MAX, |text| text.len());
        if bytes > left && !listed.items.is_empty() {
            listed.rest += 1;
            continue;
        }
        left = left.saturating_sub(bytes);
        listed.items.push(item);
    }
    listed
}

fn item(index: usize, todo: &Todo) -> Value {
    let mut item = head(index, todo);
    for (name, value) in todo.body() {
        item.entry(name.clone()).or_insert_with(|| value.clone());
    }
    Value::Object(item)
}

fn short(index: usize, gate: &Todo) -> Value {
    let mut item = head(index, gate);
    for name in GATE_REACH {
        item.extend(
            gate.body()
                .get(name)
                .map(|value| (name.to_owned(), value.clone())),
        );
    }
    Value::Object(item)
}

fn head(index: usize, todo: &Todo) -> Map<String, Value> {
    let mut item = Map::new();
    item.insert("todo_id".to_owned(), json!(todo.id()));
    item.insert("index".to_owned(), json!(index + 1));
    item
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::ids::TodoId;
    use crate::contract::todo::Role;

    fn todos(count: usize, role: Role, words: &str) -> Vec<Todo> {
        (0..count)
            .map(|number| {
                Todo::new(
                    TodoId::new(format!("todo_{number:06}")).unwrap(),
                    role,
                    words,
                )
            })
            .collect()
    }

    fn gates(count: usize) -> Vec<Todo> {
        let mut gates = todos(count, Role::User, "May we?");
        for gate in &mut gates {
            gate.set("task_class", json!("user_gate"));
            gate.set("decision_scope", json!("production:goal:release"));
        }
        gates
    }

    #[test]
    fn a_goal_at_the_bound_is_listed_whole_and_says_nothing_of_a_bound() {
        let summary = summary(&todos(MAX_ITEMS, Role::Agent, "x"), 0);
        assert_eq!(summary["items"].as_array().unwrap().len(), MAX_ITEMS);
        assert_eq!(summary["first_open_items"].as_array().unwrap().len(), 3);
        assert!(summary.get("listing").is_none());
    }

    #[test]
    fn above_the_bound_the_first_are_listed_and_the_counts_stay_exact() {
        let summary = summary(&todos(MAX_ITEMS + 7, Role::Agent, "x"), 0);
        assert_eq!(summary["open_count"], MAX_ITEMS + 7);
        assert_eq!(summary["items"].as_array().unwrap().len(), MAX_ITEMS);
        assert_eq!(summary["listing"]["items_omitted"], 7);
        assert_eq!(summary["listing"]["user_action_items_omitted"], 7);
        assert_eq!(summary["listing"]["gate_open_items_shortened"], 0);
    }

    #[test]
    fn large_records_end_a_list_before_its_number_does() {
        let words = "x".repeat(MAX_BYTES / 4);
        let few = summary(&todos(9, Role::Agent, &words), 0);
        assert_eq!(few["items"].as_array().unwrap().len(), 3);
        assert_eq!(few["listing"]["items_omitted"], 6);
        let one = summary(&todos(2, Role::Agent, &"x".repeat(2 * MAX_BYTES)), 0);
        assert_eq!(one["items"].as_array().unwrap().len(), 1);
    }

    #[test]
    fn no_open_gate_is_left_out() {
        let summary = summary(&gates(MAX_ITEMS + 2), 0);
        let listed = summary["gate_open_items"].as_array().unwrap();
        assert_eq!(listed.len(), MAX_ITEMS + 2);
        assert!(listed[MAX_ITEMS - 1].get("text").is_some());
        assert_eq!(
            listed[MAX_ITEMS + 1],
            json!({"todo_id": format!("todo_{:06}", MAX_ITEMS + 1), "index": MAX_ITEMS + 2, "task_class": "user_gate",
                "decision_scope": "production:goal:release"})
        );
        assert_eq!(summary["listing"]["gate_open_items_shortened"], 2);
    }
}
