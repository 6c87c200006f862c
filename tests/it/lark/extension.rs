//! What `extension doctor` says about an earlier verification, with and without a probe (docs/spec/goal-channel.md 26).

use std::fs;

use serde_json::{Value, json};

use super::desk::holds;
use crate::support::lark::Lark;

const RECORD: &str = "extensions/state.json";

fn doctor(lark: &Lark) -> Value {
    let (exit, packet) = Lark::packet(lark.run(["extension", "doctor", "loopx-lark"]), &[]);
    assert_eq!(exit, Some(0), "{packet}");
    holds(
        &packet,
        &json!({"status": "probe_required", "execute": false, "write_performed": false}),
    );
    packet
}

/// Changes the record of the extension as another hand would.
fn meddle(lark: &Lark, change: impl FnOnce(&mut Value)) {
    meddle_with(lark, "loopx-lark", change);
}

fn meddle_with(lark: &Lark, id: &str, change: impl FnOnce(&mut Value)) {
    let files = lark.sandbox.tree();
    let (path, bytes) = files
        .into_iter()
        .find(|(path, _)| path.ends_with(RECORD))
        .expect("a record");
    let mut record: Value = serde_json::from_slice(&bytes).expect("json");
    change(&mut record["extensions"][id]);
    fs::write(path, record.to_string()).expect("written");
}

/// Whether the commands behind the gate run, whatever the doctor says.
fn is_open(lark: &Lark) -> bool {
    let config = lark.inbox_config("one", "oc_zqpalpha");
    Lark::packet(lark.inbox(&["drain"], &config), &[]).1["ok"] == json!(true)
}

#[test]
fn without_a_probe_the_doctor_says_what_the_recorded_verification_is_worth() {
    let lark = Lark::new();
    holds(
        &doctor(&lark),
        &json!({"verified": true, "recorded_verification": "holds"}),
    );
    assert!(is_open(&lark));
    // Verified for another program: its file was replaced since.
    meddle(&lark, |entry| {
        entry["doctor_verified_entrypoint_identity"] = json!("another");
        entry["doctor_verified_entrypoint_facts"] = json!("another");
    });
    let before = lark.sandbox.tree();
    holds(
        &doctor(&lark),
        &json!({"verified": false, "recorded_verification": "stale"}),
    );
    assert_eq!(lark.sandbox.tree(), before, "looking writes nothing");
    assert!(!is_open(&lark));
    // A failed probe leaves no verification.
    meddle(&lark, |entry| {
        entry["doctor_verified_revision"] = Value::Null;
    });
    holds(
        &doctor(&lark),
        &json!({"verified": false, "recorded_verification": "absent"}),
    );
    assert!(!is_open(&lark));
    let execute = ["extension", "doctor", "loopx-lark", "--execute"];
    holds(
        &Lark::packet(lark.run(execute), &[]).1,
        &json!({"status": "ready", "verified": true, "recorded_verification": "holds"}),
    );
    holds(
        &doctor(&lark),
        &json!({"verified": true, "recorded_verification": "holds"}),
    );
    assert!(is_open(&lark) && lark.calls().is_empty());
}

/// A revision that is not the verified one is stale, however untouched the program is; a disabled extension still tells the truth.
#[test]
fn another_active_revision_makes_the_verification_stale_and_a_switch_does_not() {
    let lark = Lark::new();
    let disable = ["extension", "disable", "loopx-lark", "--execute"];
    holds(&lark.run(disable).packet(), &json!({"ok": true}));
    let (_, packet) = Lark::packet(lark.run(["extension", "doctor", "loopx-lark"]), &[]);
    holds(
        &packet,
        &json!({"status": "disabled", "verified": false, "recorded_verification": "holds"}),
    );
    let enable = ["extension", "enable", "loopx-lark", "--execute"];
    holds(&lark.run(enable).packet(), &json!({"ok": true}));
    meddle(&lark, |entry| {
        entry["doctor_verified_revision"] = json!("0123456789abcdef");
    });
    holds(
        &doctor(&lark),
        &json!({"verified": false, "recorded_verification": "stale"}),
    );
}

#[test]
fn an_extension_of_somebody_else_is_called_verified_as_long_as_it_is() {
    let lark = Lark::new();
    let manifest = json!({"schema_version": "loopx_extension_manifest_v0", "id": "acme", "version": "1",
        "permissions": [], "provides": ["acme-cap"]});
    lark.write("acme.json", &manifest);
    let words = ["extension", "install", "--manifest", "acme.json"];
    lark.run([&words[..], &["--execute"]].concat()).packet();
    let shown = |words: [&str; 2], list: &str, name: &str, value: &str| {
        let (_, packet) = Lark::packet(lark.run(words), &[]);
        let rows = packet[list].as_array().cloned().unwrap_or_default();
        let row = rows.into_iter().find(|row| row[name] == value);
        row.unwrap_or_else(|| panic!("{packet}"))
    };
    meddle_with(&lark, "acme", |entry| {
        entry["doctor_verified_entrypoint_identity"] = json!("another");
        entry["doctor_verified_entrypoint_facts"] = json!("another");
    });
    let cure = json!("loopx extension doctor acme --execute");
    let row = shown(["extension", "list"], "extensions", "extension_id", "acme");
    holds(&row, &json!({"verified": false, "recovery_command": cure}));
    let words = ["capability", "list"];
    let row = shown(words, "capabilities", "capability_id", "acme-cap");
    holds(
        &row,
        &json!({"verified": false, "available": false, "recovery_command": cure}),
    );
}
