//! A stand-in for `lark-cli`, for tests alone: stateful, scriptable, and in its answers true to the recordings in `fixtures/lark`.
//!
//! `FAKE_LARK_STATE` names a folder: `state.json` (profiles, chats, messages, marks, documents, streams), `faults.json` (rules), `calls.jsonl`
//! (one line a call, argv and all) and `lock`. Every call holds the lock while it works, so concurrent callers see one order.

// One function a command, as the program it stands for has them.
#![allow(clippy::too_many_lines, clippy::too_many_arguments)]

#[path = "lark/answer.rs"]
mod answer;
#[path = "lark/call.rs"]
mod call;
#[path = "lark/document.rs"]
mod document;
#[path = "lark/fault.rs"]
mod fault;
#[path = "lark/identity.rs"]
mod identity;
#[path = "lark/message.rs"]
mod message;
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
        "im +messages-search" => read::search(state, call),
        "im +messages-send" | "im +messages-reply" => send::message(state, call),
        "drive +list-comments" => document::cards(state, call),
        "event status" => stream::status(state, call),
        "event stop" => stream::stop(state, call),
        "api" => api(state, call),
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
    match (call.method.as_str(), parts.as_slice()) {
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
