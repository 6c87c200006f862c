//! The configuration of a collector: one chat (v0) or up to 50 (v1) mapped to inboxes, `docs/spec/lark-inbox.md` 3.2.

use std::fmt;

use serde_json::Value;

use super::config::{is_true, read_id, read_profile, read_relative};
use crate::contract::channel::ids::{ChatId, ProfileName, RouteKey};
use crate::contract::error::ContractError;
use crate::contract::parse::{Fields, Label};

/// The schema with one chat.
pub const COLLECTOR_V0: &str = "lark_event_collector_config_v0";
/// The schema with routes.
pub const COLLECTOR_V1: &str = "lark_event_collector_config_v1";
/// The family of both and of later ones.
pub const COLLECTOR_FAMILY: &str = "lark_event_collector_config_v";
/// The stream of messages.
pub const MESSAGE_KEY: &str = "im.message.receive_v1";
/// The stream of card clicks.
pub const CALLBACK_KEY: &str = "card.action.trigger";
/// The most routes of one collector.
pub const MAX_ROUTES: usize = 50;

type Parsed<T> = Result<T, ContractError>;

/// What keeps the collector running.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Supervisor {
    Launchd,
    Systemd,
}

/// How long one consumer is asked to run: the text of the configuration and its seconds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConsumeTimeout {
    pub text: String,
    pub seconds: u64,
}

/// One configured route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RouteRef {
    pub key: RouteKey,
    pub chat: ChatId,
    /// The inbox configuration, relative to the project.
    pub config: PathRef,
}

/// A path that belongs to the owner alone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PathRef(pub String);

impl fmt::Debug for PathRef {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("<private>")
    }
}

/// The switches of the sync at turn start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TurnStartSync {
    pub initial_lookback_seconds: i64,
    pub overlap_seconds: i64,
    pub page_size: u32,
}

/// The configuration of a collector.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CollectorConfig {
    pub has_routes: bool,
    pub enabled: bool,
    pub service_name: String,
    pub profile: Option<ProfileName>,
    pub supervisor: Supervisor,
    pub consume_timeout: ConsumeTimeout,
    /// A bare program name.
    pub program: String,
    pub routes: Vec<RouteRef>,
    pub turn_start_sync: Option<TurnStartSync>,
    pub operation_callbacks: bool,
}

/// Tells whether a document calls itself a collector configuration of any version.
pub fn is_collector(value: &Value) -> bool {
    let schema = value.get("schema_version").and_then(Value::as_str);
    schema.is_some_and(|schema| schema.starts_with(COLLECTOR_FAMILY))
}

impl CollectorConfig {
    /// Reads a configuration of either version.
    pub fn parse(value: &Value) -> Parsed<Self> {
        let root = Label::root();
        let mut fields = Fields::open(&root, value)?;
        let versions = [(COLLECTOR_V0, false), (COLLECTOR_V1, true)];
        let has_routes = fields.choice("schema_version", &versions)?;
        let routes = match has_routes {
            true => read_routes(&mut fields)?,
            false => vec![read_single(&mut fields)?],
        };
        let config = Self {
            has_routes,
            enabled: is_true(fields.given("enabled")),
            service_name: read_service_name(&mut fields)?,
            profile: fields.optional("profile", read_profile)?,
            supervisor: fields.choice("supervisor", SUPERVISORS)?,
            consume_timeout: fields.optional("consume_timeout", read_timeout)?.unwrap_or(
                ConsumeTimeout {
                    text: "30m".to_owned(),
                    seconds: 1800,
                },
            ),
            program: read_program(&mut fields)?,
            routes,
            turn_start_sync: read_turn_start(&mut fields)?,
            operation_callbacks: read_callbacks(&mut fields, has_routes)?,
        };
        fields.constant_if_given("event_key", MESSAGE_KEY)?;
        fields.constant_if_given("identity", "bot")?;
        fields.finish(config)
    }

    /// Finds a route by its key.
    pub fn route(&self, key: &RouteKey) -> Option<&RouteRef> {
        self.routes.iter().find(|route| &route.key == key)
    }
}

const SUPERVISORS: &[(&str, Supervisor)] = &[
    ("launchd", Supervisor::Launchd),
    ("systemd", Supervisor::Systemd),
];

