//! The continuation note a Todo carries from one session or agent to the next (`docs/spec/kernel.md` 12).
//!
//! A note is context, never authority. It is bound to the Todo's facts as they were: a Todo that changed
//! since makes the note stale.

use serde_json::{Map, Value, json};

use super::digest;
use super::error::ContractError;
use super::parse::{Fields, Label, at_most, read_text};
use super::public_safety;
use super::todo::Todo;

type Parsed<T> = Result<T, ContractError>;

const KIND: &str = "loopx-explicit-continuation";
/// Members of a Todo that change without the work changing.
const LOOSE: [&str; 3] = ["note", "updated_at", "last_actor_agent_id"];

/// One list of a note: its name, the most entries, and what each holds.
struct List {
    name: &'static str,
    most: usize,
    fields: &'static [(&'static str, Kind)],
}

#[derive(Clone, Copy)]
enum Kind {
    Text(usize),
    OptionalText(usize),
    Word(&'static [(&'static str, &'static str)]),
}

const OUTCOMES: &[(&str, &str)] = &[
    ("success", "success"),
    ("partial", "partial"),
    ("failed", "failed"),
];
const ACTIONS: &[(&str, &str)] = &[
    ("read", "read"),
    ("edited", "edited"),
    ("created", "created"),
    ("deleted", "deleted"),
];

/// Lists of objects, in the order of the note.
const OBJECTS: [List; 3] = [
    List {
        name: "approaches_tried",
        most: 20,
        fields: &[
            ("approach", Kind::Text(300)),
            ("outcome", Kind::Word(OUTCOMES)),
            ("reason", Kind::Text(300)),
        ],
    },
    List {
        name: "files_touched",
        most: 50,
        fields: &[
            ("path", Kind::Text(240)),
            ("action", Kind::Word(ACTIONS)),
            ("summary", Kind::OptionalText(200)),
        ],
    },
    List {
        name: "key_decisions",
        most: 20,
        fields: &[
            ("decision", Kind::Text(300)),
            ("rationale", Kind::Text(300)),
        ],
    },
];

/// Lists of texts: name, most entries, longest text.
const TEXTS: [(&str, usize, usize); 3] = [
    ("next_steps", 20, 300),
    ("open_questions", 20, 300),
    ("source_refs", 20, 180),
];

/// What one session leaves for the next.
#[derive(Debug, Clone, PartialEq)]
pub struct Context(Map<String, Value>);

impl Context {
    /// Reads the context of a file: context members only, everything else is refused.
    pub fn parse(value: &Value) -> Parsed<Self> {
        public_safety::guard(value)?;
        Self::read(&Label::root(), value, &[])
    }

    /// Takes a rationale and references given on the command line.
    pub fn of_rationale(rationale: &str, source_refs: &[String]) -> Parsed<Self> {
        let mut value = json!({"rationale": rationale});
        if !source_refs.is_empty() {
            value["source_refs"] = json!(source_refs);
        }
        Self::parse(&value)
    }

    /// The members as an object.
    pub fn to_value(&self) -> Value {
        Value::Object(self.0.clone())
    }

