//! Chats as a person or a bot lists, finds and makes them; bots that are added to one.

use serde_json::{Value, json};

use super::answer::{Answer, Failure};
use super::call::Call;
use super::read::{Tokens, cut};
use super::state::State;

/// The person a call speaks as.
pub(crate) fn person<'a>(state: &'a State, call: &Call) -> Result<&'a Value, Failure> {
    let row = state
        .profile(&call.profile)
        .ok_or_else(|| Failure::local("config", "not_configured", 3))?;
    match row["user"].is_object() {
        true => Ok(&row["user"]),
        false => Err(Failure::local("authentication", "token_missing", 3)),
    }
}

fn row(id: &str, chat: &Value) -> Value {
    json!({"avatar": "", "chat_id": id, "chat_mode": "group", "chat_status": "normal", "description": "", "external": false,
        "name": chat["name"], "owner_id": "ou_owner", "owner_id_type": "open_id", "tenant_key": "tk"})
}

/// No chat at all is null, not an empty list.
fn listed(state: &State, call: &Call, rows: &[Value], extra: Value) -> Result<Answer, Failure> {
    let size = call.number("page-size", 20, 100)?;
    let tokens = Tokens::of(state, "chats");
    let (shown, more, token) = cut(rows, size, (call.flag("page-token"), &tokens))?;
    let chats = if shown.is_empty() {
        Value::Null
    } else {
        json!(shown)
    };
    let mut data = json!({"chats": chats, "has_more": more, "page_token": token});
    for (name, value) in extra.as_object().into_iter().flatten() {
        data[name.as_str()] = value.clone();
    }
    let mut pagination = json!({"complete": !more, "items": shown.len(), "pages": 1});
    if more {
        pagination["next_token"] = json!(token);
    }
    Ok(Answer::bare(
        &json!({"ok": true, "identity": call.identity(), "data": data, "meta": {"pagination": pagination}}),
    ))
}

pub(crate) fn list(state: &State, call: &Call) -> Result<Answer, Failure> {
    if call.identity() == "user" {
        person(state, call)?;
    }
    let app = state
        .profile(&call.profile)
        .map(|row| row["app_id"].clone());
    let is_in = |chat: &Value| {
        let bots = chat["bots"].as_array().into_iter().flatten();
        call.identity() == "user"
            || bots
                .into_iter()
                .any(|bot| Some(&bot["app_id"]) == app.as_ref())
    };
    let chats = state.0["chats"].as_object().into_iter().flatten();
    let rows: Vec<Value> = chats
        .filter(|(_, chat)| is_in(chat))
        .map(|(id, chat)| row(id, chat))
        .collect();
    listed(state, call, &rows, json!({}))
}

pub(crate) fn search(state: &State, call: &Call) -> Result<Answer, Failure> {
    if call.identity() == "user" {
        person(state, call)?;
    }
    let words = call.flag("query").to_lowercase();
    let is_hit = |chat: &Value| {
        chat["name"]
            .as_str()
            .is_some_and(|name| name.to_lowercase().contains(&words))
    };
    let chats = state.0["chats"].as_object().into_iter().flatten();
    let rows: Vec<Value> = chats
        .filter(|(_, chat)| is_hit(chat))
        .map(|(id, chat)| row(id, chat))
        .collect();
    listed(state, call, &rows, json!({"total": rows.len()}))
}

/// Two calls: the chat, then its link. A lost link is only left out.
pub(crate) fn create(state: &mut State, call: &Call) -> Result<Answer, Failure> {
    let bots: Vec<&str> = call
        .flag("bots")
        .split(',')
        .filter(|app| !app.is_empty())
        .collect();
    if !bots.iter().all(|app| app.starts_with("cli_")) {
        return Err(Failure::argument());
    }
    let owner = match call.identity() {
        "user" => person(state, call)?["open_id"].clone(),
        _ => json!("ou_bot"),
    };
    let id = format!("oc_made{:06}", state.fresh());
    let members: Vec<Value> = bots
        .iter()
        .map(|app| json!({"app_id": app, "open_id": format!("ou_{app}"), "name": "Bot"}))
        .collect();
    state.0["chats"][&id] = json!({"name": call.flag("name"), "bots": members, "users": []});
    let mut data = json!({"chat_id": id, "chat_type": "private", "external": false, "name": call.flag("name"), "owner_id": owner});
    if state.0["options"]["no_share_link"] != json!(true) {
        data["share_link"] = json!(format!("https://share.invalid/{id}"));
    }
    Ok(Answer::data(call.identity(), &data))
}

/// Adds bots by application id; what is no application comes back by name.
pub(crate) fn add_members(state: &mut State, call: &Call, chat: &str) -> Result<Answer, Failure> {
    call.object("params")?;
    let data = call.object("data")?;
    let known: Vec<Value> = state.0["profiles"]
        .as_object()
        .into_iter()
        .flatten()
        .map(|(_, row)| row["app_id"].clone())
        .collect();
    let (found, unknown): (Vec<Value>, Vec<Value>) = data["id_list"]
        .as_array()
        .into_iter()
        .flatten()
        .cloned()
        .partition(|id| known.contains(id));
    if let Some(bots) = state.0["chats"][chat]["bots"].as_array_mut() {
        bots.extend(
            found
                .into_iter()
                .map(|app| json!({"app_id": app, "open_id": "ou_added", "name": "Bot"})),
        );
    }
    Ok(Answer::data(
        call.identity(),
        &json!({"invalid_id_list": unknown, "not_existed_id_list": [], "pending_approval_id_list": []}),
    ))
}
