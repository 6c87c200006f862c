//! Situations of the recorded streams: what stands in the way, what comes, and what ends them.

use serde_json::{Value, json};

const MESSAGE: &str = "/streams/im.message.receive_v1";
const CARD: &str = "/streams/card.action.trigger";

/// The signal a recorded consumer got.
pub(super) fn signal_of(name: &str) -> Option<&'static str> {
    match name {
        "event-sigkill" => Some("KILL"),
        "event-sigterm-during-start" => Some("TERM"),
        _ => None,
    }
}

/// A message as the live stream flattens it: what has no value is left out.
fn message() -> Value {
    json!({"type": "im.message.receive_v1", "event_id": "ev_1", "timestamp": "1796000000001", "id": "om_1", "message_id": "om_1",
        "create_time": "1796000000001", "chat_id": "oc_peer", "chat_type": "group", "message_type": "text", "sender_id": "ou_ann",
        "sender_type": "user", "content": "hello"})
}

fn card() -> Value {
    json!({"type": "card.action.trigger", "event_id": "ev_1", "timestamp": "1796000000001000", "operator_id": "ou_ann", "message_id": "om_1",
        "chat_id": "oc_peer", "host": "im_message", "token": "c-1", "action_tag": "button", "action_value": "{}", "action_name": "n",
        "checked": false, "card_content": "{}"})
}

fn stream(events: &[Value], reason: &str) -> Value {
    json!({"events": events, "end": {"reason": reason}})
}

/// A reply that mentions somebody: the projection keeps its links.
fn mentioning() -> Value {
    let mut reply = message();
    reply["root_id"] = json!("om_0");
    reply["reply_to"] = json!("om_0");
    reply["mentions"] = json!([{"id": "ou_bob", "key": "@_user_1", "name": "Bob"}]);
    reply
}

/// What has to be true for a recorded call.
pub(super) fn situation(name: &str) -> Value {
    let one = [message()];
    match name {
        "event-callback-not-subscribed" => json!({CARD: {"refuse": {}}}),
        "event-not-subscribed" | "event-dry-run-blocked" => json!({MESSAGE: {"refuse": {}}}),
        "event-remote-active" => {
            json!({MESSAGE: {"refuse": {"lines": ["[event] remote connection check: online_instance_cnt=1"]}}})
        }
        "event-scope-missing" => json!({MESSAGE: {"refuse": {"kind": "authorization"}}}),
        "event-wrong-secret" => json!({MESSAGE: {"refuse": {"kind": "config"}}}),
        "event-brand-mismatch-fast" => json!({MESSAGE: {"refuse": {"kind": "internal"}}}),
        "event-orphan-blocks-start" | "event-status-orphan" => json!({"/bus": {"orphan": true}}),
        "event-sigkill" => json!({MESSAGE: {"events": [], "live": true}}),
        "event-sigterm-during-start" => {
            json!({MESSAGE: {"events": [], "live": true, "ready": false}})
        }
        "event-second-card-consumer" => {
            json!({"/consumers": [{"pid": std::process::id(), "event_key": "card.action.trigger", "profile": "peer-bot"}]})
        }
        "event-status-not-running" => json!({"/bus": {"running": false}}),
        "event-stdin-eof-unbounded" => json!({"/bus": {"running": true}}),
        "event-status-running" | "event-stop-refused" | "event-stop-forced" => {
            json!({"/consumers": [{"pid": 4202, "event_key": "im.message.receive_v1", "profile": "peer-bot"}]})
        }
        "event-card-actions" => json!({CARD: stream(&[card()], "signal")}),
        "event-backpressure"
        | "event-bus-killed"
        | "event-first-bootstrap-busy"
        | "event-late-connection"
        | "event-old-bus"
        | "event-reconnect"
        | "event-second-message-consumer"
        | "event-sigterm" => json!({MESSAGE: stream(&one, "signal")}),
        "event-brand-mismatch" | "event-bus-terminated" | "event-stdout-closed" => {
            json!({MESSAGE: stream(&[], "signal")})
        }
        "event-limit" => {
            json!({MESSAGE: stream(&[message(), message(), message(), message()], "timeout")})
        }
        "event-message-kinds-timeout" | "event-quiet" | "event-zombie-bus" => {
            json!({MESSAGE: stream(&one, "timeout")})
        }
        "event-jq-error" => {
            let mut number = message();
            number["content"] = json!("7");
            json!({MESSAGE: stream(&[message(), number], "timeout")})
        }
        "event-jq-select" => {
            let mut other = message();
            other["chat_id"] = json!("oc_other");
            json!({MESSAGE: stream(&[message(), other, message()], "timeout")})
        }
        "event-product-projection" => json!({MESSAGE: stream(&[mentioning()], "timeout")}),
        _ => json!({MESSAGE: stream(&[], "timeout")}),
    }
}

/// Why a consumer said it ended.
pub(super) fn reason(stderr: &str) -> Option<&str> {
    stderr.rsplit_once("(reason: ")?.1.split(')').next()
}
