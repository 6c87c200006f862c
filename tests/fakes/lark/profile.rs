//! Profiles of this machine: the list, and a new one. A refused secret stores the profile all the same.

use std::io::Read;

use serde_json::{Value, json};

use super::answer::{Answer, Failure};
use super::call::Call;
use super::state::State;

pub(crate) fn list(state: &State) -> Answer {
    let rows = state.0["profiles"].as_object().into_iter().flatten();
    let rows = rows.enumerate().map(|(index, (name, row))| {
        let mut out = json!({"name": name, "appId": row["app_id"], "brand": row["brand"].as_str().unwrap_or("feishu"), "active": index == 0});
        if index == 0 {
            out["effective"] = json!(true);
            out["effectiveSource"] = json!("config");
        }
        if row["user"].is_object() {
            out["user"] = json!("Name");
            out["tokenStatus"] = json!("valid");
        }
        out
    });
    Answer::bare(&Value::Array(rows.collect()))
}

pub(crate) fn init(state: &mut State, call: &Call) -> Result<Answer, Failure> {
    let name = call.flag("name");
    let is_name = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'));
    let mut secret = String::new();
    if call.has("app-secret-stdin") {
        std::io::stdin()
            .read_to_string(&mut secret)
            .map_err(|_| Failure::argument())?;
    }
    if !is_name || secret.trim().is_empty() {
        return Err(Failure::argument());
    }
    let brand = if call.flag("brand") == "lark" {
        "lark"
    } else {
        "feishu"
    };
    let stored = json!({"app_id": call.flag("app-id"), "app_name": "New", "open_id": "ou_new", "brand": brand});
    if name.is_empty() {
        state.0["profiles"] = json!({call.flag("app-id"): stored});
    } else {
        state.0["profiles"][name] = stored;
    }
    let shown =
        Answer::bare(&json!({"appId": call.flag("app-id"), "appSecret": "****", "brand": brand}));
    let told = "OK: <text>\n";
    if state.0["options"]["secret_refused"] == json!(true) {
        let refused = Answer::failed(&Failure::code(20_002), "");
        return Ok(Answer {
            stdout: shown.stdout,
            stderr: format!("{told}{}", refused.stderr),
            ..refused
        });
    }
    Ok(Answer {
        stderr: told.to_owned(),
        ..shown
    })
}
