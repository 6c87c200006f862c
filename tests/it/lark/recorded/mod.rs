//! The stand-in program is true to the real one: every recorded call of its commands is replayed, and exit code, keys and types compared.

mod boards;
mod situation;
mod streams;
mod world;

use std::fs;
use std::io::{Read, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use situation::situation;
use world::{recorded, world};

fn run(folder: &Path, argv: &[String], name: &str) -> (Option<i64>, String, String) {
    let is_board = ["base-", "apps-", "docs-"]
        .iter()
        .any(|family| name.starts_with(family));
    let (changes, faults) = match (is_board, name.starts_with("event-")) {
        (true, _) => boards::situation(name),
        (_, true) => (streams::situation(name), json!([])),
        _ => situation(name),
    };
    let mut state = world();
    for (pointer, value) in changes.as_object().expect("an object") {
        match state.pointer_mut(pointer) {
            Some(place) => *place = value.clone(),
            None => {
                let (parent, field) = pointer.rsplit_once('/').expect("a pointer");
                state.pointer_mut(parent).expect("a parent")[field] = value.clone();
            }
        }
    }
    fs::write(folder.join("state.json"), state.to_string()).expect("written");
    fs::write(
        folder.join("faults.json"),
        json!({"rules": faults}).to_string(),
    )
    .expect("written");
    let mut child = Command::new(env!("CARGO_BIN_EXE_fake-lark-cli"))
        .args(argv)
        .env("FAKE_LARK_STATE", folder)
        .current_dir(working_folder(folder, name))
        .envs(environment(name))
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the stand-in starts");
    if let Some(mut input) = child.stdin.take() {
        // A call that reads no input may be gone by then.
        let _ = input.write_all(secret(name));
    }
    let told =
        streams::signal_of(name).map_or_else(String::new, |signal| interrupt(&mut child, signal));
    let output = child.wait_with_output().expect("the stand-in ends");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let code = output
        .status
        .code()
        .or_else(|| output.status.signal().map(|signal| -signal));
    (
        code.map(i64::from),
        text(&output.stdout),
        told + &text(&output.stderr),
    )
}

/// Sends a signal as soon as the consumer has said all it says before it waits; returns what it said.
fn interrupt(child: &mut Child, signal: &str) -> String {
    let last = match signal {
        "KILL" => "[event] ready",
        _ => "[event] to stop",
    };
    let stderr = child.stderr.as_mut().expect("piped");
    let (mut told, mut byte) = (String::new(), [0]);
    // Byte by byte: what comes after the signal belongs to the end.
    while !told.lines().any(|line| line.starts_with(last)) || !told.ends_with('\n') {
        if stderr.read(&mut byte).expect("readable") == 0 {
            break;
        }
        told.push_str(&String::from_utf8_lossy(&byte));
    }
    let sent = Command::new("kill")
        .args([format!("-{signal}"), child.id().to_string()])
        .status();
    assert!(sent.expect("kill runs").success());
    told
}

/// Keys and types, values left out; a list is its first item.
fn shape(value: &Value) -> Value {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<&String> = map.keys().collect();
            keys.sort();
            keys.into_iter()
                .map(|key| (key.clone(), shape(&map[key])))
                .collect()
        }
        Value::Array(items) => items
            .first()
            .map_or(json!([]), |first| json!([shape(first)])),
        Value::String(_) => json!("text"),
        Value::Number(_) => json!("number"),
        Value::Bool(_) => json!("bool"),
        Value::Null => Value::Null,
    }
}

/// Names every place where two shapes differ.
fn differences(at: &str, ours: &Value, theirs: &Value) -> Vec<String> {
    match (ours, theirs) {
        (Value::Object(one), Value::Object(other)) => {
            let mut keys: Vec<&String> = one.keys().chain(other.keys()).collect();
            keys.sort();
            keys.dedup();
            keys.into_iter()
                .flat_map(|key| {
                    differences(
                        &format!("{at}.{key}"),
                        one.get(key).unwrap_or(&json!("absent")),
                        other.get(key).unwrap_or(&json!("absent")),
                    )
                })
                .collect()
        }
        (Value::Array(one), Value::Array(other)) if one.len() == other.len() => one
            .iter()
            .zip(other)
            .flat_map(|(one, other)| differences(&format!("{at}[]"), one, other))
            .collect(),
        _ if ours == theirs => Vec::new(),
        _ => vec![format!("{at}: {ours} here, {theirs} recorded")],
    }
}