fn read_single(fields: &mut Fields<'_>) -> Parsed<RouteRef> {
    Ok(RouteRef {
        // Proof: the literal has the form of a key.
        key: RouteKey::new("default")
            .ok_or_else(|| ContractError::invalid("route_key", "is required"))?,
        chat: fields.with("chat_id", read_chat)?,
        config: PathRef(fields.with("event_inbox_config", read_relative)?),
    })
}

fn read_routes(fields: &mut Fields<'_>) -> Parsed<Vec<RouteRef>> {
    for name in ["chat_id", "event_inbox_config"] {
        if fields.given(name).is_some() {
            return Err(ContractError::invalid(
                fields.at(name),
                "belongs into routes",
            ));
        }
    }
    let items = fields.list("routes")?;
    let at = fields.at("routes");
    if items.is_empty() || items.len() > MAX_ROUTES {
        return Err(ContractError::invalid(at, "must hold 1 to 50 routes"));
    }
    let routes = items
        .iter()
        .map(|(at, item)| read_route(at, item))
        .collect::<Parsed<Vec<_>>>()?;
    for (index, route) in routes.iter().enumerate() {
        let twice = routes[..index].iter().any(|other| {
            other.key == route.key || other.chat == route.chat || other.config == route.config
        });
        if twice {
            return Err(ContractError::invalid(
                at.item(index),
                "repeats a key, chat or config of another route",
            ));
        }
    }
    Ok(routes)
}

fn read_route(at: &Label, value: &Value) -> Parsed<RouteRef> {
    let mut fields = Fields::closed(at, value)?;
    let route = RouteRef {
        key: fields.with("route_key", |at, value| {
            read_id(
                at,
                value,
                RouteKey::new,
                "must be a route key: lower-case letters, digits, . _ or -",
            )
        })?,
        chat: fields.with("chat_id", read_chat)?,
        config: PathRef(fields.with("event_inbox_config", read_relative)?),
    };
    fields.finish(route)
}

fn read_chat(at: &Label, value: &Value) -> Parsed<ChatId> {
    read_id(at, value, ChatId::new, "must be a chat id")
}

fn read_service_name(fields: &mut Fields<'_>) -> Parsed<String> {
    let name = fields.optional("service_name", |at, value| {
        let name = super::config::as_text(at, value)?;
        match is_service_name(name) {
            true => Ok(name.to_owned()),
            false => Err(ContractError::invalid(
                at,
                "must be loopx- and a lower-case name",
            )),
        }
    })?;
    Ok(name.unwrap_or_else(|| DEFAULT_SERVICE.to_owned()))
}

const DEFAULT_SERVICE: &str = "loopx-lark-collector";
const DEFAULT_PROGRAM: &str = "lark-cli";

fn is_service_name(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("loopx-") else {
        return false;
    };
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    (2..=74).contains(&rest.len())
        && rest.bytes().next().is_some_and(is_plain)
        && rest
            .bytes()
            .all(|byte| is_plain(byte) || matches!(byte, b'.' | b'_' | b'-'))
}

fn read_program(fields: &mut Fields<'_>) -> Parsed<String> {
    let name = fields.optional("lark_cli_bin", |at, value| {
        let name = super::config::as_text(at, value)?;
        let plain = !name.is_empty()
            && !name.starts_with('-')
            && name != "."
            && name != ".."
            && !name.contains(['/', '\\', '\0'])
            && !name.chars().any(char::is_whitespace);
        match plain {
            true => Ok(name.to_owned()),
            false => Err(ContractError::invalid(at, "must be a bare program name")),
        }
    })?;
    Ok(name.unwrap_or_else(|| DEFAULT_PROGRAM.to_owned()))
}

fn read_timeout(at: &Label, value: &Value) -> Parsed<ConsumeTimeout> {
    let text = super::config::as_text(at, value)?;
    let wrong = || ContractError::invalid(at, "must be a whole number and s, m or h, such as 30m");
    let unit = match text.as_bytes().last() {
        Some(b's') => 1,
        Some(b'm') => 60,
        Some(b'h') => 3600,
        _ => return Err(wrong()),
    };
    let digits = &text[..text.len() - 1];
    let plain = !digits.starts_with('0')
        && !digits.is_empty()
        && digits.bytes().all(|byte| byte.is_ascii_digit());
    let count = digits
        .parse::<u64>()
        .ok()
        .filter(|_| plain)
        .ok_or_else(wrong)?;
    let seconds = count
        .checked_mul(unit)
        .filter(|seconds| *seconds <= 31_536_000)
        .ok_or_else(wrong)?;
    Ok(ConsumeTimeout {
        text: text.to_owned(),
        seconds,
    })
}

