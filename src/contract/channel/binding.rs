//! The goal channel bindings of a project, as far as a live event needs them: which connection of which goal a chat or topic belongs to
//! (`docs/spec/goal-channel.md` 3.2 and 16.1). Everything here is private.

use serde_json::Value;

use super::ids::{AppId, ChatId, MessageId, OpenId};
use crate::contract::error::ContractError;
use crate::contract::ids::{AgentId, GoalId};
use crate::contract::inbox::collector::PathRef;
use crate::contract::inbox::config::{CaptureScope, read_id, read_relative};
use crate::contract::parse::{Fields, Label};

/// The schema of the file.
pub const BINDINGS_SCHEMA: &str = "loopx_goal_channel_lark_binding_v0";
/// The family of its later versions.
pub const BINDINGS_FAMILY: &str = "loopx_goal_channel_lark_binding_v";
const SET_SCHEMA: &str = "loopx_goal_channel_connection_set_v0";

type Parsed<T> = Result<T, ContractError>;

/// How what arrives reaches the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ingress {
    AsyncInbox,
    /// Another way, which is not the collector's.
    Elsewhere,
}

/// How a connection is routed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Routing {
    pub scope: CaptureScope,
    pub ingress: Ingress,
    pub inbox_config: Option<PathRef>,
    /// It belongs to the machine's manager, which has sessions of its own.
    pub is_manager: bool,
}

/// One connection of a goal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Connection {
    pub goal: GoalId,
    pub enabled: bool,
    pub agent: Option<AgentId>,
    /// The target that holds chat and identity, where they are not here.
    pub target: Option<String>,
    pub chat: Option<ChatId>,
    pub app: Option<AppId>,
    pub open_id: Option<OpenId>,
    /// None is the whole chat.
    pub topic: Option<MessageId>,
    /// A notification lane has none.
    pub routing: Option<Routing>,
}

/// Reads every connection of a binding file.
pub fn read_bindings(value: &Value) -> Parsed<Vec<Connection>> {
    let root = Label::root();
    let mut fields = Fields::closed(&root, value)?;
    fields.constant("schema_version", BINDINGS_SCHEMA)?;
    let at = fields.at("bindings");
    let Some(goals) = fields.required("bindings")?.as_object() else {
        return Err(ContractError::invalid(at, "must be an object"));
    };
    let mut connections = Vec::new();
    for (name, entry) in goals {
        let at = at.field("goal");
        let goal = GoalId::new(name.as_str())
            .ok_or_else(|| ContractError::invalid(&at, "must be named by a goal id"))?;
        read_entry(&at, entry, &goal, &mut connections)?;
    }
    fields.finish(connections)
}

fn read_entry(at: &Label, value: &Value, goal: &GoalId, into: &mut Vec<Connection>) -> Parsed<()> {
    if value.get("schema_version").and_then(Value::as_str) != Some(SET_SCHEMA) {
        into.push(read_connection(at, value, goal)?);
        return Ok(());
    }
    let mut set = Fields::closed(at, value)?;
    set.constant("schema_version", SET_SCHEMA)?;
    set.optional_text("default_connection_id", 200)?;
    let at = set.at("connections");
    let Some(rows) = set.required("connections")?.as_object() else {
        return Err(ContractError::invalid(at, "must be an object"));
    };
    for row in rows.values() {
        into.push(read_connection(&at.field("connection"), row, goal)?);
    }
    set.finish(())
}

/// What belongs to other commands: looked at by them alone.
const OTHERS: [&str; 7] = [
    "kanban",
    "automation",
    "receipts",
    "session_id",
    "connector",
    "connection_id",
    "goal_id",
];

fn read_connection(at: &Label, value: &Value, goal: &GoalId) -> Parsed<Connection> {
    let mut fields = Fields::closed(at, value)?;
    fields.constant_if_given("schema_version", BINDINGS_SCHEMA)?;
    fields.constant_if_given("provider", super::target::PROVIDER)?;
    for name in OTHERS {
        fields.given(name);
    }
    let (app, open_id) = fields
        .optional("identity", read_identity)?
        .unwrap_or_default();
    let connection = Connection {
        goal: goal.clone(),
        enabled: fields.boolean_or("enabled", false)?,
        agent: fields.optional("agent_id", |at, value| {
            read_id(
                at,
                value,
                |text| AgentId::normalize(&text),
                "must be an agent id",
            )
        })?,
        target: fields.optional_text("target_ref", 64)?,
        chat: fields.optional("channel", read_channel)?.flatten(),
        app,
        open_id,
        topic: fields.optional("topic", read_topic)?.flatten(),
        routing: fields.optional("routing", read_routing)?,
    };
    fields.finish(connection)
}

fn read_channel(at: &Label, value: &Value) -> Parsed<Option<ChatId>> {
    let mut fields = Fields::closed(at, value)?;
    for name in ["chat_name", "pinned_message_id"] {
        fields.given(name);
    }
    let chat = fields.optional("chat_id", read_chat)?;
    fields.finish(chat)
}

