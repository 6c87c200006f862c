//! Writes: messages with a one-hour key, marks.

use serde_json::{Value, json};

use super::answer::{Answer, Failure};
use super::call::Call;
use super::read;
use super::state::State;

/// How long the platform joins messages of one key, in seconds.
const KEY_SECONDS: i64 = 3600;

pub(crate) fn message(state: &mut State, call: &Call) -> Result<Answer, Failure> {
    let sent = body(call)?;
    let text = sent.text.clone();
    let key = call.flag("idempotency-key");
    if key.chars().count() > 50 {
        return Err(Failure::argument());
    }
    let is_reply = call.command == "im +messages-reply";
    let target = if is_reply {
        call.flag("message-id")
    } else {
        call.flag("chat-id")
    };
    if !target.starts_with(if is_reply { "om_" } else { "oc_" }) {
        return Err(Failure::argument());
    }
    if call.has("dry-run") {
        return Ok(preview(state, call, (&sent, target), is_reply));
    }
    let source = match is_reply {
        true => Some(
            state
                .message(target)
                .cloned()
                .ok_or_else(|| Failure::code(230_001))?,
        ),
        false => None,
    };
    let chat = source.as_ref().map_or(target.to_owned(), |source| {
        source["chat_id"].as_str().unwrap_or("").to_owned()
    });
    let app = state
        .profile(&call.profile)
        .map(|row| row["app_id"].clone())
        .ok_or_else(|| Failure::local("config", "not_configured", 3))?;
    let is_member = state.0["chats"][&chat]["bots"]
        .as_array()
        .is_some_and(|bots| bots.iter().any(|bot| bot["app_id"] == app));
    if !is_member {
        return Err(Failure::code(230_002));
    }
    let now = state.now();
    let uuid = format!("{chat} {key}");
    let known = &state.0["keys"][&uuid];
    if !key.is_empty()
        && known["at"]
            .as_i64()
            .is_some_and(|at| now - at < KEY_SECONDS)
    {
        let stored = state
            .message(known["message_id"].as_str().unwrap_or(""))
            .cloned()
            .unwrap_or_default();
        return Ok(accepted(call, &stored));
    }
    let stored = store(
        state,
        (&chat, &text, &app),
        source.as_ref(),
        call.has("reply-in-thread"),
    );
    if sent.kind != "text"
        && let Some(row) = state
            .list("messages")
            .iter_mut()
            .find(|row| row["message_id"] == stored["message_id"])
    {
        row["msg_type"] = json!(sent.kind);
        row["body"] = json!(sent.content);
    }
    if !key.is_empty() {
        state.0["keys"][uuid] = json!({"at": now, "message_id": stored["message_id"]});
    }
    Ok(accepted(call, &stored))
}

/// What a call wants to send: its words, its kind, its encoded body.
struct Sent {
    text: String,
    kind: String,
    content: String,
}

fn body(call: &Call) -> Result<Sent, Failure> {
    match (call.has("text"), call.has("content")) {
        (true, false) if !call.flag("text").is_empty() => {
            // The program writes the inner text with escaped brackets.
            let content = json!({"text": call.flag("text")}).to_string();
            Ok(Sent {
                text: call.flag("text").to_owned(),
                kind: "text".to_owned(),
                content: content.replace('<', "\\u003c").replace('>', "\\u003e"),
            })
        }
        (false, true) => Ok(Sent {
            text: call.object("content")?["text"]
                .as_str()
                .unwrap_or("")
                .to_owned(),
            kind: call.flag("msg-type").to_owned(),
            content: call.flag("content").to_owned(),
        }),
        _ => Err(Failure::argument()),
    }
}

fn preview(state: &State, call: &Call, (sent, target): (&Sent, &str), is_reply: bool) -> Answer {
    let (content, kind) = (&sent.content, &sent.kind);
    let key = call.flag("idempotency-key");
    let mut step = match is_reply {
        true => {
            json!({"method": "POST", "url": format!("/open-apis/im/v1/messages/{target}/reply"),
            "body": {"content": content, "msg_type": kind, "uuid": key}})
        }
        false => {
            json!({"desc": "<desc>", "method": "POST", "url": "/open-apis/im/v1/messages", "params": {"receive_id_type": "chat_id"},
            "body": {"content": content, "msg_type": kind, "receive_id": target, "uuid": key}})
        }
    };
    if call.has("reply-in-thread") {
        step["body"]["reply_in_thread"] = json!(true);
    }
    let app = state
        .profile(&call.profile)
        .map_or(Value::Null, |row| row["app_id"].clone());
    let mut data = json!({"api": [step], "context": {"app_id": app}});
    if is_reply {
        data["message_id"] = json!(target);
    }
    Answer::bare(&json!({"ok": true, "identity": call.identity(), "dry_run": true, "data": data}))
}

