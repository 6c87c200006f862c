//! Reads: chats, members, messages, history, threads, marks. Tokens belong to the query they came from.

use serde_json::{Value, json};

use super::answer::{Answer, Failure};
use super::call::Call;
use super::message;
use super::state::State;

fn is_member(state: &State, call: &Call, chat: &str) -> Result<(), Failure> {
    let app = state
        .profile(&call.profile)
        .map(|row| row["app_id"].clone())
        .ok_or_else(|| Failure::local("config", "not_configured", 3))?;
    let bots = state.0["chats"][chat]["bots"].as_array();
    match bots.is_some_and(|bots| bots.iter().any(|bot| bot["app_id"] == app)) {
        true => Ok(()),
        false => Err(Failure::code(232_033)),
    }
}

fn is_id(text: &str, prefix: &str) -> bool {
    text.strip_prefix(prefix)
        .is_some_and(|rest| !rest.is_empty())
}

pub(crate) fn chat(state: &State, call: &Call, chat: &str) -> Result<Answer, Failure> {
    is_member(state, call, chat)?;
    let row = &state.0["chats"][chat];
    let count = |name: &str| row[name].as_array().map_or(0, Vec::len).to_string();
    Ok(Answer::data(
        call.identity(),
        &json!({"bot_count": count("bots"), "chat_mode": "group", "chat_status": "normal", "chat_type": "private", "description": "",
            "external": false, "name": row["name"], "owner_id": "ou_owner", "owner_id_type": "open_id", "tenant_key": "tk", "user_count": count("users")}),
    ))
}

pub(crate) fn members(state: &State, call: &Call) -> Result<Answer, Failure> {
    let size = call.number("page-size", 20, 100)?;
    is_member(state, call, call.flag("chat-id"))?;
    let kind = if call.flag("member-id-type").is_empty() {
        "open_id"
    } else {
        call.flag("member-id-type")
    };
    let row = &state.0["chats"][call.flag("chat-id")];
    let id = |member: &Value| member[kind].as_str().map(str::to_owned);
    let named = |name: &str, extra: &str| -> Vec<Value> {
        let rows = row[name].as_array().into_iter().flatten();
        rows.filter_map(|member| {
            let mut out =
                json!({"member_id": id(member)?, "name": member["name"], "tenant_key": "tk"});
            if !extra.is_empty() {
                out[extra] = member[extra].clone();
            }
            Some(out)
        })
        .collect()
    };
    let asked = call.flag("member-types");
    let users = if asked == "bot" {
        Vec::new()
    } else {
        named("users", "")
    };
    let bots = if asked == "user" {
        Vec::new()
    } else {
        named("bots", "app_id")
    };
    let pages = (users.len() + bots.len()).div_ceil(size).max(1);
    let limit = call
        .number("page-limit", 10, 1000)?
        .min(state.option("member_page_cap", usize::MAX));
    let limit = if call.has("page-all") { limit } else { 1 };
    let options = &state.0["options"];
    if let Some(page) = options["members_page_error"]
        .as_u64()
        .filter(|page| pages as u64 >= *page)
    {
        let failed = Answer::failed(&Failure::code(232_011), call.identity());
        let told: String = (1..=page)
            .map(|page| format!("[page {page}] <text>\n"))
            .collect();
        return Ok(Answer {
            stderr: format!("{told}{}", failed.stderr),
            ..failed
        });
    }
    if options["members_same_token"] == json!(true) {
        let data = json!({"bots": [], "chat_id": call.flag("chat-id"), "has_more": true, "page_token": "same", "truncations": [], "users": []});
        return Ok(Answer::bare(
            &json!({"ok": true, "identity": call.identity(), "data": data, "meta": {}}),
        ));
    }
    let has_more = pages > limit;
    let room = size.saturating_mul(limit);
    let truncations = if options["members_truncated"].is_array() {
        options["members_truncated"].clone()
    } else {
        json!([])
    };
    let cap = truncations
        .as_array()
        .and_then(|cuts| cuts.first()?["limit"].as_u64());
    let cap = cap
        .and_then(|cap| usize::try_from(cap).ok())
        .unwrap_or(room);
    let is_hidden = options["members_hidden"] == json!(true);
    let shown_users: Vec<&Value> = users
        .iter()
        .take(if is_hidden { 0 } else { room.min(cap) })
        .collect();
    let shown_bots: Vec<&Value> = bots.iter().take(room - shown_users.len()).collect();
    let user_total = if is_hidden {
        json!(-1)
    } else {
        json!(users.len())
    };
    let data = json!({"bot_total": bots.len(), "bots": shown_bots, "chat_id": call.flag("chat-id"), "has_more": has_more,
        "page_token": if has_more { "t" } else { "" }, "truncations": truncations, "user_total": user_total, "users": shown_users});
    let mut envelope = json!({"ok": true, "identity": call.identity(), "data": data});
    envelope["meta"] = json!({"count": users.len() + bots.len()});
    let mut answer = Answer::bare(&envelope);
    answer.stderr = "[page 1] <text>\n".to_owned();
    Ok(answer)
}

