//! Is the message that was read back the message that was sent? `docs/spec/lark-inbox.md` 6.5.
//!
//! Text and the exact set of mentioned identities decide. A name is never evidence: it only finds the place of a mention whose identity is
//! proved by the list, and only where it belongs to one identity alone. Missing, extra, ambiguous or different fails closed.

use std::collections::BTreeSet;

use serde_json::Value;

use super::placing::{Names, matched, places};
use super::post::is_post;
use crate::contract::channel::body::OutboundBody;
use crate::contract::channel::ids::{AppId, ChatId, MessageId};
use crate::contract::channel::observed::{Aliases, Observed, SentWords};
use crate::contract::channel::outbound::{OutboundText, normalize};

/// More mentions than this make the shown text unstable; then only the raw one is evidence.
pub const MAX_SHOWN_MENTIONS: usize = 9;

/// What a message must be.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    pub body: &'a OutboundBody,
    pub chat: &'a ChatId,
    /// The sending application, where it is known.
    pub app: Option<&'a AppId>,
    pub aliases: &'a Aliases,
}

/// A readback, decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Verified,
    Mismatch,
}

/// Judges everything that was read under one message id; equal copies count once.
pub fn judge(
    expected: &Expected<'_>,
    id: &MessageId,
    read: &[Observed],
    raw: Option<&Observed>,
) -> Verdict {
    let mut copies = read
        .iter()
        .filter(|message| message.message_id.as_ref() == Some(id))
        .peekable();
    let is_there = copies.peek().is_some();
    match is_there && copies.all(|copy| is_sent(expected, copy, raw)) {
        true => Verdict::Verified,
        false => Verdict::Mismatch,
    }
}

/// Tells whether one shown message is the expected one; `raw` is the same message as it was sent.
pub fn is_sent(expected: &Expected<'_>, message: &Observed, raw: Option<&Observed>) -> bool {
    let by_app = matches!(message.sender_type.as_deref(), None | Some("app" | "bot"));
    let by_own = match (expected.app, message.sender()) {
        (Some(app), Some(sender)) => sender == app.as_str(),
        _ => true,
    };
    let in_chat = message
        .chat
        .as_ref()
        .is_none_or(|chat| chat == expected.chat);
    !message.is_deleted && by_app && by_own && in_chat && is_body(expected, message, raw)
}

fn is_body(expected: &Expected<'_>, message: &Observed, raw: Option<&Observed>) -> bool {
    match expected.body {
        OutboundBody::Text(text) if text.mentions().is_empty() => {
            has_no_mentions(message)
                && texts(message)
                    .iter()
                    .any(|shown| normalize(shown) == text.as_str())
        }
        OutboundBody::Text(text) => is_mentioning(expected, text, message, raw),
        OutboundBody::Post(post) => has_no_mentions(message) && is_post(post, message),
    }
}

fn has_no_mentions(message: &Observed) -> bool {
    match &message.mentions {
        None | Some(Value::Null) => true,
        Some(Value::Array(items)) => items.is_empty(),
        Some(_) => false,
    }
}

fn is_mentioning(
    expected: &Expected<'_>,
    text: &OutboundText,
    message: &Observed,
    raw: Option<&Observed>,
) -> bool {
    let wanted = text.mentions();
    let Some(mentions) = matched(wanted, expected.aliases, message) else {
        return false;
    };
    let found: BTreeSet<_> = mentions.iter().map(|mention| mention.id).collect();
    if found != wanted.keys().collect() {
        return false;
    }
    if message.mention_count() <= MAX_SHOWN_MENTIONS {
        return texts(message)
            .iter()
            .any(|shown| places(text, shown, &mentions, Names::MayPlace));
    }
    let is_the_same = |raw: &&Observed| {
        raw.message_id == message.message_id && raw.chat.as_ref() == Some(expected.chat)
    };
    let Some(raw) = raw.filter(is_the_same) else {
        return false;
    };
    let Some(keys) = matched(wanted, expected.aliases, raw) else {
        return false;
    };
    raw.body
        .as_ref()
        .and_then(SentWords::text)
        .is_some_and(|shown| places(text, shown, &keys, Names::Never))
}

