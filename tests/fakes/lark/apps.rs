//! Hosted pages: applications, a publication in several requests, releases, who may look. A person's business alone.

use std::fs;
use std::path::{Component, Path};

use serde_json::{Value, json};

use super::answer::{Answer, Failure};
use super::call::Call;
use super::chat::person;
use super::read::{Tokens, cut};
use super::state::State;

/// The largest page in bytes.
const MAX_PAGE: u64 = 10_485_760;

pub(crate) fn run(state: &mut State, call: &Call) -> Result<Answer, Failure> {
    if call.flag("as") != "user" {
        return Err(Failure::argument());
    }
    if state
        .profile(&call.profile)
        .is_some_and(|row| row["brand"] == "lark")
    {
        return Err(Failure::local("validation", "failed_precondition", 2));
    }
    person(state, call)?;
    match call.command.as_str() {
        "apps +list" => list(state, call),
        "apps +get" => Ok(Answer::data(
            "user",
            &json!({"app": detail(app(state, call)?)}),
        )),
        "apps +html-publish" => publish(state, call),
        "apps +release-get" => release(state, call),
        _ => Ok(Answer::data("user", &app(state, call)?["access"])),
    }
}

fn app<'a>(state: &'a State, call: &Call) -> Result<&'a Value, Failure> {
    let rows = state.0["apps"].as_array().into_iter().flatten();
    let found = rows
        .into_iter()
        .find(|row| row["app_id"] == call.flag("app-id"));
    found.ok_or_else(|| Failure::code(400_002_577))
}

fn item(row: &Value) -> Value {
    let mut out = json!({"app_id": row["app_id"], "app_type": row["app_type"], "description": "", "is_published": row["online_url"].is_string(),
        "name": row["name"], "updated_at": "2026-05-28T10:05:16Z"});
    if row["online_url"].is_string() {
        out["online_url"] = row["online_url"].clone();
    }
    out
}

fn detail(row: &Value) -> Value {
    let mut out = item(row);
    out["created_at"] = json!("2026-05-01T08:00:00Z");
    out["icon_url"] = json!("https://cdn.invalid/i.png");
    out
}

fn list(state: &State, call: &Call) -> Result<Answer, Failure> {
    let size = call.number("page-size", 20, 100)?;
    let rows: Vec<Value> = state.0["apps"]
        .as_array()
        .into_iter()
        .flatten()
        .map(item)
        .collect();
    let tokens = Tokens::of(state, "apps");
    let (shown, more, token) = cut(&rows, size, (call.flag("page-token"), &tokens))?;
    let mut data = json!({"has_more": more, "items": shown});
    if more {
        data["page_token"] = json!(token);
    }
    Ok(Answer::data("user", &data))
}

/// The page below the working directory: its name, its size, and nothing secret beside it.
fn check_page(path: &str) -> Result<u64, Failure> {
    let path = Path::new(path);
    let is_below =
        path.is_relative() && !path.components().any(|part| part == Component::ParentDir);
    if !is_below || !path.exists() {
        return Err(Failure::argument());
    }
    let (folder, page) = match path.is_dir() {
        true => (Some(path), path.join("index.html")),
        false => (None, path.to_path_buf()),
    };
    let has_secret = folder.is_some_and(|folder| folder.join(".env").exists());
    if has_secret {
        return Err(Failure::argument());
    }
    if page.file_name().is_none_or(|name| name != "index.html") {
        return Err(Failure::local("validation", "failed_precondition", 2));
    }
    let size = fs::metadata(&page).map_err(|_| Failure::argument())?.len();
    match size > MAX_PAGE {
        true => Err(Failure::argument()),
        false => Ok(size),
    }
}

fn publish(state: &mut State, call: &Call) -> Result<Answer, Failure> {
    if state
        .profile(&call.profile)
        .is_some_and(|row| row["publish_scope"] == json!(false))
    {
        return Err(Failure::missing_scopes(&["spark:app:write"]));
    }
    let id = call.flag("app-id").to_owned();
    if !id.starts_with("app_") {
        return Err(Failure::argument());
    }
    let size = check_page(call.flag("path"))?;
    if call.has("dry-run") {
        return Ok(planned(state, call, size));
    }
    let kind = app(state, call)?["app_type"].clone();
    if kind != "HTML" && kind != "MODERN_HTML" {
        return Err(Failure::local("validation", "failed_precondition", 2));
    }
    let release = format!("rel{:04}", state.fresh());
    state.0["releases"][&release] = json!({"app_id": id, "status": "publishing"});
    let shown = if state.0["options"]["release_without_id"] == json!(true) {
        ""
    } else {
        &release
    };
    Ok(Answer::data("user", &json!({"release_id": shown})))
}

fn planned(state: &State, call: &Call, size: u64) -> Answer {
    let root = format!("/open-apis/spark/v1/apps/{}", call.flag("app-id"));
    let row = state.profile(&call.profile).cloned().unwrap_or_default();
    let api = json!([{"method": "GET", "url": format!("{root}/pre_release")}, {"method": "PUT", "url": "<url>"},
        {"method": "POST", "url": format!("{root}/releases"), "body": {"tos_path": "<tos_path>"}}]);
    let data = json!({"api": api, "context": {"app_id": row["app_id"], "user_open_id": row["user"]["open_id"]}, "description": "<description>",
        "file_count": 1, "files": ["index.html"], "total_size_bytes": size});
    Answer::bare(&json!({"ok": true, "identity": "user", "dry_run": true, "data": data}))
}

fn release(state: &State, call: &Call) -> Result<Answer, Failure> {
    let id = call.flag("release-id");
    let row = &state.0["releases"][id];
    let status = row["status"]
        .as_str()
        .ok_or_else(|| Failure::code(3_344_035))?;
    let mut data = json!({"created_at": "1758189600000", "release_id": id, "status": status, "updated_at": "1758189720000"});
    match status {
        "finished" => data["online_url"] = app(state, call)?["online_url"].clone(),
        "failed" => data["error_logs"] = json!([{"error_log": "<log>", "step": "build"}]),
        _ => {}
    }
    Ok(Answer::data("user", &data))
}
