//! The stand-in program is true to the real one: every recorded call of its commands is replayed, and exit code, keys and types compared.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use serde_json::{Value, json};

/// The world of the recordings.
fn world() -> Value {
    let bot = |app: &str, open: &str, name: &str| json!({"app_id": app, "open_id": open, "union_id": format!("on_{open}"), "name": name});
    let user = |open: &str, name: &str| json!({"open_id": open, "union_id": format!("on_{open}"), "name": name});
    json!({
        "profiles": {"peer-bot": {"app_id": "cli_peer0001", "app_name": "Peer Bot", "open_id": "ou_peerbot"}},
        "chats": {"oc_peer": {"name": "Peer Group", "bots": [bot("cli_peer0001", "ou_peerbot", "Peer Bot"), bot("cli_other01", "ou_otherbot", "Other Bot")],
            "users": [user("ou_ann", "Ann"), user("ou_bob", "Bob"), user("ou_peeruser", "Peer User")]}},
        "messages": [message("om_peer000001", "root", json!({}))],
        "marks": {"om_peer000001": []}, "keys": {}, "streams": {}, "consumers": [], "options": {}, "hits": {},
        "documents": {"https://team.feishu.cn/docx/doxcnPeerA": {"file_token": "doxcnPeerA", "file_type": "docx", "comments": [
            {"comment_id": "7000000000000000101", "replies": [reply("rp0001"), reply("rp0002"), reply("rp0003")]},
            {"comment_id": "7000000000000000102", "is_whole": true, "replies": [reply("rp0004")]}]}},
        "app_versions": {"cli_peer0001": recorded("api-app-versions")["stdout"].as_str().and_then(|text| serde_json::from_str::<Value>(text).ok())
            .map(|value| value["data"]["items"].clone()).unwrap_or_default()},
    })
}

fn message(id: &str, text: &str, extra: Value) -> Value {
    let mut message = json!({"message_id": id, "chat_id": "oc_peer", "text": text, "sender_type": "user", "sender_id": "ou_ann", "at": 1_767_225_000});
    for (name, value) in extra.as_object().into_iter().flatten() {
        message[name.as_str()] = value.clone();
    }
    message
}

fn reply(id: &str) -> Value {
    json!({"reply_id": id, "text": "words"})
}

