//! Which connection a live event belongs to; the answer holds no content (`docs/spec/goal-channel.md` 16.4).

use crate::contract::channel::binding::{Connection, Ingress};
use crate::contract::channel::ids::MessageId;
use crate::contract::inbox::config::{BotIdentity, CaptureScope};
use crate::contract::inbox::live_event::Given;
use crate::kernel::inbox::addressing;
use crate::kernel::inbox::heard::Heard;

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
pub fn decide(heard: &Heard, connections: &[Connection]) -> Inbound {
    let Some(message) = &heard.live.message else {
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
        .filter(|index| connections[*index].chat.as_ref() == Some(&heard.live.chat))
        .collect();
    if in_chat.is_empty() {
        return Inbound::ChatMismatch;
    }
    let of_topic = |topic: Option<&MessageId>| -> Vec<usize> {
        let is_it = |index: &&usize| connections[**index].topic.as_ref() == topic;
        in_chat.iter().filter(is_it).copied().collect()
    };
    let exact = match &heard.live.root {
        // A topic begins with its own root.
        Given::Absent => of_topic(Some(message)),
        Given::Value(root) => of_topic(Some(root)),
        // Whatever that is, it is no topic of ours.
        Given::Malformed => Vec::new(),
    };
    let found = if exact.is_empty() {
        of_topic(None)
    } else {
        exact
    };
    match found.as_slice() {
        [] => Inbound::TopicMismatch,
        [one] => for_connection(heard, *one, &connections[*one]),
        _ => Inbound::RouteAmbiguous,
    }
}

fn for_connection(heard: &Heard, index: usize, connection: &Connection) -> Inbound {
    let sender = heard.live.sender.value().map(|id| id.as_str());
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
    let evidence = heard.evidence();
    let is_addressed = heard.reply.is_to_bot
        // The name in a text is no evidence, so the fallback to it stays off.
        || addressing::decide(&evidence, "", &bot, CaptureScope::ConfiguredChatAll).is_addressed;
    match is_addressed || routing.scope == CaptureScope::ConfiguredChatAll {
        true => Inbound::Matched(index),
        false => Inbound::NotAddressed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::channel::binding::{BINDINGS_SCHEMA, read_bindings};
    use crate::contract::channel::ids::{ChatId, SenderId};
    use crate::contract::inbox::live_event::LiveMessage;
    use serde_json::{Value, json};

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

    fn event(change: &Value) -> Heard {
        let word = |name: &str| change[name].as_str();
        let chat = word("chat").unwrap_or("oc_a");
        let mut live = LiveMessage::of(ChatId::new(chat).expect("a chat"));
        live.message = MessageId::new(word("message").unwrap_or("om_1"));
        live.sender = Given::read(SenderId::new(word("sender").unwrap_or("ou_1")));
        if let Some(root) = word("root") {
            live.root = Given::read(MessageId::new(root));
        }
        let is_spoken_to = change["mentions"].is_null();
        live.mentions = Some(match is_spoken_to {
            true => json!([{"id": "ou_bot"}]),
            false => change["mentions"].clone(),
        });
        let mut heard = Heard::unasked(live);
        heard.reply.is_to_bot = change["reply_to_bot"] == Value::Bool(true);
        heard
    }

    #[test]
    fn an_exact_topic_wins_over_the_whole_chat() {
        let topic = json!({"topic": {"root_message_id": "om_r"}});
        let both = [connection(&json!({})), connection(&topic)];
        assert_eq!(
            decide(&event(&json!({"root": "om_r"})), &both),
            Inbound::Matched(1)
        );
        assert_eq!(
            decide(&event(&json!({"message": "om_r"})), &both),
            Inbound::Matched(1)
        );
        assert_eq!(
            decide(&event(&json!({"root": "om_x"})), &both),
            Inbound::Matched(0)
        );
        assert_eq!(
            decide(&event(&json!({})), &both[1..]),
            Inbound::TopicMismatch
        );
        // A root that is none of ours is not the message's own.
        assert_eq!(
            decide(&event(&json!({"message": "om_r", "root": "x"})), &both),
            Inbound::Matched(0)
        );
        let twice = [both[0].clone(), both[0].clone()];
        assert_eq!(decide(&event(&json!({})), &twice), Inbound::RouteAmbiguous);
    }

    #[test]
    fn what_is_not_for_the_connection_is_named() {
        let one = [connection(&json!({}))];
        let cases = [
            (json!({"message": "x"}), Inbound::InvalidEvent),
            (json!({"chat": "oc_b"}), Inbound::ChatMismatch),
            (json!({"sender": "cli_a"}), Inbound::SelfMessage),
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
