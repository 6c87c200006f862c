//! `project_progress_v0`: what a goal's journal says about a period (`docs/spec/generate.md` 4).
//!
//! It is handed the stored facts and makes items of them: outcomes, what blocks, what is next, and
//! what is needed from the reader.

use crate::contract::error::ContractError;
use crate::contract::ids::Token;
use crate::contract::periodic_report::goal_facts::{DoneTodo, GoalFacts, OpenTodo};
use crate::contract::periodic_report::item::{Detail, Item};
use crate::contract::periodic_report::limits;
use crate::contract::periodic_report::source::progress_sections;
use crate::contract::periodic_report::vocabulary::{ContentKind, SourceStatus};
use crate::contract::time::Timestamp;
use crate::contract::{public_safety, text};
use crate::port::source::{GoalReading, SourceAdapter, SourceReading, SourceScope};

const IDENTITY: (&str, &str) = ("project_progress", "validated_project_progress");
const MAX_OUTCOMES: usize = 6;

/// The facts of one goal.
pub(crate) struct ProjectProgress {
    reading: GoalReading,
}

impl ProjectProgress {
    /// Takes what the journal says.
    pub(crate) fn new(reading: GoalReading) -> Self {
        Self { reading }
    }
}

impl SourceAdapter for ProjectProgress {
    fn newest_fact(&mut self, not_after: Timestamp) -> Option<Timestamp> {
        match &self.reading {
            GoalReading::Facts(facts) => facts.newest.filter(|newest| *newest <= not_after),
            _ => None,
        }
    }

    fn snapshot(&mut self, scope: &SourceScope) -> Result<SourceReading, ContractError> {
        let facts = match &self.reading {
            GoalReading::NotFound => {
                return SourceReading::failed(IDENTITY, scope, "goal_not_found");
            }
            GoalReading::Unreadable => {
                return SourceReading::failed(IDENTITY, scope, "goal_todos_unreadable");
            }
            GoalReading::Facts(facts) => facts,
        };
        let words = Words::of(&scope.language);
        let told = tell(facts, words);
        let status = match told.withheld {
            0 => SourceStatus::Complete,
            _ => SourceStatus::Partial,
        };
        let sections = progress_sections(told.items, &scope.language);
        let reading = SourceReading::live(IDENTITY, scope, status, sections)?;
        Ok(SourceReading {
            omitted: told.omitted,
            withheld: told.withheld,
            ..reading
        })
    }
}

struct Told {
    items: Vec<Item>,
    omitted: usize,
    withheld: usize,
}

/// The fixed words of these items.
struct Words {
    no_evidence: &'static str,
    no_reason: &'static str,
    also_open: &'static str,
    withheld: &'static str,
}

const ENGLISH: Words = Words {
    no_evidence: "Completed; no evidence was written down.",
    no_reason: "Blocked; no reason was written down.",
    also_open: "also open",
    withheld: "text withheld",
};

const CHINESE: Words = Words {
    no_evidence: "已完成；没有写下依据。",
    no_reason: "已受阻；没有写下原因。",
    also_open: "另有待决",
    withheld: "内容已隐去",
};

impl Words {
    fn of(language: &str) -> &'static Self {
        match text::is_chinese(language) {
            true => &CHINESE,
            false => &ENGLISH,
        }
    }
}

fn tell(facts: &GoalFacts, words: &Words) -> Told {
    let mut told = Told {
        items: Vec::new(),
        omitted: 0,
        withheld: 0,
    };
    let room = MAX_OUTCOMES - usize::from(facts.blocked.is_some());
    told.omitted = facts.done.len().saturating_sub(room);
    for (rank, todo) in facts.done.iter().take(room).enumerate() {
        let item = outcome(rank, todo, words);
        told.push(item, words);
    }
    if let Some(todo) = &facts.blocked {
        let reason = todo.note.as_deref().unwrap_or(words.no_reason);
        let item = open_item(("blocked", 70, ContentKind::Risk), todo, reason);
        told.push(item, words);
    }
    if let Some(todo) = &facts.next {
        let item = open_item(
            ("next_action", 90, ContentKind::NextAction),
            todo,
            &todo.text,
        );
        told.push(item, words);
    }
    if let Some((first, rest)) = facts.gates.split_first() {
        told.push(ask(first, rest.len(), words), words);
    }
    told
}

impl Told {
    /// Text that may not be shown must not sink the report: it is withheld and counted.
    fn push(&mut self, item: Item, words: &Words) {
        let shown = [
            Some(&item.title),
            Some(&item.summary),
            item.next_action.as_ref(),
        ];
        let is_public = shown
            .into_iter()
            .flatten()
            .all(|text| public_safety::is_public(text));
        if is_public {
            self.items.push(item);
            return;
        }
        self.withheld += 1;
        let reference = item.source_ref.clone().unwrap_or_default();
        let text = format!(
            "{}: {}",
            reference.trim_start_matches("todo:"),
            words.withheld
        );
        self.items.push(Item {
            title: text.clone(),
            summary: text,
            next_action: None,
            ..item
        });
    }
}

fn token(text: &str) -> Token {
    Token::new(text).expect("made of constants and digits of the token grammar")
}

