//! Is the message that was read back the message that was sent? `docs/spec/lark-inbox.md` 6.5.
//!
//! Text and the exact set of mentioned identities decide. A name is never evidence: it only finds the place of a mention whose identity is
//! proved by the list, and only where it belongs to one identity alone. Missing, extra, ambiguous or different fails closed.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use crate::contract::channel::ids::{AppId, ChatId, MessageId};
use crate::contract::channel::observed::Observed;
use crate::contract::channel::outbound::{MentionId, OutboundText, normalize};

/// More mentions than this make the shown text unstable; then only the raw one is evidence.
pub const MAX_SHOWN_MENTIONS: usize = 9;

/// What a message must be.
#[derive(Clone, Copy, Debug)]
pub struct Expected<'a> {
    pub text: &'a OutboundText,
    pub chat: &'a ChatId,
    /// The sending application, where it is known.
    pub app: Option<&'a AppId>,
    /// Application id to member id, as the chat's own member list pairs them.
    pub aliases: &'a BTreeMap<String, String>,
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
    !message.is_deleted && by_app && by_own && in_chat && is_text(expected, message, raw)
}

fn is_text(expected: &Expected<'_>, message: &Observed, raw: Option<&Observed>) -> bool {
    let wanted = expected.text.mentions();
    if wanted.is_empty() {
        let has_none = match &message.mentions {
            None | Some(Value::Null) => true,
            Some(Value::Array(items)) => items.is_empty(),
            Some(_) => false,
        };
        return has_none
            && texts(message)
                .iter()
                .any(|text| normalize(text) == expected.text.as_str());
    }
    let Some(mentions) = matched(expected, message) else {
        return false;
    };
    if mentions
        .iter()
        .map(|mention| mention.id)
        .collect::<BTreeSet<_>>()
        != wanted.keys().collect()
    {
        return false;
    }
    if message.mention_count() <= MAX_SHOWN_MENTIONS {
        return texts(message)
            .iter()
            .any(|text| places(expected.text, text, &mentions, Names::MayPlace));
    }
    let Some(raw) = raw.filter(|raw| {
        raw.message_id == message.message_id && raw.chat.as_ref() == Some(expected.chat)
    }) else {
        return false;
    };
    let Some(keys) = matched(expected, raw) else {
        return false;
    };
    raw.body
        .as_deref()
        .and_then(decoded)
        .is_some_and(|text| places(expected.text, &text, &keys, Names::Never))
}

/// The texts a message may be read as: its raw body, else what is shown, decoded where it is an encoded body.
fn texts(message: &Observed) -> Vec<String> {
    match &message.body {
        Some(body) => decoded(body).into_iter().collect(),
        None => decoded(&message.content)
            .into_iter()
            .chain([message.content.clone()])
            .collect(),
    }
}

fn decoded(body: &str) -> Option<String> {
    let value: Value = serde_json::from_str(body).ok()?;
    value.get("text")?.as_str().map(str::to_owned)
}

struct Matched<'a> {
    key: &'a str,
    id: &'a MentionId,
    name: Option<&'a str>,
}

/// Matches every listed mention to one requested identity; none when one is foreign, ambiguous or nameless.
fn matched<'a>(expected: &'a Expected<'_>, message: &'a Observed) -> Option<Vec<Matched<'a>>> {
    let mut by_key: BTreeMap<&str, &MentionId> = BTreeMap::new();
    let mut found = Vec::new();
    for mention in message.mentions.as_ref()?.as_array()? {
        let key = mention
            .get("key")
            .and_then(Value::as_str)
            .filter(|key| !key.is_empty())?;
        let ids = ids(mention);
        let aliased = ids
            .iter()
            .filter_map(|id| expected.aliases.get(*id).map(String::as_str));
        let all: BTreeSet<&str> = ids.iter().copied().chain(aliased).collect();
        let mut requested = expected
            .text
            .mentions()
            .keys()
            .filter(|id| all.contains(id.as_str()));
        let (Some(id), None) = (requested.next(), requested.next()) else {
            return None;
        };
        if by_key.insert(key, id).is_some_and(|known| known != id) {
            return None;
        }
        found.push(Matched {
            key,
            id,
            name: mention
                .get("name")
                .and_then(Value::as_str)
                .filter(|name| !name.is_empty()),
        });
    }
    Some(found)
}

