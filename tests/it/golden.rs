//! Golden cases of the pure report contracts, in the library and through the binary.
//!
//! A case holds `command`, `input` and `expect`; `{"$match": …}` and `{"$string": …}` stand for
//! texts of which only a shape or fragments are fixed.

use std::path::Path;

use serde_json::Value;

use crate::support::Sandbox;
use loopx::contract::json;
use loopx::flow::report_contract::ReportContract;

/// Reads the cases of one contract.
pub(crate) fn cases(file: &str) -> Vec<Value> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = root.join("fixtures/golden/periodic-report").join(file);
    let bytes = std::fs::read(path).expect("a fixture");
    match json::parse(&bytes).expect("a fixture is JSON") {
        Value::Array(cases) => cases,
        _ => panic!("{file} is no list"),
    }
}

/// Every fixture of the report contracts.
pub(crate) const FILES: [&str; 9] = [
    "archive.json",
    "audience.json",
    "bindings.json",
    "document.json",
    "profile.json",
    "render.json",
    "run.json",
    "source.json",
    "trigger.json",
];

fn differences(want: &Value, got: &Value, at: &str, out: &mut Vec<String>) {
    match (want, got) {
        (Value::Object(marker), _)
            if marker.len() == 1 && marker.keys().all(|key| key.starts_with('$')) =>
        {
            let text = got.as_str().unwrap_or_default();
            if !fits(marker, text) {
                out.push(format!(
                    "{at}: does not fit {}",
                    marker.keys().next().expect("one key")
                ));
            }
        }
        (Value::Object(want), Value::Object(got)) => {
            for (key, value) in want {
                match got.get(key) {
                    Some(found) => differences(value, found, &format!("{at}.{key}"), out),
                    None => out.push(format!("{at}.{key}: missing")),
                }
            }
            let extra = got.keys().filter(|key| !want.contains_key(*key));
            out.extend(extra.map(|key| format!("{at}.{key}: unexpected")));
        }
        (Value::Array(want), Value::Array(got)) if want.len() == got.len() => {
            for (index, (want, got)) in want.iter().zip(got).enumerate() {
                differences(want, got, &format!("{at}[{index}]"), out);
            }
        }
        _ if want == got => {}
        _ => out.push(format!("{at}: wanted {want}, got {got}")),
    }
}

fn fits(marker: &serde_json::Map<String, Value>, text: &str) -> bool {
    let listed = |rule: &Value, name: &str| -> Vec<String> {
        let list = rule[name].as_array().cloned().unwrap_or_default();
        list.iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect()
    };
    if let Some(rule) = marker.get("$string") {
        return listed(rule, "contains")
            .iter()
            .all(|part| text.contains(part.as_str()))
            && !listed(rule, "excludes")
                .iter()
                .any(|part| text.contains(part.as_str()));
    }
    let hex = |text: &str, count: usize| {
        text.len() == count
            && text
                .bytes()
                .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    match marker.get("$match").and_then(Value::as_str) {
        Some("^sha256:[0-9a-f]{64}$") => text
            .strip_prefix("sha256:")
            .is_some_and(|rest| hex(rest, 64)),
        Some("^artifact:periodic-report/[0-9a-f]{24}$") => text
            .strip_prefix("artifact:periodic-report/")
            .is_some_and(|rest| hex(rest, 24)),
        other => panic!("a marker nobody reads: {other:?}"),
    }
}

fn check(case: &Value, ok: bool, packet: &Value) -> Vec<String> {
    let mut faults = Vec::new();
    let expected = case["expect"]["ok"].as_bool().expect("a case says so");
    if expected != ok {
        faults.push(format!(
            "$.ok: wanted {expected}, got {ok}: {}",
            packet["error"]
        ));
    } else if expected {
        differences(&case["expect"]["output"], packet, "$", &mut faults);
    }
    faults
}

#[test]
fn the_library_answers_every_golden_case() {
    let mut count = 0;
    let mut faults = Vec::new();
    for case in FILES.iter().flat_map(|file| cases(file)) {
        let command = case["command"][1].as_str().expect("a subcommand");
        let contract = ReportContract::ALL
            .into_iter()
            .find(|one| one.name() == command);
        let contract = contract.expect("a known contract");
        if case["input"].is_null() {
            continue;
        }
        count += 1;
        let found = match contract.answer(&case["input"]) {
            Ok(packet) => check(&case, true, &packet),
            Err(error) => check(
                &case,
                false,
                &serde_json::json!({"error": error.to_string()}),
            ),
        };
        faults.extend(
            found
                .into_iter()
                .map(|fault| format!("{}: {fault}", case["name"])),
        );
    }
    assert!(count > 300, "only {count} cases were read");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn the_binary_answers_every_golden_case() {
    let sandbox = Sandbox::new();
    let mut faults = Vec::new();
    for case in FILES.iter().flat_map(|file| cases(file)) {
        let words = case["command"].as_array().expect("a command").iter();
        let mut args: Vec<&str> = words.filter_map(Value::as_str).collect();
        let has_input = !case["input"].is_null();
        match args.last() {
            Some(&"inspect-profile") if has_input => args.extend(["--profile-json", "-"]),
            _ if has_input => args.extend(["--request-json", "-"]),
            _ => {}
        }
        args.extend(["--format", "json"]);
        let finished = sandbox.loopx(args).stdin(case["input"].to_string()).run();
        let packet: Value = serde_json::from_slice(&finished.stdout).unwrap_or(Value::Null);
        let mut found = check(&case, finished.code == Some(0), &packet);
        let is_refusal = finished.code == Some(1) || (!has_input && finished.code == Some(2));
        if finished.code != Some(0) && !is_refusal {
            found.push(format!("exit {:?}", finished.code));
        }
        if finished.code == Some(1) {
            let schema = &packet["schema_version"];
            if schema != "periodic_report_error_v0" || packet["command"] != case["command"][1] {
                found.push("not the error packet of this command".to_owned());
            }
        }
        faults.extend(
            found
                .into_iter()
                .map(|fault| format!("{}: {fault}", case["name"])),
        );
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
