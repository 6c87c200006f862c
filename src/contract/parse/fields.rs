//! The cursor over the members of one object.

use std::ops::RangeInclusive;

use serde_json::{Map, Value};

use super::read::{
    must_be, read_boolean, read_choice, read_integer, read_list, read_text, read_timestamp,
    read_token, read_version,
};
use super::{Label, Parsed};
use crate::contract::error::ContractError;
use crate::contract::ids::{Token, Version};
use crate::contract::time::Timestamp;

/// A cursor over the members of one object.
pub struct Fields<'a> {
    at: Label,
    map: &'a Map<String, Value>,
    taken: Vec<&'static str>,
    policy: Policy,
}

/// What an object does with members nobody asked for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    Closed,
    Open,
}

impl<'a> Fields<'a> {
    /// Starts on an object that refuses unknown members.
    pub fn closed(at: &Label, value: &'a Value) -> Parsed<Self> {
        Self::start(at, value, Policy::Closed)
    }

    /// Starts on an object whose unknown members are ignored or kept by the caller.
    pub fn open(at: &Label, value: &'a Value) -> Parsed<Self> {
        Self::start(at, value, Policy::Open)
    }

    fn start(at: &Label, value: &'a Value, policy: Policy) -> Parsed<Self> {
        let Value::Object(map) = value else {
            return Err(ContractError::invalid(at, "must be an object"));
        };
        Ok(Self {
            at: at.clone(),
            map,
            taken: Vec::new(),
            policy,
        })
    }

    /// Ends the object: a closed one must have given out every member.
    pub fn finish<T>(self, result: T) -> Parsed<T> {
        match self.unknown().next() {
            Some((name, _)) if self.policy == Policy::Closed => Err(unknown_field(&self.at, name)),
            _ => Ok(result),
        }
    }

    /// Returns the members nobody asked for, in the order read.
    pub fn unknown(&self) -> impl Iterator<Item = (&'a String, &'a Value)> + use<'a, '_> {
        let taken = &self.taken;
        self.map
            .iter()
            .filter(move |(name, _)| !taken.contains(&name.as_str()))
    }

    /// Returns the place of a member.
    pub fn at(&self, name: &str) -> Label {
        self.at.field(name)
    }

    /// Returns the place of the object.
    pub fn here(&self) -> &Label {
        &self.at
    }

