//! The text view of a packet for people: made from the packet alone, so both formats say the same.

use serde_json::Value;

/// Lays out any packet: a heading from its schema, then one line a member, nested ones indented.
pub(crate) fn general(packet: &Value) -> String {
    let Value::Object(map) = packet else {
        return format!("{}\n", scalar(packet));
    };
    let schema = map.get("schema_version").and_then(Value::as_str);
    format!("# {}\n\n{}", schema.unwrap_or("loopx"), body(packet))
}

/// Every member of a packet but its schema, one line each, nested ones indented.
pub(crate) fn body(packet: &Value) -> String {
    let mut out = String::new();
    for (name, value) in packet.as_object().into_iter().flatten() {
        if name != "schema_version" {
            member(&mut out, 0, name, value);
        }
    }
    out
}

/// Lays out a refusal: what went wrong, and its code.
pub(crate) fn refusal(packet: &Value) -> String {
    let part = |name: &str| packet.get(name).map(scalar).unwrap_or_default();
    // The error packets of reports carry the subcommand alone.
    let family = match packet.get("schema_version").and_then(Value::as_str) {
        Some("periodic_report_error_v0") => "periodic-report ",
        _ => "",
    };
    let command = format!("loopx {family}{}", part("command"));
    let mut out = format!("# {} refused\n\n{}\n", command.trim_end(), part("error"));
    if let Some(next) = packet.get("next_step").and_then(Value::as_str) {
        out.push_str(&format!("\nNext: {next}\n"));
    }
    out.push_str(&format!("\nerror_code: {}\n", part("error_code")));
    out
}

fn member(out: &mut String, depth: usize, name: &str, value: &Value) {
    let indent = "  ".repeat(depth);
    match value {
        Value::Object(map) if !map.is_empty() => {
            out.push_str(&format!("{indent}- {name}:\n"));
            for (name, value) in map {
                member(out, depth + 1, name, value);
            }
        }
        Value::Array(items) if !items.is_empty() => {
            out.push_str(&format!("{indent}- {name}:\n"));
            for item in items {
                self::item(out, depth + 1, item);
            }
        }
        _ => out.push_str(&format!("{indent}- {name}: {}\n", scalar(value))),
    }
}

fn item(out: &mut String, depth: usize, value: &Value) {
    let indent = "  ".repeat(depth);
    let Value::Object(map) = value else {
        out.push_str(&format!("{indent}- {}\n", scalar(value)));
        return;
    };
    out.push_str(&format!("{indent}-\n"));
    for (name, value) in map {
        member(out, depth + 1, name, value);
    }
}

/// Characters that end a line or turn the order of what follows: a terminal would show another text than the packet's.
fn is_steering(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{feff}')
}

/// One line of text: control characters never reach a terminal as they are.
pub(crate) fn scalar(value: &Value) -> String {
    match value {
        Value::String(text) => text
            .chars()
            .map(|c| if is_steering(c) { ' ' } else { c })
            .collect(),
        Value::Null => "none".to_owned(),
        Value::Array(_) => "none".to_owned(),
        Value::Object(_) => "none".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn nested_members_are_indented_and_empty_ones_say_none() {
        let packet = json!({"ok": true, "schema_version": "x_v0", "list": [{"a": 1}, "b"], "gone": null, "e": []});
        assert_eq!(
            general(&packet),
            "# x_v0\n\n- ok: true\n- list:\n  -\n    - a: 1\n  - b\n- gone: none\n- e: none\n"
        );
    }

    #[test]
    fn a_refusal_is_headed_by_the_whole_command() {
        let packet = json!({"schema_version": "periodic_report_error_v0", "command": "generate", "error": "no", "error_code": "c"});
        assert_eq!(
            refusal(&packet),
            "# loopx periodic-report generate refused\n\nno\n\nerror_code: c\n"
        );
    }

    #[test]
    fn control_characters_do_not_reach_a_terminal() {
        assert_eq!(scalar(&json!("a\u{1b}[31mb")), "a [31mb");
    }

    #[test]
    fn characters_that_turn_the_order_of_a_text_are_shown_as_spaces() {
        let shown = scalar(&json!(
            "a\u{202e}b\u{2066}c\u{200f}d\u{1b}e\u{2028}f \u{5d0}\u{200d}"
        ));
        assert_eq!(shown, "a b c d e f \u{5d0}\u{200d}");
    }
}
