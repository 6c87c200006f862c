//! The words of every call, pure. A shortcut first, a built-in command next, `api METHOD PATH` last; a service method never, since
//! those exist only with downloaded metadata (`docs/spec/lark-cli.md` 1 and 2). Ids are checked before they come here.

use serde_json::json;

use crate::contract::channel::body::OutboundBody;
use crate::contract::channel::ids::{ChatId, MarkId, MessageId, Opaque};
use crate::contract::channel::mention::MemberIdKind;
use crate::port::channel::{Encoding, HistoryRead, OutboundMessage, SearchRead};

type Words = Vec<String>;

fn words(parts: &[&str]) -> Words {
    parts.iter().map(|part| (*part).to_owned()).collect()
}

/// Says whose identity a call uses.
const AS_BOT: [&str; 4] = ["--as", "bot", "--format", "json"];

fn as_bot(mut words: Words) -> Words {
    words.extend(AS_BOT.map(str::to_owned));
    words
}

/// An `api` call as the bot, with query and body where there are any.
pub(super) fn api(method: &str, path: &str, params: Option<String>, data: Option<String>) -> Words {
    let mut all = words(&["api", method, path]);
    for (flag, value) in [("--params", params), ("--data", data)] {
        all.extend(value.into_iter().flat_map(|value| [flag.to_owned(), value]));
    }
    as_bot(all)
}

/// An `api` call under a named identity.
pub(super) fn api_as(
    (method, path): (&str, &str),
    params: Option<String>,
    data: Option<String>,
    identity: &str,
) -> Words {
    let mut all = words(&["api", method, path]);
    for (flag, value) in [("--params", params), ("--data", data)] {
        all.extend(value.into_iter().flat_map(|value| [flag.to_owned(), value]));
    }
    all.extend(words(&["--as", identity, "--format", "json"]));
    all
}

/// One page of a document's comment cards.
pub(super) fn comment_cards(url: &str, identity: &str, token: &Opaque) -> Words {
    let mut all = words(&[
        "drive",
        "+list-comments",
        "--url",
        url,
        "--solved-status",
        "false",
        "--comment-scope",
        "all",
    ]);
    all.extend(words(&[
        "--page-size",
        "1",
        "--as",
        identity,
        "--format",
        "json",
    ]));
    if !token.as_str().is_empty() {
        all.extend(page_token(Some(token)));
    }
    all
}

pub(super) fn auth_status() -> Words {
    words(&["auth", "status", "--verify", "--json"])
}

pub(super) fn whoami() -> Words {
    words(&["whoami", "--as", "bot"])
}

pub(super) fn chat(chat: &ChatId) -> Words {
    api(
        "GET",
        &format!("/open-apis/im/v1/chats/{}", chat.as_str()),
        None,
        None,
    )
}

pub(super) fn members(chat: &ChatId, kind: MemberIdKind) -> Words {
    as_bot(words(&[
        "im",
        "+chat-members-list",
        "--chat-id",
        chat.as_str(),
        "--member-types",
        "user,bot",
        "--member-id-type",
        kind.as_str(),
        "--page-size",
        "100",
        "--page-limit",
        "1000",
        "--page-all",
    ]))
}

/// The send or reply; the preview is the same with one word more.
pub(super) fn send(chat: &ChatId, message: &OutboundMessage<'_>, extra: &[&str]) -> Words {
    let mut all = match message.source {
        None => words(&["im", "+messages-send", "--chat-id", chat.as_str()]),
        Some(source) => words(&["im", "+messages-reply", "--message-id", source.as_str()]),
    };
    all.extend(content(message));
    if message.source.is_some() {
        all.push("--reply-in-thread".to_owned());
    }
    all.extend(words(extra));
    all.extend(words(&["--idempotency-key", message.key]));
    as_bot(all)
}

