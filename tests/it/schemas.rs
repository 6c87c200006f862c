//! The schema files describe what is really printed and read: every golden case validates.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use jsonschema::{Draft, Validator};
use serde_json::Value;

use crate::golden::{FILES, cases};

/// Validators by schema name.
pub(crate) struct Schemas(BTreeMap<String, Validator>);

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("schemas")
}

fn read(path: &Path) -> Value {
    let text = fs::read_to_string(path).expect("a schema file");
    serde_json::from_str(&text).expect("a schema is JSON")
}

fn files() -> Vec<PathBuf> {
    let mut files: Vec<PathBuf> = fs::read_dir(folder())
        .expect("the folder of schemas")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|end| end == "json"))
        .collect();
    files.sort();
    files
}

fn name_of(path: &Path) -> String {
    path.file_stem()
        .expect("a name")
        .to_string_lossy()
        .into_owned()
}

impl Schemas {
    /// Compiles every schema file.
    pub(crate) fn load() -> Self {
        let compile = |path: PathBuf| {
            let validator = jsonschema::options()
                .with_draft(Draft::Draft202012)
                .build(&read(&path))
                .unwrap_or_else(|fault| panic!("{}: {fault}", path.display()));
            (name_of(&path), validator)
        };
        Self(files().into_iter().map(compile).collect())
    }

    /// Says what is wrong with a packet by the schema it names; none when it has no file.
    pub(crate) fn faults(&self, packet: &Value) -> Option<Vec<String>> {
        let validator = self.0.get(packet["schema_version"].as_str()?)?;
        let fault = |error: jsonschema::ValidationError<'_>| {
            let mut text = format!("{}: {error}", error.instance_path());
            text.truncate(300);
            text
        };
        Some(validator.iter_errors(packet).map(fault).collect())
    }
}

/// What was validated, and what was found wrong.
#[derive(Default)]
struct Found {
    seen: usize,
    faults: Vec<String>,
}

impl Found {
    /// Validates a value and everything inside it that names a schema with a file.
    fn check(&mut self, schemas: &Schemas, at: &str, value: &Value) {
        // An embedded trigger receipt is part of its owner's schema.
        let own = schemas
            .faults(value)
            .filter(|_| !at.ends_with("trigger_receipt"));
        if let Some(found) = own {
            self.seen += 1;
            let found = found.into_iter().map(|fault| format!("{at}: {fault}"));
            self.faults.extend(found);
        }
        match value {
            Value::Object(map) => {
                for (name, member) in map {
                    self.check(schemas, &format!("{at}.{name}"), member);
                }
            }
            Value::Array(items) => {
                for item in items {
                    self.check(schemas, at, item);
                }
            }
            _ => {}
        }
    }
}

#[test]
fn every_schema_names_itself_and_its_draft() {
    for path in files() {
        let (schema, name) = (read(&path), name_of(&path));
        assert_eq!(
            schema["$schema"], "https://json-schema.org/draft/2020-12/schema",
            "{name}"
        );
        assert_eq!(schema["$id"], format!("urn:loopx:schema:{name}"), "{name}");
        let meta = jsonschema::meta::validate(&schema).map_err(|fault| fault.to_string());
        assert_eq!(meta, Ok(()), "{name}");
    }
}

#[test]
fn every_golden_case_validates() {
    let schemas = Schemas::load();
    let mut found = Found::default();
    for case in FILES.iter().flat_map(|file| cases(file)) {
        if case["expect"]["ok"] != true {
            continue;
        }
        let name = case["name"].as_str().expect("a name");
        found.check(&schemas, &format!("{name}: input"), &case["input"]);
        // The page of a golden case is given by its fragments only.
        let output = &case["expect"]["output"];
        if !output.to_string().contains("{\"$") {
            found.check(&schemas, &format!("{name}: output"), output);
        }
    }
    assert!(found.seen > 400, "only {} packets were checked", found.seen);
    found.faults.sort();
    found.faults.truncate(20);
    assert!(found.faults.is_empty(), "{}", found.faults.join("\n"));
}

#[test]
fn a_packet_with_a_strange_field_or_without_a_field_does_not_validate() {
    let schemas = Schemas::load();
    let is_printed = |case: &Value| {
        case["expect"]["ok"] == true && case["expect"]["output"]["schema_version"].is_string()
    };
    for file in ["trigger.json", "run.json", "profile.json", "audience.json"] {
        let case = cases(file).into_iter().find(is_printed).expect("a case");
        let packet = &case["expect"]["output"];
        let mut more = packet.clone();
        more["strange"] = Value::Null;
        assert_ne!(schemas.faults(&more), Some(Vec::new()), "{file}");
        let mut less = packet.clone();
        less.as_object_mut()
            .expect("an object")
            .shift_remove("boundary");
        assert_ne!(schemas.faults(&less), Some(Vec::new()), "{file}");
    }
}

/// Every version the report contracts speak of has a file, or is described inside one.
#[test]
fn every_report_schema_version_is_described() {
    let described: String = files().iter().map(|path| read(path).to_string()).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/contract/periodic_report");
    let mut missing = Vec::new();
    let mut pending = vec![root];
    while let Some(folder) = pending.pop() {
        for entry in fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                pending.push(path);
                continue;
            }
            let source = fs::read_to_string(&path).expect("a source file");
            let texts = source.split('"').skip(1).step_by(2);
            let versions =
                texts.filter(|text| text.starts_with("periodic_report_") && text.ends_with("_v0"));
            missing.extend(
                versions
                    .filter(|version| !described.contains(&format!("\"{version}\"")))
                    .map(str::to_owned),
            );
        }
    }
    assert!(missing.is_empty(), "{missing:?}");
}
