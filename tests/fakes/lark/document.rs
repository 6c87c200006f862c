//! Documents with comments: cards with inline replies, pages of replies, an answer.

use serde_json::{Value, json};

use super::answer::{Answer, Failure};
use super::call::Call;
use super::read::{Tokens, cut};
use super::state::State;

/// The kinds of address that have comments; a wiki address stands for the document behind it.
const KINDS: [&str; 9] = [
    "docx", "doc", "sheets", "base", "bitable", "file", "slides", "page", "wiki",
];

/// Where an address leads: the document, and whether a wiki node was asked for it.
fn located<'a>(state: &'a State, call: &Call) -> Result<(&'a Value, bool), Failure> {
    let url = call.flag("url").split(['?', '#']).next().unwrap_or("");
    let mut parts = url.split('/').skip(3);
    let (kind, token) = (parts.next().unwrap_or(""), parts.next().unwrap_or(""));
    if !KINDS.contains(&kind) {
        return Err(Failure::argument());
    }
    if kind != "wiki" {
        let document = &state.0["documents"][url];
        return match document.is_object() {
            true => Ok((document, false)),
            false => Err(Failure::code(1_069_307)),
        };
    }
    let node = &state.0["wiki"][token];
    if !node.is_object() {
        return Err(Failure::code(131_005));
    }
    match state.0["documents"].get(node["url"].as_str().unwrap_or("")) {
        Some(document) => Ok((document, true)),
        None => Err(Failure::argument()),
    }
}

pub(crate) fn cards(state: &State, call: &Call) -> Result<Answer, Failure> {
    let size = call.number("page-size", 50, 100)?;
    let solved = call.flag("solved-status");
    if !matches!(solved, "" | "true" | "false" | "all") || call.flag("url").is_empty() {
        return Err(Failure::argument());
    }
    if call.identity() == "user" {
        super::chat::person(state, call)?;
    }
    let (document, by_wiki) = located(state, call)?;
    if call.has("dry-run") {
        let app = state
            .profile(&call.profile)
            .map_or(Value::Null, |row| row["app_id"].clone());
        let path = format!(
            "/open-apis/drive/v1/files/{}/comments",
            document["file_token"].as_str().unwrap_or("")
        );
        let step = json!({"method": "GET", "url": path, "params": {"file_type": document["file_type"], "is_solved": solved == "true", "page_size": size}});
        let data = json!({"api": [step], "context": {"app_id": app}, "description": "<description>", "file_token": document["file_token"]});
        return Ok(Answer::bare(
            &json!({"ok": true, "identity": call.identity(), "dry_run": true, "data": data}),
        ));
    }
    let scope = call.flag("comment-scope");
    let is_asked = |row: &&Value| {
        let (is_solved, is_whole) = (
            row["is_solved"] == json!(true),
            row["is_whole"] == json!(true),
        );
        let by_state = matches!(solved, "" | "all") || is_solved == (solved == "true");
        by_state && (matches!(scope, "" | "all") || is_whole == (scope == "whole"))
    };
    let rows = document["comments"].as_array().into_iter().flatten();
    let inline = state.option("inline_replies", 2);
    let rows: Vec<Value> = rows.filter(is_asked).map(|row| card(row, inline)).collect();
    let tokens = Tokens::of(state, "card");
    let (items, more, token) = cut(&rows, size, (call.flag("page-token"), &tokens))
        .map_err(|_| Failure::code(1_069_302))?;
    let data = json!({"count": items.len(), "file_token": document["file_token"], "file_type": document["file_type"], "has_more": more,
        "items": items, "page_token": token});
    let told = if by_wiki { "<line>\n<line>\n" } else { "" };
    Ok(Answer {
        stderr: told.to_owned(),
        ..Answer::data(call.identity(), &data)
    })
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
    if row["is_solved"] == json!(true) {
        out["solved_time"] = json!(1_758_189_700);
        out["solver_user_id"] = json!("ou_solver");
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
    let tokens = Tokens::of(state, "reply");
    let given = params["page_token"].as_str().unwrap_or("");
    let (items, more, token) =
        cut(&rows, size, (given, &tokens)).map_err(|_| Failure::code(1_069_302))?;
    let mut data = json!({"has_more": more, "items": items});
    if more {
        data["page_token"] = json!(token);
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
    // The platform names the new reply at one of three places.
    let out = match state.0["options"]["reply_form"].as_str() {
        Some("nested") => json!({"reply": out}),
        Some("listed") => json!({"reply_list": {"replies": [out]}}),
        _ => out,
    };
    Ok(Answer::data(call.identity(), &out))
}

/// Makes a chat a collaborator of what the bot may share.
pub(crate) fn share(state: &State, call: &Call, token: &str) -> Result<Answer, Failure> {
    call.object("params")?;
    let data = call.object("data")?;
    match state.0["shareable"]
        .as_array()
        .is_some_and(|known| known.iter().any(|known| known == token))
    {
        true => Ok(Answer::data(
            call.identity(),
            &json!({"member": {"member_id": data["member_id"], "member_type": data["member_type"],
            "perm": data["perm"], "type": data["type"]}}),
        )),
        false => Err(Failure::code(1_063_002)),
    }
}
