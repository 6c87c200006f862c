//! What one command prints: a packet, or a refusal in the same place.

use serde_json::{Map, Value, json};

use super::error::{ContractError, ErrorCode};

/// A refusal ready to be printed.
///
/// The message is `place + fault` with a sentence on what to do next; neither holds a path, a
/// private id or provider text.
#[derive(Debug, Clone, PartialEq)]
pub struct Refusal {
    /// The machine code.
    pub code: ErrorCode,
    /// The sentence for people.
    pub message: String,
    /// Further members of the packet, such as `registry_revision`.
    pub details: Map<String, Value>,
}

impl Refusal {
    /// Refuses with a code and a sentence.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        Self {
            code,
            message: message.into(),
            details: Map::new(),
        }
    }

    /// Adds a member to the packet.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.details.insert(name.to_owned(), value.into());
        self
    }

    /// Returns the packet. `schema_version` is the family's error packet, `command` the subcommand.
    pub fn packet(&self, schema_version: &str, command: &str) -> Value {
        let mut packet = Map::new();
        packet.insert("ok".to_owned(), json!(false));
        packet.insert("schema_version".to_owned(), json!(schema_version));
        packet.insert("command".to_owned(), json!(command));
        packet.insert("error".to_owned(), json!(self.message));
        packet.insert("error_code".to_owned(), json!(self.code));
        for (name, value) in &self.details {
            packet.insert(name.clone(), value.clone());
        }
        Value::Object(packet)
    }
}

/// Gives the packet of a refusal its machine code, where a member of its own says it already under another name.
pub fn coded(mut packet: Value) -> Value {
    if packet.get("ok") != Some(&Value::Bool(false)) || packet["error_code"].is_string() {
        return packet;
    }
    let code = ["blocker", "failure_kind", "status"]
        .iter()
        .find_map(|name| packet.get(*name).filter(|value| value.is_string()));
    if let Some(code) = code.cloned() {
        packet["error_code"] = code;
    }
    packet
}

impl From<ContractError> for Refusal {
    fn from(error: ContractError) -> Self {
        let next = match error.code {
            ErrorCode::DerivedValueMismatch => "; leave it out or take the value this input gives",
            _ => "",
        };
        Self::new(error.code, format!("{error}{next}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_is_coded_by_its_blocker_then_by_its_status() {
        let code = |packet: Value| coded(packet)["error_code"].clone();
        assert_eq!(
            code(json!({"ok": false, "status": "gate_required", "blocker": "b"})),
            "b"
        );
        assert_eq!(code(json!({"ok": false, "status": "disabled"})), "disabled");
        assert_eq!(
            code(json!({"ok": false, "status": "s", "error_code": "own"})),
            "own"
        );
        assert_eq!(code(json!({"ok": true, "status": "s"})), Value::Null);
    }

    #[test]
    fn a_refusal_packet_keeps_its_member_order() {
        let refusal = Refusal::from(ContractError::invalid("a.b", "is required")).with("more", 1);
        let packet = refusal.packet("periodic_report_error_v0", "render");
        let names: Vec<&String> = packet.as_object().expect("an object").keys().collect();
        assert_eq!(
            names,
            [
                "ok",
                "schema_version",
                "command",
                "error",
                "error_code",
                "more"
            ]
        );
        assert_eq!(packet["error"], "a.b is required");
    }
}
