//! Scripted faults: `{"on": COMMAND, "method"?, "nth"?: [N…], "do": WHAT, …}`. A rule counts the calls it matches; the first match decides.

use std::time::Duration;

use serde_json::{Value, json};

use super::answer::{Answer, Failure, printed};
use super::call::Call;
use super::state::{Held, State};

/// Finds the rule of a call and counts it.
pub(crate) fn matching(held: &mut Held<'_>, call: &Call) -> Option<Value> {
    let faults = held.faults();
    let mut found = None;
    for (index, rule) in faults["rules"].as_array().into_iter().flatten().enumerate() {
        let is_on = rule["on"] == call.command.as_str() || rule["on"] == "*";
        let is_method = rule["method"]
            .as_str()
            .is_none_or(|method| method == call.method);
        let is_path = rule["path"]
            .as_str()
            .is_none_or(|part| call.path.contains(part));
        let is_dry = rule["dry_run"]
            .as_bool()
            .is_none_or(|dry| dry == call.has("dry-run"));
        if !(is_on && is_method && is_path && is_dry) {
            continue;
        }
        let name = format!("{index}");
        let hits = held.0["hits"][&name].as_u64().unwrap_or(0) + 1;
        held.0["hits"][name] = json!(hits);
        let is_turn = rule["nth"]
            .as_array()
            .is_none_or(|turns| turns.iter().any(|turn| turn.as_u64() == Some(hits)));
        if is_turn && found.is_none() {
            found = Some(rule.clone());
        }
    }
    found
}

/// Answers a call, with the fault of its rule.
pub(crate) fn apply(
    rule: Option<&Value>,
    state: &mut State,
    call: &Call,
    run: fn(&mut State, &Call) -> Answer,
) -> Answer {
    let Some(rule) = rule else {
        return run(state, call);
    };
    let identity = call.identity();
    let mut answer = match rule["do"].as_str().unwrap_or("") {
        // Nothing reached the platform, or nobody knows whether it did.
        "code" => Answer::failed(&Failure::code(rule["code"].as_i64().unwrap_or(7)), identity),
        "page" => Answer::failed(
            &Failure::page(rule["code"].as_i64().unwrap_or(500)),
            identity,
        ),
        "network" => Answer::failed(
            &Failure::local(
                "network",
                rule["subtype"].as_str().unwrap_or("transport"),
                4,
            ),
            identity,
        ),
        "internal" => Answer::failed(&Failure::local("internal", "invalid_response", 5), identity),
        "no_login" => Answer::failed(
            &Failure::local("authentication", "token_missing", 3),
            identity,
        ),
        // The platform took it and said nothing about it.
        "no_data" => no_data(&run(state, call), call),
        // A word or flag that this version does not know.
        "usage" => Answer::failed(
            &Failure::local("validation", "invalid_argument", 2),
            identity,
        ),
        "old" => Answer::text("lark-cli version 1.0.68\n"),
        "garbage" => Answer::text("<not json>"),
        "empty" => Answer::text(""),
        "saved_file" => Answer::bare(
            &json!({"content_type": "text/html", "saved_path": "download.html", "size_bytes": 9}),
        ),
        "die" => Answer {
            dies: true,
            ..Answer::text("")
        },
        "hang" => Answer {
            delay: Duration::from_secs(60),
            ..Answer::text("")
        },
        // The platform acted, and the answer is lost or changed.
        "lose_answer" => {
            run(state, call);
            Answer::failed(&Failure::local("network", "transport", 4), identity)
        }
        "hang_after" => {
            run(state, call);
            Answer {
                delay: Duration::from_secs(60),
                ..Answer::text("")
            }
        }
        "set" => set(run(state, call), &rule["values"]),
        "drop" => dropped(run(state, call), rule["key"].as_str().unwrap_or("")),
        "truncate" => {
            let mut answer = run(state, call);
            answer.stdout.truncate(answer.stdout.len() / 2);
            answer
        }
        _ => run(state, call),
    };
    // An ending of its own, whatever was printed.
    if let Some(rc) = rule["rc"].as_u64().and_then(|rc| u8::try_from(rc).ok()) {
        answer.rc = rc;
    }
    if let Some(text) = rule["stderr"].as_str() {
        answer.stderr = format!("{text}\n{}", answer.stderr);
    }
    answer
}

fn no_data(answer: &Answer, call: &Call) -> Answer {
    let shown = answer.value().unwrap_or_default();
    let data = match call.command.as_str() {
        "im +messages-send" | "im +messages-reply" => {
            json!({"chat_id": null, "create_time": "", "message_id": null})
        }
        "drive +list-comments" => {
            json!({"count": 0, "file_token": shown["data"]["file_token"], "file_type": shown["data"]["file_type"],
            "has_more": false, "items": [], "page_token": ""})
        }
        _ => json!({}),
    };
    Answer::data(call.identity(), &data)
}

fn set(answer: Answer, values: &Value) -> Answer {
    let Some(mut value) = answer.value() else {
        return answer;
    };
    for (pointer, given) in values.as_object().into_iter().flatten() {
        if let Some(place) = value.pointer_mut(pointer) {
            *place = given.clone();
        } else if let Some((parent, name)) = pointer.rsplit_once('/')
            && let Some(parent) = value.pointer_mut(parent)
        {
            parent[name] = given.clone();
        }
    }
    Answer {
        stdout: printed(&value),
        ..answer
    }
}

fn dropped(answer: Answer, key: &str) -> Answer {
    fn walk(value: &mut Value, key: &str) {
        match value {
            Value::Object(map) => {
                map.remove(key);
                map.values_mut().for_each(|inner| walk(inner, key));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| walk(item, key)),
            _ => {}
        }
    }
    let Some(mut value) = answer.value() else {
        return answer;
    };
    walk(&mut value, key);
    Answer {
        stdout: printed(&value),
        ..answer
    }
}
