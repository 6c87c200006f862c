//! The one picture of the page: primary items by kind and, when times are known, by day.
//!
//! Made of strings and numbers. It says in one sentence all its numbers; the legend beside it
//! says them again as text (`docs/spec/report-design.md` 5).

use chrono::{DateTime, Datelike, TimeDelta, Utc};

use super::labels::{Labels, kind_index};
use super::page::{Days, LegendEntry, Shape};
use super::symbol::{colour, symbol};
use crate::contract::periodic_report::document::GivenDocument;
use crate::contract::periodic_report::item::Item;
use crate::contract::periodic_report::vocabulary::ContentKind;
use crate::contract::time::Window;

const WIDTH: f64 = 294.0;
const STEP: usize = 13;
const FOOT: usize = 24;
const TALLEST: usize = 12;
const MAX_DAYS: usize = 31;
const MAX_LABELS: usize = 7;
const KINDS: usize = 10;

/// Draws the shape of a document; none when no primary item is typed.
pub(super) fn of(document: &GivenDocument, labels: &'static Labels) -> Option<Shape> {
    let items = document.sections.iter().flat_map(|section| &section.items);
    let primary: Vec<&Item> = items.filter(|item| item.is_primary()).collect();
    if primary.iter().all(|item| item.content_kind.is_none()) {
        return None;
    }
    let columns = columns(&primary, &document.window);
    let dated: usize = columns.iter().flatten().flatten().sum();
    let (caption, days) = match columns {
        Some(columns) if dated > 0 => {
            let undated = primary.len() - dated;
            let caption = match undated {
                0 => labels.by_day.to_owned(),
                count => format!("{} · {} {count}", labels.by_day, labels.undated),
            };
            let days = draw(&columns, &document.window, labels, &caption);
            (caption, Some(days))
        }
        _ => (labels.by_kind.to_owned(), None),
    };
    Some(Shape {
        caption,
        days,
        legend: legend(&primary, labels),
    })
}

fn legend(primary: &[&Item], labels: &Labels) -> Vec<LegendEntry> {
    let mut counts = [0_usize; KINDS];
    for item in primary {
        counts[kind_index(item.content_kind)] += 1;
    }
    let kinds = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    kinds
        .map(|(index, count)| LegendEntry {
            class: colour(kind_at(index)),
            symbol: symbol(kind_at(index)),
            name: labels.kinds[index],
            count: *count,
        })
        .collect()
}

fn kind_at(index: usize) -> Option<ContentKind> {
    let mut kinds = ContentKind::CHOICES.iter().map(|(_, kind)| *kind);
    kinds.find(|kind| kind_index(Some(*kind)) == index)
}

/// One day: how many items of each kind.
type Column = [usize; KINDS];

/// Sorts items into slices of 24 hours from the start of the window; none for a long window.
fn columns(primary: &[&Item], window: &Window) -> Option<Vec<Column>> {
    let day = TimeDelta::days(1);
    let span = window.end_at().utc() - window.start_at().utc();
    let whole = usize::try_from(span.num_days()).ok()?;
    let is_cut = span > day * i32::try_from(whole).ok()?;
    let days = whole + usize::from(is_cut);
    if days > MAX_DAYS {
        return None;
    }
    let mut columns = vec![[0; KINDS]; days];
    for item in primary {
        let Some(occurred_at) = item.occurred_at.filter(|at| window.contains(*at)) else {
            continue;
        };
        let passed = occurred_at.utc() - window.start_at().utc();
        let index = usize::try_from(passed.num_days()).ok()?;
        columns[index][kind_index(item.content_kind)] += 1;
    }
    Some(columns)
}

fn draw(columns: &[Column], window: &Window, labels: &Labels, caption: &str) -> Days {
    let height_of = |column: &Column| column.iter().sum::<usize>();
    let tallest = columns.iter().map(height_of).max().unwrap_or(0);
    let height = tallest.min(TALLEST + 1) * STEP + FOOT;
    let every = columns.len().div_ceil(MAX_LABELS);
    let mut marks = String::new();
    let mut sentence = Vec::new();
    for (index, column) in columns.iter().enumerate() {
        let centre = WIDTH / count(columns.len()) * (count(index) + 0.5);
        push_column(&mut marks, column, centre, height);
        let name = day_name(index, columns.len(), window, labels);
        if index % every == 0 {
            let text = format!(
                r#"<text x="{}" y="{}">{name}</text>"#,
                number(centre),
                height - 4
            );
            marks.push_str(&text);
        }
        sentence.push(format!("{name}: {}", height_of(column)));
    }
    marks.push_str(&format!(r#"<path d="M0 {}.5h294"/>"#, height - 20));
    Days {
        label: format!("{caption}{}{}", labels.separator, sentence.join(", ")),
        height,
        marks,
    }
}

fn push_column(marks: &mut String, column: &Column, centre: f64, height: usize) {
    let total: usize = column.iter().sum();
    let x = number(centre - 5.0);
    if total > TALLEST {
        let top = height - 20 - STEP * TALLEST;
        let is_risky = column[kind_index(Some(ContentKind::Risk))] > 0;
        marks.push_str(&format!(
            r#"<rect x="{x}" y="{top}" width="10" height="{}" class="{}"/><text x="{}" y="{}">{total}</text>"#,
            STEP * TALLEST - 1,
            if is_risky { "r" } else { "a" },
            number(centre),
            top - 3,
        ));
        return;
    }
    let mut level = 0;
    for (index, kinds) in column.iter().enumerate() {
        let kind = kind_at(index);
        for _ in 0..*kinds {
            level += 1;
            marks.push_str(&format!(
                r##"<use href="#k-{}" x="{x}" y="{}" width="10" height="10" class="{}"/>"##,
                symbol(kind),
                height - 20 - STEP * level,
                colour(kind),
            ));
        }
    }
}

/// Returns the UTC date on which a slice begins, with its weekday when there is room for one.
fn day_name(index: usize, days: usize, window: &Window, labels: &Labels) -> String {
    let step = TimeDelta::days(i64::try_from(index).unwrap_or(0));
    let day: DateTime<Utc> = window.start_at().utc() + step;
    match days <= MAX_LABELS {
        true => {
            let weekday = day.weekday().num_days_from_monday() as usize;
            format!("{} {}", labels.weekdays[weekday], day.day())
        }
        false => format!("{:02}-{:02}", day.month(), day.day()),
    }
}

fn count(number: usize) -> f64 {
    u32::try_from(number).map_or(0.0, f64::from)
}

/// At most one decimal, none when it is zero.
fn number(value: f64) -> String {
    let text = format!("{value:.1}");
    match text.strip_suffix(".0") {
        Some(whole) => whole.to_owned(),
        None => text,
    }
}
