//! Documents with comments: cards with inline replies, pages of replies, an answer.

use serde_json::{Value, json};

use super::answer::{Answer, Failure};
use super::call::Call;
use super::state::State;

pub(crate) fn cards(state: &State, call: &Call) -> Result<Answer, Failure> {
    let size = call.number("page-size", 50, 100)?;
    if !matches!(call.flag("solved-status"), "" | "true" | "false" | "all")
        || call.flag("url").is_empty()
    {
        return Err(Failure::argument());
    }
    if call.identity() == "user"
        && !state
            .profile(&call.profile)
            .is_some_and(|row| row["user"].is_object())
    {
        return Err(Failure::local("authentication", "token_missing", 3));
    }
    let url = call.flag("url").split(['?', '#']).next().unwrap_or("");
    let document = &state.0["documents"][url];
    if !document.is_object() {
        return Err(Failure::code(1_069_307));
    }
    let rows: Vec<&Value> = document["comments"]
        .as_array()
        .into_iter()
        .flatten()
        .collect();
    let start: usize = match call.flag("page-token") {
        "" => 0,
        token => token
            .strip_prefix("card.")
            .and_then(|at| at.parse().ok())
            .ok_or_else(|| Failure::code(1_069_302))?,
    };
    let end = (start + size).min(rows.len());
    let inline = state.option("inline_replies", 2);
    let items: Vec<Value> = rows
        .get(start..end)
        .unwrap_or_default()
        .iter()
        .map(|row| card(row, inline))
        .collect();
    let more = end < rows.len();
    let token = if more {
        format!("card.{end}")
    } else {
        String::new()
    };
    Ok(Answer::data(
        call.identity(),
        &json!({"count": items.len(), "file_token": document["file_token"], "file_type": document["file_type"], "has_more": more,
            "items": items, "page_token": token}),
    ))
}

fn card(row: &Value, inline: usize) -> Value {
    let replies: Vec<Value> = row["replies"]
        .as_array()
        .into_iter()
        .flatten()
        .map(shown)
        .collect();
    let more = replies.len() > inline;
    let mut out = json!({"comment_id": row["comment_id"], "create_time": 1_758_189_600, "has_more": more,
        "is_solved": row["is_solved"] == json!(true), "is_whole": row["is_whole"] == json!(true), "quote": "",
        "reply_list": {"replies": replies.iter().take(inline).collect::<Vec<_>>()}, "update_time": 1_758_189_600, "user_id": "ou_author"});
    if more {
        out["page_token"] = json!(format!("reply.{inline}"));
    }
    out
}

fn shown(reply: &Value) -> Value {
    let extra = if reply["extra"].is_null() {
        json!({"image_list": []})
    } else {
        reply["extra"].clone()
    };
    json!({"content": {"elements": [{"text_run": {"text": reply["text"]}, "type": "text_run"}]}, "create_time": 1_758_189_600,
        "extra": extra, "reply_id": reply["reply_id"], "update_time": 1_758_189_600, "user_id": "ou_author"})
}

fn comment<'a>(state: &'a mut State, file: &str, comment: &str) -> Result<&'a mut Value, Failure> {
    let documents = state.0["documents"]
        .as_object_mut()
        .ok_or_else(|| Failure::code(1_069_307))?;
    let document = documents
        .values_mut()
        .find(|document| document["file_token"] == file)
        .ok_or_else(|| Failure::code(1_069_307))?;
    let rows = document["comments"].as_array_mut().into_iter().flatten();
    rows.into_iter()
        .find(|row| row["comment_id"] == comment)
        .ok_or_else(|| Failure::code(1_069_307))
}

pub(crate) fn replies(
    state: &mut State,
    call: &Call,
    file: &str,
    id: &str,
) -> Result<Answer, Failure> {
    let params = call.object("params")?;
    let rows: Vec<Value> = comment(state, file, id)?["replies"]
        .as_array()
        .into_iter()
        .flatten()
        .map(shown)
        .collect();
    let size = params["page_size"]
        .as_u64()
        .and_then(|size| usize::try_from(size).ok())
        .unwrap_or(50);
    let start: usize = match params["page_token"].as_str() {
        None => 0,
        Some(token) => token
            .strip_prefix("reply.")
            .and_then(|at| at.parse().ok())
            .ok_or_else(|| Failure::code(1_069_302))?,
    };
    let end = (start + size).min(rows.len());
    let mut data =
        json!({"has_more": end < rows.len(), "items": rows.get(start..end).unwrap_or_default()});
    if end < rows.len() {
        data["page_token"] = json!(format!("reply.{end}"));
    }
    Ok(Answer::data(call.identity(), &data))
}

pub(crate) fn reply(
    state: &mut State,
    call: &Call,
    file: &str,
    id: &str,
) -> Result<Answer, Failure> {
    let data = call.object("data")?;
    let keeps_extra = state.0["options"]["keep_extra"] != json!(false);
    let reply_id = format!("rp{:04}", state.fresh());
    let card = comment(state, file, id)?;
    let is_closed = card["is_solved"] == json!(true) || card["is_whole"] == json!(true);
    let text = data["content"]["elements"][0]["text_run"]["text"]
        .as_str()
        .filter(|_| !is_closed)
        .ok_or_else(|| Failure::code(1_069_302))?;
    let extra = if keeps_extra {
        data["extra"].clone()
    } else {
        Value::Null
    };
    let row = json!({"reply_id": reply_id, "text": text, "extra": extra});
    let out = shown(&row);
    card["replies"]
        .as_array_mut()
        .ok_or_else(|| Failure::code(1_069_307))?
        .push(row);
    Ok(Answer::data(call.identity(), &out))
}
