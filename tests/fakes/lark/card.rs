//! Cards and pins: what is stored of a card, how it is replaced, which messages are pinned.

use serde_json::{Value, json};

use super::answer::{Answer, Failure};
use super::call::Call;
use super::read::{Tokens, cut};
use super::state::State;

/// Replaces a card by a callback's token; a spent one is refused.
pub(crate) fn update(state: &mut State, call: &Call) -> Result<Answer, Failure> {
    let data = call.object("data")?;
    let token = data["token"].as_str().unwrap_or("");
    if token.is_empty()
        || !data["card"].is_object()
        || state.0["spent_tokens"][token] == json!(true)
    {
        return Err(Failure::code(300_020));
    }
    state.0["spent_tokens"][token] = json!(true);
    Ok(Answer::data(call.identity(), &json!({})))
}

/// Replaces the card of one of this application's own messages.
pub(crate) fn patch(state: &mut State, call: &Call, id: &str) -> Result<Answer, Failure> {
    let data = call.object("data")?;
    let app = state
        .profile(&call.profile)
        .map_or(Value::Null, |row| row["app_id"].clone());
    let row = state
        .list("messages")
        .iter_mut()
        .find(|row| row["message_id"] == id);
    let row = row.ok_or_else(|| Failure::code(230_001))?;
    if row["msg_type"] != "interactive" || row["sender_id"] != app {
        return Err(Failure::code(230_099));
    }
    row["body"] = data["content"].clone();
    Ok(Answer::data(call.identity(), &json!({})))
}

fn pin(row: &Value) -> Value {
    json!({"chat_id": row["chat_id"], "create_time": "1767225600000", "message_id": row["message_id"], "operator_id": row["operator_id"],
        "operator_id_type": "app_id"})
}

pub(crate) fn create_pin(state: &mut State, call: &Call) -> Result<Answer, Failure> {
    call.object("params")?;
    let data = call.object("data")?;
    let id = data["message_id"].as_str().unwrap_or("").to_owned();
    let chat = state.message(&id).ok_or_else(|| Failure::code(230_001))?["chat_id"].clone();
    let app = state
        .profile(&call.profile)
        .map_or(Value::Null, |row| row["app_id"].clone());
    let row = json!({"message_id": id, "chat_id": chat, "operator_id": app});
    state.list("pins").push(row.clone());
    Ok(Answer::data(call.identity(), &json!({"pin": pin(&row)})))
}

pub(crate) fn pins(state: &State, call: &Call) -> Result<Answer, Failure> {
    let params = call.object("params")?;
    let rows = state.0["pins"].as_array().into_iter().flatten();
    let rows: Vec<Value> = rows
        .filter(|row| row["chat_id"] == params["chat_id"])
        .map(pin)
        .collect();
    let size = params["page_size"]
        .as_u64()
        .and_then(|size| usize::try_from(size).ok())
        .unwrap_or(20);
    let tokens = Tokens::of(state, "pins");
    let (shown, more, token) = cut(
        &rows,
        size,
        (params["page_token"].as_str().unwrap_or(""), &tokens),
    )?;
    Ok(Answer::data(
        call.identity(),
        &json!({"has_more": more, "items": shown, "page_token": token}),
    ))
}
