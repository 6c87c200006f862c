//! Situations of the recorded calls about bases, hosted pages and documents.

use serde_json::{Value, json};

const TABLE: &str = "/bases/bascPeer0016/tables/0";

fn user() -> Value {
    json!({"/profiles/peer-bot/user": {"open_id": "ou_peeruser"}})
}

fn with(mut changes: Value, more: &Value) -> Value {
    for (pointer, value) in more.as_object().into_iter().flatten() {
        changes[pointer.as_str()] = value.clone();
    }
    changes
}

fn rows() -> Value {
    let row = |id: &str, fields: Value| json!({"record_id": id, "fields": fields});
    json!([
        row(
            "recPeer0076",
            json!({"Task": "Write the report", "Status": ["Done"]})
        ),
        row(
            "recPeer0077",
            json!({"Task": "Write the report", "Status": ["Todo"]})
        ),
        row("recPeer0078", json!({"Task": "two"}))
    ])
}

/// Four more columns, as later calls made them.
fn columns() -> Value {
    let plain = |id: &str, name: &str, kind: &str| json!({"id": id, "name": name, "type": kind});
    let options = json!([{"name": "Todo"}, {"name": "Done"}]);
    json!([plain("fld0021", "Task", "text"), {"id": "fld0022", "name": "Status", "type": "select", "options": options},
        {"id": "fld0071", "name": "Claim", "type": "select", "options": [{"name": "Human"}]},
        plain("fld0072", "Evidence", "text"), plain("fld0073", "Handoff", "text"), plain("fld0074", "Scope", "text")])
}

fn filled() -> Value {
    json!({format!("{TABLE}/records"): rows(), format!("{TABLE}/fields"): columns(),
        format!("{TABLE}/views"): [{"id": "vew0075", "name": "Worker Queue", "type": "grid"}]})
}

/// What has to be true for a recorded call: changes of the world, and one fault.
pub(super) fn situation(name: &str) -> (Value, Value) {
    let on = |rule: Value| {
        let mut rule = rule;
        rule["on"] = json!("*");
        json!([rule])
    };
    let code = |code: i64| on(json!({"do": "code", "code": code}));
    let calm = json!([]);
    match name {
        "base-as-user-grant" => (user(), calm),
        "base-create-names-table" => (json!({"/options/base_names_table": true}), calm),
        "base-create-half-api" => (
            json!({"/options/base_step": {"step": "table", "code": 800_040_802}}),
            calm,
        ),
        "base-create-half-validation" => (
            json!({"/options/base_step": {"step": "table", "code": 800_010_109}}),
            calm,
        ),
        "base-create-half-delete" => (json!({"/options/base_step": {"step": "delete"}}), calm),
        "base-table-create-half" => (
            json!({"/options/base_step": {"step": "view", "code": 800_010_109}}),
            calm,
        ),
        "base-create-refused" | "base-record-rate-limit" => (json!({}), code(99_991_400)),
        "base-login-scope-missing" => (
            with(user(), &json!({"/profiles/peer-bot/base_scope": false})),
            calm,
        ),
        "base-record-answer-lost" => (json!({}), on(json!({"do": "lose_answer"}))),
        "base-record-conflict" => (json!({}), code(1_254_291)),
        "base-record-denied" => (json!({}), code(800_020_304)),
        "base-record-forbidden" => (json!({}), code(91_403)),
        "base-record-http-500" => (json!({}), on(json!({"do": "internal"}))),
        "base-record-http-503-coded" => (json!({}), code(2_200)),
        "base-record-null" | "base-record-list-null" => {
            (json!({"/options/record_form": "null"}), calm)
        }
        "base-record-list-old" => (
            json!({"/options/record_form": "old", format!("{TABLE}/records"): [{"record_id": "r", "fields": {"Task": "one", "Status": ["Todo"]}}]}),
            calm,
        ),
        "base-record-list-filter"
        | "base-record-list-first"
        | "base-record-list-last"
        | "base-record-list-markdown"
        | "base-record-update"
        | "base-record-delete"
        | "base-field-update"
        | "base-field-create-partial" => {
            let mut changes = filled();
            // The fourth column comes with the call itself.
            if name == "base-field-create-partial" {
                let fields = columns();
                changes[format!("{TABLE}/fields")] = json!([fields[0], fields[2]]);
            }
            (changes, calm)
        }
        "base-view-fields"
        | "base-view-filter"
        | "base-view-filter-array"
        | "base-view-group"
        | "base-view-missing" => (
            json!({format!("{TABLE}/views"): [{"id": "vew0075", "name": "Worker Queue", "type": "grid"}]}),
            calm,
        ),
        "docs-fetch-missing" | "base-get-missing" => (json!({}), calm),
        name if name.starts_with("apps-") => apps(name),
        _ => (json!({}), calm),
    }
}

fn apps(name: &str) -> (Value, Value) {
    let on = |rule: Value| {
        let mut rule = rule;
        rule["on"] = json!("*");
        json!([rule])
    };
    let code = |code: i64| on(json!({"do": "code", "code": code}));
    let network = |subtype: &str| on(json!({"do": "network", "subtype": subtype}));
    let calm = json!([]);
    let faults = match name {
        "apps-list-denied" => code(99_991_679),
        "apps-list-rate-limit" | "apps-publish-release-rate-limit" => code(99_991_400),
        "apps-publish-answer-lost" => on(json!({"do": "lose_answer"})),
        "apps-publish-pre-release-empty" | "apps-publish-release-500" => {
            on(json!({"do": "internal"}))
        }
        "apps-publish-release-500-coded" => code(500_002_000),
        "apps-publish-release-denied" => code(3_344_031),
        "apps-publish-release-type" => code(400_000_059),
        "apps-publish-upload-500" => network("server_error"),
        "apps-publish-upload-cut" | "apps-publish-upload-refused" => network("transport"),
        "apps-scope-unsupported" => code(40_002),
        _ => calm,
    };
    let access = |scope: Value| json!({"/apps/2/access": scope});
    let more = match name {
        "apps-list-no-login" | "apps-publish-no-login" | "apps-list-no-as" => {
            return (json!({}), faults);
        }
        "apps-list-brand-lark" | "apps-publish-brand-lark" => {
            json!({"/profiles/peer-bot/brand": "lark"})
        }
        "apps-login-scope-missing" => json!({"/profiles/peer-bot/publish_scope": false}),
        "apps-publish-no-id" => json!({"/options/release_without_id": true}),
        "apps-release-failed" => json!({"/releases/rel0084/status": "failed"}),
        "apps-release-finished" => json!({"/releases/rel0084/status": "finished"}),
        "apps-scope-all" => access(json!({"require_login": true, "scope": "All"})),
        "apps-scope-tenant" => access(json!({"scope": "Tenant"})),
        "apps-scope-range" => access(
            json!({"apply_config": {"approvers": ["ou_1"], "enabled": true}, "chats": ["oc_1"], "departments": [],
            "scope": "Range", "users": ["ou_2"]}),
        ),
        _ => json!({}),
    };
    (with(user(), &more), faults)
}
