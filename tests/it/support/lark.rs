//! The stand-in for the provider program, beside a sandbox: its state, its faults, its call log.

use std::fs::{self, OpenOptions};
use std::path::PathBuf;

use serde_json::{Value, json};

use super::{Finished, Run, Sandbox};

/// Every private value of a test carries this mark: one scan finds any leak.
pub(crate) const MARK: &str = "zqp";
pub(crate) const CHAT: &str = "oc_zqpalpha";
pub(crate) const CHAT2: &str = "oc_zqpbeta";
pub(crate) const PROFILE: &str = "zqp-bot";
pub(crate) const APP: &str = "cli_zqpapp";
pub(crate) const ALICE: &str = "ou_zqpalice";
pub(crate) const BOT: &str = "ou_zqpself";
/// The inbox of the connection that `connect` makes.
pub(crate) const CONNECTION: &str = ".loopx/config/lark-goal-topics/one.json";
const APP_NAME: &str = "Zqp Relay";

/// A sandbox with a provider.
pub(crate) struct Lark {
    pub(crate) sandbox: Sandbox,
}

impl Lark {
    /// Makes folders, profile and two chats, and installs the extension.
    pub(crate) fn new() -> Self {
        let lark = Self {
            sandbox: Sandbox::new(),
        };
        fs::create_dir_all(lark.bin()).expect("made");
        fs::create_dir_all(lark.state_folder()).expect("made");
        std::os::unix::fs::symlink(
            env!("CARGO_BIN_EXE_fake-lark-cli"),
            lark.bin().join("lark-cli"),
        )
        .expect("linked");
        let chat = |name: &str| {
            json!({"name": name, "bots": [{"app_id": APP, "open_id": BOT, "name": APP_NAME}],
                "users": [{"open_id": ALICE, "name": "Zqp Alice"}, {"open_id": "ou_zqpbob", "name": "Zqp Bob"}]})
        };
        lark.write_state(&json!({
            "profiles": {PROFILE: {"app_id": APP, "app_name": APP_NAME, "open_id": BOT}},
            "chats": {CHAT: chat("a"), CHAT2: chat("b")},
            "messages": [], "marks": {}, "keys": {}, "streams": {}, "consumers": [], "options": {}, "hits": {},
        }));
        lark.run([
            "extension",
            "install",
            "--bundled",
            "loopx-lark",
            "--execute",
        ])
        .packet();
        lark
    }

    fn bin(&self) -> PathBuf {
        self.sandbox.root().join("lark/bin")
    }

    pub(crate) fn state_folder(&self) -> PathBuf {
        self.sandbox.root().join("lark/state")
    }

    /// The search path with the stand-in first.
    pub(crate) fn path(&self) -> String {
        format!(
            "{}:{}",
            self.bin().display(),
            std::env::var("PATH").unwrap_or_default()
        )
    }

