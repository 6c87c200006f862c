//! Is a message addressed to the bot? `docs/spec/lark-inbox.md` 4.1.
//!
//! A structured list of mentions is the only evidence where there is one, and ids decide it; names never, once an id is configured. A
//! structured "no" is final. Only without any structured evidence does the visible text count, and only where the inbox asks for it.

use serde_json::Value;

use crate::contract::inbox::config::{BotIdentity, CaptureScope};
use crate::contract::text;

/// The most mentions that are counted.
const MAX_MENTIONS: usize = 50;

/// What the mentions of one message say.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Addressing {
    pub is_addressed: bool,
    pub provider_mentions: usize,
    pub target_mentions: usize,
}

/// Decides from the raw evidence of a message.
pub fn decide(raw: &Value, content: &str, bot: &BotIdentity, scope: CaptureScope) -> Addressing {
    let mentions = raw.get("mentions").filter(|value| !value.is_null());
    let mentioned = raw.get("mentioned").filter(|value| !value.is_null());
    if let Some(list) = mentions {
        return by_list(list, mentioned, bot);
    }
    if let Some(flag) = mentioned {
        return Addressing {
            is_addressed: flag == &Value::Bool(true),
            ..Addressing::default()
        };
    }
    let by_text = scope == CaptureScope::AddressedOnly
        && bot
            .display_name
            .as_deref()
            .is_some_and(|name| names_bot(content, name));
    Addressing {
        is_addressed: by_text,
        ..Addressing::default()
    }
}

fn by_list(list: &Value, mentioned: Option<&Value>, bot: &BotIdentity) -> Addressing {
    let empty = Vec::new();
    let items = list.as_array().unwrap_or(&empty);
    let is_alone = mentioned == Some(&Value::Bool(true)) && items.len() == 1;
    let targets = items
        .iter()
        .filter(|item| is_target(item, bot, is_alone))
        .count();
    let provider_mentions = items.len().min(MAX_MENTIONS);
    Addressing {
        is_addressed: targets > 0,
        provider_mentions,
        target_mentions: targets.min(provider_mentions),
    }
}

fn is_target(mention: &Value, bot: &BotIdentity, is_alone: bool) -> bool {
    if bot.app.is_some() || bot.open_id.is_some() {
        let app = bot.app.as_ref().map(|id| id.as_str());
        let open = bot.open_id.as_ref().map(|id| id.as_str());
        return ids(mention).any(|id| Some(id) == app || Some(id) == open);
    }
    match (
        &bot.display_name,
        mention.get("name").and_then(Value::as_str),
    ) {
        (Some(expected), Some(name)) => folded(name) == folded(expected),
        (Some(_), None) => false,
        (None, _) => is_alone,
    }
}

fn folded(name: &str) -> String {
    text::collapse(name.trim_start_matches('@')).to_lowercase()
}

const ID_NAMES: [&str; 6] = ["user_id", "open_id", "union_id", "app_id", "bot_id", "id"];

/// The ids a mention carries: direct, or inside an `id` object.
fn ids(mention: &Value) -> impl Iterator<Item = &str> {
    let inner = mention.get("id").filter(|id| id.is_object());
    [Some(mention), inner]
        .into_iter()
        .flatten()
        .flat_map(|object| {
            ID_NAMES
                .iter()
                .filter_map(|name| object.get(*name).and_then(Value::as_str))
        })
}

/// Finds `@name` between ends, white space or the listed punctuation.
fn names_bot(content: &str, name: &str) -> bool {
    let text: Vec<char> = content.to_lowercase().chars().collect();
    let wanted: Vec<char> = format!("@{name}").to_lowercase().chars().collect();
    let is_edge = |character: Option<&char>| match character {
        None => true,
        Some(character) => text::is_space(*character) || ",，!！?？;；:：".contains(*character),
    };
    (0..text.len().saturating_sub(wanted.len() - 1)).any(|at| {
        let end = at + wanted.len();
        text[at..end] == wanted[..]
            && is_edge(at.checked_sub(1).and_then(|before| text.get(before)))
            && is_edge(text.get(end))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::channel::ids::{AppId, OpenId};
    use serde_json::json;

    fn bot() -> BotIdentity {
        BotIdentity {
            app: AppId::new("cli_a"),
            open_id: OpenId::new("ou_bot"),
            display_name: Some("My Bot".to_owned()),
        }
    }

    fn addressed(raw: Value, content: &str, bot: &BotIdentity) -> bool {
        decide(&raw, content, bot, CaptureScope::AddressedOnly).is_addressed
    }

    #[test]
    fn ids_decide_and_names_do_not_once_an_id_is_configured() {
        let at = |mention: Value| json!({"mentions": [mention]});
        assert!(addressed(
            at(json!({"id": "ou_bot", "name": "x"})),
            "",
            &bot()
        ));
        assert!(addressed(
            at(json!({"id": {"open_id": "ou_bot"}})),
            "",
            &bot()
        ));
        assert!(addressed(at(json!({"app_id": "cli_a"})), "", &bot()));
        assert!(!addressed(
            at(json!({"id": "ou_x", "name": "My Bot"})),
            "@My Bot hi",
            &bot()
        ));
    }

    #[test]
    fn a_structured_no_is_final() {
        assert!(!addressed(json!({"mentions": []}), "@My Bot hi", &bot()));
        assert!(!addressed(
            json!({"mentioned": false}),
            "@My Bot hi",
            &bot()
        ));
        assert!(addressed(json!({"mentioned": true}), "", &bot()));
    }

    #[test]
    fn without_ids_the_name_decides_and_without_a_name_a_single_mention() {
        let named = BotIdentity {
            display_name: Some("My Bot".to_owned()),
            ..BotIdentity::default()
        };
        assert!(addressed(
            json!({"mentions": [{"name": "@my  bot"}]}),
            "",
            &named
        ));
        let nameless = BotIdentity::default();
        assert!(addressed(
            json!({"mentions": [{"name": "x"}], "mentioned": true}),
            "",
            &nameless
        ));
        assert!(!addressed(
            json!({"mentions": [{}, {}], "mentioned": true}),
            "",
            &nameless
        ));
    }

    #[test]
    fn text_counts_only_in_an_addressed_inbox_and_between_edges() {
        let plain = json!({});
        for (content, expected) in [
            ("@My Bot hi", true),
            ("please,@MY BOT!", true),
            ("x@My Bot y", false),
            ("@My Bots", false),
            ("nothing", false),
            ("@", false),
        ] {
            assert_eq!(
                addressed(plain.clone(), content, &bot()),
                expected,
                "{content}"
            );
        }
        assert!(!decide(&plain, "@My Bot", &bot(), CaptureScope::ConfiguredChatAll).is_addressed);
    }

    #[test]
    fn counts_stay_within_their_bound() {
        let many = json!({"mentions": vec![json!({"id": "ou_bot"}); 60]});
        let decision = decide(&many, "", &bot(), CaptureScope::AddressedOnly);
        assert_eq!(
            (decision.provider_mentions, decision.target_mentions),
            (50, 50)
        );
    }
}
