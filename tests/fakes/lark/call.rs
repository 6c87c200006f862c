//! The command line of the program: words, flags, refusals of what it does not know.

use std::collections::BTreeMap;

use serde_json::Value;

use super::answer::Failure;

const SWITCHES: [&str; 15] = [
    "yes",
    "overwrite",
    "app-secret-stdin",
    "new",
    "json",
    "dry-run",
    "verify",
    "page-all",
    "no-reactions",
    "reply-in-thread",
    "quiet",
    "help",
    "version",
    "fail-on-orphan",
    "force",
];

const TABLE_LIST: [&str; 4] = ["base-token", "table-id", "offset", "limit"];
const VIEW: [&str; 4] = ["base-token", "table-id", "view-id", "json"];

/// Flags a command knows beside `--as`, `--format` and `--json`.
const KNOWN: [(&str, &[&str]); 44] = [
    ("auth status", &["verify"]),
    ("auth check", &["scope"]),
    ("whoami", &[]),
    (
        "im +chat-members-list",
        &[
            "chat-id",
            "member-types",
            "member-id-type",
            "page-size",
            "page-limit",
            "page-all",
        ],
    ),
    ("im +messages-mget", &["message-ids", "no-reactions"]),
    (
        "im +chat-messages-list",
        &[
            "chat-id",
            "start",
            "end",
            "order",
            "page-size",
            "page-token",
            "page-all",
            "page-limit",
            "no-reactions",
        ],
    ),
    (
        "im +threads-messages-list",
        &["thread", "order", "page-size", "page-token", "no-reactions"],
    ),
    (
        "im +messages-send",
        &[
            "chat-id",
            "text",
            "content",
            "msg-type",
            "idempotency-key",
            "dry-run",
        ],
    ),
    (
        "im +messages-reply",
        &[
            "message-id",
            "text",
            "content",
            "msg-type",
            "idempotency-key",
            "dry-run",
            "reply-in-thread",
        ],
    ),
    (
        "im +messages-search",
        &[
            "chat-id",
            "query",
            "page-size",
            "page-token",
            "no-reactions",
        ],
    ),
    (
        "drive +list-comments",
        &[
            "url",
            "token",
            "dry-run",
            "solved-status",
            "comment-scope",
            "page-size",
            "page-token",
        ],
    ),
    ("im +chat-list", &["types", "page-size", "page-token"]),
    ("im +chat-search", &["query", "page-size", "page-token"]),
    (
        "im +chat-create",
        &["name", "description", "chat-mode", "type", "bots"],
    ),
    ("profile list", &[]),
    (
        "base +base-create",
        &["name", "table-name", "fields", "dry-run"],
    ),
    ("base +base-get", &["base-token"]),
    ("base +base-block-list", &["base-token", "type"]),
    (
        "base +table-create",
        &["base-token", "name", "fields", "view"],
    ),
    ("base +field-list", &TABLE_LIST),
    ("base +view-list", &TABLE_LIST),
    ("base +field-create", &["base-token", "table-id", "json"]),
    (
        "base +field-update",
        &["base-token", "table-id", "field-id", "json", "yes"],
    ),
    ("base +view-create", &["base-token", "table-id", "json"]),
    ("base +view-set-filter", &VIEW),
    ("base +view-set-group", &VIEW),
    ("base +view-set-visible-fields", &VIEW),
    (
        "base +record-list",
        &[
            "base-token",
            "table-id",
            "offset",
            "limit",
            "view-id",
            "filter-json",
            "field-id",
        ],
    ),
    (
        "base +record-upsert",
        &["base-token", "table-id", "record-id", "json"],
    ),
    (
        "base +record-delete",
        &["base-token", "table-id", "record-id", "yes"],
    ),
    ("apps +list", &["ownership", "page-size", "page-token"]),
    ("apps +get", &["app-id"]),
    ("apps +html-publish", &["app-id", "path", "dry-run"]),
    ("apps +release-get", &["app-id", "release-id"]),
    ("apps +access-scope-get", &["app-id"]),
    ("docs +create", &["content"]),
    ("docs +fetch", &["doc", "scope"]),
    ("docs +update", &["doc", "command", "content", "block-id"]),
    (
        "whiteboard +update",
        &[
            "whiteboard-token",
            "input_format",
            "source",
            "overwrite",
            "idempotent-token",
        ],
    ),
    ("whiteboard +query", &["whiteboard-token", "output_as"]),
    (
        "config init",
        &["app-id", "app-secret-stdin", "name", "brand", "lang", "new"],
    ),
    (
        "event consume",
        &["timeout", "jq", "max-events", "quiet", "help", "dry-run"],
    ),
    ("event status", &["fail-on-orphan"]),
    ("event stop", &["force"]),
];