/// The words of a message in the form its kind and caller ask for.
fn content(message: &OutboundMessage<'_>) -> Words {
    let words_of = message.body.as_str();
    let typed = |kind: &str, content: serde_json::Value| {
        words(&["--msg-type", kind, "--content", &content.to_string()])
    };
    match (message.body, message.encoding) {
        (OutboundBody::Text(_), Encoding::Literal) => words(&["--text", words_of]),
        (OutboundBody::Text(_), Encoding::Encoded) => typed("text", json!({"text": words_of})),
        (OutboundBody::Post(_), _) => typed(
            "post",
            json!({"zh_cn": {"content": [[{"tag": "md", "text": words_of}]]}}),
        ),
    }
}

/// One page of what a person finds in a chat.
pub(super) fn search(read: &SearchRead<'_>) -> Words {
    let mut all = words(&[
        "im",
        "+messages-search",
        "--chat-id",
        read.chat.as_str(),
        "--query",
        read.words,
    ]);
    all.extend(words(&[
        "--page-size",
        "20",
        "--as",
        "user",
        "--no-reactions",
        "--format",
        "json",
    ]));
    all.extend(page_token(read.token));
    all
}

pub(super) fn read_back(ids: &[&MessageId]) -> Words {
    let joined = ids
        .iter()
        .map(|id| id.as_str())
        .collect::<Vec<_>>()
        .join(",");
    let mut all = words(&["im", "+messages-mget", "--message-ids"]);
    all.extend([joined, "--as".into(), "bot".into(), "--no-reactions".into()]);
    all.extend(words(&["--format", "json"]));
    all
}

pub(super) fn read_raw(id: &MessageId) -> Words {
    api(
        "GET",
        &format!("/open-apis/im/v1/messages/{}", id.as_str()),
        None,
        None,
    )
}

pub(super) fn history(read: &HistoryRead<'_>) -> Words {
    let mut all = words(&[
        "im",
        "+chat-messages-list",
        "--chat-id",
        read.chat.as_str(),
        "--as",
        "bot",
        "--start",
    ]);
    all.push(read.start.to_string());
    if let Some(end) = read.end {
        all.extend(["--end".to_owned(), end.to_string()]);
    }
    all.extend(words(&["--order", "asc", "--page-size"]));
    all.push(read.page_size.to_string());
    all.extend(words(&["--no-reactions", "--format", "json"]));
    all.extend(page_token(read.token));
    all
}

pub(super) fn thread(thread: &str, token: Option<&Opaque>) -> Words {
    let mut all = words(&[
        "im",
        "+threads-messages-list",
        "--thread",
        thread,
        "--as",
        "bot",
    ]);
    all.extend(words(&[
        "--order",
        "asc",
        "--page-size",
        "50",
        "--no-reactions",
        "--format",
        "json",
    ]));
    all.extend(page_token(token));
    all
}

fn page_token(token: Option<&Opaque>) -> Words {
    token.map_or_else(Words::new, |token| words(&["--page-token", token.as_str()]))
}

pub(super) fn add_mark(id: &MessageId, emoji: &str) -> Words {
    let data = json!({"reaction_type": {"emoji_type": emoji}}).to_string();
    api("POST", &reactions(id), None, Some(data))
}

pub(super) fn remove_mark(id: &MessageId, mark: &MarkId) -> Words {
    api(
        "DELETE",
        &format!("{}/{}", reactions(id), mark.as_str()),
        None,
        None,
    )
}

pub(super) fn marks(id: &MessageId, token: Option<&Opaque>) -> Words {
    let params = match token {
        None => json!({"page_size": 50}),
        Some(token) => json!({"page_size": 50, "page_token": token.as_str()}),
    };
    api("GET", &reactions(id), Some(params.to_string()), None)
}