    /// Prepares a run that meets the stand-in.
    pub(crate) fn run<S: AsRef<str>>(&self, args: impl IntoIterator<Item = S>) -> Run<'_> {
        let state = self.state_folder().to_string_lossy().into_owned();
        self.sandbox
            .loopx(args)
            .env("PATH", &self.path())
            .env("FAKE_LARK_STATE", &state)
    }

    /// Prepares an inbox command on a configuration.
    pub(crate) fn inbox(&self, words: &[&str], config: &str) -> Run<'_> {
        let mut args = vec!["lark-inbox", words[0], "--project", ".", "--config", config];
        args.extend(&words[1..]);
        self.run(args)
    }

    fn write_state(&self, state: &Value) {
        fs::write(self.state_folder().join("state.json"), state.to_string()).expect("written");
    }

    /// Changes the state under its lock.
    pub(crate) fn edit(&self, change: impl FnOnce(&mut Value)) {
        let lock = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .open(self.state_folder().join("lock"))
            .expect("lock");
        lock.lock().expect("locked");
        let mut state = self.state();
        change(&mut state);
        self.write_state(&state);
    }

    pub(crate) fn state(&self) -> Value {
        serde_json::from_slice(&fs::read(self.state_folder().join("state.json")).expect("read"))
            .expect("json")
    }

    /// Scripts faults; counts start anew.
    pub(crate) fn faults(&self, rules: Value) {
        self.edit(|state| state["hits"] = json!({}));
        fs::write(
            self.state_folder().join("faults.json"),
            json!({"rules": rules}).to_string(),
        )
        .expect("written");
    }

    /// The calls so far.
    pub(crate) fn calls(&self) -> Vec<Value> {
        let text = fs::read_to_string(self.state_folder().join("calls.jsonl")).unwrap_or_default();
        text.lines()
            .map(|line| serde_json::from_str(line).expect("json"))
            .collect()
    }

    /// How often a command was called.
    pub(crate) fn count(&self, command: &str) -> usize {
        self.calls()
            .iter()
            .filter(|call| call["command"] == command)
            .count()
    }

    /// Messages that the product sent.
    pub(crate) fn sent(&self) -> Vec<Value> {
        let state = self.state();
        let messages = state["messages"].as_array().cloned().unwrap_or_default();
        messages
            .into_iter()
            .filter(|message| message["sent"] == json!(true))
            .collect()
    }

    /// Puts a message of a person into a chat.
    pub(crate) fn seed(&self, id: &str, text: &str, at: i64, extra: Value) {
        self.edit(|state| {
            let mut message = json!({"message_id": id, "chat_id": CHAT, "text": text, "sender_type": "user", "sender_id": ALICE, "at": at});
            for (name, value) in extra.as_object().into_iter().flatten() {
                message[name] = value.clone();
            }
            state["messages"].as_array_mut().expect("a list").push(message);
        });
    }

    /// Writes a file of the project.
    pub(crate) fn write(&self, name: &str, value: &Value) {
        let path = self.sandbox.project().join(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("made");
        fs::write(path, value.to_string()).expect("written");
    }

    /// Configures one inbox and returns its file.
    pub(crate) fn inbox_config(&self, name: &str, chat: &str) -> String {
        self.inbox_config_with(name, chat, json!({}))
    }

    pub(crate) fn inbox_config_with(&self, name: &str, chat: &str, reply_extra: Value) -> String {
        let file = format!(".loopx/config/lark/{name}.json");
        let mut config = json!({"schema_version": "lark_event_inbox_config_v0", "enabled": true, "inbox_dir": format!(".loopx/inbox/{name}"),
            "capture_scope": "configured_chat_all", "material_review": {"enabled": true},
            "reply": {"enabled": true, "sender_profile": PROFILE, "sender_identity": "bot", "bot_display_name": APP_NAME,
            "bot_app_id": APP, "bot_open_id": BOT, "chat_id": chat, "received_reaction_emoji": ""}});
        for (key, value) in reply_extra.as_object().into_iter().flatten() {
            config["reply"][key.as_str()] = value.clone();
        }
        self.write(&file, &config);
        file
    }

    /// Configures a collector of the named routes.
    pub(crate) fn collector(&self, routes: &[(&str, &str)], extra: Value) -> String {
        let file = ".loopx/config/lark-collector.json".to_owned();
        let routes: Vec<Value> = routes
            .iter()
            .map(|(name, chat)| json!({"route_key": name, "chat_id": chat, "event_inbox_config": self.inbox_config(name, chat)}))
            .collect();
        let mut config = json!({"schema_version": "lark_event_collector_config_v1", "enabled": true, "profile": PROFILE,
            "supervisor": "systemd", "routes": routes});
        for (key, value) in extra.as_object().into_iter().flatten() {
            config[key.as_str()] = value.clone();
        }
        self.write(&file, &config);
        file
    }

    /// A goal with an agent whose connection takes what is said to the bot in the first chat; `change` overrides its fields.
    pub(crate) fn connect(&self, change: &Value) {
        self.run(["bootstrap", "--goal-id", "demo-goal", "--title", "Demo"])
            .packet();
        self.run([
            "register-agent",
            "--goal-id",
            "demo-goal",
            "--agent-id",
            "lane-a",
            "--execute",
        ])
        .packet();
        self.write(
            CONNECTION,
            &json!({"schema_version": "lark_event_inbox_config_v0", "enabled": true,
            "inbox_dir": ".loopx/inbox/lark-goal-topics/one", "capture_scope": "addressed_only"}),
        );
        let mut binding = json!({"schema_version": "loopx_goal_channel_lark_binding_v0", "goal_id": "demo-goal", "provider": "lark",
            "enabled": true, "agent_id": "lane-a", "channel": {"chat_id": CHAT}, "topic": null,
            "identity": {"mode": "project_bot", "sender_profile": PROFILE, "sender_identity": "bot", "bot_app_id": APP, "bot_open_id": BOT},
            "routing": {"ingress_mode": "async_inbox", "capture_scope": "addressed_only", "reply_mode": "topic_reply", "inbox_config_ref": CONNECTION}});
        for (name, value) in change.as_object().into_iter().flatten() {
            binding[name.as_str()] = value.clone();
        }
        self.write(".loopx/goal-channel.json", &json!({"schema_version": "loopx_goal_channel_lark_binding_v0", "bindings": {"demo-goal": binding}}));
    }

    /// The packet of a run that may fail, scanned for private values; `allowed` are the ids it returns on purpose.
    pub(crate) fn packet(run: Run<'_>, allowed: &[&str]) -> (Option<i32>, Value) {
        let finished = run.json_run();
        assert_private(&finished, allowed);
        (finished.code, finished.json())
    }
}

/// Fails when a private value leaves.
pub(crate) fn assert_private(finished: &Finished, allowed: &[&str]) {
    let mut text = format!("{} {}", finished.text(), finished.errors());
    for word in allowed {
        text = text.replace(word, "");
    }
    let text = text.replace("lark_cli", "").replace("comment_cli_", "");
    for sign in [MARK, "oc_", "ou_", "om_", "cli_", "ticket="] {
        assert!(!text.contains(sign), "{sign} leaves: {text}");
    }
}

/// One event as `ingest` takes it.
pub(crate) fn event(id: &str, extra: Value) -> Value {
    let mut event = json!({"schema_version": "lark_event_inbox_event_v0", "message_id": id, "create_time": "1758189600000",
        "content": format!("{MARK} words"), "sender_type": "user", "sender_id": ALICE, "mentions": []});
    for (name, value) in extra.as_object().into_iter().flatten() {
        event[name.as_str()] = value.clone();
    }
    event
}