fn recorded(name: &str) -> Value {
    let path = format!("{}/fixtures/lark/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&fs::read(path).expect("the recording exists")).expect("json")
}

/// A thread of `count` replies below the first message.
fn thread(count: usize) -> Value {
    let root = message(
        "om_peer000001",
        "root",
        json!({"thread_id": "omt_peer000001"}),
    );
    let replies = (0..count).map(|index| {
        let mut link = json!({"thread_id": "omt_peer000001", "parent_id": "om_peer000001", "root_id": "om_peer000001"});
        if index == 0 {
            link["sender_type"] = json!("app");
            link["sender_id"] = json!("cli_peer0001");
        }
        message(&format!("om_peer{:06}", index + 2), "reply", link)
    });
    std::iter::once(root).chain(replies).collect()
}

/// What has to be true before a recorded call: changes of the world by pointer, and one fault.
fn situation(name: &str) -> (Value, Value) {
    let on = |command: &str, rule: Value| {
        let mut rule = rule;
        rule["on"] = json!(command);
        json!([rule])
    };
    let nothing = json!([]);
    let code = name
        .strip_prefix("error-")
        .and_then(|code| code.parse::<i64>().ok());
    if let Some(code) = code {
        return (
            json!({}),
            on("im +messages-send", json!({"do": "code", "code": code})),
        );
    }
    match name {
        "error-cut-after"
        | "error-cut-before"
        | "error-proxy-refuses"
        | "error-token-cut"
        | "error-token-503" => (json!({}), on("*", json!({"do": "network"}))),
        "error-wrong-ca" => (
            json!({}),
            on("*", json!({"do": "network", "subtype": "tls"})),
        ),
        "error-http-504" => (
            json!({}),
            on("*", json!({"do": "network", "subtype": "timeout"})),
        ),
        "error-http-200-empty"
        | "error-http-200-not-json"
        | "error-http-500-empty"
        | "error-http-502-html"
        | "error-token-500-empty"
        | "error-page-200"
        | "drive-comments-http-500-text"
        | "drive-comments-not-json" => (json!({}), on("*", json!({"do": "internal"}))),
        "error-page-403" => (json!({}), on("*", json!({"do": "page", "code": 403}))),
        "error-page-429" => (json!({}), on("*", json!({"do": "page", "code": 429}))),
        "drive-comments-http-502-html" | "drive-comments-http-502-json" => {
            (json!({}), on("*", json!({"do": "page", "code": 502})))
        }
        "drive-comments-http-504" => (
            json!({}),
            on("*", json!({"do": "network", "subtype": "timeout"})),
        ),
        "drive-comments-cut" | "drive-reply-answer-lost" | "api-reaction-create-answer-lost" => {
            (json!({}), on("*", json!({"do": "lose_answer"})))
        }
        "drive-comments-app-scope" => (
            json!({}),
            on("*", json!({"do": "code", "code": 99_991_672})),
        ),
        "drive-comments-denied" => (json!({}), on("*", json!({"do": "code", "code": 1_061_004}))),
        "drive-comments-forbidden" => {
            (json!({}), on("*", json!({"do": "code", "code": 1_069_303})))
        }
        "drive-comments-http-500-coded" | "drive-reply-http-500-coded" => {
            (json!({}), on("*", json!({"do": "code", "code": 1_061_001})))
        }
        "drive-comments-rate-limit" => (
            json!({}),
            on("*", json!({"do": "code", "code": 99_991_400})),
        ),
        "drive-comments-token-expired" => (
            json!({}),
            on("*", json!({"do": "code", "code": 99_991_677})),
        ),
        "drive-comments-token-invalid" => (
            json!({}),
            on("*", json!({"do": "code", "code": 99_991_663})),
        ),
        "drive-comments-token-scope" => (
            json!({}),
            on("*", json!({"do": "code", "code": 99_991_679})),
        ),
        "drive-comments-missing" => (json!({"/documents": {}}), nothing),
        "drive-reply-solved" => (json!({}), on("*", json!({"do": "code", "code": 1_069_302}))),
        "drive-comments-bad-page-token" => {
            (json!({}), on("*", json!({"do": "code", "code": 1_069_302})))
        }
        "auth-status-verify-failed" | "auth-status-wrong-secret" => {
            (json!({"/profiles/peer-bot/verify_failed": true}), nothing)
        }
        "auth-status-not-configured" | "whoami-unknown-profile" | "error-unknown-profile" => {
            (json!({"/profiles": {}}), nothing)
        }
        "auth-check-all" | "auth-check-some" | "auth-check-none" => (
            json!({"/profiles/peer-bot/user": {"open_id": "ou_u"}, "/profiles/peer-bot/scopes": ["im:message"]}),
            nothing,
        ),
        "im-search" => (
            json!({"/profiles/peer-bot/user": {"open_id": "ou_u"}}),
            nothing,
        ),
        "im-search-none" | "auth-status-signed-in" | "whoami-user" => (
            json!({"/profiles/peer-bot/user": {"open_id": "ou_u"}}),
            nothing,
        ),
        "im-search-ids-only" => (
            json!({"/profiles/peer-bot/user": {"open_id": "ou_u"}, "/options/search_ids_only": true}),
            nothing,
        ),
        "im-search-missing-scope" => (
            json!({"/profiles/peer-bot/user": {"open_id": "ou_u"}, "/profiles/peer-bot/search_scope": false}),
            nothing,
        ),
        "im-history-no-token" | "im-history-same-token" => {
            (json!({}), on("*", json!({"do": "internal"})))
        }
        "im-history-empty" | "im-mget-missing" => (json!({"/messages": []}), nothing),
        "im-history-thread"
        | "im-thread-by-message-id"
        | "im-mget-thread-root"
        | "im-mget-thread-reply"
        | "api-message-get-thread-reply"
        | "im-thread-first-page" => (json!({"/messages": thread(3)}), nothing),
        "im-history-thread-cut" => (json!({"/messages": thread(51)}), nothing),
        "im-history-thread-error" => (
            json!({"/messages": thread(3), "/options/thread_error": true}),
            nothing,
        ),
        "im-mget-mentions" => {
            let mentions = json!([{"id": "ou_bob", "key": "@_user_1", "name": "Bob"}]);
            (
                json!({"/messages": [message("om_peer000002", "@_user_1 end", json!({"mentions": mentions}))]}),
                nothing,
            )
        }
        "im-mget-deleted" | "im-mget-text" => {
            let id = if name == "im-mget-text" {
                "om_peer000001"
            } else {
                "om_peer000002"
            };
            (
                json!({"/messages": [message(id, "words", json!({"deleted": name == "im-mget-deleted"}))]}),
                nothing,
            )
        }
        "im-mget-plain-reply" => (
            json!({"/messages": [message("om_peer000003", "words", json!({"parent_id": "om_peer000001", "root_id": "om_peer000001", "sender_type": "app", "sender_id": "cli_peer0001"}))]}),
            nothing,
        ),
        "im-mget-own" => (
            json!({"/messages": [message("om_peer000003", "words", json!({"sender_type": "app", "sender_id": "cli_peer0001"}))]}),
            nothing,
        ),
        "api-reactions-first-page" => {
            let mark =
                |id: &str| json!({"reaction_id": id, "emoji": "Get", "app_id": "cli_peer0001"});
            (
                json!({"/marks/om_peer000001": [mark("re_0"), mark("re_1"), mark("re_2")]}),
                nothing,
            )
        }
        "api-reaction-delete" => (
            json!({"/marks/om_peer000001": [{"reaction_id": "re_0000", "emoji": "Get", "app_id": "cli_peer0001"}]}),
            nothing,
        ),
        "api-chat-not-member" => (json!({}), nothing),
        "im-members-page-limit" => (json!({}), nothing),
        "im-history-first-page" => (
            json!({"/messages": [message("om_peer000001", "a", json!({})), message("om_peer000002", "b", json!({})), message("om_peer000003", "c", json!({})), message("om_peer000004", "d", json!({}))]}),
            nothing,
        ),
        _ => (json!({}), nothing),
    }
}

/// Commands and forms the stand-in does not have, because the product never calls them.
fn is_out_of_scope(name: &str) -> bool {
    const FAMILIES: [&str; 7] = [
        "im-chat-",
        "drive-member",
        "event-",
        "api-card-",
        "api-message-patch",
        "api-pin",
        "api-page-all",
    ];
    const SINGLE: [&str; 33] = [
        // other message types, edited messages, foreign clients
        "im-mget-card",
        "im-mget-other-types",
        "im-mget-post",
        "im-mget-edited",
        "im-mget-thread-error",
        "im-mget-some-missing",
        "im-send-card",
        "im-send-content",
        "im-send-post",
        "im-send-accepted-without-data",
        // options the product does not use
        "im-history-page-limit",
        "im-members-hidden",
        "im-members-truncated",
        "im-members-same-token",
        "im-members-page-2-error",
        "api-bad-params",
        "api-dry-run",
        "api-empty-success",
        "api-members-add",
        "api-page-200",
        "api-user-not-logged-in",
        "api-not-found",
        "auth-status-env-credentials",
        // documents of other kinds and other filters
        "drive-comments-sheet",
        "drive-comments-wiki",
        "drive-comments-wiki-missing",
        "drive-comments-wiki-other-kind",
        "drive-comments-none",
        "drive-comments-solved",
        "drive-comments-all-whole",
        "drive-comments-as-user",
        "drive-comments-dry-run",
        "drive-comments-empty-answer",
    ];
    const MORE: [&str; 19] = [
        "drive-reply-no-id",
        "drive-reply-create-listed",
        "drive-reply-create-nested",
        "error-http-500-without-code",
        "error-page-500",
        "error-token-429",
        "error-wrong-secret",
        "drive-comments-bad-kind",
        "drive-comments-bad-url",
        "drive-comments-page-size",
        "drive-comments-no-target",
        "drive-replies-last",
        "api-reactions-last-page",
        "im-history-last-page",
        "im-thread-last-page",
        "im-history-foreign-token",
        "error-unknown-shortcut",
        "im-reply-thread-id",
        "drive-comments-last",
    ];
    FAMILIES.iter().any(|family| name.starts_with(family))
        || SINGLE.contains(&name)
        || MORE.contains(&name)
}

fn run(folder: &Path, argv: &[String], name: &str) -> (Option<i64>, String, String) {
    let (changes, faults) = situation(name);
    let mut state = world();
    for (pointer, value) in changes.as_object().expect("an object") {
        match state.pointer_mut(pointer) {
            Some(place) => *place = value.clone(),
            None => {
                let (parent, field) = pointer.rsplit_once('/').expect("a pointer");
                state.pointer_mut(parent).expect("a parent")[field] = value.clone();
            }
        }
    }
    fs::write(folder.join("state.json"), state.to_string()).expect("written");
    fs::write(
        folder.join("faults.json"),
        json!({"rules": faults}).to_string(),
    )
    .expect("written");
    let output = Command::new(env!("CARGO_BIN_EXE_fake-lark-cli"))
        .args(argv)
        .env("FAKE_LARK_STATE", folder)
        .stdin(Stdio::null())
        .output()
        .expect("the stand-in starts");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (
        output.status.code().map(i64::from),
        text(&output.stdout),
        text(&output.stderr),
    )
}

/// Keys and types, values left out; a list is its first item.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            keys.into_iter()
                .map(|key| (key.clone(), shape(&map[key])))
                .collect()
        }
        Value::Array(items) => items
            .first()
            .map_or(json!([]), |first| json!([shape(first)])),
        Value::String(_) => json!("text"),
        Value::Number(_) => json!("number"),
        Value::Bool(_) => json!("bool"),
        Value::Null => Value::Null,
    }
}