pub(crate) fn mget(state: &State, call: &Call) -> Result<Answer, Failure> {
    let ids: Vec<&str> = call.flag("message-ids").split(',').collect();
    if ids.len() > 50 || !ids.iter().all(|id| is_id(id, "om_")) {
        return Err(Failure::argument());
    }
    let found: Vec<Value> = ids
        .iter()
        .filter_map(|id| state.message(id))
        .map(|found| in_thread(state, found))
        .collect();
    let total = found.len();
    Ok(Answer::data(
        call.identity(),
        &json!({"messages": found, "total": total}),
    ))
}

/// A message of a thread comes with the whole thread below it, itself included.
fn in_thread(state: &State, found: &Value) -> Value {
    let Some(thread) = found["thread_id"]
        .as_str()
        .filter(|_| !found["parent_id"].is_null())
    else {
        return message::with_thread(state, found);
    };
    let mut out = message::shown(found);
    out["thread_replies"] = message::thread_replies(state, thread)
        .into_iter()
        .map(message::shown)
        .collect();
    out
}

pub(crate) fn raw(state: &State, call: &Call, id: &str) -> Result<Answer, Failure> {
    let found = state.message(id).ok_or_else(|| Failure::code(230_011))?;
    Ok(Answer::data(
        call.identity(),
        &json!({"items": [message::raw(found)]}),
    ))
}

/// The tokens of one query: those given out here, and those the platform is said to have given out before.
pub(crate) struct Tokens<'a> {
    query: &'a str,
    earlier: &'a Value,
}

impl<'a> Tokens<'a> {
    pub(crate) fn of(state: &'a State, query: &'a str) -> Self {
        Self {
            query,
            earlier: &state.0["tokens"],
        }
    }

    fn start(&self, token: &str) -> Result<usize, Failure> {
        if token.is_empty() {
            return Ok(0);
        }
        if let Some(at) = self.earlier[token].as_u64() {
            return usize::try_from(at).map_err(|_| Failure::code(230_001));
        }
        token
            .split_once('.')
            .filter(|(of, _)| *of == self.query)
            .and_then(|(_, at)| at.parse().ok())
            .ok_or_else(|| Failure::code(230_001))
    }
}

