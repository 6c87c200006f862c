//! The schemas of `schemas/`, held against every packet a black-box test sees.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::OnceLock;

use jsonschema::Validator;
use serde_json::Value;

/// Every schema file by its name, which is the `schema_version` it describes.
pub(crate) fn all() -> &'static HashMap<String, Validator> {
    static ALL: OnceLock<HashMap<String, Validator>> = OnceLock::new();
    ALL.get_or_init(|| {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas");
        let entries = fs::read_dir(folder).into_iter().flatten();
        entries
            .map(|entry| read(&entry.expect("an entry").path()))
            .collect()
    })
}

fn read(path: &Path) -> (String, Validator) {
    let name = path
        .file_stem()
        .unwrap_or_default()
        .to_string_lossy()
        .into_owned();
    let text = fs::read_to_string(path).expect("a readable schema");
    let schema: Value =
        serde_json::from_str(&text).unwrap_or_else(|fault| panic!("{name}: {fault}"));
    assert_eq!(
        schema["$schema"], "https://json-schema.org/draft/2020-12/schema",
        "{name}"
    );
    assert!(schema["description"].is_string(), "{name} says what it is");
    let validator =
        jsonschema::validator_for(&schema).unwrap_or_else(|fault| panic!("{name}: {fault}"));
    (name, validator)
}

/// Holds a packet against its schema; one that has none fails.
pub(crate) fn check(packet: &Value) {
    let faults = faults(packet);
    assert!(faults.is_empty(), "{}\n{packet:#}", faults.join("\n"));
}

/// Says where a packet differs from its schema.
pub(crate) fn faults(packet: &Value) -> Vec<String> {
    let Some(name) = name_of(packet) else {
        return vec![format!("no schema_version: {packet}")];
    };
    let Some(validator) = all().get(name) else {
        return vec![format!("schemas/{name}.json is missing")];
    };
    let faults = validator.iter_errors(packet);
    faults
        .map(|fault| format!("{name} {}: {fault}", fault.instance_path()))
        .collect()
}

/// The complete decision is told by its mode: it carries no version on the wire.
fn name_of(packet: &Value) -> Option<&str> {
    match packet["schema_version"].as_str() {
        None if packet["mode"] == "should-run" => Some("quota_should_run"),
        version => version,
    }
}
