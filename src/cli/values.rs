//! Values of the command line, read once into types that cannot be wrong. A refused value is exit 2 before any state is read.

use clap::builder::PossibleValuesParser;

use crate::contract::goal::WaitingOn;
use crate::contract::ids::{AgentId, GoalId, ReplanObligationId, TodoId, TurnInstanceId, TurnKey};
use crate::contract::scope::DecisionScope;
use crate::contract::text;
use crate::contract::time::Timestamp;
use crate::contract::todo::TASK_CLASSES;
use crate::contract::todo_timing;

type Parsed<T> = Result<T, String>;

pub(super) fn goal_id(word: &str) -> Parsed<GoalId> {
    GoalId::new(word).ok_or_else(|| "a goal id is one path segment without `/`".to_owned())
}

pub(super) fn agent_id(word: &str) -> Parsed<AgentId> {
    AgentId::normalize(word).ok_or_else(|| {
        "an agent id starts with a letter and holds letters, digits and _.:@-".to_owned()
    })
}

pub(super) fn todo_id(word: &str) -> Parsed<TodoId> {
    TodoId::new(text::trim(word))
        .ok_or_else(|| "a todo id is `todo_` and 3 to 64 of a-z, 0-9, _ and -".to_owned())
}

pub(super) fn instance(word: &str) -> Parsed<TurnInstanceId> {
    TurnInstanceId::normalize(word)
        .ok_or_else(|| "a turn instance id is 1 to 128 letters, digits and ._:-".to_owned())
}

pub(super) fn turn_key(word: &str) -> Parsed<TurnKey> {
    TurnKey::new(text::trim(word))
        .ok_or_else(|| "a turn key is `sha256:` and 64 hex digits".to_owned())
}

pub(super) fn obligation(word: &str) -> Parsed<ReplanObligationId> {
    ReplanObligationId::new(text::trim(word))
        .ok_or_else(|| "an obligation id is `replan-` and 16 hex digits".to_owned())
}

pub(super) fn scope(word: &str) -> Parsed<String> {
    let scope = DecisionScope::parse(word).map(|scope| scope.to_string());
    scope.ok_or_else(|| {
        "a decision scope is kind:granularity:key, such as production:goal:release".to_owned()
    })
}

pub(super) fn instant(word: &str) -> Parsed<String> {
    let instant = Timestamp::parse(word).map(|instant| instant.to_string());
    instant.ok_or_else(|| {
        "an instant is RFC 3339 with an offset, such as 2026-09-18T09:00:00Z".to_owned()
    })
}

pub(super) fn priority() -> PossibleValuesParser {
    PossibleValuesParser::new(["P0", "P1", "P2", "P3", "P4"])
}

pub(super) fn task_class() -> PossibleValuesParser {
    PossibleValuesParser::new(TASK_CLASSES)
}

/// The conditions a todo waits for: instants and todos, with commas between them.
pub(super) fn resume_when(word: &str) -> Parsed<String> {
    let trimmed = words(word)?;
    if todo_timing::are_conditions(&trimmed) {
        Ok(trimmed)
    } else {
        Err("must be instants or todo ids with commas between them, such as 2026-09-18T09:00:00Z or todo_a2a97e2e1385".to_owned())
    }
}

/// How often a monitor is due: a word, a number with m, h, d or w, or an ISO 8601 duration.
pub(super) fn cadence(word: &str) -> Parsed<String> {
    let trimmed = text::trim(word);
    if todo_timing::is_cadence(trimmed) {
        Ok(trimmed.to_owned())
    } else {
        Err("must be hourly, daily, weekly or monthly, a number with m, h, d or w such as 30m, or a duration such as P1D".to_owned())
    }
}

pub(super) fn waiting_on() -> PossibleValuesParser {
    PossibleValuesParser::new(WaitingOn::WORDS)
}

pub(super) fn words(word: &str) -> Parsed<String> {
    match text::trim(word) {
        "" => Err("must not be empty".to_owned()),
        trimmed if trimmed.contains('\0') || text::is_longer_than(trimmed, 20_000) => {
            Err("must be a text of at most 20000 characters".to_owned())
        }
        trimmed => Ok(trimmed.to_owned()),
    }
}

/// A public-safe token of at most 160 characters: operation ids, lease keys.
pub(super) fn key(word: &str) -> Parsed<String> {
    let trimmed = text::trim(word);
    let is_plain = !trimmed.is_empty()
        && !text::is_longer_than(trimmed, 160)
        && !trimmed.chars().any(char::is_control);
    if is_plain && crate::contract::public_safety::is_pathless(trimmed) {
        Ok(trimmed.to_owned())
    } else {
        Err("a key is 1 to 160 public-safe characters".to_owned())
    }
}

/// A finite number of at least zero, kept in its own spelling where JSON has it.
pub(super) fn amount(word: &str) -> Parsed<serde_json::Number> {
    let float: f64 = word
        .trim()
        .parse()
        .map_err(|_| "must be a number".to_owned())?;
    if !float.is_finite() || float < 0.0 {
        return Err("must be finite and not negative".to_owned());
    }
    let lexeme = crate::contract::json::parse(word.trim().as_bytes())
        .ok()
        .and_then(|value| value.as_number().cloned());
    lexeme
        .or_else(|| serde_json::Number::from_f64(float))
        .ok_or_else(|| "must be a number".to_owned())
}

/// As `amount`, but above zero.
pub(super) fn positive(word: &str) -> Parsed<serde_json::Number> {
    let number = amount(word)?;
    match number.as_str().parse::<f64>() {
        Ok(float) if float > 0.0 => Ok(number),
        _ => Err("must be above zero".to_owned()),
    }
}