/// The files a call may name: a page, another one, a folder with a credential in it, a drawing.
fn working_folder(folder: &Path, name: &str) -> PathBuf {
    let work = folder.join("work");
    fs::create_dir_all(work.join("sub")).expect("made");
    for (file, text) in [
        ("index.html", "<p>page</p>"),
        ("other.html", "<p>page</p>"),
        ("nodes.json", "[]"),
        ("sub/index.html", "<p>page</p>"),
        ("sub/.env", "KEY=value"),
    ] {
        fs::write(work.join(file), text).expect("written");
    }
    if name == "apps-publish-too-big" {
        let page = fs::File::create(work.join("index.html")).expect("made");
        page.set_len(10_485_761).expect("grown");
    }
    work
}

/// A secret is given on standard input, and nowhere else.
fn secret(name: &str) -> &'static [u8] {
    match name.starts_with("config-init") && name != "config-init-empty-secret" {
        true => b"secret\n",
        false => b"",
    }
}

fn environment(name: &str) -> Option<(&'static str, &'static str)> {
    (name == "auth-status-env-credentials").then_some(("LARKSUITE_CLI_APP_ID", "cli_other"))
}

fn object(text: &str) -> Option<Value> {
    if let Ok(whole) = serde_json::from_str(text) {
        return Some(whole);
    }
    let at = text.find('{')?;
    serde_json::Deserializer::from_str(&text[at..])
        .into_iter::<Value>()
        .next()?
        .ok()
}

fn kind(text: &str) -> Option<(Value, Value, Value)> {
    let error = object(text)?["error"].clone();
    Some((
        error["type"].clone(),
        error["subtype"].clone(),
        error["code"].clone(),
    ))
}

/// Fewer than this would mean that recordings were left out by mistake.
const MIN_REPLAYED: usize = 385;

#[test]
fn the_stand_in_answers_like_the_program_it_stands_for() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut names: Vec<String> =
        fs::read_dir(format!("{}/fixtures/lark", env!("CARGO_MANIFEST_DIR")))
            .expect("recordings")
            .filter_map(|entry| {
                entry
                    .ok()?
                    .file_name()
                    .to_str()?
                    .strip_suffix(".json")
                    .map(str::to_owned)
            })
            .collect();
    names.sort();
    let (mut faults, mut replayed) = (Vec::new(), 0);
    for name in &names {
        let recording = recorded(name);
        let argv: Vec<String> = recording["argv"]
            .as_array()
            .expect("words")
            .iter()
            .filter_map(|word| word.as_str().map(str::to_owned))
            .collect();
        let (rc, stdout, stderr) = run(folder.path(), &argv, name);
        replayed += 1;
        if rc != recording["rc"].as_i64() {
            faults.push(format!("{name}: exit {rc:?}, recorded {}", recording["rc"]));
            continue;
        }
        let (out, err) = (
            recording["stdout"].as_str().unwrap_or(""),
            recording["stderr"].as_str().unwrap_or(""),
        );
        let difference = differences(
            "",
            &shape(&object(&stdout).unwrap_or_default()),
            &shape(&object(out).unwrap_or_default()),
        );
        if !difference.is_empty() {
            faults.push(format!("{name}: {}", difference.join(", ")));
        }
        if streams::reason(&stderr) != streams::reason(err) {
            faults.push(format!(
                "{name}: ends for {:?}, recorded {:?}",
                streams::reason(&stderr),
                streams::reason(err)
            ));
        }
        if kind(&stderr) != kind(err) {
            faults.push(format!(
                "{name}: fails as {:?}, recorded {:?}",
                kind(&stderr),
                kind(err)
            ));
        }
    }
    assert!(
        faults.is_empty(),
        "{} of {replayed}:\n{}",
        faults.len(),
        faults.join("\n")
    );
    assert!(
        replayed >= MIN_REPLAYED,
        "only {replayed} recordings were replayed"
    );
}