/// Cuts rows into a page; a token belongs to the query it came from.
pub(crate) fn cut(
    rows: &[Value],
    size: usize,
    (token, tokens): (&str, &Tokens<'_>),
) -> Result<(Vec<Value>, bool, String), Failure> {
    let start = tokens.start(token)?;
    let end = (start + size).min(rows.len());
    let more = end < rows.len();
    let next = match more {
        true => format!("{}.{end}", tokens.query),
        false => String::new(),
    };
    Ok((
        rows.get(start..end).unwrap_or_default().to_vec(),
        more,
        next,
    ))
}

fn seconds(text: &str) -> Result<i64, Failure> {
    let time = chrono::DateTime::parse_from_rfc3339(text).map_err(|_| Failure::argument())?;
    Ok(time.timestamp())
}

pub(crate) fn history(state: &State, call: &Call) -> Result<Answer, Failure> {
    let size = call.number("page-size", 50, 50)?;
    let bound = |name: &str, open: i64| {
        if call.has(name) {
            seconds(call.flag(name))
        } else {
            Ok(open)
        }
    };
    let (start, end) = (bound("start", 0)?, bound("end", i64::MAX)?);
    let chat = call.flag("chat-id");
    is_member(state, call, chat).map_err(|_| Failure::code(230_002))?;
    let is_in = |row: &&Value| {
        row["chat_id"] == chat
            && row["at"]
                .as_i64()
                .is_some_and(|at| (start..=end).contains(&at))
    };
    let is_listed = |row: &&Value| !row["thread_id"].is_string() || row["parent_id"].is_null();
    let mut rows: Vec<&Value> = state
        .messages()
        .iter()
        .filter(is_in)
        .filter(is_listed)
        .collect();
    rows.sort_by_key(|row| row["at"].as_i64());
    let rows: Vec<Value> = rows
        .into_iter()
        .map(|row| message::with_thread(state, row))
        .collect();
    let query = format!("{start}-{end}");
    let tokens = Tokens::of(state, &query);
    // By itself the program stops after so many pages.
    let pages = if call.has("page-all") {
        call.number("page-limit", 10, 1000)?
    } else {
        1
    };
    let (shown, more, token) = cut(&rows, size * pages, (call.flag("page-token"), &tokens))?;
    Ok(listed(call, &shown, more, &token, &json!({})))
}

pub(crate) fn thread(state: &State, call: &Call) -> Result<Answer, Failure> {
    let size = call.number("page-size", 50, 50)?;
    let given = call.flag("thread");
    if !is_id(given, "om_") && !is_id(given, "omt_") {
        return Err(Failure::argument());
    }
    let thread = match is_id(given, "om_") {
        false => given.to_owned(),
        true => {
            let found = state
                .message(given)
                .and_then(|message| message["thread_id"].as_str());
            found
                .ok_or_else(|| Failure::local("api", "not_found", 1))?
                .to_owned()
        }
    };
    let rows: Vec<Value> = message::thread_replies(state, &thread)
        .into_iter()
        .map(message::shown)
        .collect();
    let (shown, more, token) = cut(
        &rows,
        size,
        (call.flag("page-token"), &Tokens::of(state, &thread)),
    )?;
    Ok(listed(
        call,
        &shown,
        more,
        &token,
        &json!({"thread_id": thread}),
    ))
}

/// The scopes a search needs of the person.
const SEARCH_SCOPES: [&str; 2] = ["search:message", "im:message.reactions:read"];

/// Finds messages by their words, as a person; what was sent a moment ago may not be indexed yet.
pub(crate) fn search(state: &State, call: &Call) -> Result<Answer, Failure> {
    let size = call.number("page-size", 20, 50)?;
    let row = state
        .profile(&call.profile)
        .ok_or_else(|| Failure::local("config", "not_configured", 3))?;
    if call.identity() != "user" || !row["user"].is_object() {
        return Err(Failure::local("authentication", "token_missing", 3));
    }
    if row["search_scope"] == json!(false) {
        return Err(Failure::missing_scopes(&SEARCH_SCOPES));
    }
    let (chat, words) = (call.flag("chat-id"), call.flag("query"));
    let is_unindexed = state.0["options"]["search_lag"] == json!(true);
    let is_hit = |row: &&Value| {
        row["chat_id"] == chat
            && row["text"]
                .as_str()
                .is_some_and(|text| text.contains(words))
            && !(is_unindexed && row["sent"] == json!(true))
    };
    let hits: Vec<&Value> = state.messages().iter().filter(is_hit).collect();
    let rows: Vec<Value> = hits.iter().map(|hit| found(state, hit)).collect();
    let (shown, more, token) = cut(
        &rows,
        size,
        (call.flag("page-token"), &Tokens::of(state, words)),
    )?;
    let mut data = json!({"has_more": more, "page_token": token, "total": rows.len()});
    if state.0["options"]["search_ids_only"] == json!(true) {
        data["message_ids"] = hits.iter().map(|hit| hit["message_id"].clone()).collect();
        data["note"] = json!("<note>");
    } else {
        data["messages"] = json!(shown);
    }
    Ok(Answer::data("user", &data))
}

fn found(state: &State, hit: &Value) -> Value {
    let mut out = message::shown(hit);
    out["chat_name"] = state.0["chats"][hit["chat_id"].as_str().unwrap_or("")]["name"].clone();
    out["chat_type"] = json!("group");
    out
}

fn listed(call: &Call, shown: &[Value], more: bool, token: &str, extra: &Value) -> Answer {
    let mut data =
        json!({"has_more": more, "messages": shown, "page_token": token, "total": shown.len()});
    for (name, value) in extra.as_object().into_iter().flatten() {
        data[name.as_str()] = value.clone();
    }
    let mut pagination = json!({"complete": !more, "items": shown.len(), "pages": 1});
    if more {
        pagination["next_token"] = json!(token);
    }
    Answer::bare(
        &json!({"ok": true, "identity": call.identity(), "data": data, "meta": {"pagination": pagination}}),
    )
}

pub(crate) fn marks(state: &State, call: &Call, id: &str) -> Result<Answer, Failure> {
    let params = call.object("params")?;
    let size = params["page_size"]
        .as_u64()
        .and_then(|size| usize::try_from(size).ok())
        .unwrap_or(20);
    let rows: Vec<Value> = state.0["marks"][id].as_array().cloned().unwrap_or_default();
    let items: Vec<Value> = rows.iter().map(mark).collect();
    let tokens = Tokens::of(state, id);
    if call.has("page-all") {
        return all_marks(state, call, (&items, size), &tokens);
    }
    let given = params["page_token"].as_str().unwrap_or("");
    let (shown, more, token) = cut(&items, size, (given, &tokens))?;
    Ok(Answer::data(
        call.identity(),
        &json!({"has_more": more, "items": shown, "page_token": token}),
    ))
}

/// What the program makes of all pages: a failed later page ends them without a word.
fn all_marks(
    state: &State,
    call: &Call,
    (items, size): (&[Value], usize),
    tokens: &Tokens<'_>,
) -> Result<Answer, Failure> {
    let broken = &state.0["options"]["page_error"];
    let (mut shown, mut token, mut more, mut told) =
        (Vec::new(), String::new(), true, String::new());
    for number in 1.. {
        told.push_str(&format!("[page {number}] <text>\n"));
        if broken["page"] == json!(number) {
            let code = broken["code"].as_i64().unwrap_or(0);
            if number == 1 {
                let failed = Answer::failed(&Failure::code(code), call.identity());
                let raw = Answer::bare(&json!({"code": code, "msg": "x"}));
                return Ok(Answer {
                    stdout: raw.stdout,
                    stderr: format!("{told}{}", failed.stderr),
                    ..failed
                });
            }
            more = code == 0;
            break;
        }
        let (page, has_more, next) = cut(items, size, (&token, tokens))?;
        shown.extend(page);
        (more, token) = (has_more, next);
        if !more {
            break;
        }
    }
    let mut data = json!({"has_more": more, "items": shown});
    if more {
        data["page_token"] = json!(token);
    }
    Ok(Answer {
        stderr: told,
        ..Answer::data(call.identity(), &data)
    })
}

pub(crate) fn mark(row: &Value) -> Value {
    json!({"action_time": "1767225600000", "operator": {"operator_id": row["app_id"], "operator_type": "app"},
        "reaction_id": row["reaction_id"], "reaction_type": {"emoji_type": row["emoji"]}})
}
