//! Comments of one document as a source of events: configuration, position, address of an answer (`docs/spec/lark-inbox.md` 12).
//!
//! A position or an address longer than its limit is never made: what could not be read again must not be stored.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::fmt;

use serde_json::{Map, Value, json};

use super::config::{as_text, is_true, read_id, read_inbox_dir, read_profile};
use crate::contract::canonical;
use crate::contract::channel::ids::{DocumentId, Opaque, ProfileName, RouteKey};
use crate::contract::digest;
use crate::contract::error::ContractError;
use crate::contract::json as strict;
use crate::contract::parse::{Fields, Label};
use crate::contract::text;
use crate::contract::web_address::WebAddress;

/// The schema of the configuration.
pub const COMMENT_CONFIG: &str = "lark_document_comment_config_v0";
const EVENT_SCHEMA: &str = "lark_document_comment_event_v0";
const CURSOR_SCHEMA: &str = "lark_document_comment_cursor_v0";
const CURSOR_PREFIX: &str = "lark-comment-v0.";
const ADDRESS_PREFIX: &str = "lark-reply-v0.";
const MAX_ENCODED: usize = 2048;
const MAX_TEXT: usize = 1200;

/// Whose identity reads and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CommentIdentity {
    User,
    Bot,
}

impl CommentIdentity {
    /// Returns the configured text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Bot => "bot",
        }
    }
}

/// The configuration of one document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommentConfig {
    pub enabled: bool,
    pub source_ref: RouteKey,
    pub document: Opaque,
    pub identity: CommentIdentity,
    pub profile: ProfileName,
    /// Only messages that name the agent: nothing here can tell, so it is refused.
    pub addressed_only: bool,
    pub inbox_dir: String,
    pub page_size: u32,
    pub timeout_seconds: u64,
    pub responds: bool,
}

impl CommentConfig {
    /// Reads a configuration.
    pub fn parse(value: &Value) -> Result<Self, ContractError> {
        let root = Label::root();
        let mut fields = Fields::closed(&root, value)?;
        fields.constant("schema_version", COMMENT_CONFIG)?;
        let identities = [
            ("user", CommentIdentity::User),
            ("bot", CommentIdentity::Bot),
        ];
        let policies = [
            ("configured_source", false),
            ("incremental", false),
            ("addressed_only", true),
        ];
        let config = Self {
            enabled: is_true(fields.given("enabled")),
            source_ref: fields.with("source_ref", |at, value| {
                read_id(at, value, RouteKey::new, "must be a public name")
            })?,
            document: fields.with("document_url", read_document)?,
            identity: fields.choice("identity", &identities)?,
            profile: fields.with("profile", read_profile)?,
            addressed_only: fields.choice("capture_policy", &policies)?,
            inbox_dir: fields.with("inbox_dir", read_inbox_dir)?,
            page_size: u32::try_from(fields.integer_or("page_size", 1..=100, 50)?).unwrap_or(50),
            timeout_seconds: u64::try_from(fields.integer_or("timeout_seconds", 1..=300, 60)?)
                .unwrap_or(60),
            responds: read_response(&mut fields)?,
        };
        fields.finish(config)
    }
}

fn read_document(at: &Label, value: &Value) -> Result<Opaque, ContractError> {
    WebAddress::parse(as_text(at, value)?)
        .map(|address| Opaque::new(address.as_str()))
        .ok_or_else(|| ContractError::invalid(at, "must be an https address"))
}

fn read_response(fields: &mut Fields<'_>) -> Result<bool, ContractError> {
    let at = fields.at("response");
    // Closed: null is no object either.
    let Some(value) = fields.given("response") else {
        return Ok(false);
    };
    let mut response = Fields::closed(&at, value)?;
    let enabled = is_true(response.given("enabled"));
    response.finish(enabled)
}

/// Where the scan of a document stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CommentCursor {
    Comments {
        token: Opaque,
        cycle: u64,
    },
    Replies {
        card: CommentCard,
        token: Opaque,
        outer: Opaque,
        cycle: u64,
    },
}

/// One card whose replies are read or answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CommentCard {
    pub comment_id: DocumentId,
    pub file_token: DocumentId,
    pub file_type: DocumentId,
    pub can_reply: bool,
}

impl CommentCursor {
    /// The start of a first scan.
    pub fn start() -> Self {
        Self::Comments {
            token: Opaque::new(""),
            cycle: 0,
        }
    }

