//! A stand-in for `lark-cli`, for tests alone: stateful, scriptable, and in its answers true to the recordings in `fixtures/lark`.
//!
//! `FAKE_LARK_STATE` names a folder: `state.json` (profiles, chats, messages, marks, documents, streams), `faults.json` (rules), `calls.jsonl`
//! (one line a call, argv and all) and `lock`. Every call holds the lock while it works, so concurrent callers see one order.

// One function a command, as the program it stands for has them.
#![allow(clippy::too_many_lines, clippy::too_many_arguments)]

#[path = "lark/answer.rs"]
mod answer;
#[path = "lark/apps.rs"]
mod apps;
#[path = "lark/base.rs"]
mod base;
#[path = "lark/call.rs"]
mod call;
#[path = "lark/card.rs"]
mod card;
#[path = "lark/chat.rs"]
mod chat;
#[path = "lark/document.rs"]
mod document;
#[path = "lark/fault.rs"]
mod fault;
#[path = "lark/identity.rs"]
mod identity;
#[path = "lark/jq.rs"]
mod jq;
#[path = "lark/message.rs"]
mod message;
#[path = "lark/paper.rs"]
mod paper;
#[path = "lark/profile.rs"]
mod profile;
#[path = "lark/read.rs"]
mod read;
#[path = "lark/send.rs"]
mod send;
#[path = "lark/state.rs"]
mod state;
#[path = "lark/stream.rs"]
mod stream;

use std::process::ExitCode;

use answer::{Answer, Failure};
use call::Call;
use state::Folder;

fn main() -> ExitCode {
    let argv: Vec<String> = std::env::args().skip(1).collect();
    let Some(folder) = std::env::var_os("FAKE_LARK_STATE") else {
        return Answer::failed(&Failure::local("config", "not_configured", 3), "").print();
    };
    let folder = Folder::at(folder.into());
    let call = match Call::parse(&argv) {
        Ok(call) => call,
        Err(failure) => {
            folder.log(&argv, "unknown");
            return Answer::failed(&failure, "").print();
        }
    };
    folder.log(&argv, &call.command);
    if call.command.starts_with("auth ") && std::env::var_os("LARKSUITE_CLI_APP_ID").is_some() {
        return Answer::failed(&Failure::argument(), "").print();
    }
    if call.command == "event consume" {
        return stream::consume(&folder, &call);
    }
    let answer = {
        let mut held = folder.lock();
        let rule = fault::matching(&mut held, &call);
        let answer = fault::apply(rule.as_ref(), &mut held, &call, run);
        held.save();
        answer
    };
    answer.finish()
}

/// Answers one call from the state.
fn run(state: &mut state::State, call: &Call) -> Answer {
    let result = match call.command.as_str() {
        "version" => Ok(Answer::text("lark-cli version 1.0.86\n")),
        "auth status" => identity::status(state, call),
        "auth check" => identity::check(state, call),
        "whoami" => identity::whoami(state, call),
        "im +chat-members-list" => read::members(state, call),
        "im +messages-mget" => read::mget(state, call),
        "im +chat-messages-list" => read::history(state, call),
        "im +threads-messages-list" => read::thread(state, call),
        "im +chat-list" => chat::list(state, call),
        "im +chat-search" => chat::search(state, call),
        "im +chat-create" => chat::create(state, call),
        "profile list" => Ok(profile::list(state)),
        "config init" => profile::init(state, call),
        "im +messages-search" => read::search(state, call),
        "im +messages-send" | "im +messages-reply" => send::message(state, call),
        "drive +list-comments" => document::cards(state, call),
        "event status" => stream::status(state, call),
        "event stop" => stream::stop(state, call),
        "api" => api(state, call),
        name if name.starts_with("base +") => base::run(state, call),
        name if name.starts_with("apps +") => apps::run(state, call),
        name if name.starts_with("docs +") || name.starts_with("whiteboard +") => {
            paper::run(state, call)
        }
        _ => Err(Failure::argument()),
    };
    result.unwrap_or_else(|failure| Answer::failed(&failure, call.identity()))
}

fn api(state: &mut state::State, call: &Call) -> Result<Answer, Failure> {
    let parts: Vec<&str> = call
        .path
        .split('/')
        .filter(|part| !part.is_empty())
        .collect();
    if call.identity() == "user" {
        chat::person(state, call)?;
    }
    if call.has("dry-run") {
        return dry_run(state, call);
    }
    match (call.method.as_str(), parts.as_slice()) {
        ("POST", ["open-apis", "im", "v1", "chats", chat, "members"]) => {
            chat::add_members(state, call, chat)
        }
        ("POST", ["open-apis", "interactive", "v1", "card", "update"]) => card::update(state, call),
        ("PATCH", ["open-apis", "im", "v1", "messages", id]) => card::patch(state, call, id),
        ("POST", ["open-apis", "im", "v1", "pins"]) => card::create_pin(state, call),
        ("GET", ["open-apis", "im", "v1", "pins"]) => card::pins(state, call),
        ("POST", ["open-apis", "drive", "v1", "permissions", token, "members"]) => {
            document::share(state, call, token)
        }
        ("GET", ["open-apis", "im", "v1", "chats", chat]) => read::chat(state, call, chat),
        ("GET", ["open-apis", "im", "v1", "messages", id]) => read::raw(state, call, id),
        ("GET", ["open-apis", "im", "v1", "messages", id, "reactions"]) => {
            read::marks(state, call, id)
        }
        ("POST", ["open-apis", "im", "v1", "messages", id, "reactions"]) => {
            send::mark(state, call, id)
        }
        ("DELETE", ["open-apis", "im", "v1", "messages", id, "reactions", mark]) => {
            send::unmark(state, call, id, mark)
        }
        (
            "GET",
            [
                "open-apis",
                "drive",
                "v1",
                "files",
                file,
                "comments",
                comment,
                "replies",
            ],
        ) => document::replies(state, call, file, comment),
        (
            "POST",
            [
                "open-apis",
                "drive",
                "v1",
                "files",
                file,
                "comments",
                comment,
                "replies",
            ],
        ) => document::reply(state, call, file, comment),
        (
            "GET",
            [
                "open-apis",
                "application",
                "v6",
                "applications",
                app,
                "app_versions",
            ],
        ) => identity::versions(state, call, app),
        _ => Err(Failure::page(404)),
    }
}

/// What an `api` call would send, without sending it.
fn dry_run(state: &state::State, call: &Call) -> Result<Answer, Failure> {
    let mut step = serde_json::json!({"method": call.method, "url": call.path});
    for (flag, name) in [("params", "params"), ("data", "body")] {
        if call.has(flag) {
            step[name] = call.object(flag)?;
        }
    }
    let app = state
        .profile(&call.profile)
        .map_or(serde_json::Value::Null, |row| row["app_id"].clone());
    let data = serde_json::json!({"api": [step], "context": {"app_id": app}});
    Ok(Answer::bare(
        &serde_json::json!({"ok": true, "identity": call.identity(), "dry_run": true, "data": data}),
    ))
}
