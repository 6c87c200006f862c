//! How the program shows a message: rendered text, names in place of keys, threads nested under their first shown message.

use serde_json::{Map, Value, json};

use super::state::State;

/// The most replies that are nested in one message.
pub(crate) fn inline_limit(state: &State) -> usize {
    state.option("thread_inline", 50)
}

/// Shows one message without its thread.
pub(crate) fn shown(message: &Value) -> Value {
    let mut out = Map::new();
    let mut put = |name: &str, value: Value| drop(out.insert(name.to_owned(), value));
    put("chat_id", message["chat_id"].clone());
    put("content", json!(content(message)));
    put(
        "create_time",
        json!(minute(message["at"].as_i64().unwrap_or(0))),
    );
    put("deleted", json!(message["deleted"] == json!(true)));
    if let Some(mentions) = message["mentions"]
        .as_array()
        .filter(|mentions| !mentions.is_empty())
    {
        put("mentions", json!(mentions));
    }
    put("message_app_link", json!("https://applink.example/x"));
    put("message_id", message["message_id"].clone());
    put("message_position", json!("1"));
    put("msg_type", json!(kind(message)));
    put("sender", sender(message));
    if message["edited"] == json!(true) {
        put(
            "update_time",
            json!(minute(message["at"].as_i64().unwrap_or(0) + 60)),
        );
    }
    match (&message["thread_id"], &message["parent_id"]) {
        (Value::String(thread), _) => {
            put("thread_id", json!(thread));
            if message["parent_id"].is_string() {
                put("thread_message_position", json!("1"));
            }
        }
        (_, Value::String(parent)) => put("reply_to", json!(parent)),
        _ => {}
    }
    put("updated", json!(message["edited"] == json!(true)));
    Value::Object(out)
}

fn kind(message: &Value) -> &str {
    message["msg_type"].as_str().unwrap_or("text")
}

/// What is shown of a message: words, a card as tags, anything else by its name.
fn content(message: &Value) -> String {
    let body: Value =
        serde_json::from_str(message["body"].as_str().unwrap_or("")).unwrap_or_default();
    match kind(message) {
        "text" => rendered(message),
        "post" => {
            let mut words = Vec::new();
            gather(&body, &["text"], &mut words);
            words.join("")
        }
        "interactive" => {
            let title = body["header"]["title"]["content"].as_str().unwrap_or("");
            let mut words = Vec::new();
            gather(&body["body"], &["content"], &mut words);
            format!("<card title=\"{title}\">\n{}\n</card>", words.join("\n"))
        }
        "image" => format!("[Image: {}]", body["image_key"].as_str().unwrap_or("")),
        "file" => format!(
            "<file key=\"{}\" name=\"{}\"/>",
            body["file_key"].as_str().unwrap_or(""),
            body["file_name"].as_str().unwrap_or("")
        ),
        other => format!("[{other}]"),
    }
}

fn gather(value: &Value, names: &[&str], found: &mut Vec<String>) {
    match value {
        Value::Object(map) => {
            for (name, inner) in map {
                match inner.as_str() {
                    Some(text) if names.contains(&name.as_str()) => found.push(text.to_owned()),
                    _ => gather(inner, names, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, names, found)),
        _ => {}
    }
}

fn sender(message: &Value) -> Value {
    let kind = message["sender_type"].as_str().unwrap_or("user");
    let id_type = if kind == "app" { "app_id" } else { "open_id" };
    let mut sender = json!({"id": message["sender_id"], "id_type": id_type, "name": "Name", "sender_i18n_names": {"zh_cn": "Name"},
        "sender_type": kind, "tenant_key": "tk"});
    if kind == "app" {
        sender["open_bot_id"] = json!("ou_bot");
    }
    sender
}

/// The text with names in place of keys; with ten or more mentions the order of replacement is not fixed, as in the program.
fn rendered(message: &Value) -> String {
    let mut text = message["text"].as_str().unwrap_or("").to_owned();
    let mut mentions: Vec<&Value> = message["mentions"]
        .as_array()
        .into_iter()
        .flatten()
        .collect();
    if mentions.len() < 10 {
        mentions
            .sort_by_key(|mention| std::cmp::Reverse(mention["key"].as_str().map_or(0, str::len)));
    }
    for mention in mentions {
        let name = format!("@{}", mention["name"].as_str().unwrap_or(""));
        text = text.replace(mention["key"].as_str().unwrap_or("\u{0}"), &name);
    }
    text
}

/// Shows a message with the thread it roots.
pub(crate) fn with_thread(state: &State, message: &Value) -> Value {
    let mut out = shown(message);
    let Some(thread) = message["thread_id"]
        .as_str()
        .filter(|_| message["parent_id"].is_null())
    else {
        return out;
    };
    let replies = thread_replies(state, thread);
    if state.0["options"]["thread_error"] == json!(true) {
        out["thread_replies_error"] = json!(true);
        return out;
    }
    if replies.is_empty() {
        return out;
    }
    let limit = inline_limit(state);
    out["thread_has_more"] = json!(replies.len() > limit);
    if replies.len() <= limit {
        out.as_object_mut()
            .expect("an object")
            .remove("thread_has_more");
    }
    out["thread_replies"] = replies
        .iter()
        .take(limit)
        .map(|reply| shown(reply))
        .collect();
    out
}

/// The replies of a thread in order, its root left out.
pub(crate) fn thread_replies<'a>(state: &'a State, thread: &str) -> Vec<&'a Value> {
    state
        .messages()
        .iter()
        .filter(|message| message["thread_id"] == thread && !message["parent_id"].is_null())
        .collect()
}

/// `YYYY-MM-DD HH:MM` in UTC.
pub(crate) fn minute(at: i64) -> String {
    chrono::DateTime::from_timestamp(at, 0).map_or_else(String::new, |time| {
        time.format("%Y-%m-%d %H:%M").to_string()
    })
}

/// The message as it was sent.
pub(crate) fn raw(message: &Value) -> Value {
    let mut out = json!({
        "body": {"content": message["body"].as_str().map_or_else(|| json!({"text": message["text"]}).to_string(), str::to_owned)},
        "chat_id": message["chat_id"],
        "create_time": format!("{}000", message["at"].as_i64().unwrap_or(0)),
        "deleted": message["deleted"] == json!(true),
        "message_id": message["message_id"],
        "message_position": "1",
        "msg_type": kind(message),
        "sender": {"id": message["sender_id"], "id_type": "open_id", "sender_type": message["sender_type"], "tenant_key": "tk"},
        "update_time": format!("{}000", message["at"].as_i64().unwrap_or(0)),
        "updated": message["edited"] == json!(true),
    });
    for (name, field) in [
        ("parent_id", "parent_id"),
        ("root_id", "root_id"),
        ("thread_id", "thread_id"),
    ] {
        if let Value::String(text) = &message[field] {
            out[name] = json!(text);
        }
    }
    if message["thread_id"].is_string() {
        out["thread_message_position"] = json!("1");
    }
    if let Some(mentions) = message["mentions"]
        .as_array()
        .filter(|mentions| !mentions.is_empty())
    {
        out["mentions"] = json!(mentions);
    }
    out
}
