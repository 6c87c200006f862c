//! The configuration of one inbox, `docs/spec/lark-inbox.md` 3.1. Only the literal `true` enables anything.

use std::fmt;

use serde::Serialize;
use serde_json::Value;

use crate::contract::channel::ids::{AppId, ChatId, MessageId, OpenId, ProfileName};
use crate::contract::error::ContractError;
use crate::contract::parse::{Fields, Label};
use crate::contract::text;

/// The schema of an inbox configuration.
pub const INBOX_CONFIG: &str = "lark_event_inbox_config_v0";
/// The family of its later versions.
pub const INBOX_CONFIG_FAMILY: &str = "lark_event_inbox_config_v";
/// Where every inbox lies inside a project.
const INBOX_ROOT: &str = ".loopx/inbox";

type Parsed<T> = Result<T, ContractError>;

/// Which messages of a chat an inbox is meant to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureScope {
    AddressedOnly,
    ConfiguredChatAll,
}

impl CaptureScope {
    /// Returns the configured text.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::AddressedOnly => "addressed_only",
            Self::ConfiguredChatAll => "configured_chat_all",
        }
    }

    /// Tells whether threads are captured whole.
    pub fn is_thread_complete(self) -> bool {
        self == Self::ConfiguredChatAll
    }
}

/// Where replies are put.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum PlacementPolicy {
    SourceThread,
    SourceContext,
}

/// How replies should read; advice for the writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum EditorialStyle {
    Concise,
    BulletPointsPreferred,
}

/// What happens to the received mark once work starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceivedPolicy {
    Transient,
    Retain,
}

/// Who the bot is, as far as addressing needs it.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct BotIdentity {
    pub app: Option<AppId>,
    pub open_id: Option<OpenId>,
    pub display_name: Option<String>,
}

impl fmt::Debug for BotIdentity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("<private>")
    }
}

/// The sending half of an inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplyConfig {
    pub profile: ProfileName,
    pub chat: ChatId,
    /// The profile of the person who looks whether a reviewer was notified already.
    pub reader: Option<ProfileName>,
    /// The owner wrote how messages should read.
    pub has_written_style: bool,
}

/// Advice about replies; present also where sending is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ReplyGuidance {
    pub placement_policy: PlacementPolicy,
    pub editorial_style: EditorialStyle,
}

/// The marks an inbox sets on source messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marks {
    pub received: Option<String>,
    pub processing: Option<String>,
    pub received_policy: ReceivedPolicy,
}

/// The configuration of one inbox.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InboxConfig {
    pub enabled: bool,
    /// Relative to the project; present when enabled.
    pub inbox_dir: Option<String>,
    pub capture_scope: CaptureScope,
    pub bot: BotIdentity,
    pub reply: Option<ReplyConfig>,
    pub guidance: ReplyGuidance,
    pub marks: Marks,
    /// The drain limit of material review, where that is on.
    pub material_review: Option<u32>,
}

impl InboxConfig {
    /// Reads a configuration.
    pub fn parse(value: &Value) -> Parsed<Self> {
        let root = Label::root();
        let mut fields = Fields::open(&root, value)?;
        fields.constant("schema_version", INBOX_CONFIG)?;
        let enabled = is_true(fields.given("enabled"));
        let inbox_dir = fields.optional("inbox_dir", read_inbox_dir)?;
        if enabled && inbox_dir.is_none() {
            return Err(ContractError::invalid(
                fields.at("inbox_dir"),
                "is required",
            ));
        }
        let capture_scope = fields
            .optional_choice("capture_scope", CAPTURE_SCOPES)?
            .unwrap_or(CaptureScope::AddressedOnly);
        // Checked and not kept: the connection decides what belongs to a topic.
        fields.optional("topic_root_message_id", |at, value| {
            read_id(at, value, MessageId::new, "must be a message id")
        })?;
        let reply = ReplyBlock::parse(&mut fields)?;
        let material_review = read_review(&mut fields, capture_scope)?;
        fields.finish(Self {
            enabled,
            inbox_dir,
            capture_scope,
            bot: reply.bot,
            reply: reply.sender,
            guidance: reply.guidance,
            marks: reply.marks,
            material_review,
        })
    }
}

const CAPTURE_SCOPES: &[(&str, CaptureScope)] = &[
    ("addressed_only", CaptureScope::AddressedOnly),
    ("configured_chat_all", CaptureScope::ConfiguredChatAll),
];
const PLACEMENTS: &[(&str, PlacementPolicy)] = &[
    ("source_thread", PlacementPolicy::SourceThread),
    ("source_context", PlacementPolicy::SourceContext),
];
const STYLES: &[(&str, EditorialStyle)] = &[
    ("concise", EditorialStyle::Concise),
    (
        "bullet_points_preferred",
        EditorialStyle::BulletPointsPreferred,
    ),
];
const RECEIVED_POLICIES: &[(&str, ReceivedPolicy)] = &[
    ("transient", ReceivedPolicy::Transient),
    ("retain", ReceivedPolicy::Retain),
];

