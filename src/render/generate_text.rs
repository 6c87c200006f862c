//! The text of a generate result, from its packet alone: what the report says, where it is, and
//! what to do next.

use serde_json::Value;

use super::prepare::prepare;
use crate::contract::periodic_report::limits;

/// Lays out a generate result.
pub(crate) fn result(packet: &Value) -> String {
    let mut out = String::new();
    let period = format!(
        "{} – {} ({})",
        word(&packet["period_window"]["start_at"]),
        word(&packet["period_window"]["end_at"]),
        word(&packet["timezone"])
    );
    push(&mut out, &format!("Report of {period}"));
    if let Some(summary) = packet["summary"].as_str() {
        push(&mut out, &prepare(summary, limits::SUMMARY));
    }
    push(&mut out, &counts(packet));
    for source in packet["sources"].as_array().into_iter().flatten() {
        if let Some(line) = source_line(source) {
            push(&mut out, &line);
        }
    }
    push(&mut out, &place(packet));
    push_next_step(&mut out, &packet["next_step"]);
    out
}

fn push(out: &mut String, line: &str) {
    out.push_str(line);
    out.push('\n');
}

fn word(value: &Value) -> String {
    match value {
        Value::String(text) => prepare(text, limits::SUMMARY).into_owned(),
        Value::Null => "none".to_owned(),
        other => other.to_string(),
    }
}

fn counts(packet: &Value) -> String {
    let kinds = packet["primary_item_kinds"]
        .as_array()
        .into_iter()
        .flatten();
    let kinds: Vec<String> = kinds
        .map(|kind| {
            let name = word(&kind["content_kind"]).replace('_', " ");
            format!("{} {name}", word(&kind["count"]))
        })
        .collect();
    let primary = &packet["primary_item_count"];
    let notes = &packet["supporting_item_count"];
    match kinds.is_empty() {
        true => format!("Facts: {primary}, notes: {notes}"),
        false => format!("Facts: {primary} ({}), notes: {notes}", kinds.join(", ")),
    }
}

/// A source that was read whole and left nothing out needs no line.
fn source_line(source: &Value) -> Option<String> {
    let count = |name: &str| source[name].as_u64().unwrap_or(0);
    let left = [
        ("omitted_count", "left out"),
        ("withheld_count", "withheld"),
    ];
    let is_whole = source["status"] == "complete" && left.iter().all(|(name, _)| count(name) == 0);
    if is_whole {
        return None;
    }
    let mut line = format!(
        "Source {}: {}",
        word(&source["source_id"]),
        word(&source["status"])
    );
    if let Some(reason) = source["reason"].as_str() {
        line.push_str(&format!(" ({reason})"));
    }
    for (name, label) in left.iter().filter(|(name, _)| count(name) > 0) {
        line.push_str(&format!(", {label} {}", count(name)));
    }
    Some(line)
}

fn place(packet: &Value) -> String {
    let Some(out) = packet["out"].as_str() else {
        return "Preview: nothing was written. Without --preview the report is written to disk."
            .to_owned();
    };
    let artifacts = packet["artifacts"].as_array().into_iter().flatten();
    let files: Vec<&str> = artifacts.filter_map(|one| one["file"].as_str()).collect();
    let (file, how) = match files.first() {
        _ if files.contains(&"report.html") => ("report.html", " in a browser"),
        Some(file) => (*file, ""),
        None => ("bundle.json", ""),
    };
    let verb = match packet["already_generated"].as_bool() {
        Some(true) => "The same report is there already. Open",
        _ => "Open",
    };
    format!("{verb} {}/{file}{how}.", prepare(out, limits::SUMMARY))
}

fn push_next_step(out: &mut String, step: &Value) {
    let Some(reason) = step["reason"].as_str() else {
        return;
    };
    push(out, "");
    push(out, &prepare(reason, limits::SUMMARY));
    for command in step["commands"].as_array().into_iter().flatten() {
        push(out, &format!("  {}", word(command)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_text_names_the_page_and_the_next_step() {
        let packet = json!({
            "period_window": {"start_at": "2026-11-16T00:00:00Z", "end_at": "2026-11-19T12:00:00Z"},
            "timezone": "UTC", "summary": "Outcome: Pumps run.", "primary_item_count": 2,
            "supporting_item_count": 1, "out": "weekly", "already_generated": false,
            "primary_item_kinds": [{"content_kind": "outcome", "count": 2}],
            "artifacts": [{"file": "report.md"}, {"file": "report.html"}],
            "sources": [{"source_id": "git_history", "status": "complete", "reason": "git_item_limit",
                "omitted_count": 3, "withheld_count": 0}],
            "next_step": {"reason": "Do this:", "commands": ["loopx bootstrap"]},
        });
        assert_eq!(
            result(&packet),
            "Report of 2026-11-16T00:00:00Z – 2026-11-19T12:00:00Z (UTC)\n\
             Outcome: Pumps run.\n\
             Facts: 2 (2 outcome), notes: 1\n\
             Source git_history: complete (git_item_limit), left out 3\n\
             Open weekly/report.html in a browser.\n\
             \nDo this:\n  loopx bootstrap\n"
        );
    }
}