/// One understood command line.
pub(crate) struct Call {
    pub(crate) profile: String,
    pub(crate) command: String,
    /// What follows the command words: an event key.
    pub(crate) argument: String,
    pub(crate) method: String,
    pub(crate) path: String,
    pub(crate) flags: BTreeMap<String, String>,
}

impl Call {
    pub(crate) fn parse(argv: &[String]) -> Result<Self, Failure> {
        let (mut words, mut flags) = (Vec::new(), BTreeMap::new());
        let mut rest = argv.iter();
        while let Some(word) = rest.next() {
            let Some(name) = word.strip_prefix("--") else {
                words.push(word.clone());
                continue;
            };
            // The rows of a base come under the name that is a switch elsewhere.
            let is_value = name == "json" && words.first().is_some_and(|word| word == "base");
            let value = match SWITCHES.contains(&name) && !is_value {
                true => String::new(),
                false => rest.next().ok_or_else(Failure::argument)?.clone(),
            };
            flags.insert(name.to_owned(), value);
        }
        let profile = flags.remove("profile").unwrap_or_default();
        let mut call = Self {
            profile,
            command: String::new(),
            argument: String::new(),
            method: String::new(),
            path: String::new(),
            flags,
        };
        call.name(&words)?;
        call.check()?;
        Ok(call)
    }

    fn name(&mut self, words: &[String]) -> Result<(), Failure> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        self.command = match words.as_slice() {
            [] if self.flags.contains_key("version") => "version".to_owned(),
            ["api", method, path] => {
                self.method = method.to_ascii_uppercase();
                self.path = (*path).to_owned();
                "api".to_owned()
            }
            ["whoami"] => "whoami".to_owned(),
            ["event", "consume", key] => {
                self.argument = (*key).to_owned();
                "event consume".to_owned()
            }
            [group, verb] => format!("{group} {verb}"),
            _ => return Err(Failure::argument()),
        };
        Ok(())
    }

    fn check(&self) -> Result<(), Failure> {
        let known: &[&str] = match self.command.as_str() {
            "version" => &["version"],
            "api" => &["params", "data", "page-all", "dry-run", "page-size"],
            command => KNOWN
                .iter()
                .find(|(name, _)| *name == command)
                .map(|(_, flags)| *flags)
                .ok_or_else(Failure::argument)?,
        };
        let common = ["as", "format", "json"];
        let fits =
            |name: &String| known.contains(&name.as_str()) || common.contains(&name.as_str());
        let is_bare = self.command == "profile list" && self.has("json");
        if is_bare || !self.flags.keys().all(fits) {
            return Err(Failure::argument());
        }
        match self.flags.get("as").map(String::as_str) {
            None | Some("bot" | "user" | "auto") => Ok(()),
            Some(_) => Err(Failure::argument()),
        }
    }

    pub(crate) fn flag(&self, name: &str) -> &str {
        self.flags.get(name).map_or("", String::as_str)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        self.flags.contains_key(name)
    }

    pub(crate) fn identity(&self) -> &str {
        match self.flag("as") {
            "user" => "user",
            _ => "bot",
        }
    }

    /// A number of a flag, within bounds.
    pub(crate) fn number(&self, name: &str, default: usize, most: usize) -> Result<usize, Failure> {
        match self.flag(name) {
            "" => Ok(default),
            text => text
                .parse()
                .ok()
                .filter(|number| (1..=most).contains(number))
                .ok_or_else(Failure::argument),
        }
    }

    /// The object of a JSON flag.
    pub(crate) fn object(&self, name: &str) -> Result<Value, Failure> {
        match self.flag(name) {
            "" => Ok(Value::Object(serde_json::Map::new())),
            text => serde_json::from_str(text)
                .ok()
                .filter(Value::is_object)
                .ok_or_else(Failure::argument),
        }
    }
}
