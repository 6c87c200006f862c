//! The guard over every object from outside and every public text.
//!
//! Twelve raw keys, private paths and credential shapes are refused (`docs/spec/periodic-report-core.md`
//! 1.3). The scanners are written by hand: compiling the patterns would cost more than the command.
//! A refusal names the place of the nearest plain key and never the value.

mod credentials;
mod machine_paths;

use serde_json::Value;

use super::error::{ContractError, ErrorCode};
use super::parse::Label;
use super::text::is_space;

const RAW_KEYS: [&str; 12] = [
    "credential",
    "credentials",
    "private_path",
    "raw_body",
    "raw_content",
    "raw_log",
    "raw_logs",
    "raw_message",
    "raw_payload",
    "raw_transcript",
    "secret",
    "token",
];

const PATH_ROOTS: [&str; 6] = [
    "Users/",
    "Volumes/",
    "home/",
    "var/folders/",
    "tmp/",
    "private/tmp/",
];

const MACHINE_PATH: &str = "holds a path of a machine; give a reference instead";
const CREDENTIAL: &str = "holds what looks like a credential; leave it out";

/// Refuses an object that holds a raw key, a private path or a credential anywhere.
pub fn guard(value: &Value) -> Result<(), ContractError> {
    guard_at(&Label::root(), value)
}

/// As [`guard`], for a value that is part of a larger input.
pub fn guard_at(at: &Label, value: &Value) -> Result<(), ContractError> {
    judge(at, value, text_fault)
}

/// Refuses an agent's own words that hold a raw key, a credential or an absolute or home path of a machine. Unlike the
/// report guard it lets a relative path, a URL and a place every machine has (`/dev/null`) pass.
pub fn guard_words(at: &Label, value: &Value) -> Result<(), ContractError> {
    judge(at, value, words_fault)
}

fn judge(
    at: &Label,
    value: &Value,
    of_text: fn(&str) -> Option<&'static str>,
) -> Result<(), ContractError> {
    let Some(fault) = scan(value, of_text) else {
        return Ok(());
    };
    let place = fault.place(at);
    Err(ContractError::coded(
        ErrorCode::InputUnsafe,
        place,
        fault.reason,
    ))
}

/// What was found, and the way to it from the inside out.
struct Fault<'a> {
    reason: &'static str,
    way: Vec<Step<'a>>,
}

enum Step<'a> {
    Member(&'a str),
    Item(usize),
}

impl Fault<'_> {
    /// Names the nearest place all of whose keys are plain names: a key can hold a secret too.
    fn place(&self, at: &Label) -> Label {
        let mut place = at.clone();
        for step in self.way.iter().rev() {
            place = match step {
                Step::Member(name) if is_plain_name(name) => place.field(name),
                Step::Member(_) => break,
                Step::Item(index) => place.item(*index),
            };
        }
        place
    }
}

/// Tells whether a text may stand in a public packet.
pub fn is_public(text: &str) -> bool {
    text_fault(text).is_none()
}

/// Tells whether a text may stand in an event or under a key of ours: public, and no path of any machine.
pub fn is_pathless(text: &str) -> bool {
    is_public(text) && !machine_paths::found_in(text)
}

