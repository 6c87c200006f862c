//! One inbox at hand: its commands, and what went out to the provider.

use serde_json::{Value, json};

use crate::support::lark::{CHAT, Lark, event};

pub(crate) struct Desk {
    pub(crate) lark: Lark,
    pub(crate) config: String,
}

impl Desk {
    pub(crate) fn new() -> Self {
        let lark = Lark::new();
        let config = lark.inbox_config("one", CHAT);
        Self { lark, config }
    }

    /// A desk with marks and one captured message.
    pub(crate) fn with_message() -> Self {
        let lark = Lark::new();
        let marks = json!({"received_reaction_emoji": "Get", "processing_reaction_emoji": "OnIt"});
        let config = lark.inbox_config_with("one", CHAT, marks);
        lark.seed("om_zqpa", "words", 1_789_000_000, json!({}));
        lark.inbox(&["ingest", "--execute"], &config)
            .stdin(json!([event("om_zqpa", json!({}))]).to_string())
            .packet();
        Self { lark, config }
    }

    pub(crate) fn send(&self, text: &str) -> Value {
        self.act(&["send", "--text", text, "--execute"])
    }

    pub(crate) fn reply(&self, text: &str) -> Value {
        self.act(&[
            "reply",
            "--message-id",
            "om_zqpa",
            "--text",
            text,
            "--execute",
        ])
    }

    pub(crate) fn mark(&self, command: &str) -> Value {
        self.act(&[command, "--message-id", "om_zqpa", "--execute"])
    }

    pub(crate) fn act(&self, words: &[&str]) -> Value {
        Lark::packet(self.lark.inbox(words, &self.config), &[]).1
    }

    /// Like `act`, more than an hour later for both sides.
    pub(crate) fn act_later(&self, words: &[&str]) -> Value {
        self.lark
            .edit(|state| state["clock_offset"] = json!(offset() + 4200));
        Lark::packet(
            self.lark
                .inbox(words, &self.config)
                .now("2026-09-18T10:10:00Z"),
            &[],
        )
        .1
    }

    pub(crate) fn sends(&self) -> usize {
        let is_real = |call: &&Value| {
            !call["argv"]
                .as_array()
                .expect("words")
                .contains(&json!("--dry-run"))
        };
        let calls = self.lark.calls();
        calls
            .iter()
            .filter(|call| {
                call["command"] == "im +messages-send" || call["command"] == "im +messages-reply"
            })
            .filter(is_real)
            .count()
    }

    pub(crate) fn creates(&self) -> usize {
        let is_create = |call: &&Value| {
            call["argv"]
                .as_array()
                .expect("words")
                .contains(&json!("POST"))
        };
        self.lark.calls().iter().filter(is_create).count()
    }
}

pub(crate) fn holds(packet: &Value, wanted: &Value) {
    for (name, value) in wanted.as_object().expect("an object") {
        assert_eq!(&packet[name], value, "{name} of {packet}");
    }
}

pub(crate) fn real_send(rule: Value) -> Value {
    let mut rule = rule;
    rule["on"] = json!("im +messages-send");
    rule["dry_run"] = json!(false);
    json!([rule])
}

/// What moves the stand-in's clock to the instant the sandbox believes in.
pub(crate) fn offset() -> i64 {
    let real = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .expect("after 1970")
        .as_secs();
    1_789_722_000 - i64::try_from(real).expect("small")
}