    /// Returns the object as read.
    pub fn as_map(&self) -> &'a Map<String, Value> {
        self.map
    }

    /// Returns a member as it stands, `null` included.
    pub fn given(&mut self, name: &'static str) -> Option<&'a Value> {
        if !self.taken.contains(&name) {
            self.taken.push(name);
        }
        self.map.get(name)
    }

    /// Returns a member that is neither absent nor `null`.
    pub fn some(&mut self, name: &'static str) -> Option<&'a Value> {
        self.given(name).filter(|value| !value.is_null())
    }

    /// Returns a member that must be there and not be `null`.
    pub fn required(&mut self, name: &'static str) -> Parsed<&'a Value> {
        match self.some(name) {
            Some(value) => Ok(value),
            None => Err(ContractError::invalid(self.at(name), "is required")),
        }
    }

    /// Reads an optional member with `read`; absent and `null` are none.
    pub fn optional<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Label, &'a Value) -> Parsed<T>,
    ) -> Parsed<Option<T>> {
        match self.some(name) {
            Some(value) => read(&self.at(name), value).map(Some),
            None => Ok(None),
        }
    }

    /// Reads a required member with `read`.
    pub fn with<T>(
        &mut self,
        name: &'static str,
        read: impl FnOnce(&Label, &'a Value) -> Parsed<T>,
    ) -> Parsed<T> {
        let value = self.required(name)?;
        read(&self.at(name), value)
    }

    /// Requires a member to hold exactly this text.
    pub fn constant(&mut self, name: &'static str, expected: &'static str) -> Parsed<()> {
        match self.given(name) {
            Some(Value::String(found)) if found == expected => Ok(()),
            None => Err(ContractError::invalid(self.at(name), "is required")),
            Some(_) => Err(must_be(self.at(name), expected)),
        }
    }

    /// As [`Self::constant`], but the member may be absent.
    pub fn constant_if_given(&mut self, name: &'static str, expected: &'static str) -> Parsed<()> {
        match self.given(name) {
            None => Ok(()),
            Some(_) => self.constant(name, expected),
        }
    }

    /// Reads a trimmed text whose length lies in `1..=max`.
    pub fn text(&mut self, name: &'static str, max: usize) -> Parsed<String> {
        self.with(name, |at, value| read_text(at, value, max))
    }

    /// Reads a text that may be absent or `null`, but not blank.
    pub fn optional_text(&mut self, name: &'static str, max: usize) -> Parsed<Option<String>> {
        self.optional(name, |at, value| read_text(at, value, max))
    }

    /// Reads a token, trimmed and lower-cased.
    pub fn token(&mut self, name: &'static str) -> Parsed<Token> {
        self.with(name, read_token)
    }

    /// Reads a token that may be absent or `null`.
    pub fn optional_token(&mut self, name: &'static str) -> Parsed<Option<Token>> {
        self.optional(name, read_token)
    }

    /// Reads a version, trimmed and lower-cased.
    pub fn version(&mut self, name: &'static str) -> Parsed<Version> {
        self.with(name, read_version)
    }

    /// Reads an instant.
    pub fn timestamp(&mut self, name: &'static str) -> Parsed<Timestamp> {
        self.with(name, read_timestamp)
    }

    /// Reads an instant that may be absent or `null`.
    pub fn optional_timestamp(&mut self, name: &'static str) -> Parsed<Option<Timestamp>> {
        self.optional(name, read_timestamp)
    }

    /// Reads a JSON boolean; absent takes the default, `null` is refused.
    pub fn boolean_or(&mut self, name: &'static str, default: bool) -> Parsed<bool> {
        match self.given(name) {
            None => Ok(default),
            Some(value) => read_boolean(&self.at(name), value),
        }
    }

    /// Reads a JSON boolean that must be there.
    pub fn boolean(&mut self, name: &'static str) -> Parsed<bool> {
        self.with(name, read_boolean)
    }

    /// Reads a JSON boolean; absent and `null` are false.
    pub fn flag(&mut self, name: &'static str) -> Parsed<bool> {
        Ok(self.optional(name, read_boolean)?.unwrap_or(false))
    }

    /// Reads an integer that must be there.
    pub fn integer(&mut self, name: &'static str, range: RangeInclusive<i64>) -> Parsed<i64> {
        self.with(name, |at, value| read_integer(at, value, range))
    }

    /// Reads an integer; absent takes the default, `null` is refused.
    pub fn integer_or(
        &mut self,
        name: &'static str,
        range: RangeInclusive<i64>,
        default: i64,
    ) -> Parsed<i64> {
        Ok(self.integer_if_given(name, range)?.unwrap_or(default))
    }

    /// Reads an integer that may be absent, but not `null`.
    pub fn integer_if_given(
        &mut self,
        name: &'static str,
        range: RangeInclusive<i64>,
    ) -> Parsed<Option<i64>> {
        match self.given(name) {
            None => Ok(None),
            Some(value) => read_integer(&self.at(name), value, range).map(Some),
        }
    }

    /// Reads one of the named choices, spelled exactly.
    pub fn choice<T: Copy>(&mut self, name: &'static str, choices: &[(&str, T)]) -> Parsed<T> {
        self.with(name, |at, value| read_choice(at, value, choices))
    }

    /// Reads one of the named choices; absent and `null` are none.
    pub fn optional_choice<T: Copy>(
        &mut self,
        name: &'static str,
        choices: &[(&str, T)],
    ) -> Parsed<Option<T>> {
        self.optional(name, |at, value| read_choice(at, value, choices))
    }

    /// Returns the items of a list that must be there, each with its place.
    pub fn list(&mut self, name: &'static str) -> Parsed<Vec<(Label, &'a Value)>> {
        self.with(name, read_list)
    }

    /// Returns the items of a list; an absent one is empty, `null` is refused.
    pub fn list_or_empty(&mut self, name: &'static str) -> Parsed<Vec<(Label, &'a Value)>> {
        match self.given(name) {
            None => Ok(Vec::new()),
            Some(value) => read_list(&self.at(name), value),
        }
    }
}

/// A name is repeated only when it is a plain identifier, so that no secret leaves through it.
fn unknown_field(at: &Label, name: &str) -> ContractError {
    let is_plain = name.len() <= 64
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'_');
    match is_plain {
        true => ContractError::invalid(at.field(name), "is not a known field; remove it"),
        false => ContractError::invalid(at, "has a field that is not known; remove it"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::json;

    fn read(text: &str) -> Value {
        json::parse(text.as_bytes()).expect("test input is JSON")
    }

    #[test]
    fn a_closed_object_refuses_what_nobody_asked_for() {
        let value = read(r#"{"a":"x","b":1}"#);
        let mut fields = Fields::closed(&Label::root(), &value).expect("an object");
        fields.text("a", 9).expect("given");
        let error = fields.finish(()).expect_err("b is unknown");
        assert_eq!(error.to_string(), "b is not a known field; remove it");
    }

    #[test]
    fn an_unknown_name_that_is_no_identifier_is_not_repeated() {
        let value = read(r#"{"/home/x/secret":1}"#);
        let fields = Fields::closed(&Label::root(), &value).expect("an object");
        let error = fields.finish(()).expect_err("unknown");
        assert!(!error.to_string().contains("secret"));
    }

    #[test]
    fn an_open_object_names_the_rest() {
        let value = read(r#"{"a":"x","b":1}"#);
        let mut fields = Fields::open(&Label::root(), &value).expect("an object");
        fields.text("a", 9).expect("given");
        let rest: Vec<&String> = fields.unknown().map(|(name, _)| name).collect();
        assert_eq!(rest, ["b"]);
        assert!(fields.finish(()).is_ok());
    }

    #[test]
    fn a_fault_says_its_place_and_never_the_value() {
        let value = read(r#"{"list":[{"n":"hunter2"}]}"#);
        let mut fields = Fields::open(&Label::root(), &value).expect("an object");
        let items = fields.list("list").expect("a list");
        let (at, item) = &items[0];
        let mut inner = Fields::closed(at, item).expect("an object");
        let error = inner.integer("n", 0..=9).expect_err("not a number");
        assert_eq!(error.to_string(), "list[0].n must be an integer");
    }

    #[test]
    fn integers_are_read_from_the_three_spellings() {
        let at = Label::root();
        for text in ["7", "7.0", "70e-1", "\" 7 \""] {
            assert_eq!(read_integer(&at, &read(text), 0..=9), Ok(7), "{text}");
        }
        for text in [
            "true",
            "null",
            "7.5",
            "\"7.0\"",
            "10",
            "-1",
            "99999999999999999999",
            "[]",
            "1e300",
        ] {
            assert!(read_integer(&at, &read(text), 0..=9).is_err(), "{text}");
        }
    }

    #[test]
    fn absent_null_and_blank_are_kept_apart() {
        let value = read(r#"{"null":null,"blank":"  "}"#);
        let mut fields = Fields::open(&Label::root(), &value).expect("an object");
        assert_eq!(fields.optional_text("absent", 9), Ok(None));
        assert_eq!(fields.optional_text("null", 9), Ok(None));
        assert!(fields.optional_text("blank", 9).is_err());
        assert!(fields.boolean_or("null", true).is_err());
        assert_eq!(fields.flag("null"), Ok(false));
        assert!(fields.integer_or("null", 0..=9, 1).is_err());
        assert_eq!(fields.integer_or("absent", 0..=9, 1), Ok(1));
        assert!(fields.constant_if_given("absent", "x").is_ok());
        assert!(fields.constant_if_given("null", "x").is_err());
    }
}