    fn read(at: &Label, value: &Value, fixed: &[&'static str]) -> Parsed<Self> {
        let mut fields = Fields::closed(at, value)?;
        for name in fixed {
            fields.given(name);
        }
        let mut kept = Map::new();
        for (name, most) in [("work_summary", 2000), ("rationale", 600)] {
            if let Some(text) = fields.optional_text(name, most)? {
                kept.insert(name.to_owned(), json!(text));
            }
        }
        if kept.is_empty() {
            return Err(ContractError::invalid(
                at,
                "needs a work_summary or a rationale",
            ));
        }
        for list in &OBJECTS {
            read_objects(&mut fields, list, &mut kept)?;
        }
        for (name, most, longest) in TEXTS {
            read_texts(&mut fields, (name, most, longest), &mut kept)?;
        }
        fields.finish(Self(kept))
    }
}

fn read_objects(fields: &mut Fields<'_>, list: &List, kept: &mut Map<String, Value>) -> Parsed<()> {
    let Some(value) = fields.some(list.name) else {
        return Ok(());
    };
    let at = fields.at(list.name);
    let items = super::parse::read_list(&at, value)?;
    at_most(&at, &items, list.most)?;
    let read = items
        .iter()
        .map(|(at, item)| read_object(at, item, list.fields));
    kept.insert(
        list.name.to_owned(),
        Value::Array(read.collect::<Parsed<_>>()?),
    );
    Ok(())
}

fn read_object(at: &Label, item: &Value, members: &[(&'static str, Kind)]) -> Parsed<Value> {
    let mut fields = Fields::closed(at, item)?;
    let mut object = Map::new();
    for (name, kind) in members {
        let value = match kind {
            Kind::Text(most) => Some(fields.text(name, *most)?),
            Kind::OptionalText(most) => fields.optional_text(name, *most)?,
            Kind::Word(words) => Some(fields.choice(name, words)?.to_owned()),
        };
        if let Some(value) = value {
            object.insert((*name).to_owned(), json!(value));
        }
    }
    fields.finish(Value::Object(object))
}

fn read_texts(
    fields: &mut Fields<'_>,
    (name, most, longest): (&'static str, usize, usize),
    kept: &mut Map<String, Value>,
) -> Parsed<()> {
    let Some(value) = fields.some(name) else {
        return Ok(());
    };
    let at = fields.at(name);
    let items = super::parse::read_list(&at, value)?;
    at_most(&at, &items, most)?;
    let read = items
        .iter()
        .map(|(at, item)| read_text(at, item, longest).map(Value::String));
    kept.insert(name.to_owned(), Value::Array(read.collect::<Parsed<_>>()?));
    Ok(())
}

/// A note as it is stored in a Todo.
#[derive(Debug, Clone, PartialEq)]
pub struct Note {
    source_session: String,
    todo_facts: String,
    context: Context,
}

impl Note {
    /// Binds a context to a session and to the Todo as it is.
    pub fn new(source_session: &str, todo: &Todo, context: Context) -> Self {
        Self {
            source_session: source_session.to_owned(),
            todo_facts: facts(todo),
            context,
        }
    }

    /// Reads the note of a Todo; none when it carries no continuation note.
    pub fn of(todo: &Todo) -> Option<Self> {
        let value: Value = super::json::parse(todo.text("note")?.as_bytes()).ok()?;
        let word = |name: &str| value.get(name)?.as_str().map(str::to_owned);
        if word("kind")? != KIND {
            return None;
        }
        let fixed = ["kind", "source_session", "todo_facts"];
        let context = Context::read(&Label::named("note"), &value, &fixed).ok()?;
        Some(Self {
            source_session: word("source_session")?,
            todo_facts: word("todo_facts")?,
            context,
        })
    }

    /// The stored form.
    pub fn to_value(&self) -> Value {
        let mut note = Map::new();
        note.insert("kind".to_owned(), json!(KIND));
        note.insert("source_session".to_owned(), json!(self.source_session));
        note.insert("todo_facts".to_owned(), json!(self.todo_facts));
        note.extend(self.context.0.clone());
        Value::Object(note)
    }

    /// The session that left it.
    pub fn source_session(&self) -> &str {
        &self.source_session
    }

    /// Tells whether the Todo is still the one the note was written for.
    pub fn is_current(&self, todo: &Todo) -> bool {
        self.todo_facts == facts(todo)
    }

    /// Digest of the note.
    pub fn facts(&self) -> String {
        digest::digest_hex(&self.to_value()).unwrap_or_default()
    }

    /// Why the work is handed over.
    pub fn rationale(&self) -> Option<&str> {
        self.context.0.get("rationale").and_then(Value::as_str)
    }

    /// The first thing to do next.
    pub fn next_step(&self) -> Option<&str> {
        self.context.0.get("next_steps")?.get(0)?.as_str()
    }

    /// References to what was found.
    pub fn evidence_refs(&self) -> Vec<&str> {
        let refs = self.context.0.get("source_refs").and_then(Value::as_array);
        refs.into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect()
    }
}

/// Digest of what a Todo says about its work, its owner included.
pub fn facts(todo: &Todo) -> String {
    let mut body = todo.body().clone();
    body.retain(|name, _| !LOOSE.contains(&name.as_str()));
    digest::digest_hex(&Value::Object(body)).unwrap_or_default()
}

/// Digest of what stays the same when only the owner changes.
pub fn stable_facts(todo: &Todo) -> String {
    let mut without = todo.clone();
    without.set("claimed_by", Value::Null);
    facts(&without)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::ids::TodoId;
    use crate::contract::todo::Role;

    fn todo() -> Todo {
        let id = TodoId::new("todo_abc").expect("valid");
        Todo::new(id, Role::Agent, "carry on")
    }

    #[test]
    fn a_note_survives_its_stored_form() {
        let context = Context::parse(&json!({
            "work_summary": " half done ",
            "approaches_tried": [{"approach": "by hand", "outcome": "partial", "reason": "slow"}],
            "next_steps": ["the rest"],
            "source_refs": ["table-1"],
        }));
        let note = Note::new("session-1", &todo(), context.expect("valid"));
        let mut carrying = todo();
        carrying.set("note", json!(note.to_value().to_string()));
        let read = Note::of(&carrying).expect("a note");
        assert_eq!(read, note);
        assert!(
            read.is_current(&carrying),
            "the note itself is no fact of the work"
        );
        carrying.set("priority", json!("P0"));
        assert!(!read.is_current(&carrying));
    }

    #[test]
    fn operational_keys_wrong_types_and_empty_contexts_are_refused() {
        for value in [
            json!({"rationale": "x", "goal_id": "g"}),
            json!({"rationale": "x", "action": "adopt"}),
            json!({"rationale": 5}),
            json!({}),
            json!({"next_steps": ["x"]}),
            json!(["x"]),
            json!({"rationale": "x", "next_steps": "one"}),
            json!({"rationale": "x", "approaches_tried": [{"approach": "a", "outcome": "maybe", "reason": "r"}]}),
            json!({"rationale": "see /Users/example/x"}),
        ] {
            assert!(Context::parse(&value).is_err(), "{value}");
        }
    }

    #[test]
    fn an_ordinary_remark_is_no_note() {
        let mut plain = todo();
        plain.set("note", json!("just a remark"));
        assert_eq!(Note::of(&plain), None);
    }

    #[test]
    fn the_owner_is_a_fact_but_not_a_stable_one() {
        let mut owned = todo();
        owned.set("claimed_by", json!("lane-a"));
        assert_ne!(facts(&owned), facts(&todo()));
        assert_eq!(stable_facts(&owned), stable_facts(&todo()));
    }
}
