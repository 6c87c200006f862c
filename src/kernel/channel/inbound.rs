//! Which connection a live event belongs to; the answer holds no content (`docs/spec/goal-channel.md` 16.4).

use serde_json::Value;

use crate::contract::channel::binding::{Connection, Ingress};
use crate::contract::channel::ids::{ChatId, MessageId};
use crate::contract::inbox::config::{BotIdentity, CaptureScope};
use crate::kernel::inbox::addressing;

/// What became of the question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Inbound {
    /// The connection at this place of the list.
    Matched(usize),
    InvalidEvent,
    BindingUnavailable,
    ChatMismatch,
    TopicMismatch,
    RouteAmbiguous,
    SelfMessage,
    InvalidRoutingState,
    NotAddressed,
}

/// Decides for one event, after what could be looked up about it.
pub fn decide(event: &Value, connections: &[Connection]) -> Inbound {
    let word = |name: &str| event[name].as_str();
    let (Some(_), Some(chat)) = (
        word("message_id").and_then(MessageId::new),
        word("chat_id").and_then(ChatId::new),
    ) else {
        return Inbound::InvalidEvent;
    };
    let enabled: Vec<usize> = (0..connections.len())
        .filter(|index| connections[*index].enabled)
        .collect();
    if enabled.is_empty() {
        return Inbound::BindingUnavailable;
    }
    let in_chat: Vec<usize> = enabled
        .into_iter()
        .filter(|index| connections[*index].chat.as_ref() == Some(&chat))
        .collect();
    if in_chat.is_empty() {
        return Inbound::ChatMismatch;
    }
    // A topic begins with its own root.
    let root = word("root_id").or(word("message_id"));
    let of_topic = |topic: Option<&str>| -> Vec<usize> {
        let is_it =
            |index: &&usize| connections[**index].topic.as_ref().map(MessageId::as_str) == topic;
        in_chat.iter().filter(is_it).copied().collect()
    };
    let exact = of_topic(root);
    let found = if exact.is_empty() {
        of_topic(None)
    } else {
        exact
    };
    match found.as_slice() {
        [] => Inbound::TopicMismatch,
        [one] => for_connection(event, *one, &connections[*one]),
        _ => Inbound::RouteAmbiguous,
    }
}

fn for_connection(event: &Value, index: usize, connection: &Connection) -> Inbound {
    let sender = event["sender_id"].as_str();
    let own = [
        connection.app.as_ref().map(|app| app.as_str()),
        connection.open_id.as_ref().map(|id| id.as_str()),
    ];
    if sender.is_some() && own.contains(&sender) {
        return Inbound::SelfMessage;
    }
    let Some(routing) = &connection.routing else {
        return Inbound::InvalidRoutingState;
    };
    let is_sound = connection.agent.is_some()
        && routing.ingress == Ingress::AsyncInbox
        && routing.inbox_config.is_some()
        && !routing.is_manager;
    if !is_sound {
        return Inbound::InvalidRoutingState;
    }
    let bot = BotIdentity {
        app: connection.app.clone(),
        open_id: connection.open_id.clone(),
        display_name: None,
    };
    let is_addressed = event["reply_to_bot"] == Value::Bool(true)
        // The name in a text is no evidence, so the fallback to it stays off.
        || addressing::decide(event, "", &bot, CaptureScope::ConfiguredChatAll).is_addressed;
    match is_addressed || routing.scope == CaptureScope::ConfiguredChatAll {
        true => Inbound::Matched(index),
        false => Inbound::NotAddressed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::channel::binding::{BINDINGS_SCHEMA, read_bindings};
    use serde_json::json;

    fn connection(change: &Value) -> Connection {
        let mut entry = json!({"enabled": true, "agent_id": "a", "channel": {"chat_id": "oc_a"},
            "identity": {"bot_app_id": "cli_a", "bot_open_id": "ou_bot"},
            "routing": {"ingress_mode": "async_inbox", "inbox_config_ref": ".loopx/config/x.json"}});
        for (name, value) in change.as_object().into_iter().flatten() {
            entry[name.as_str()] = value.clone();
        }
        let file = json!({"schema_version": BINDINGS_SCHEMA, "bindings": {"g": entry}});
        read_bindings(&file).expect("valid").remove(0)
    }

    fn event(change: &Value) -> Value {
        let mut event = json!({"message_id": "om_1", "chat_id": "oc_a", "sender_id": "ou_1", "mentions": [{"id": "ou_bot"}]});
        for (name, value) in change.as_object().into_iter().flatten() {
            event[name.as_str()] = value.clone();
        }
        event
    }

    #[test]
    fn an_exact_topic_wins_over_the_whole_chat() {
        let topic = json!({"topic": {"root_message_id": "om_r"}});
        let both = [connection(&json!({})), connection(&topic)];
        assert_eq!(
            decide(&event(&json!({"root_id": "om_r"})), &both),
            Inbound::Matched(1)
        );
        assert_eq!(
            decide(&event(&json!({"message_id": "om_r"})), &both),
            Inbound::Matched(1)
        );
        assert_eq!(
            decide(&event(&json!({"root_id": "om_x"})), &both),
            Inbound::Matched(0)
        );
        assert_eq!(
            decide(&event(&json!({})), &both[1..]),
            Inbound::TopicMismatch
        );
        let twice = [both[0].clone(), both[0].clone()];
        assert_eq!(decide(&event(&json!({})), &twice), Inbound::RouteAmbiguous);
    }

    #[test]
    fn what_is_not_for_the_connection_is_named() {
        let one = [connection(&json!({}))];
        let cases = [
            (json!({"message_id": "x"}), Inbound::InvalidEvent),
            (json!({"chat_id": "oc_b"}), Inbound::ChatMismatch),
            (json!({"sender_id": "cli_a"}), Inbound::SelfMessage),
            (json!({"mentions": []}), Inbound::NotAddressed),
            (
                json!({"mentions": [], "reply_to_bot": true}),
                Inbound::Matched(0),
            ),
        ];
        for (change, expected) in cases {
            assert_eq!(decide(&event(&change), &one), expected, "{change}");
        }
        assert_eq!(decide(&event(&json!({})), &[]), Inbound::BindingUnavailable);
        let all = json!({"routing": {"ingress_mode": "async_inbox", "inbox_config_ref": "x.json", "capture_scope": "configured_chat_all"}});
        let quiet = event(&json!({"mentions": []}));
        assert_eq!(decide(&quiet, &[connection(&all)]), Inbound::Matched(0));
        for change in [
            json!({"agent_id": null}),
            json!({"routing": {"ingress_mode": "session_queue"}}),
            json!({"routing": null}),
        ] {
            let wrong = [connection(&change)];
            assert_eq!(
                decide(&event(&json!({})), &wrong),
                Inbound::InvalidRoutingState,
                "{change}"
            );
        }
    }
}