struct ReplyBlock {
    bot: BotIdentity,
    sender: Option<ReplyConfig>,
    guidance: ReplyGuidance,
    marks: Marks,
}

impl ReplyBlock {
    fn parse(fields: &mut Fields<'_>) -> Parsed<Self> {
        let nothing = Value::Object(serde_json::Map::new());
        let at = fields.at("reply");
        let given = fields.some("reply");
        let mut reply = Fields::open(&at, given.unwrap_or(&nothing))?;
        let enabled = is_true(reply.given("enabled"));
        let profile = reply.optional("sender_profile", read_profile)?;
        reply.optional_choice("sender_identity", &[("bot", ())])?;
        if enabled {
            for name in [
                "sender_profile",
                "sender_identity",
                "bot_display_name",
                "chat_id",
            ] {
                reply.required(name)?;
            }
        }
        let bot = read_bot(&mut reply)?;
        let chat = reply.optional("chat_id", |at, value| {
            read_id(at, value, ChatId::new, "must be a chat id")
        })?;
        let reader = reply.optional("reader_profile", read_profile)?;
        let has_written_style = reply.some("editorial_style").is_some();
        let guidance = ReplyGuidance {
            placement_policy: reply
                .optional_choice("placement_policy", PLACEMENTS)?
                .unwrap_or(PlacementPolicy::SourceThread),
            editorial_style: reply
                .optional_choice("editorial_style", STYLES)?
                .unwrap_or(EditorialStyle::Concise),
        };
        let marks = read_marks(&mut reply, enabled)?;
        let sender = match (enabled, profile, chat) {
            (true, Some(profile), Some(chat)) => Some(ReplyConfig {
                profile,
                chat,
                reader,
                has_written_style,
            }),
            _ => None,
        };
        reply.finish(Self {
            bot,
            sender,
            guidance,
            marks,
        })
    }
}

fn read_bot(reply: &mut Fields<'_>) -> Parsed<BotIdentity> {
    Ok(BotIdentity {
        app: reply.optional("bot_app_id", |at, value| {
            read_id(at, value, AppId::new, "must be an application id")
        })?,
        open_id: reply.optional("bot_open_id", |at, value| {
            read_id(at, value, OpenId::new, "must be an open id")
        })?,
        display_name: reply.optional("bot_display_name", |at, value| {
            let name = text::collapse(as_text(at, value)?);
            if name.is_empty() {
                return Err(ContractError::invalid(at, "must not be empty"));
            }
            Ok(text::prefix(&name, 100).to_owned())
        })?,
    })
}

fn read_marks(reply: &mut Fields<'_>, enabled: bool) -> Parsed<Marks> {
    let received_policy = reply
        .optional_choice("received_reaction_policy", RECEIVED_POLICIES)?
        .unwrap_or(ReceivedPolicy::Transient);
    let received = match reply.optional("received_reaction_emoji", read_emoji)? {
        Some(given) => given,
        None => enabled.then(|| "Get".to_owned()),
    };
    let processing = reply
        .optional("processing_reaction_emoji", read_emoji)?
        .flatten();
    let at = reply.at("processing_reaction_emoji");
    if !enabled && (received.is_some() || processing.is_some()) {
        return Err(ContractError::invalid(at, "needs an enabled reply block"));
    }
    if processing.is_some() && (received.is_none() || received == processing) {
        let reason = "needs a received emoji and must differ from it";
        return Err(ContractError::invalid(at, reason));
    }
    Ok(Marks {
        received,
        processing,
        received_policy,
    })
}

fn read_review(fields: &mut Fields<'_>, scope: CaptureScope) -> Parsed<Option<u32>> {
    let at = fields.at("material_review");
    let Some(value) = fields.some("material_review") else {
        return Ok(None);
    };
    let mut review = Fields::open(&at, value)?;
    let enabled = is_true(review.given("enabled"));
    let limit = review.integer_or("drain_limit", 1..=100, 20)?;
    if enabled && !scope.is_thread_complete() {
        let reason = "needs capture_scope configured_chat_all";
        return Err(ContractError::invalid(review.at("enabled"), reason));
    }
    review.finish(enabled.then(|| u32::try_from(limit).unwrap_or(20)))
}

/// Tells whether a switch is the literal `true`.
pub(super) fn is_true(value: Option<&Value>) -> bool {
    value == Some(&Value::Bool(true))
}

pub(super) fn as_text<'a>(at: &Label, value: &'a Value) -> Parsed<&'a str> {
    value
        .as_str()
        .ok_or_else(|| ContractError::invalid(at, "must be a text"))
}