fn reactions(id: &MessageId) -> String {
    format!("/open-apis/im/v1/messages/{}/reactions", id.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::channel::body::ContentFormat;
    use crate::contract::channel::outbound::LengthRule;
    use crate::contract::time::Timestamp;

    fn body(format: ContentFormat) -> OutboundBody {
        OutboundBody::parse("hello", format, LengthRule::ChatRoot)
            .expect("text")
            .0
    }

    fn message(body: &OutboundBody) -> OutboundMessage<'_> {
        OutboundMessage {
            source: None,
            body,
            encoding: Encoding::Literal,
            key: "loopx-1",
        }
    }

    #[test]
    fn words_go_literally_encoded_or_as_a_post() {
        let chat_id = ChatId::new("oc_a").expect("id");
        let text = body(ContentFormat::Text);
        let encoded = OutboundMessage {
            encoding: Encoding::Encoded,
            ..message(&text)
        };
        assert_eq!(
            line(&send(&chat_id, &encoded, &[])),
            "im +messages-send --chat-id oc_a --msg-type text --content {\"text\":\"hello\"} --idempotency-key loopx-1 --as bot --format json"
        );
        let post = body(ContentFormat::Markdown);
        let source = MessageId::new("om_s").expect("id");
        let answer = OutboundMessage {
            source: Some(&source),
            ..message(&post)
        };
        assert_eq!(
            line(&send(&chat_id, &answer, &[])),
            "im +messages-reply --message-id om_s --msg-type post --content {\"zh_cn\":{\"content\":[[{\"tag\":\"md\",\"text\":\"hello\"}]]}} \
             --reply-in-thread --idempotency-key loopx-1 --as bot --format json"
        );
    }

    #[test]
    fn a_search_asks_as_the_person() {
        let chat_id = ChatId::new("oc_a").expect("id");
        let read = SearchRead {
            chat: &chat_id,
            words: "https://host.example/1",
            token: None,
        };
        assert_eq!(
            line(&search(&read)),
            "im +messages-search --chat-id oc_a --query https://host.example/1 --page-size 20 --as user --no-reactions --format json"
        );
    }

    fn line(words: &Words) -> String {
        words.join(" ")
    }

    #[test]
    fn a_send_and_its_preview_differ_in_one_word() {
        let chat_id = ChatId::new("oc_a").expect("id");
        let body = body(ContentFormat::Text);
        let message = message(&body);
        let sent = send(&chat_id, &message, &[]);
        assert_eq!(
            line(&sent),
            "im +messages-send --chat-id oc_a --text hello --idempotency-key loopx-1 --as bot --format json"
        );
        let mut preview = send(&chat_id, &message, &["--dry-run"]);
        preview.retain(|word| word != "--dry-run");
        assert_eq!(preview, sent);
    }

    #[test]
    fn a_history_page_names_window_order_and_token() {
        let chat_id = ChatId::new("oc_a").expect("id");
        let start = Timestamp::parse("2026-08-01T00:00:00Z").expect("instant");
        let token = Opaque::new("t1");
        let read = HistoryRead {
            chat: &chat_id,
            start,
            end: Some(start),
            page_size: 7,
            token: Some(&token),
        };
        assert_eq!(
            line(&history(&read)),
            "im +chat-messages-list --chat-id oc_a --as bot --start 2026-08-01T00:00:00Z --end 2026-08-01T00:00:00Z \
             --order asc --page-size 7 --no-reactions --format json --page-token t1"
        );
    }

    #[test]
    fn marks_are_plain_api_calls() {
        let id = MessageId::new("om_a").expect("id");
        assert_eq!(
            line(&add_mark(&id, "Get")),
            "api POST /open-apis/im/v1/messages/om_a/reactions --data {\"reaction_type\":{\"emoji_type\":\"Get\"}} --as bot --format json"
        );
        assert_eq!(
            line(&marks(&id, Some(&Opaque::new("k")))),
            "api GET /open-apis/im/v1/messages/om_a/reactions --params {\"page_size\":50,\"page_token\":\"k\"} --as bot --format json"
        );
    }
}
