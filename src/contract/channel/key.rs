//! The identity of one intended message: what must be equal for two sends to be the same one.

use serde_json::{Value, json};

use super::body::{ContentFormat, OutboundBody};
use crate::contract::digest;

/// Where a message is put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    ChatRoot,
    SourceThread,
}

impl Placement {
    const fn as_str(self) -> &'static str {
        match self {
            Self::ChatRoot => "chat_root",
            Self::SourceThread => "source_thread",
        }
    }
}

/// The identity of one intended message: everything that must be equal for two sends to be the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboundKey(String);

impl OutboundKey {
    /// Derives the key of words at a place.
    pub fn derive(source: Option<&str>, placement: Placement, body: &OutboundBody) -> Self {
        Self::of(&payload(source, placement, body))
    }

    /// Derives the key of a notification about one address: apart from a plain message of the same words, which may be meant again.
    pub fn about(address: &str, body: &OutboundBody) -> Self {
        let mut payload = payload(None, Placement::ChatRoot, body);
        payload["notification"] = json!(address);
        Self::of(&payload)
    }

    fn of(payload: &Value) -> Self {
        // A payload of texts always has a canonical form.
        Self(digest::digest_hex(payload).unwrap_or_default())
    }

    /// Returns what a packet shows.
    pub fn public(&self) -> String {
        format!("sha256:{}", self.0)
    }

    /// Returns the key the provider joins repeats by.
    pub fn provider_key(&self) -> String {
        format!("loopx-{}", self.attempt())
    }

    /// Returns the 32 digits that name the attempt.
    pub fn attempt(&self) -> &str {
        self.0.get(..32).unwrap_or(&self.0)
    }
}

fn payload(source: Option<&str>, placement: Placement, body: &OutboundBody) -> Value {
    let mut payload = json!({
        "message_id": source.unwrap_or(""),
        "placement": placement.as_str(),
        "text": body.as_str(),
    });
    if body.format() == ContentFormat::Markdown {
        payload["content_format"] = json!(body.format());
    }
    payload
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::channel::outbound::LengthRule;

    fn body(raw: &str, format: ContentFormat) -> OutboundBody {
        OutboundBody::parse(raw, format, LengthRule::ChatRoot)
            .expect("valid")
            .0
    }

    fn hex(payload: &str) -> String {
        digest::content_digest(payload.as_bytes()).hex()
    }

    #[test]
    fn the_key_binds_source_placement_and_text() {
        let text = body("plain words", ContentFormat::Text);
        let key = OutboundKey::derive(None, Placement::ChatRoot, &text);
        let hex = hex("{\"message_id\":\"\",\"placement\":\"chat_root\",\"text\":\"plain words\"}");
        assert_eq!(key.public(), format!("sha256:{hex}"));
        assert_eq!(key.provider_key(), format!("loopx-{}", &hex[..32]));
        assert_ne!(
            key,
            OutboundKey::derive(Some("om_1"), Placement::SourceThread, &text)
        );
    }

    #[test]
    fn a_post_and_a_notification_have_keys_of_their_own() {
        let post = body("plain words", ContentFormat::Markdown);
        let key = OutboundKey::derive(None, Placement::ChatRoot, &post);
        let hex = hex(
            "{\"content_format\":\"markdown\",\"message_id\":\"\",\"placement\":\"chat_root\",\"text\":\"plain words\"}",
        );
        assert_eq!(key.public(), format!("sha256:{hex}"));
        let text = body("plain words", ContentFormat::Text);
        let plain = OutboundKey::derive(None, Placement::ChatRoot, &text);
        let about = OutboundKey::about("https://host.example/1", &text);
        assert!(about != plain && about != OutboundKey::about("https://host.example/2", &text));
    }
}