/// Reads an identity; the reason never repeats the value.
pub(in crate::contract) fn read_id<T>(
    at: &Label,
    value: &Value,
    new: fn(String) -> Option<T>,
    reason: &'static str,
) -> Parsed<T> {
    new(as_text(at, value)?.to_owned()).ok_or_else(|| ContractError::invalid(at, reason))
}

pub(super) fn read_profile(at: &Label, value: &Value) -> Parsed<ProfileName> {
    let reason = "must be a profile name and not the default one";
    read_id(at, value, ProfileName::new, reason)
}

/// An emoji name; an empty one switches the mark off.
fn read_emoji(at: &Label, value: &Value) -> Parsed<Option<String>> {
    let name = as_text(at, value)?;
    if name.is_empty() {
        return Ok(None);
    }
    let valid = name.len() <= 64
        && name
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    match valid {
        true => Ok(Some(name.to_owned())),
        false => Err(ContractError::invalid(
            at,
            "must be an emoji name: letters, digits or _, at most 64",
        )),
    }
}

/// An inbox folder: relative, below the inbox root, without a step up.
pub(super) fn read_inbox_dir(at: &Label, value: &Value) -> Parsed<String> {
    let path = read_relative(at, value)?;
    if path.starts_with(INBOX_ROOT) {
        return Ok(path);
    }
    Err(ContractError::invalid(at, "must start with .loopx/inbox"))
}

/// A path inside the project, in POSIX form, without a step up.
pub(in crate::contract) fn read_relative(at: &Label, value: &Value) -> Parsed<String> {
    let path = as_text(at, value)?;
    let plain = !path.is_empty()
        && !path.starts_with('/')
        && !path.contains(['\\', '\0', '\n', '\r'])
        && path.split('/').all(|part| part != "..");
    match plain {
        true => Ok(path.trim_end_matches('/').to_owned()),
        false => Err(ContractError::invalid(
            at,
            "must be a relative path inside the project",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn full() -> Value {
        json!({"schema_version": INBOX_CONFIG, "enabled": true, "inbox_dir": ".loopx/inbox/a", "reply": {
            "enabled": true, "sender_profile": "bot", "sender_identity": "bot", "bot_display_name": " A  Bot ", "chat_id": "oc_a"}})
    }

    #[test]
    fn defaults_are_those_of_the_contract() {
        let config = InboxConfig::parse(&full()).expect("valid");
        assert_eq!(config.capture_scope, CaptureScope::AddressedOnly);
        assert_eq!(config.marks.received.as_deref(), Some("Get"));
        assert_eq!(config.bot.display_name.as_deref(), Some("A Bot"));
        assert_eq!(config.material_review, None);
    }

    #[test]
    fn only_the_literal_true_enables() {
        let mut value = full();
        value["enabled"] = json!("true");
        assert!(!InboxConfig::parse(&value).expect("valid").enabled);
    }

    #[test]
    fn violations_name_their_field_and_not_the_value() {
        let cases = [
            ("/inbox_dir", json!("/abs"), "inbox_dir"),
            ("/inbox_dir", json!(".loopx/inbox/../x"), "inbox_dir"),
            ("/inbox_dir", json!("elsewhere"), "inbox_dir"),
            (
                "/reply/sender_profile",
                json!("default"),
                "reply.sender_profile",
            ),
            (
                "/reply/sender_identity",
                json!("user"),
                "reply.sender_identity",
            ),
            ("/reply/chat_id", json!("secret"), "reply.chat_id"),
        ];
        for (pointer, bad, at) in cases {
            let mut value = full();
            *value.pointer_mut(pointer).expect("present") = bad.clone();
            let error = InboxConfig::parse(&value).expect_err("refused");
            assert_eq!(error.at, at);
            assert!(!error.to_string().contains("secret"));
        }
    }

    #[test]
    fn a_processing_mark_needs_another_received_mark() {
        for received in ["", "OnIt"] {
            let mut value = full();
            value["reply"]["received_reaction_emoji"] = json!(received);
            value["reply"]["processing_reaction_emoji"] = json!("OnIt");
            assert!(InboxConfig::parse(&value).is_err());
        }
        let mut value = full();
        value["reply"]["received_reaction_emoji"] = json!("");
        assert_eq!(
            InboxConfig::parse(&value).expect("valid").marks.received,
            None
        );
    }

    #[test]
    fn material_review_needs_the_whole_chat() {
        let mut value = full();
        value["material_review"] = json!({"enabled": true});
        assert!(InboxConfig::parse(&value).is_err());
        value["capture_scope"] = json!("configured_chat_all");
        assert_eq!(
            InboxConfig::parse(&value).expect("valid").material_review,
            Some(20)
        );
    }
}