fn read_chat(at: &Label, value: &Value) -> Parsed<ChatId> {
    read_id(at, value, ChatId::new, "must be a chat id")
}

fn read_identity(at: &Label, value: &Value) -> Parsed<(Option<AppId>, Option<OpenId>)> {
    let mut fields = Fields::closed(at, value)?;
    for name in [
        "mode",
        "sender_profile",
        "sender_identity",
        "bot_display_name",
        "cli_bin",
    ] {
        fields.given(name);
    }
    let app = fields.optional("bot_app_id", |at, value| {
        read_id(at, value, AppId::new, "must be an application id")
    })?;
    let open_id = fields.optional("bot_open_id", |at, value| {
        read_id(at, value, OpenId::new, "must be an open id")
    })?;
    fields.finish((app, open_id))
}

fn read_topic(at: &Label, value: &Value) -> Parsed<Option<MessageId>> {
    let mut fields = Fields::closed(at, value)?;
    for name in ["name", "created_automatically"] {
        fields.given(name);
    }
    let root = fields.optional("root_message_id", |at, value| {
        read_id(at, value, MessageId::new, "must be a message id")
    })?;
    fields.finish(root)
}

fn read_routing(at: &Label, value: &Value) -> Parsed<Routing> {
    let mut fields = Fields::closed(at, value)?;
    for name in [
        "incoming_mode",
        "executor_endpoint_id",
        "executor_endpoint_source",
    ] {
        fields.given(name);
    }
    fields.constant_if_given("reply_mode", "topic_reply")?;
    let scopes = [
        ("addressed_only", CaptureScope::AddressedOnly),
        ("configured_chat_all", CaptureScope::ConfiguredChatAll),
    ];
    let ways = [
        ("async_inbox", Ingress::AsyncInbox),
        ("session_queue", Ingress::Elsewhere),
        ("live_steering", Ingress::Elsewhere),
        ("direct_session", Ingress::Elsewhere),
    ];
    let kinds = [("goal", false), ("manager", true)];
    let routing = Routing {
        scope: fields
            .optional_choice("capture_scope", &scopes)?
            .unwrap_or(CaptureScope::AddressedOnly),
        ingress: fields.choice("ingress_mode", &ways)?,
        inbox_config: fields
            .optional("inbox_config_ref", read_relative)?
            .map(PathRef),
        is_manager: fields
            .optional_choice("conversation_kind", &kinds)?
            .unwrap_or(false),
    };
    fields.finish(routing)
}

/// Fills in chat and identity of a named target; false when the target is not usable.
pub fn resolve(connection: &mut Connection, target: &Value) -> bool {
    let word = |part: &str, name: &str| target[part][name].as_str().map(str::to_owned);
    connection.chat = word("channel", "chat_id").and_then(ChatId::new);
    connection.app = word("identity", "bot_app_id").and_then(AppId::new);
    connection.open_id = word("identity", "bot_open_id").and_then(OpenId::new);
    target["enabled"] == Value::Bool(true) && connection.chat.is_some() && connection.app.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn binding() -> Value {
        json!({"schema_version": BINDINGS_SCHEMA, "goal_id": "g", "provider": "lark", "enabled": true, "agent_id": "a",
            "channel": {"chat_id": "oc_a"}, "identity": {"bot_app_id": "cli_a", "sender_identity": "bot"},
            "topic": {"name": "n", "root_message_id": "om_r", "created_automatically": true},
            "routing": {"ingress_mode": "async_inbox", "inbox_config_ref": ".loopx/config/x.json", "reply_mode": "topic_reply"}})
    }

    fn file(entry: &Value) -> Value {
        json!({"schema_version": BINDINGS_SCHEMA, "bindings": {"g": entry}})
    }

    #[test]
    fn a_plain_binding_and_a_set_are_read_alike() {
        let plain = read_bindings(&file(&binding())).expect("valid");
        let set = json!({"schema_version": SET_SCHEMA, "default_connection_id": "lark_1", "connections": {"lark_1": binding()}});
        assert_eq!(read_bindings(&file(&set)), Ok(plain.clone()));
        let routing = plain[0].routing.as_ref().expect("routed");
        assert_eq!(
            (routing.scope, routing.ingress),
            (CaptureScope::AddressedOnly, Ingress::AsyncInbox)
        );
        assert!(plain[0].topic.is_some());
    }

    #[test]
    fn unknown_fields_and_broken_values_are_refused() {
        for (name, value) in [
            ("extra", json!(1)),
            ("enabled", json!("yes")),
            ("channel", json!({"chat_id": "a"})),
            ("topic", json!({"root_message_id": "om_r", "more": 1})),
            ("routing", json!({"ingress_mode": "push"})),
            ("provider", json!("other")),
        ] {
            let mut entry = binding();
            entry[name] = value;
            assert!(read_bindings(&file(&entry)).is_err(), "{name}");
        }
        assert!(
            read_bindings(&json!({"schema_version": BINDINGS_SCHEMA, "bindings": []})).is_err()
        );
    }
}