fn line(raw: &str, limit: usize) -> String {
    text::cut(&text::collapse(raw), limit)
}

fn outcome(rank: usize, todo: &DoneTodo, words: &Words) -> Item {
    let evidence = todo
        .evidence
        .as_deref()
        .filter(|text| !text::trim(text).is_empty());
    let summary = line(
        evidence.unwrap_or(words.no_evidence),
        limits::PRIMARY_SUMMARY,
    );
    let id = token(&format!("completed_{}", rank + 1));
    let mut item = Item::new(
        id,
        line(&todo.text, limits::ITEM_TITLE),
        summary,
        ContentKind::Outcome,
    );
    item.value_rank = 10 + i64::try_from(rank).unwrap_or(0);
    item.source_ref = Some(format!("todo:{}", todo.todo_id));
    item.occurred_at = Some(todo.completed_at);
    item
}

fn open_item((id, rank, kind): (&str, i64, ContentKind), todo: &OpenTodo, summary: &str) -> Item {
    let summary = line(summary, limits::PRIMARY_SUMMARY);
    let mut item = Item::new(
        token(id),
        line(&todo.text, limits::ITEM_TITLE),
        summary,
        kind,
    );
    item.value_rank = rank;
    item.source_ref = Some(format!("todo:{}", todo.todo_id));
    item
}

/// Open user gates are one ask: the first one, and how many more there are.
fn ask(gate: &OpenTodo, more: usize, words: &Words) -> Item {
    let mut item = open_item(("ask", 80, ContentKind::NextAction), gate, &gate.text);
    item.tags = vec![token("ask")];
    item.next_action = Some(line(
        gate.note.as_deref().unwrap_or(&gate.text),
        limits::REFERENCE,
    ));
    if more > 0 {
        item.details.push(Detail {
            label: words.also_open.to_owned(),
            text: line(&more.to_string(), limits::DETAIL_TEXT),
        });
    }
    item
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::ids::{GoalId, TodoId};
    use crate::contract::time::Window;

    fn scope() -> SourceScope {
        let instant = |text| Timestamp::parse(text).expect("an instant");
        let end = instant("2026-11-19T12:00:00Z");
        SourceScope {
            window: Window::new(instant("2026-11-16T00:00:00Z"), end).expect("a window"),
            language: "en".to_owned(),
            generated_at: end,
        }
    }

    fn done(number: usize, evidence: &str) -> DoneTodo {
        let completed_at = Timestamp::parse("2026-11-18T10:00:00Z").expect("an instant");
        DoneTodo {
            todo_id: TodoId::new(format!("todo_{number:012}")).expect("an id"),
            text: format!("Replace pump {number}"),
            evidence: Some(evidence.to_owned()),
            completed_at,
            updated_at: completed_at,
            agent: None,
        }
    }

    fn open(text: &str, note: Option<&str>) -> OpenTodo {
        OpenTodo {
            todo_id: TodoId::new("todo_abc").expect("an id"),
            text: text.to_owned(),
            note: note.map(str::to_owned),
        }
    }

    fn facts() -> GoalFacts {
        GoalFacts {
            goal_id: GoalId::new("harbour").expect("an id"),
            done: (1..=7)
                .map(|number| done(number, "ran for a day"))
                .collect(),
            next: Some(open("Survey berth four", None)),
            gates: vec![
                open("Approve the budget", Some("Is 3,200 fine?")),
                open("x", None),
            ],
            blocked: None,
            newest: None,
        }
    }

    fn read(facts: GoalFacts) -> SourceReading {
        let mut source = ProjectProgress::new(GoalReading::Facts(Box::new(facts)));
        source.snapshot(&scope()).expect("a reading")
    }

    #[test]
    fn outcomes_next_action_and_ask_fill_eight_places() {
        let reading = read(facts());
        assert_eq!((reading.result.item_count, reading.omitted), (8, 1));
        let next = &reading.result.sections[1];
        let ask = &next.items[0];
        assert_eq!((ask.item_id.as_str(), ask.value_rank), ("ask", 80));
        assert_eq!(ask.next_action.as_deref(), Some("Is 3,200 fine?"));
        assert_eq!(ask.details[0].text, "1");
    }

    #[test]
    fn a_blocked_todo_takes_the_place_of_the_sixth_outcome() {
        let blocked = Some(open("Dredge the fairway", Some("The dredger is broken.")));
        let reading = read(GoalFacts { blocked, ..facts() });
        assert_eq!((reading.result.item_count, reading.omitted), (8, 2));
        let risk = &reading.result.sections[1].items[0];
        assert_eq!((risk.item_id.as_str(), risk.value_rank), ("blocked", 70));
        assert_eq!(risk.summary, "The dredger is broken.");
    }

    #[test]
    fn text_that_may_not_be_shown_is_withheld_and_counted() {
        let mut facts = facts();
        facts.done = vec![done(1, "log at /home/ann/run.log")];
        let reading = read(facts);
        assert_eq!(
            (reading.withheld, reading.result.status),
            (1, SourceStatus::Partial)
        );
        assert_eq!(
            reading.result.sections[0].items[0].title,
            "todo_000000000001: text withheld"
        );
    }
}