fn accepted(call: &Call, sent: &Value) -> Answer {
    let at = sent["at"].as_i64().unwrap_or(0);
    let time = format!("{}:00", super::message::minute(at));
    Answer::data(
        call.identity(),
        &json!({"chat_id": sent["chat_id"], "create_time": time, "message_id": sent["message_id"]}),
    )
}

fn store(
    state: &mut State,
    (chat, text, app): (&str, &str, &Value),
    source: Option<&Value>,
    in_thread: bool,
) -> Value {
    let id = format!("om_sent{:06}", state.fresh());
    let (text, mentions) = mentioned(&state.0["chats"][chat], text);
    let mut sent = json!({"message_id": id, "chat_id": chat, "text": text, "mentions": mentions, "sender_type": "app", "sender_id": app,
        "at": state.now(), "sent": true});
    if let Some(source) = source {
        let source_id = source["message_id"].as_str().unwrap_or("");
        sent["parent_id"] = json!(source_id);
        sent["root_id"] = if source["root_id"].is_string() {
            source["root_id"].clone()
        } else {
            json!(source_id)
        };
        let thread = match source["thread_id"].as_str() {
            Some(thread) => Some(thread.to_owned()),
            None => in_thread.then(|| format!("omt_{}", source_id.trim_start_matches("om_"))),
        };
        if let Some(thread) = thread {
            sent["thread_id"] = json!(thread);
            let source = state
                .list("messages")
                .iter_mut()
                .find(|row| row["message_id"] == source_id);
            if let Some(source) = source.filter(|source| source["thread_id"].is_null()) {
                source["thread_id"] = json!(thread);
            }
        }
    }
    state.list("messages").push(sent.clone());
    sent
}

/// Turns tags of members into keys and mentions; what names nobody stays text.
fn mentioned(chat: &Value, text: &str) -> (String, Vec<Value>) {
    let (mut out, mut mentions, mut rest) = (String::new(), Vec::new(), text);
    while let Some(at) = rest.find("<at ") {
        let Some(end) = rest[at..].find("</at>") else {
            break;
        };
        let tag = &rest[at..at + end + 5];
        let id = tag.split('"').nth(1).unwrap_or("");
        out.push_str(&rest[..at]);
        let member = ["users", "bots"]
            .iter()
            .flat_map(|name| chat[*name].as_array().into_iter().flatten());
        let found = member.into_iter().find(|member| {
            member["open_id"] == id || member["user_id"] == id || member["union_id"] == id
        });
        match found {
            None => out.push_str(tag),
            Some(member) => {
                let key = format!("@_user_{}", mentions.len() + 1);
                let shown = if member["app_id"].is_string() {
                    member["app_id"].clone()
                } else {
                    member["open_id"].clone()
                };
                mentions.push(json!({"id": shown, "key": key, "name": member["name"]}));
                out.push_str(&key);
            }
        }
        rest = &rest[at + end + 5..];
    }
    out.push_str(rest);
    (out, mentions)
}

pub(crate) fn mark(state: &mut State, call: &Call, id: &str) -> Result<Answer, Failure> {
    state.message(id).ok_or_else(|| Failure::code(231_003))?;
    let data = call.object("data")?;
    let app = state
        .profile(&call.profile)
        .map_or(Value::Null, |row| row["app_id"].clone());
    let row = json!({"reaction_id": format!("react_{:06}", state.fresh()), "emoji": data["reaction_type"]["emoji_type"], "app_id": app});
    if !state.0["marks"][id].is_array() {
        state.0["marks"][id] = json!([]);
    }
    state.0["marks"][id]
        .as_array_mut()
        .expect("a list")
        .push(row.clone());
    Ok(Answer::data(call.identity(), &read::mark(&row)))
}

pub(crate) fn unmark(
    state: &mut State,
    call: &Call,
    id: &str,
    mark: &str,
) -> Result<Answer, Failure> {
    let rows = state.0["marks"][id]
        .as_array_mut()
        .ok_or_else(|| Failure::code(231_007))?;
    let at = rows
        .iter()
        .position(|row| row["reaction_id"] == mark)
        .ok_or_else(|| Failure::code(231_007))?;
    let row = rows.remove(at);
    Ok(Answer::data(call.identity(), &read::mark(&row)))
}
