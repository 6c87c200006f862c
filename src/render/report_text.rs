//! The text views of the report packets.

use serde_json::Value;

/// One heading and one line a field.
fn view(heading: &str, lines: &[(&str, &Value)]) -> String {
    let mut out = format!("# {heading}\n\n");
    for (label, value) in lines {
        out.push_str(&format!("- {label}: {}\n", word(value)));
    }
    out
}

fn word(value: &Value) -> String {
    match value {
        Value::Null => "none".to_owned(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

fn named<'a>(packet: &'a Value, names: &[&'static str]) -> Vec<(&'static str, &'a Value)> {
    names.iter().map(|name| (*name, &packet[*name])).collect()
}

/// The activation of a profile.
pub(crate) fn activation(packet: &Value) -> String {
    let heading = format!("Report profile {}", word(&packet["profile"]["profile_id"]));
    view(
        &heading,
        &named(
            packet,
            &["status", "active", "extension_mode", "profile_digest"],
        ),
    )
}

/// A trigger decision.
pub(crate) fn decision(packet: &Value) -> String {
    let heading = format!("Report decision {}", word(&packet["decision_id"]));
    view(
        &heading,
        &named(packet, &["eligible", "reason", "report_kind", "report_key"]),
    )
}

/// A composed run.
pub(crate) fn run(packet: &Value) -> String {
    let heading = format!("Report run {}", word(&packet["run_id"]));
    let lines = [
        ("schema", &packet["schema_version"]),
        ("status", &packet["run_state"]["status"]),
        ("idempotency_key", &packet["idempotency_key"]),
        ("retry_allowed", &packet["retry"]["allowed"]),
    ];
    view(&heading, &lines)
}

/// A rendered artifact: the text that was rendered, ready for a file.
pub(crate) fn artifact(packet: &Value) -> String {
    word(&packet["artifact"]["content"])
}

/// A generation bundle: its identity and its artifacts.
pub(crate) fn bundle(packet: &Value) -> String {
    let receipt = &packet["generation_receipt"];
    let heading = format!("Report generation {}", word(&receipt["generation_id"]));
    let mut out = view(
        &heading,
        &named(receipt, &["document_digest", "artifact_count"]),
    );
    for artifact in receipt["artifact_receipts"]
        .as_array()
        .into_iter()
        .flatten()
    {
        let line = format!(
            "- {}: {}\n",
            word(&artifact["artifact_id"]),
            word(&artifact["content_digest"])
        );
        out.push_str(&line);
    }
    out
}
