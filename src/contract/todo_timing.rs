//! The words of a todo that say when: what it waits for, and how often a monitor looks.
//!
//! Nothing here knows the time or whether a condition holds.

use super::ids::TodoId;
use super::time::Timestamp;

/// One thing a todo waits for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// An instant has come.
    Instant(Timestamp),
    /// A todo is done.
    Done(TodoId),
    /// Words of an older record; they hold until the todo is changed.
    Unknown,
}

/// The conditions of a `resume_when`, every one of which has to hold.
pub fn conditions(text: &str) -> impl Iterator<Item = Condition> {
    let parts = text.split(',').map(str::trim);
    parts.filter(|part| !part.is_empty()).map(condition)
}

fn condition(part: &str) -> Condition {
    let bare = ["todo_done:", "todo:", "after:", "time:"]
        .iter()
        .find_map(|prefix| part.strip_prefix(prefix))
        .unwrap_or(part);
    match (Timestamp::parse(bare), TodoId::new(bare)) {
        (Some(instant), _) => Condition::Instant(instant),
        (None, Some(id)) => Condition::Done(id),
        (None, None) => Condition::Unknown,
    }
}

/// True when a text holds conditions and nothing else.
pub fn are_conditions(text: &str) -> bool {
    let mut all = conditions(text).peekable();
    all.peek().is_some() && all.all(|condition| condition != Condition::Unknown)
}

/// True for `hourly` and its kin, a number with m, h, d or w, and an ISO 8601 duration.
pub fn is_cadence(text: &str) -> bool {
    const WORDS: [&str; 4] = ["hourly", "daily", "weekly", "monthly"];
    if WORDS.contains(&text) {
        return true;
    }
    match text.strip_prefix('P') {
        Some(duration) => is_duration(duration),
        None => is_amount(text, "mhdw"),
    }
}

/// A whole number above zero with one of these units.
fn is_amount(text: &str, units: &str) -> bool {
    let mut chars = text.chars();
    let has_unit = chars.next_back().is_some_and(|unit| units.contains(unit));
    let digits = chars.as_str();
    let is_number = (1..=4).contains(&digits.len()) && digits.bytes().all(|b| b.is_ascii_digit());
    has_unit && is_number && digits.bytes().any(|digit| digit != b'0')
}

fn is_duration(text: &str) -> bool {
    let (days, hours) = text.split_once('T').unwrap_or((text, ""));
    let has_time = text.contains('T');
    let parts = |text: &str, units: &str| {
        text.split_inclusive(|c: char| c.is_ascii_uppercase())
            .all(|part| is_amount(part, units))
    };
    let is_empty = days.is_empty() && hours.is_empty();
    !is_empty && (!has_time || !hours.is_empty()) && parts(days, "YMWD") && parts(hours, "HMS")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conditions_are_instants_and_todos_alone() {
        for good in [
            "2027-01-01T00:00:00Z",
            "todo_abc",
            "todo_done:todo_abc, time:2027-01-01T00:00:00Z",
        ] {
            assert!(are_conditions(good), "{good}");
        }
        for bad in ["garbage", "", ",", "todo_abc, later", "2027-01-01"] {
            assert!(!are_conditions(bad), "{bad}");
        }
    }

    #[test]
    fn a_cadence_is_a_word_an_amount_or_a_duration() {
        for good in ["hourly", "weekly", "30m", "6h", "P1D", "PT30M", "P1DT12H"] {
            assert!(is_cadence(good), "{good}");
        }
        for bad in ["sometimes", "", "m", "0h", "P", "PT", "P1", "1.5h", "P1H"] {
            assert!(!is_cadence(bad), "{bad}");
        }
    }
}
