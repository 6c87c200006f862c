//! The text view of a collector's log: one line an entry, made from the entry alone.

use serde_json::Value;

/// Lays out the newest entries.
pub(crate) fn log(packet: &Value) -> String {
    let lines = packet["lines"]
        .as_array()
        .map(Vec::as_slice)
        .unwrap_or_default();
    if lines.is_empty() {
        return "The collector has written nothing yet.\n".to_owned();
    }
    lines.iter().map(|entry| line(entry) + "\n").collect()
}

/// Lays out one entry.
pub(crate) fn line(entry: &Value) -> String {
    let word = |name: &str| entry[name].as_str().unwrap_or("");
    let mut text = format!("{} {}", word("at"), word("event"));
    if let Some(count) = entry["count"].as_u64() {
        text.push_str(&format!(" {count}"));
    }
    if let Some(code) = entry["error_code"].as_str() {
        text.push_str(&format!(" {code}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_entry_is_one_line() {
        let entry = json!({"at": "2026-09-10T00:00:00Z", "event": "source_lost", "error_code": "x", "count": 2});
        assert_eq!(line(&entry), "2026-09-10T00:00:00Z source_lost 2 x");
        assert_eq!(
            log(&json!({"lines": []})),
            "The collector has written nothing yet.\n"
        );
    }
}
