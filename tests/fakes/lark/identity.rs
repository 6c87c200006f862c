//! Who a profile is: `auth status`, `auth check`, `whoami`, the published versions of an application.

use serde_json::{Value, json};

use super::answer::{Answer, Failure};
use super::call::Call;
use super::state::State;

fn profile<'a>(state: &'a State, call: &Call) -> Result<&'a Value, Failure> {
    state
        .profile(&call.profile)
        .ok_or_else(|| Failure::local("config", "not_configured", 3))
}

pub(crate) fn status(state: &State, call: &Call) -> Result<Answer, Failure> {
    let row = profile(state, call)?;
    let failed = row["verify_failed"] == json!(true);
    let mut bot = json!({"status": "ready", "available": true, "message": "<message>"});
    if call.has("verify") {
        bot = match failed {
            true => {
                json!({"status": "verify_failed", "available": false, "verified": false, "message": "<message>", "hint": "<hint>"})
            }
            false => {
                json!({"status": "ready", "available": true, "verified": true, "message": "<message>",
                "openId": row["open_id"], "appName": row["app_name"]})
            }
        };
    }
    let user = match row["user"].is_object() {
        true => {
            json!({"status": "ready", "available": true, "message": "<message>", "openId": row["user"]["open_id"]})
        }
        false => {
            json!({"status": "missing", "available": false, "message": "<message>", "hint": "<hint>"})
        }
    };
    let mut out = json!({"appId": row["app_id"], "brand": "feishu", "defaultAs": "auto", "identities": {"bot": bot, "user": user},
        "identity": if failed && call.has("verify") { "none" } else { "bot" }, "note": "<note>"});
    if call.has("verify") && !failed {
        out["verified"] = json!(true);
    }
    Ok(Answer::bare(&out))
}

pub(crate) fn check(state: &State, call: &Call) -> Result<Answer, Failure> {
    let row = profile(state, call)?;
    let asked: Vec<&str> = call.flag("scope").split(' ').collect();
    if !row["user"].is_object() {
        return Ok(Answer {
            rc: 1,
            ..Answer::bare(&json!({"error": "not_logged_in", "missing": asked, "ok": false}))
        });
    }
    let has = |scope: &&&str| {
        row["scopes"]
            .as_array()
            .is_some_and(|scopes| scopes.iter().any(|known| known == **scope))
    };
    let granted: Vec<&str> = asked.iter().filter(has).copied().collect();
    let missing: Vec<&str> = asked.iter().filter(|scope| !has(scope)).copied().collect();
    let list = |items: &[&str]| {
        if items.is_empty() {
            Value::Null
        } else {
            json!(items)
        }
    };
    let mut out =
        json!({"granted": list(&granted), "missing": list(&missing), "ok": missing.is_empty()});
    if !missing.is_empty() {
        out["suggestion"] = json!("<suggestion>");
    }
    Ok(Answer {
        rc: u8::from(!missing.is_empty()),
        ..Answer::bare(&out)
    })
}

pub(crate) fn whoami(state: &State, call: &Call) -> Result<Answer, Failure> {
    let row = profile(state, call)?;
    Ok(Answer::bare(
        &json!({"profile": call.profile, "appId": row["app_id"], "brand": "feishu", "defaultAs": "auto",
        "identity": call.identity(), "identitySource": "flag", "available": true, "tokenStatus": "ready"}),
    ))
}

pub(crate) fn versions(state: &State, call: &Call, app: &str) -> Result<Answer, Failure> {
    let versions = &state.0["app_versions"][app];
    let items = if versions.is_array() {
        versions.clone()
    } else {
        json!([])
    };
    Ok(Answer::data(
        call.identity(),
        &json!({"has_more": false, "items": items}),
    ))
}