/// The texts a message may be read as: its raw body, else what is shown, decoded where it is an encoded body.
fn texts(message: &Observed) -> Vec<String> {
    match &message.body {
        Some(body) => body.text().map(str::to_owned).into_iter().collect(),
        None => decoded(&message.content)
            .into_iter()
            .chain([message.content.clone()])
            .collect(),
    }
}

fn decoded(content: &str) -> Option<String> {
    let value: Value = serde_json::from_str(content).ok()?;
    value.get("text")?.as_str().map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::channel::body::ContentFormat;
    use crate::contract::channel::mention::MentionId;
    use crate::contract::channel::outbound::LengthRule;
    use serde_json::json;

    const SENT: &str = "<at open_id=\"ou_aaa\">A</at> and <at open_id=\"ou_bbb\">B</at> please";

    fn body(raw: &str, format: ContentFormat) -> OutboundBody {
        OutboundBody::parse(raw, format, LengthRule::ChatRoot)
            .expect("valid")
            .0
    }

    fn verdict(sent: &str, content: &str, mentions: Value, aliases: &[(&str, &str)]) -> bool {
        let body = body(sent, ContentFormat::Text);
        let chat = ChatId::new("oc_1").expect("id");
        let aliases = aliases
            .iter()
            .map(|(app, member)| (MentionId::new(*app), MentionId::new(*member)))
            .collect();
        let id = MessageId::new("om_1").expect("id");
        let message = Observed {
            message_id: Some(id.clone()),
            content: content.to_owned(),
            mentions: Some(mentions).filter(|mentions| !mentions.is_null()),
            ..Observed::default()
        };
        let expected = Expected {
            body: &body,
            chat: &chat,
            app: None,
            aliases: &aliases,
        };
        judge(&expected, &id, &[message], None) == Verdict::Verified
    }

    fn keyed(rows: &[(&str, &str)]) -> Value {
        rows.iter()
            .map(|(key, id)| json!({"key": key, "id": id}))
            .collect()
    }

    #[test]
    fn the_exact_set_of_identities_is_needed() {
        let cases = [
            (
                "@_user_1 and @_user_2 please",
                keyed(&[("@_user_1", "ou_aaa"), ("@_user_2", "ou_bbb")]),
                true,
            ),
            (
                "@_user_2 and @_user_1 please",
                keyed(&[("@_user_2", "ou_aaa"), ("@_user_1", "ou_bbb")]),
                true,
            ),
            (
                "@_user_1 and B please",
                keyed(&[("@_user_1", "ou_aaa")]),
                false,
            ),
            (
                "@_user_1 and @_user_2 please",
                keyed(&[("@_user_1", "ou_aaa"), ("@_user_2", "ou_ccc")]),
                false,
            ),
            (
                "@_user_1 and @_user_2 please @_user_3",
                keyed(&[
                    ("@_user_1", "ou_aaa"),
                    ("@_user_2", "ou_bbb"),
                    ("@_user_3", "ou_ddd"),
                ]),
                false,
            ),
            ("@A and @B please", json!([]), false),
            (
                "@_user_1 and @_user_1 please",
                keyed(&[("@_user_1", "ou_aaa"), ("@_user_1", "ou_bbb")]),
                false,
            ),
            (
                "@_user_2 and @_user_1 please",
                keyed(&[("@_user_1", "ou_aaa"), ("@_user_2", "ou_bbb")]),
                false,
            ),
        ];
        for (content, mentions, expected) in cases {
            assert_eq!(verdict(SENT, content, mentions, &[]), expected, "{content}");
        }
    }

    #[test]
    fn a_shown_name_places_a_mention_only_when_it_is_one_persons_alone() {
        let named = |one: &str, other: &str| json!([{"key": "@_user_1", "id": "ou_aaa", "name": one}, {"key": "@_user_2", "id": "ou_bbb", "name": other}]);
        assert!(verdict(
            SENT,
            "@Ann and @Bob please",
            named("Ann", "Bob"),
            &[]
        ));
        assert!(verdict(
            SENT,
            "@Ann and @Ann0 please",
            named("Ann", "Ann0"),
            &[]
        ));
        assert!(!verdict(
            SENT,
            "@Ann and @Ann please",
            named("Ann", "Ann"),
            &[]
        ));
        assert!(!verdict(
            SENT,
            "@Ann and @Bob and @Bob please",
            named("Ann", "Bob"),
            &[]
        ));
    }

    #[test]
    fn a_bot_counts_through_its_verified_pair_alone() {
        let sent = "<at open_id=\"ou_bot\">Peer</at> ping";
        let shown = json!([{"key": "@_user_1", "id": "cli_peer", "name": "Peer"}]);
        assert!(verdict(
            sent,
            "@Peer ping",
            shown.clone(),
            &[("cli_peer", "ou_bot")]
        ));
        assert!(!verdict(sent, "@Peer ping", shown, &[]));
    }

    #[test]
    fn a_message_without_mentions_must_show_none() {
        assert!(verdict("hello there", "hello  there", Value::Null, &[]));
        assert!(verdict("hello", "{\"text\":\"hello\"}", json!([]), &[]));
        assert!(!verdict(
            "hello",
            "hello",
            keyed(&[("@_user_1", "ou_aaa")]),
            &[]
        ));
        assert!(!verdict("hello", "hello2", Value::Null, &[]));
    }

    #[test]
    fn one_person_named_twice_is_one_identity() {
        let sent = "<at open_id=\"ou_aaa\">A</at> x <at open_id=\"ou_aaa\">A</at>";
        let shown = json!([{"key": "@_user_1", "id": "ou_aaa", "name": "Ann"}]);
        assert!(verdict(sent, "@Ann x @Ann", shown, &[]));
    }

    #[test]
    fn more_than_nine_mentions_need_the_raw_text() {
        let ids: Vec<String> = (0..12).map(|index| format!("ou_{index}")).collect();
        let sent: String = ids
            .iter()
            .map(|id| format!("<at open_id=\"{id}\">x</at> "))
            .collect();
        let body = body(&sent, ContentFormat::Text);
        let chat = ChatId::new("oc_1").expect("id");
        let mentions: Value = (0..12)
            .map(
                |index| json!({"key": format!("@_user_{index}"), "id": ids[index], "name": "same"}),
            )
            .collect();
        let words: String = (0..12).map(|index| format!("@_user_{index} ")).collect();
        let sent_body = SentWords::Text(words);
        let message = |body: Option<SentWords>, chat: Option<ChatId>| Observed {
            message_id: MessageId::new("om_1"),
            content: "whatever".to_owned(),
            mentions: Some(mentions.clone()),
            body,
            chat,
            ..Observed::default()
        };
        let aliases = Aliases::new();
        let expected = Expected {
            body: &body,
            chat: &chat,
            app: None,
            aliases: &aliases,
        };
        let raw = message(Some(sent_body), Some(chat.clone()));
        assert!(is_sent(&expected, &message(None, None), Some(&raw)));
        assert!(!is_sent(&expected, &message(None, None), None));
        assert!(!is_sent(
            &expected,
            &message(None, None),
            Some(&message(raw.body.clone(), None))
        ));
    }

    #[test]
    fn another_chat_sender_or_a_deleted_message_is_no_proof() {
        let body = body("hi", ContentFormat::Text);
        let (chat, app, aliases) = (
            ChatId::new("oc_1").expect("id"),
            AppId::new("cli_1"),
            Aliases::new(),
        );
        let expected = Expected {
            body: &body,
            chat: &chat,
            app: app.as_ref(),
            aliases: &aliases,
        };
        let good = Observed {
            message_id: MessageId::new("om_1"),
            content: "hi".to_owned(),
            chat: Some(chat.clone()),
            sender_type: Some("app".to_owned()),
            sender_id: Some(json!("cli_1")),
            ..Observed::default()
        };
        assert!(is_sent(&expected, &good, None));
        assert!(!is_sent(
            &expected,
            &Observed {
                is_deleted: true,
                ..good.clone()
            },
            None
        ));
        assert!(!is_sent(
            &expected,
            &Observed {
                chat: ChatId::new("oc_2"),
                ..good.clone()
            },
            None
        ));
        assert!(!is_sent(
            &expected,
            &Observed {
                sender_id: Some(json!("cli_2")),
                ..good.clone()
            },
            None
        ));
        assert!(!is_sent(
            &expected,
            &Observed {
                sender_type: Some("user".to_owned()),
                ..good
            },
            None
        ));
    }
}
