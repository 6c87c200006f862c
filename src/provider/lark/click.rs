//! A click on a card as the stream brings it, and why it is refused. Nothing of its values is kept: a shape and codes alone
//! (`docs/spec/goal-channel.md` 21 and 22).

use serde_json::{Map, Value, json};

use crate::contract::channel::ids::{ChatId, MessageId, OpenId};
use crate::contract::digest;
use crate::contract::inbox::live_event::{Click, ClickRefused as Refused, LiveClick};
use crate::contract::json as strict;

/// The schema of what a button carries.
const ACTION_SCHEMA: &str = "loopx_operation_card_action_v0";
/// The kind of stream event.
const CALLBACK_TYPE: &str = "card.action.trigger";
const MAX_TOKEN: usize = 2048;

/// Takes a click as the stream printed it; none when it is another kind of event.
pub(super) fn click(event: &Value) -> Option<LiveClick> {
    (event["type"] == CALLBACK_TYPE).then(|| LiveClick {
        read: read_click(event),
        shape: shape(event),
    })
}

/// Reads a click; the checks come in the order of the contract.
fn read_click(event: &Value) -> Result<Click, Refused> {
    let parse = |code| Refused {
        code,
        stage: "parse_action",
    };
    let word = |name: &str| event[name].as_str().unwrap_or("");
    let check = |holds: bool, code| if holds { Ok(()) } else { Err(parse(code)) };
    check(
        word("type") == CALLBACK_TYPE,
        "callback_event_type_unsupported",
    )?;
    check(word("action_tag") == "button", "callback_action_not_button")?;
    let action = match &event["action_value"] {
        Value::Object(action) => Some(action.clone()),
        Value::String(text) => strict::parse_object(text.as_bytes()).ok(),
        _ => None,
    };
    let action = action.ok_or(parse("callback_action_value_invalid"))?;
    let click = read_action(&action).map_err(parse)?;
    let is_token =
        |text: &str| (1..=MAX_TOKEN).contains(&text.len()) && !text.chars().any(char::is_control);
    check(is_token(word("token")), "callback_update_token_invalid")?;
    let is_event = |text: &str| {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._:-".contains(&byte);
        (1..=240).contains(&text.len()) && text.bytes().all(plain)
    };
    check(is_event(word("event_id")), "callback_event_id_invalid")?;
    check(
        MessageId::new(word("message_id")).is_some(),
        "callback_message_id_invalid",
    )?;
    check(
        ChatId::new(word("chat_id")).is_some(),
        "callback_chat_id_invalid",
    )?;
    check(
        OpenId::new(word("operator_id")).is_some(),
        "callback_operator_id_invalid",
    )?;
    check(word("host") == "im_message", "callback_host_unsupported")?;
    Ok(click)
}

fn read_action(action: &Map<String, Value>) -> Result<Click, &'static str> {
    let word = |name: &str| action.get(name).and_then(Value::as_str);
    let names = [
        "schema_version",
        "operation_id",
        "confirmation_digest",
        "decision",
    ];
    let values = names.map(word);
    let [Some(schema), Some(operation), Some(_), Some(decision)] = values else {
        return Err("callback_action_incomplete");
    };
    if action.len() != names.len() {
        return Err("callback_action_incomplete");
    }
    if schema != ACTION_SCHEMA {
        return Err("callback_action_schema_unsupported");
    }
    let is_confirmed = match decision {
        "confirm" => true,
        "reject" => false,
        _ => return Err("callback_decision_unsupported"),
    };
    Ok(Click {
        operation: operation.to_owned(),
        is_confirmed,
    })
}

/// What an event looked like: which members it had, and no value of any.
fn shape(event: &Value) -> Value {
    let empty = Map::new();
    let map = event.as_object().unwrap_or(&empty);
    let mut names: Vec<&str> = map.keys().map(String::as_str).collect();
    names.sort_unstable();
    let has = |name: &str| map.get(name).is_some_and(|value| !value.is_null());
    json!({
        "field_count": names.len(),
        "has_event_id": has("event_id"),
        "has_message_id": has("message_id"),
        "has_chat_id": has("chat_id"),
        "has_operator_id": has("operator_id"),
        "has_token": has("token"),
        "has_action_value": has("action_value"),
        "has_card_content": has("card_content"),
        "shape_digest": digest::nul_joined(&names).short(16),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn click() -> Value {
        let action = json!({"schema_version": ACTION_SCHEMA, "operation_id": "op", "confirmation_digest": "d", "decision": "confirm"});
        json!({"type": CALLBACK_TYPE, "event_id": "ev_1", "timestamp": "1796000000001000", "operator_id": "ou_a", "message_id": "om_a",
            "chat_id": "oc_a", "host": "im_message", "token": "c-1", "action_tag": "button", "action_value": action.to_string()})
    }

    #[test]
    fn a_whole_click_is_read_from_text_and_from_an_object() {
        let mut event = click();
        assert_eq!(read_click(&event).map(|click| click.is_confirmed), Ok(true));
        event["action_value"] = json!({"schema_version": ACTION_SCHEMA, "operation_id": "op", "confirmation_digest": "d", "decision": "reject"});
        assert_eq!(
            read_click(&event).map(|click| click.is_confirmed),
            Ok(false)
        );
    }

    #[test]
    fn every_fault_has_its_code() {
        let action = |change: &Value| {
            let mut action = json!({"schema_version": ACTION_SCHEMA, "operation_id": "op", "confirmation_digest": "d", "decision": "confirm"});
            for (name, value) in change.as_object().into_iter().flatten() {
                action[name.as_str()] = value.clone();
            }
            action
        };
        let cases = [
            ("action_tag", json!("form"), "callback_action_not_button"),
            ("action_value", json!("{"), "callback_action_value_invalid"),
            (
                "action_value",
                json!({"decision": "confirm"}),
                "callback_action_incomplete",
            ),
            (
                "action_value",
                action(&json!({"n": 1})),
                "callback_action_incomplete",
            ),
            (
                "action_value",
                action(&json!({"schema_version": "x"})),
                "callback_action_schema_unsupported",
            ),
            (
                "action_value",
                action(&json!({"decision": "later"})),
                "callback_decision_unsupported",
            ),
            ("token", json!(""), "callback_update_token_invalid"),
            ("event_id", json!("a b"), "callback_event_id_invalid"),
            ("message_id", Value::Null, "callback_message_id_invalid"),
            ("chat_id", json!("x"), "callback_chat_id_invalid"),
            ("operator_id", json!("x"), "callback_operator_id_invalid"),
            ("host", json!("web"), "callback_host_unsupported"),
        ];
        for (name, value, code) in cases {
            let mut event = click();
            event[name] = value;
            assert_eq!(
                read_click(&event).map_err(|refused| refused.code),
                Err(code)
            );
        }
    }

    #[test]
    fn a_shape_holds_no_value() {
        let shape = shape(&click()).to_string();
        for value in ["ev_1", "ou_a", "om_a", "oc_a", "c-1", "op"] {
            assert!(!shape.contains(&format!("\"{value}\"")), "{value}");
        }
    }
}