const ID_NAMES: [&str; 5] = ["open_id", "user_id", "union_id", "app_id", "member_id"];

fn ids(mention: &Value) -> Vec<&str> {
    let direct = mention.get("id").and_then(Value::as_str);
    let inner = mention.get("id").filter(|id| id.is_object());
    let named = [Some(mention), inner]
        .into_iter()
        .flatten()
        .flat_map(|object| {
            ID_NAMES
                .iter()
                .filter_map(|name| object.get(*name).and_then(Value::as_str))
        });
    direct.into_iter().chain(named).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Names {
    MayPlace,
    Never,
}

/// Tells whether the mentions stand in `text` where they stand in what was sent.
fn places(sent: &OutboundText, text: &str, mentions: &[Matched<'_>], names: Names) -> bool {
    let ids: Vec<&MentionId> = sent.mentions().keys().collect();
    let token = |id: &MentionId| {
        let index = ids
            .iter()
            .position(|known| *known == id)
            .unwrap_or(ids.len());
        format!("\u{1}{index}\u{2}")
    };
    let wanted = sent.tokenized(token);
    let mut shown = text.to_owned();
    let mut keys: Vec<&Matched<'_>> = mentions.iter().collect();
    keys.sort_by_key(|mention| std::cmp::Reverse(mention.key.len()));
    for mention in keys {
        shown = shown.replace(mention.key, &token(mention.id));
    }
    if names == Names::MayPlace {
        let mut named: Vec<&Matched<'_>> = mentions
            .iter()
            .filter(|mention| mention.name.is_some())
            .collect();
        named.sort_by_key(|mention| std::cmp::Reverse(mention.name.map_or(0, str::len)));
        for mention in named {
            let own = token(mention.id);
            let missing = wanted
                .matches(&own)
                .count()
                .saturating_sub(shown.matches(&own).count());
            let display = format!("@{}", mention.name.unwrap_or_default());
            let is_shared = mentions
                .iter()
                .any(|other| other.name == mention.name && other.id != mention.id);
            if missing == 0 {
                continue;
            }
            if is_shared || shown.matches(&display).count() != missing {
                return false;
            }
            shown = shown.replace(&display, &own);
        }
    }
    normalize(&shown) == normalize(&wanted)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::channel::outbound::LengthRule;
    use serde_json::json;

    const SENT: &str = "<at open_id=\"ou_aaa\">A</at> and <at open_id=\"ou_bbb\">B</at> please";

    fn verdict(sent: &str, content: &str, mentions: Value, aliases: &[(&str, &str)]) -> bool {
        let text = OutboundText::parse(sent, LengthRule::ChatRoot).expect("valid");
        let chat = ChatId::new("oc_1").expect("id");
        let aliases = aliases
            .iter()
            .map(|(app, member)| ((*app).to_owned(), (*member).to_owned()))
            .collect();
        let id = MessageId::new("om_1").expect("id");
        let message = Observed {
            message_id: Some(id.clone()),
            content: content.to_owned(),
            mentions: Some(mentions).filter(|mentions| !mentions.is_null()),
            ..Observed::default()
        };
        let expected = Expected {
            text: &text,
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
        let text = OutboundText::parse(&sent, LengthRule::ChatRoot).expect("valid");
        let chat = ChatId::new("oc_1").expect("id");
        let mentions: Value = (0..12)
            .map(
                |index| json!({"key": format!("@_user_{index}"), "id": ids[index], "name": "same"}),
            )
            .collect();
        let body =
            json!({"text": (0..12).map(|index| format!("@_user_{index} ")).collect::<String>()})
                .to_string();
        let message = |body: Option<String>, chat: Option<ChatId>| Observed {
            message_id: MessageId::new("om_1"),
            content: "whatever".to_owned(),
            mentions: Some(mentions.clone()),
            body,
            chat,
            ..Observed::default()
        };
        let aliases = BTreeMap::new();
        let expected = Expected {
            text: &text,
            chat: &chat,
            app: None,
            aliases: &aliases,
        };
        let raw = message(Some(body), Some(chat.clone()));
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
        let text = OutboundText::parse("hi", LengthRule::ChatRoot).expect("valid");
        let (chat, app, aliases) = (
            ChatId::new("oc_1").expect("id"),
            AppId::new("cli_1"),
            BTreeMap::new(),
        );
        let expected = Expected {
            text: &text,
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
