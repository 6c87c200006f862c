//! The status file of the callback listener. Counters and evidence go on from run to run; readiness is of now.

use serde_json::{Value, json};

use super::words;
use crate::contract::time::Timestamp;

/// What the listener says of itself.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListenerStatus {
    pub active: bool,
    pub ready: bool,
    /// A callback was once verified down to its result card; no later loss takes that back.
    pub delivery_verified: bool,
    pub verified: u64,
    pub failed: u64,
    /// The counters of recovery, which no collector of this version adds to.
    recovery: [u64; 4],
    pub last_verified_at: Option<Timestamp>,
    pub last_failure: Option<ListenerFailure>,
    pub returncode: Option<i32>,
}

/// The last callback that was refused.
#[derive(Clone, Debug, PartialEq)]
pub struct ListenerFailure {
    pub code: String,
    pub stage: String,
    pub shape: Value,
}

const RECOVERY: [&str; 4] = [
    "recovered_result_count",
    "result_delivery_failure_count",
    "recovered_simulation_count",
    "simulation_recovery_failure_count",
];

impl ListenerStatus {
    /// Goes on where an earlier run ended.
    pub fn resumed(earlier: Option<&Value>) -> Self {
        let Some(earlier) = earlier else {
            return Self::default();
        };
        let count = |name: &str| earlier[name].as_u64().unwrap_or(0);
        let word = |name: &str| {
            let plain =
                |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
            let text = earlier[name].as_str()?;
            (text.len() <= 80 && text.bytes().all(plain)).then(|| text.to_owned())
        };
        let failure = word("last_failure_code").zip(word("last_failure_stage"));
        Self {
            active: false,
            ready: false,
            delivery_verified: earlier["callback_delivery_verified"] == Value::Bool(true),
            verified: count("verified_callback_count"),
            failed: count("failed_callback_count"),
            recovery: RECOVERY.map(count),
            last_verified_at: earlier["last_verified_callback_at"]
                .as_str()
                .and_then(Timestamp::parse),
            last_failure: failure.map(|(code, stage)| ListenerFailure {
                code,
                stage,
                shape: kept_shape(&earlier["last_failure_event_shape"]),
            }),
            returncode: None,
        }
    }

    /// Returns the document.
    pub fn to_value(&self, at: Timestamp) -> Value {
        let failure = self.last_failure.as_ref();
        let mut status = json!({
            "schema_version": words::LISTENER_STATUS,
            "listener_active": self.active,
            "listener_ready": self.ready,
            "callback_delivery_verified": self.delivery_verified,
            "verified_callback_count": self.verified,
            "failed_callback_count": self.failed,
        });
        for (name, count) in RECOVERY.iter().zip(self.recovery) {
            status[*name] = json!(count);
        }
        let rest = json!({
            "last_verified_callback_at": self.last_verified_at,
            "last_failure_kind": failure.map(|_| "callback_rejected"),
            "last_failure_code": failure.map(|failure| &failure.code),
            "last_failure_stage": failure.map(|failure| &failure.stage),
            "last_failure_event_shape": failure.map(|failure| &failure.shape),
            "consumer_returncode": self.returncode,
            "updated_at": at,
            "private_content_returned": false,
        });
        if let (Value::Object(status), Value::Object(rest)) = (&mut status, rest) {
            status.extend(rest);
        }
        status
    }
}

/// A shape is numbers, flags and one digest; anything else in a file written by hand is left out.
fn kept_shape(shape: &Value) -> Value {
    let Some(shape) = shape.as_object() else {
        return Value::Null;
    };
    let is_digest =
        |text: &str| text.len() == 16 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    let is_kept = |name: &str, value: &Value| match value {
        Value::Bool(_) => name.starts_with("has_"),
        Value::Number(_) => name == "field_count",
        Value::String(text) => name == "shape_digest" && is_digest(text),
        _ => false,
    };
    let kept = shape
        .iter()
        .filter(|(name, value)| name.len() <= 40 && is_kept(name, value));
    kept.map(|(name, value)| (name.clone(), value.clone()))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_and_evidence_go_on_and_readiness_does_not() {
        let at = Timestamp::from_unix(1_789_000_000).expect("an instant");
        let status = ListenerStatus {
            active: true,
            ready: true,
            delivery_verified: true,
            verified: 1,
            failed: 2,
            recovery: [3, 4, 5, 6],
            last_verified_at: Some(at),
            last_failure: Some(ListenerFailure {
                code: "callback_proposal_not_found".to_owned(),
                stage: "handle_callback".to_owned(),
                shape: json!({"field_count": 3, "has_token": true, "shape_digest": "0123456789abcdef"}),
            }),
            returncode: Some(0),
        };
        let resumed = ListenerStatus::resumed(Some(&status.to_value(at)));
        let expected = ListenerStatus {
            active: false,
            ready: false,
            returncode: None,
            ..status
        };
        assert_eq!(resumed, expected);
        assert_eq!(resumed.to_value(at)["callback_delivery_verified"], true);
    }

    #[test]
    fn a_shape_of_another_hand_is_not_shown() {
        let kept = kept_shape(
            &json!({"has_token": true, "oc_private": true, "shape_digest": "words", "field_count": "x"}),
        );
        assert_eq!(kept, json!({"has_token": true}));
    }
}