    /// Returns the row text: the encoded position inside one object; none when it is too long to be read again.
    pub fn to_row(&self) -> Option<String> {
        let value = match self {
            Self::Comments { token, cycle } => {
                json!({"schema_version": CURSOR_SCHEMA, "phase": "comments", "page_token": token.as_str(), "cycle": cycle})
            }
            Self::Replies {
                card,
                token,
                outer,
                cycle,
            } => json!({
                "schema_version": CURSOR_SCHEMA,
                "phase": "replies",
                "cycle": cycle,
                "comment_id": card.comment_id.as_str(),
                "file_token": card.file_token.as_str(),
                "file_type": card.file_type.as_str(),
                "reply_page_token": token.as_str(),
                "outer_page_token": outer.as_str(),
                "can_reply": card.can_reply,
            }),
        };
        let cursor = encode(CURSOR_PREFIX, &value)?;
        Some(json!({"schema_version": CURSOR_SCHEMA, "cursor": cursor}).to_string())
    }

    /// Reads a row; none when it is not what was written.
    pub fn from_row(row: &str) -> Option<Self> {
        let row = strict::parse_object(row.as_bytes()).ok()?;
        let value = decode(CURSOR_PREFIX, row.get("cursor")?.as_str()?)?;
        if value["schema_version"] != CURSOR_SCHEMA {
            return None;
        }
        let text = |name: &str| value[name].as_str().map(Opaque::new);
        let cycle = value["cycle"].as_u64()?;
        match value["phase"].as_str()? {
            "comments" => Some(Self::Comments {
                token: text("page_token")?,
                cycle,
            }),
            "replies" => Some(Self::Replies {
                card: card_of(&value)?,
                token: text("reply_page_token")?,
                outer: text("outer_page_token")?,
                cycle,
            }),
            _ => None,
        }
    }
}

fn card_of(value: &Value) -> Option<CommentCard> {
    let id = |name: &str| value[name].as_str().and_then(DocumentId::new);
    Some(CommentCard {
        comment_id: id("comment_id")?,
        file_token: id("file_token")?,
        file_type: id("file_type")?,
        can_reply: value["can_reply"].as_bool()?,
    })
}

impl CommentCard {
    /// Returns the address of an answer to this card; none when it is too long to be read again.
    pub fn address(&self, source_ref: &RouteKey) -> Option<String> {
        let value = json!({
            "source_ref": source_ref,
            "file_token": self.file_token.as_str(),
            "file_type": self.file_type.as_str(),
            "comment_id": self.comment_id.as_str(),
            "can_reply": self.can_reply,
        });
        encode(ADDRESS_PREFIX, &value)
    }

    /// Reads the address of an answer, if it belongs to this source.
    pub fn of_address(address: &str, source_ref: &RouteKey) -> Option<Self> {
        let value = decode(ADDRESS_PREFIX, address)?;
        (value["source_ref"] == source_ref.as_str()).then_some(())?;
        card_of(&value)
    }
}

fn encode(prefix: &str, value: &Value) -> Option<String> {
    let compact = canonical::compact(value).ok()?;
    let encoded = format!("{prefix}{}", URL_SAFE_NO_PAD.encode(compact));
    (encoded.len() <= MAX_ENCODED).then_some(encoded)
}

fn decode(prefix: &str, text: &str) -> Option<Value> {
    let encoded = text
        .strip_prefix(prefix)
        .filter(|_| text.len() <= MAX_ENCODED)?;
    let bytes = URL_SAFE_NO_PAD.decode(encoded).ok()?;
    strict::parse_object(&bytes).ok().map(Value::Object)
}

/// One comment or reply as it is stored.
#[derive(Clone, PartialEq, Eq)]
pub struct CommentEvent {
    pub event_id: String,
    pub create_time: String,
    pub row: String,
}

impl fmt::Debug for CommentEvent {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("<private comment>")
    }
}

/// What a provider shows of one reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShownReply {
    pub reply_id: DocumentId,
    pub text: Opaque,
    pub create_time: String,
    pub user_id: Option<Opaque>,
    /// The key a reply of ours carries.
    pub key: Option<String>,
}

impl CommentEvent {
    /// Builds the event of a reply with words; `address` is where it can be answered.
    pub fn of(
        source_ref: &RouteKey,
        (card, address): (&CommentCard, Option<&str>),
        reply: &ShownReply,
    ) -> Option<Self> {
        let content = text::prefix(&text::collapse(reply.text.as_str()), MAX_TEXT).to_owned();
        if content.is_empty() {
            return None;
        }
        let event_id = comment_event_id(
            source_ref.as_str(),
            card.comment_id.as_str(),
            reply.reply_id.as_str(),
        );
        let mut body = Map::new();
        body.insert("schema_version".into(), json!(EVENT_SCHEMA));
        body.insert("event_id".into(), json!(event_id));
        body.insert("source_ref".into(), json!(source_ref));
        body.insert("content".into(), json!(content));
        body.insert("create_time".into(), json!(reply.create_time));
        if let Some(user) = &reply.user_id {
            body.insert("sender_id".into(), json!(user.as_str()));
        }
        if let Some(address) = address {
            body.insert("reply_address".into(), json!(address));
        }
        Some(Self {
            event_id,
            create_time: reply.create_time.clone(),
            row: Value::Object(body).to_string(),
        })
    }
}

