//! What has to be true for a recorded call: changes of the world, and one fault.

use serde_json::{Value, json};

use super::world::{message, thread};

/// A person is signed in under the profile.
fn signed_in(more: Value) -> (Value, Value) {
    let mut changes = json!({"/profiles/peer-bot/user": {"open_id": "ou_u"}});
    for (pointer, value) in more.as_object().into_iter().flatten() {
        changes[pointer.as_str()] = value.clone();
    }
    (changes, json!([]))
}

fn plain(count: usize) -> Value {
    (0..count)
        .map(|index| message(&format!("om_peer{:06}", index + 1), "words", json!({})))
        .collect()
}

fn three_marks() -> Value {
    (0..3)
        .map(|index| json!({"reaction_id": format!("re_{index}"), "emoji": "Get", "app_id": "cli_peer0001"}))
        .collect()
}

/// A card of the own application.
fn card(id: &str) -> Value {
    let body =
        json!({"schema": "2.0", "body": {"elements": [{"tag": "markdown", "content": "hello"}]}})
            .to_string();
    let own = json!({"msg_type": "interactive", "body": body, "sender_type": "app", "sender_id": "cli_peer0001"});
    message(id, "", own)
}

fn other_types() -> Value {
    let bodies = [
        ("image", json!({"image_key": "img_1"})),
        ("file", json!({"file_key": "file_1", "file_name": "a.txt"})),
        ("text", json!({"text": "x"})),
        ("sticker", json!({})),
        ("merge_forward", json!({})),
    ];
    let rows = bodies.into_iter().enumerate();
    rows.map(|(index, (kind, body))| {
        let extra = json!({"msg_type": kind, "body": body.to_string()});
        message(&format!("om_peer{:06}", index + 2), "x", extra)
    })
    .collect()
}

/// What has to be true before a recorded call: changes of the world by pointer, and one fault.
pub(super) fn situation(name: &str) -> (Value, Value) {
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
        "api-reactions-first-page" => (json!({"/marks/om_peer000001": three_marks()}), nothing),
        "api-reaction-delete" => (
            json!({"/marks/om_peer000001": [{"reaction_id": "re_0000", "emoji": "Get", "app_id": "cli_peer0001"}]}),
            nothing,
        ),
        "im-search"
        | "im-chat-search"
        | "im-chat-search-none"
        | "im-chat-create"
        | "drive-comments-as-user"
        | "profile-list-signed-in" => signed_in(json!({})),
        "api-members-add" => {
            signed_in(json!({"/chats/oc_away": {"name": "Away", "bots": [], "users": []}}))
        }
        "im-chat-create-no-link" => signed_in(json!({"/options/no_share_link": true})),
        "im-chat-create-bad-bot" => signed_in(json!({})),
        "im-chat-create-answer-lost" => (
            json!({"/profiles/peer-bot/user": {"open_id": "ou_u"}}),
            on("*", json!({"do": "lose_answer"})),
        ),
        "im-chat-list-empty" => (json!({"/chats": {}}), nothing),
        "im-chat-list-first-page" => {
            let bot =
                json!({"app_id": "cli_peer0001", "open_id": "ou_peerbot", "name": "Peer Bot"});
            (
                json!({"/chats/oc_second": {"name": "Second", "bots": [bot], "users": []}}),
                nothing,
            )
        }
        "api-pins-list" => (
            json!({"/pins": [{"message_id": "om_peer000001", "chat_id": "oc_peer", "operator_id": "cli_peer0001"}]}),
            nothing,
        ),
        "api-card-get" | "api-message-patch" | "im-mget-card" => {
            (json!({"/messages": [card("om_peer000002")]}), nothing)
        }
        "api-empty-success" => (json!({}), on("*", json!({"do": "no_data"}))),
        "api-page-200" => (
            json!({}),
            on("*", json!({"do": "saved_file", "stderr": "<text>"})),
        ),
        "api-page-all-page-1-error" => (
            json!({"/options/page_error": {"page": 1, "code": 230_002}}),
            nothing,
        ),
        "api-page-all-page-2-error" => (
            json!({"/options/page_error": {"page": 2, "code": 230_002}, "/marks/om_peer000001": three_marks()}),
            nothing,
        ),
        "api-page-all-page-2-http-500" => (
            json!({"/options/page_error": {"page": 2}, "/marks/om_peer000001": three_marks()}),
            nothing,
        ),
        "api-reactions-last-page" => (json!({"/marks/om_peer000001": three_marks()}), nothing),
        "config-init-rejected" => (
            json!({"/profiles": {}, "/options/secret_refused": true}),
            nothing,
        ),
        "config-init" | "profile-list-empty" => (json!({"/profiles": {}}), nothing),
        "profile-list-two" => (
            json!({"/profiles": {"first": {"app_id": "cli_peer0000"}, "second": {"app_id": "cli_peer0001", "brand": "lark"}}}),
            nothing,
        ),
        "drive-comments-empty-answer" | "drive-reply-no-id" | "im-send-accepted-without-data" => {
            (json!({}), on("*", json!({"do": "no_data"})))
        }
        "drive-reply-create-listed" => (json!({"/options/reply_form": "listed"}), nothing),
        "drive-reply-create-nested" => (json!({"/options/reply_form": "nested"}), nothing),
        "error-http-500-without-code" | "error-page-500" => {
            (json!({}), on("*", json!({"do": "page", "code": 500})))
        }
        "error-token-429" => (
            json!({}),
            on("*", json!({"do": "code", "code": 99_991_400})),
        ),
        "error-wrong-secret" => (json!({}), on("*", json!({"do": "code", "code": 20_002}))),
        "im-members-hidden" => (json!({"/options/members_hidden": true}), nothing),
        "im-members-truncated" => (
            json!({"/options/members_truncated": [{"limit": 2, "member_type": "user"}]}),
            nothing,
        ),
        "im-members-same-token" => (json!({"/options/members_same_token": true}), nothing),
        "im-members-page-2-error" => (json!({"/options/members_page_error": 2}), nothing),
        "im-mget-edited" => (
            json!({"/messages": [message("om_peer000002", "new words", json!({"edited": true}))]}),
            nothing,
        ),
        "im-mget-other-types" => (json!({"/messages": other_types()}), nothing),
        "im-mget-post" => {
            let mentions = json!([{"id": "ou_bob", "key": "@_user_1", "name": "Bob"}]);
            let body =
                json!({"title": "T", "content": [[{"tag": "text", "text": "hi"}]]}).to_string();
            let post = json!({"msg_type": "post", "body": body, "mentions": mentions});
            (
                json!({"/messages": [message("om_peer000002", "", post)]}),
                nothing,
            )
        }
        "im-mget-thread-error" => (
            json!({"/messages": thread(3), "/options/thread_error": true}),
            nothing,
        ),
        "im-thread-last-page" => {
            let mut rows = thread(3);
            rows[3]["sender_type"] = json!("app");
            rows[3]["sender_id"] = json!("cli_peer0001");
            (json!({"/messages": rows}), nothing)
        }
        "im-history-last-page" | "im-history-page-limit" => {
            (json!({"/messages": plain(5)}), nothing)
        }
        "api-chat-not-member" => (json!({}), nothing),
        "im-members-page-limit" => (json!({}), nothing),
        "im-history-first-page" => (json!({"/messages": plain(4)}), nothing),
        _ => (json!({}), nothing),
    }
}
