//! Who a profile is: `auth status`, `auth check`, `whoami`, the published versions of an application.

use serde_json::{Value, json};

use super::answer::{Answer, Failure};
use super::call::Call;
use super::state::State;

const TIME: &str = "2026-01-01T02:00:00Z";

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
    let is_signed_in = row["user"].is_object();
    let mut user = match is_signed_in {
        true => {
            json!({"status": "ready", "available": true, "message": "<message>", "openId": row["user"]["open_id"], "userName": "Name",
                "tokenStatus": "valid", "scope": "im:message", "expiresAt": TIME, "refreshExpiresAt": TIME, "grantedAt": TIME})
        }
        false => {
            json!({"status": "missing", "available": false, "message": "<message>", "hint": "<hint>"})
        }
    };
    if is_signed_in && call.has("verify") {
        user["verified"] = json!(true);
    }
    let mut out = json!({"appId": row["app_id"], "brand": "feishu", "defaultAs": "auto", "identities": {"bot": bot, "user": user},
    "identity": match (is_signed_in, failed && call.has("verify")) {
        (true, _) => "user",
        (false, true) => "none",
        (false, false) => "bot",
    }});
    if !is_signed_in {
        out["note"] = json!("<note>");
    }
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
    let is_signed_in = row["user"].is_object();
    let is_named = matches!(call.flag("as"), "bot" | "user");
    let identity = match (is_named, is_signed_in) {
        (true, _) => call.identity(),
        (false, true) => "user",
        (false, false) => "bot",
    };
    let is_missing = identity == "user" && !is_signed_in;
    let mut out = json!({"profile": call.profile, "appId": row["app_id"], "brand": "feishu", "defaultAs": "auto",
        "identity": identity, "identitySource": if is_named { "flag" } else { "auto_detect" }, "available": !is_missing,
        "tokenStatus": if is_missing { "missing" } else { "ready" }});
    if is_missing {
        out["hint"] = json!("<hint>");
    } else if identity == "user" {
        out["onBehalfOf"] = json!({"userName": "Name", "openId": row["user"]["open_id"]});
    }
    Ok(Answer::bare(&out))
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