/// The stable id of one reply of a document.
fn comment_event_id(source: &str, comment: &str, reply: &str) -> String {
    format!(
        "lark-comment-{}",
        digest::nul_joined(&[source, comment, reply]).hex()
    )
}

/// Tells whether a text is the id of a comment event.
pub fn is_comment_event_id(text: &str) -> bool {
    text.strip_prefix("lark-comment-")
        .is_some_and(digest::is_hex_64)
}

/// The text of an answer; none when it is empty or too long.
pub fn reply_text(raw: &str) -> Option<String> {
    let folded = crate::contract::channel::outbound::normalize(raw);
    (!folded.is_empty() && !text::is_longer_than(&folded, MAX_TEXT)).then_some(folded)
}

/// An answer as it is sent: angle brackets would be read as markup.
pub fn escaped(text: &str) -> String {
    text.replace('<', "&lt;").replace('>', "&gt;")
}

/// The words of an answer that is shown as it was sent.
pub fn unescaped(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">")
}

/// The key of the one answer to an event.
pub fn reply_key(source_ref: &RouteKey, event_id: &str) -> String {
    format!(
        "loopx-{}",
        digest::nul_joined(&[source_ref.as_str(), event_id]).short(32)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn card() -> CommentCard {
        CommentCard {
            comment_id: DocumentId::new("c").expect("id"),
            file_token: DocumentId::new("f").expect("id"),
            file_type: DocumentId::new("docx").expect("id"),
            can_reply: true,
        }
    }

    #[test]
    fn positions_of_both_phases_read_back() {
        for cursor in [
            CommentCursor::start(),
            CommentCursor::Replies {
                card: card(),
                token: Opaque::new("r"),
                outer: Opaque::new("o"),
                cycle: 3,
            },
        ] {
            let row = cursor.to_row().expect("short");
            assert_eq!(CommentCursor::from_row(&row), Some(cursor));
        }
        assert_eq!(CommentCursor::from_row("{}"), None);
    }

    #[test]
    fn an_address_belongs_to_its_source() {
        let (own, other) = (
            RouteKey::new("doc").expect("key"),
            RouteKey::new("other").expect("key"),
        );
        let address = card().address(&own).expect("short");
        assert_eq!(CommentCard::of_address(&address, &own), Some(card()));
        assert_eq!(CommentCard::of_address(&address, &other), None);
    }

    #[test]
    fn every_position_that_is_written_can_be_read_and_a_longer_one_is_not_written() {
        for length in 1_300..1_600 {
            let cursor = CommentCursor::Comments {
                token: Opaque::new("t".repeat(length)),
                cycle: 7,
            };
            if let Some(row) = cursor.to_row() {
                assert_eq!(CommentCursor::from_row(&row), Some(cursor), "{length}");
            } else {
                assert!(length > 1_400, "{length}");
            }
        }
        let long = CommentCursor::Comments {
            token: Opaque::new("t".repeat(1_599)),
            cycle: 7,
        };
        assert_eq!(long.to_row(), None);
        let card = CommentCard {
            file_token: DocumentId::new("f".repeat(80)).expect("id"),
            ..card()
        };
        assert!(card.address(&RouteKey::new("doc").expect("key")).is_some());
    }

    #[test]
    fn debug_text_shows_no_word_of_a_comment() {
        let reply = ShownReply {
            reply_id: DocumentId::new("r").expect("id"),
            text: Opaque::new("secret"),
            create_time: String::new(),
            user_id: None,
            key: None,
        };
        let source = RouteKey::new("doc").expect("key");
        let event = CommentEvent::of(&source, (&card(), None), &reply).expect("words");
        assert_eq!(format!("{event:?}"), "<private comment>");
        assert!(!format!("{reply:?}").contains("secret"));
    }

    #[test]
    fn the_configuration_is_closed_and_needs_https() {
        let good = json!({"schema_version": COMMENT_CONFIG, "enabled": true, "source_ref": "doc", "document_url": "https://x.example/docx/a",
            "identity": "bot", "profile": "p", "capture_policy": "configured_source", "inbox_dir": ".loopx/inbox/doc", "response": {"enabled": true}});
        let config = CommentConfig::parse(&good).expect("valid");
        assert!(config.responds && config.page_size == 50 && config.timeout_seconds == 60);
        for (name, value) in [
            ("document_url", json!("http://x")),
            ("more", json!(1)),
            ("profile", json!("default")),
            ("timeout_seconds", json!(301)),
            ("response", json!({"enabled": true, "x": 1})),
            ("response", Value::Null),
            ("response", json!("on")),
        ] {
            let mut bad = good.clone();
            bad[name] = value;
            assert!(CommentConfig::parse(&bad).is_err(), "{name}");
        }
    }
}