fn read_turn_start(fields: &mut Fields<'_>) -> Parsed<Option<TurnStartSync>> {
    let at = fields.at("turn_start_sync");
    let Some(value) = fields.some("turn_start_sync") else {
        return Ok(None);
    };
    let mut sync = Fields::open(&at, value)?;
    let enabled = is_true(sync.given("enabled"));
    let read = TurnStartSync {
        initial_lookback_seconds: sync.integer_or("initial_lookback_seconds", 60..=604_800, 900)?,
        overlap_seconds: sync.integer_or("overlap_seconds", 0..=300, 5)?,
        page_size: u32::try_from(sync.integer_or("page_size", 1..=50, 50)?).unwrap_or(50),
    };
    sync.finish(enabled.then_some(read))
}

fn read_callbacks(fields: &mut Fields<'_>, has_routes: bool) -> Parsed<bool> {
    let at = fields.at("operation_callbacks");
    let Some(value) = fields.some("operation_callbacks") else {
        return Ok(false);
    };
    let mut callbacks = Fields::closed(&at, value)?;
    let enabled = is_true(callbacks.given("enabled"));
    if enabled && !has_routes {
        return Err(ContractError::invalid(at, "needs a v1 collector config"));
    }
    callbacks.finish(enabled)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn good() -> Value {
        json!({"schema_version": COLLECTOR_V1, "enabled": true, "supervisor": "systemd", "routes": [
            {"route_key": "a", "chat_id": "oc_a", "event_inbox_config": "a.json"},
            {"route_key": "b", "chat_id": "oc_b", "event_inbox_config": "b.json"}]})
    }

    fn with(name: &str, value: Value) -> Result<CollectorConfig, ContractError> {
        let mut config = good();
        config[name] = value;
        CollectorConfig::parse(&config)
    }

    #[test]
    fn defaults_are_those_of_the_contract() {
        let config = CollectorConfig::parse(&good()).expect("valid");
        assert_eq!(
            (config.service_name.as_str(), config.consume_timeout.seconds),
            ("loopx-lark-collector", 1800)
        );
        assert!(!config.operation_callbacks && config.turn_start_sync.is_none());
    }

    #[test]
    fn values_outside_their_rule_are_refused() {
        let cases = [
            ("supervisor", Value::Null),
            ("supervisor", json!("cron")),
            ("lark_cli_bin", json!("/usr/bin/x")),
            ("consume_timeout", json!("0m")),
            ("consume_timeout", json!("30")),
            ("service_name", json!("x")),
            ("identity", json!("user")),
            ("event_key", json!("im.chat.updated_v1")),
            ("chat_id", json!("oc_a")),
            ("profile", json!("default")),
            ("operation_callbacks", json!({"enabled": true, "more": 1})),
            ("routes", json!([])),
            ("schema_version", json!("lark_event_collector_config_v7")),
        ];
        for (name, value) in cases {
            assert!(with(name, value.clone()).is_err(), "{name} {value}");
        }
    }

    #[test]
    fn keys_chats_and_configs_are_unique() {
        for (field, value) in [
            ("route_key", "a"),
            ("chat_id", "oc_a"),
            ("event_inbox_config", "a.json"),
        ] {
            let mut config = good();
            config["routes"][1][field] = json!(value);
            assert!(CollectorConfig::parse(&config).is_err(), "{field}");
        }
    }

    #[test]
    fn the_single_chat_form_has_one_default_route() {
        let value = json!({"schema_version": COLLECTOR_V0, "enabled": true, "supervisor": "launchd", "chat_id": "oc_a",
            "event_inbox_config": "a.json"});
        let config = CollectorConfig::parse(&value).expect("valid");
        assert_eq!(config.routes[0].key.as_str(), "default");
    }
}