fn scan(value: &Value, of_text: fn(&str) -> Option<&'static str>) -> Option<Fault<'_>> {
    match value {
        Value::String(text) => of_text(text).map(|reason| Fault {
            reason,
            way: Vec::new(),
        }),
        Value::Array(items) => items.iter().enumerate().find_map(|(index, item)| {
            scan(item, of_text).map(|fault| fault.inside(Step::Item(index)))
        }),
        Value::Object(map) => map.iter().find_map(|(key, value)| {
            let fault = match is_raw_key(key) {
                true => Some(Fault {
                    reason: "is a key for raw or secret content; leave it out",
                    way: Vec::new(),
                }),
                false => scan(value, of_text),
            };
            fault.map(|fault| fault.inside(Step::Member(key)))
        }),
        _ => None,
    }
}

impl<'a> Fault<'a> {
    fn inside(mut self, step: Step<'a>) -> Self {
        self.way.push(step);
        self
    }
}

fn is_plain_name(name: &str) -> bool {
    name.len() <= 64
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
}

fn is_raw_key(key: &str) -> bool {
    let trimmed = super::text::trim(key);
    // No raw key is longer; a longer one need not be folded.
    trimmed.len() <= 32 && RAW_KEYS.contains(&trimmed.to_lowercase().as_str())
}

fn text_fault(text: &str) -> Option<&'static str> {
    if holds_private_path(text) {
        return Some(MACHINE_PATH);
    }
    credentials::found_in(text).then_some(CREDENTIAL)
}

fn words_fault(text: &str) -> Option<&'static str> {
    if machine_paths::own_found_in(text) {
        return Some(MACHINE_PATH);
    }
    credentials::found_in(text).then_some(CREDENTIAL)
}

/// Tells whether a text names a path below a private root.
pub fn holds_private_path(text: &str) -> bool {
    let bytes = text.as_bytes();
    text.match_indices('/').any(|(at, _)| {
        let is_tag = at > 0 && bytes[at - 1] == b'<';
        !is_tag && starts_private_path(&text[at + 1..])
    })
}

fn starts_private_path(rest: &str) -> bool {
    PATH_ROOTS.iter().any(|root| {
        rest.strip_prefix(root)
            .and_then(|tail| tail.chars().next())
            .is_some_and(is_value_character)
    })
}

/// Tells whether a character can belong to a path or a credential value.
fn is_value_character(character: char) -> bool {
    !is_space(character) && !matches!(character, '`' | '\'' | '"' | '<' | '>')
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn raw_keys_are_refused_at_any_depth_and_in_any_case() {
        assert!(guard(&json!({"a": [{" Token ": null}]})).is_err());
        assert!(guard(&json!({"tokens": 1, "secret_ref": "x"})).is_ok());
    }

    #[test]
    fn private_paths_are_refused_wherever_they_stand() {
        for text in [
            "/Users/example/x",
            "see docs/home/x",
            "https://example.org/home/x",
            "/var/folders/ab",
            "/private/tmp/x",
            "a/tmp/b",
        ] {
            assert!(!is_public(text), "{text}");
        }
        for text in [
            "/home/",
            "/home/ x",
            "</home/x",
            "/users/x",
            "/var/log/x",
            "/home",
        ] {
            assert!(is_public(text), "{text}");
        }
    }

    #[test]
    fn words_may_name_what_is_no_place_of_this_machine() {
        let refused = |text: &str| guard_words(&Label::root(), &json!({"note": text})).is_err();
        for text in [
            "see /home/joe/x",
            "/srv/repo/a.rs",
            "~/notes",
            "(/tmp/x)",
            "token=0123456789ab",
            "sk-ant-api03-abcdef",
        ] {
            assert!(refused(text), "{text}");
        }
        for text in [
            "src/home/page.rs",
            "a/tmp/b",
            "./docs/home/x and ../x",
            "https://example.org/home/x",
            "2> /dev/null",
            "#!/usr/bin/env python3",
            "GET /v1/todos, and/or /status",
        ] {
            assert!(!refused(text), "{text}");
        }
    }

    #[test]
    fn a_refusal_does_not_repeat_the_value() {
        let error = guard(&json!({"note": "/Users/example/x"})).expect_err("a path");
        assert_eq!(error.code, ErrorCode::InputUnsafe);
        assert!(!error.to_string().contains("example"));
        assert_eq!(error.at, "note");
        let nested = json!({"a": [{"b_1": "x"}, {"b_1": "token=0123456789ab"}], "/x": 1});
        assert_eq!(
            guard(&nested).map_err(|error| error.at),
            Err("a[1].b_1".to_owned())
        );
    }
}