/// Names every place where two shapes differ.
fn differences(at: &str, ours: &Value, theirs: &Value) -> Vec<String> {
    match (ours, theirs) {
        (Value::Object(one), Value::Object(other)) => {
            let mut keys: Vec<&String> = one.keys().chain(other.keys()).collect();
            keys.sort();
            keys.dedup();
            keys.into_iter()
                .flat_map(|key| {
                    differences(
                        &format!("{at}.{key}"),
                        one.get(key).unwrap_or(&json!("absent")),
                        other.get(key).unwrap_or(&json!("absent")),
                    )
                })
                .collect()
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => one
            .iter()
            .zip(other)
            .flat_map(|(one, other)| differences(&format!("{at}[]"), one, other))
            .collect(),
        _ if ours == theirs => Vec::new(),
        _ => vec![format!("{at}: {ours} here, {theirs} recorded")],
    }
}

fn object(text: &str) -> Option<Value> {
    let at = text.find('{')?;
    serde_json::Deserializer::from_str(&text[at..])
        .into_iter::<Value>()
        .next()?
        .ok()
}

fn kind(text: &str) -> Option<(Value, Value, Value)> {
    let error = object(text)?["error"].clone();
    Some((
        error["type"].clone(),
        error["subtype"].clone(),
        error["code"].clone(),
    ))
}

#[test]
fn the_stand_in_answers_like_the_program_it_stands_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut names: Vec<String> =
        fs::read_dir(format!("{}/fixtures/lark", env!("CARGO_MANIFEST_DIR")))
            .expect("recordings")
            .filter_map(|entry| {
                entry
                    .ok()?
                    .file_name()
                    .to_str()?
                    .strip_suffix(".json")
                    .map(str::to_owned)
            })
            .collect();
    names.sort();
    let (mut faults, mut replayed) = (Vec::new(), 0);
    for name in names.iter().filter(|name| !is_out_of_scope(name)) {
        let recording = recorded(name);
        let argv: Vec<String> = recording["argv"]
            .as_array()
            .expect("words")
            .iter()
            .filter_map(|word| word.as_str().map(str::to_owned))
            .collect();
        let (rc, stdout, stderr) = run(folder.path(), &argv, name);
        replayed += 1;
        if rc != recording["rc"].as_i64() {
            faults.push(format!("{name}: exit {rc:?}, recorded {}", recording["rc"]));
            continue;
        }
        let (out, err) = (
            recording["stdout"].as_str().unwrap_or(""),
            recording["stderr"].as_str().unwrap_or(""),
        );
        let difference = differences(
            "",
            &shape(&object(&stdout).unwrap_or_default()),
            &shape(&object(out).unwrap_or_default()),
        );
        if !difference.is_empty() {
            faults.push(format!("{name}: {}", difference.join(", ")));
        }
        if kind(&stderr) != kind(err) {
            faults.push(format!(
                "{name}: fails as {:?}, recorded {:?}",
                kind(&stderr),
                kind(err)
            ));
        }
    }
    assert!(
        faults.is_empty(),
        "{} of {replayed}:\n{}",
        faults.len(),
        faults.join("\n")
    );
    assert!(replayed >= 90, "only {replayed} recordings were replayed");
}
