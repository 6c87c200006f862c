//! Bases: tables, fields, views and rows. One command may be several writes, and only the error of the failing one is printed.

use serde_json::{Map, Value, json};

use super::answer::{Answer, Failure};
use super::call::Call;
use super::chat::person;
use super::state::State;

type Answered = Result<Answer, Failure>;

const NOT_THERE: i64 = 800_030_110;
const BAD_VALUE: i64 = 800_010_109;
const CONFLICT: i64 = 800_040_114;

pub(crate) fn run(state: &mut State, call: &Call) -> Answered {
    if call.identity() == "user" {
        person(state, call)?;
        if state
            .profile(&call.profile)
            .is_some_and(|row| row["base_scope"] == json!(false))
        {
            return Err(Failure::missing_scopes(&["base:app:create"]));
        }
    }
    match call.command.as_str() {
        "base +base-create" => create_base(state, call),
        "base +base-get" => get_base(state, call),
        "base +base-block-list" => blocks(state, call),
        "base +table-create" => create_table(state, call),
        "base +field-list" => list(state, call, "fields"),
        "base +view-list" => list(state, call, "views"),
        "base +field-create" => create_fields(state, call),
        "base +field-update" => update_field(state, call),
        "base +view-create" => create_views(state, call),
        "base +view-set-filter" | "base +view-set-group" | "base +view-set-visible-fields" => {
            set_view(state, call)
        }
        "base +record-list" => records(state, call),
        "base +record-upsert" => upsert(state, call),
        _ => delete_records(state, call),
    }
}

fn data(call: &Call, data: &Value) -> Answer {
    Answer::data(call.identity(), data)
}

/// A request inside a command that is scripted to fail.
fn step(state: &State, name: &str) -> Result<(), Failure> {
    let broken = &state.0["options"]["base_step"];
    if broken["step"] != name {
        return Ok(());
    }
    Err(match broken["code"].as_i64() {
        Some(code) => Failure::code(code),
        None => Failure::local("internal", "invalid_response", 5),
    })
}

fn array(call: &Call, flag: &str) -> Result<Vec<Value>, Failure> {
    let value: Value = serde_json::from_str(call.flag(flag)).map_err(|_| Failure::argument())?;
    match value {
        Value::Array(items) if items.iter().all(Value::is_object) => Ok(items),
        _ => Err(Failure::argument()),
    }
}

fn numbered(state: &mut State, prefix: &str, items: Vec<Value>) -> Vec<Value> {
    items
        .into_iter()
        .map(|item| {
            let mut row = json!({"id": format!("{prefix}{:04}", state.fresh())});
            for (name, value) in item.as_object().into_iter().flatten() {
                row[name.as_str()] = value.clone();
            }
            row
        })
        .collect()
}

fn base<'a>(state: &'a mut State, call: &Call) -> Result<&'a mut Value, Failure> {
    let token = call.flag("base-token").to_owned();
    let bases = state.0["bases"]
        .as_object_mut()
        .ok_or_else(|| Failure::code(NOT_THERE))?;
    bases
        .get_mut(&token)
        .ok_or_else(|| Failure::code(NOT_THERE))
}

fn table<'a>(state: &'a mut State, call: &Call) -> Result<&'a mut Value, Failure> {
    let id = call.flag("table-id").to_owned();
    let tables = base(state, call)?["tables"]
        .as_array_mut()
        .ok_or_else(|| Failure::code(NOT_THERE))?;
    let found = tables
        .iter_mut()
        .find(|table| table["id"] == id || table["name"] == id);
    found.ok_or_else(|| Failure::code(NOT_THERE))
}

fn make_table(state: &mut State, name: &str, fields: Vec<Value>) -> Value {
    let fields = numbered(state, "fld", fields);
    let id = format!("tbl{:04}", state.fresh());
    let views = numbered(state, "vew", vec![json!({"name": "Grid", "type": "grid"})]);
    json!({"id": id, "name": name, "fields": fields, "views": views, "records": []})
}

fn shown_table(table: &Value) -> Value {
    json!({"id": table["id"], "name": table["name"], "fields": table["fields"], "primary_field": table["fields"][0]["id"]})
}

/// What a bot's new base or document says about the person it is made for.
pub(crate) fn grant(state: &State, call: &Call) -> Value {
    let user = state
        .profile(&call.profile)
        .map_or(Value::Null, |row| row["user"].clone());
    match user.is_object() {
        true => {
            json!({"member_type": "openid", "message": "<message>", "perm": "full_access", "status": "granted", "user_open_id": user["open_id"]})
        }
        false => {
            json!({"hint": "<hint>", "message": "<message>", "perm": "full_access", "status": "skipped"})
        }
    }
}

fn create_base(state: &mut State, call: &Call) -> Answered {
    if call.has("dry-run") {
        return planned(state, call);
    }
    let token = format!("basc{:04}", state.fresh());
    let default = make_table(
        state,
        "Table",
        vec![json!({"name": "Text", "type": "text"})],
    );
    let url = format!("https://base.invalid/base/{token}");
    state.0["bases"][&token] = json!({"name": call.flag("name"), "url": url, "tables": [default]});
    let mut out = json!({"base": {"base_token": token, "name": call.flag("name"), "url": url}, "created": true});
    if state.0["options"]["base_names_table"] == json!(true) {
        out["base"]["default_table_id"] = default["id"].clone();
    }
    if call.has("table-name") {
        // The base exists by now: what fails from here on loses its token.
        let fields = array(call, "fields")?;
        step(state, "table")?;
        let made = make_table(state, call.flag("table-name"), fields);
        state.0["bases"][&token]["tables"]
            .as_array_mut()
            .expect("a list")
            .push(made.clone());
        step(state, "delete")?;
        state.0["bases"][&token]["tables"]
            .as_array_mut()
            .expect("a list")
            .remove(0);
        out["default_table_deleted"] = json!(true);
        out["deleted_default_table_id"] = default["id"].clone();
        out["fields"] = made["fields"].clone();
        out["table"] = shown_table(&made);
    }
    if call.identity() == "bot" {
        out["permission_grant"] = grant(state, call);
    }
    Ok(Answer {
        stderr: "<line>\n".to_owned(),
        ..data(call, &out)
    })
}

fn planned(state: &State, call: &Call) -> Answered {
    let tables = "/open-apis/base/v3/bases/<created_base_token>/tables";
    let api = json!([
        {"method": "POST", "url": "/open-apis/base/v3/bases", "body": {"name": call.flag("name")}},
        {"desc": "<desc>", "method": "GET", "url": tables, "params": {"limit": 100, "offset": 0}},
        {"desc": "<desc>", "method": "POST", "url": tables, "body": {"fields": array(call, "fields")?, "name": call.flag("table-name")}},
        {"desc": "<desc>", "method": "DELETE", "url": format!("{tables}/<default_table_id>")},
    ]);
    let app = state
        .profile(&call.profile)
        .map_or(Value::Null, |row| row["app_id"].clone());
    let out = json!({"api": api, "context": {"app_id": app}, "created_base_token": "<created_base_token>", "default_table_id": "<default_table_id>",
        "description": "<description>"});
    Ok(Answer::bare(
        &json!({"ok": true, "identity": call.identity(), "dry_run": true, "data": out}),
    ))
}

fn get_base(state: &mut State, call: &Call) -> Answered {
    let row = base(state, call)?;
    let shown = json!({"base_token": call.flag("base-token"), "name": row["name"], "time_zone": "Asia/Shanghai", "url": row["url"]});
    Ok(data(call, &json!({"base": shown})))
}

fn blocks(state: &mut State, call: &Call) -> Answered {
    let tables = base(state, call)?["tables"]
        .as_array()
        .into_iter()
        .flatten();
    let rows: Vec<Value> = tables
        .map(|table| json!({"id": table["id"], "name": table["name"], "type": "table"}))
        .collect();
    Ok(data(call, &json!({"blocks": rows, "total": rows.len()})))
}

fn create_table(state: &mut State, call: &Call) -> Answered {
    if !call.has("fields") {
        return Err(Failure::argument());
    }
    let fields = array(call, "fields")?;
    base(state, call)?;
    let mut made = make_table(state, call.flag("name"), fields);
    let mut out = json!({"fields": made["fields"], "table": shown_table(&made)});
    let views = call.has("view").then(|| array(call, "view"));
    if let Some(Ok(views)) = &views {
        made["views"] = json!(numbered(state, "vew", views.clone()));
        out["views"] = made["views"].clone();
    }
    base(state, call)?["tables"]
        .as_array_mut()
        .expect("a list")
        .push(made);
    views.transpose()?;
    step(state, "view")?;
    Ok(data(call, &out))
}

fn list(state: &mut State, call: &Call, name: &str) -> Answered {
    call.number("limit", 100, 200)?;
    let rows = table(state, call)?[name].clone();
    let total = rows.as_array().map_or(0, Vec::len);
    Ok(data(call, &json!({name: rows, "total": total})))
}

fn create_fields(state: &mut State, call: &Call) -> Answered {
    let given: Value = serde_json::from_str(call.flag("json")).map_err(|_| Failure::argument())?;
    let (wanted, is_list) = match given {
        Value::Array(items) => (items, true),
        one => (vec![one], false),
    };
    let (mut made, mut items, mut failed) = (Vec::new(), Vec::new(), false);
    for (index, field) in wanted.iter().enumerate() {
        let known = table(state, call)?["fields"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let is_known = known.iter().any(|row| row["name"] == field["name"]);
        if failed || is_known {
            let mut item = json!({"field": field, "index": index, "status": if failed { "not_attempted" } else { "failed" }});
            if !failed {
                for (name, value) in [
                    ("code", json!(CONFLICT)),
                    ("error", json!("<error>")),
                    ("hint", json!("<hint>")),
                    ("log_id", json!("l")),
                    ("retryable", json!(true)),
                    ("subtype", json!("conflict")),
                    ("type", json!("api")),
                ] {
                    item[name] = value;
                }
            }
            failed = true;
            items.push(item);
            continue;
        }
        let row = numbered(state, "fld", vec![field.clone()]).remove(0);
        table(state, call)?["fields"]
            .as_array_mut()
            .expect("a list")
            .push(row.clone());
        items.push(json!({"field": row, "index": index, "status": "created"}));
        made.push(row);
    }
    if failed && !is_list {
        return Err(Failure::code(CONFLICT));
    }
    if failed {
        return Ok(partial(call, &items));
    }
    let mut out = json!({"created": true, "field_get_recommended": false, "next_step": "done", "verification_hint": "<verification_hint>"});
    match is_list {
        true => {
            out["total"] = json!(made.len());
            out["fields"] = json!(made);
        }
        false => out["field"] = made.remove(0),
    }
    Ok(data(call, &out))
}

/// Half a command: its envelope stands on standard output.
fn partial(call: &Call, items: &[Value]) -> Answer {
    let count = |status: &str| items.iter().filter(|item| item["status"] == status).count();
    let (created, failed, rest) = (count("created"), count("failed"), count("not_attempted"));
    let out = json!({"field_get_recommended": false, "hint": "<hint>", "items": items, "next_step": "inspect_items",
        "summary": {"attempted": created + failed, "created": created, "failed": failed, "not_attempted": rest, "requested": items.len()},
        "verification_hint": "<verification_hint>"});
    Answer {
        rc: 1,
        ..Answer::bare(&json!({"ok": false, "identity": call.identity(), "data": out}))
    }
}

fn needs_yes(call: &Call) -> Result<(), Failure> {
    match call.has("yes") {
        true => Ok(()),
        false => Err(Failure::local("confirmation", "confirmation_required", 10)),
    }
}

fn update_field(state: &mut State, call: &Call) -> Answered {
    needs_yes(call)?;
    let given = call.object("json")?;
    let id = call.flag("field-id").to_owned();
    let fields = table(state, call)?["fields"]
        .as_array_mut()
        .expect("a list");
    let field = fields
        .iter_mut()
        .find(|field| field["id"] == id || field["name"] == id);
    let field = field.ok_or_else(|| Failure::code(NOT_THERE))?;
    let mut next = json!({"id": field["id"]});
    for (name, value) in given.as_object().into_iter().flatten() {
        next[name.as_str()] = value.clone();
    }
    *field = next.clone();
    Ok(data(
        call,
        &json!({"field": next, "field_get_recommended": true, "next_step": "field_get", "updated": true, "verification_hint": "<verification_hint>"}),
    ))
}

fn create_views(state: &mut State, call: &Call) -> Answered {
    let given: Value = serde_json::from_str(call.flag("json")).map_err(|_| Failure::argument())?;
    let wanted = match given {
        Value::Array(items) => items,
        one => vec![one],
    };
    let made = numbered(state, "vew", wanted);
    table(state, call)?["views"]
        .as_array_mut()
        .expect("a list")
        .extend(made.clone());
    Ok(data(call, &json!({"views": made})))
}

fn set_view(state: &mut State, call: &Call) -> Answered {
    let given = call.object("json")?;
    let id = call.flag("view-id").to_owned();
    let table = table(state, call)?;
    let is_known = table["views"]
        .as_array()
        .into_iter()
        .flatten()
        .any(|view| view["id"] == id || view["name"] == id);
    if !is_known {
        return Err(Failure::code(NOT_THERE));
    }
    let fields = table["fields"].clone();
    let by_id = |name: &Value| {
        let found = fields
            .as_array()
            .into_iter()
            .flatten()
            .find(|field| field["name"] == *name || field["id"] == *name);
        found.map_or(Value::Null, |field| field["id"].clone())
    };
    let out = match call.command.as_str() {
        "base +view-set-filter" => {
            let rows = given["conditions"].as_array().into_iter().flatten();
            let rows: Vec<Value> = rows
                .map(|row| json!([by_id(&row[0]), row[1], row[2]]))
                .collect();
            json!({"filter": {"conditions": rows, "logic": given["logic"]}})
        }
        "base +view-set-group" => {
            let rows = given["group_config"].as_array().into_iter().flatten();
            json!({"group": rows.map(|row| json!({"desc": row["desc"], "field": by_id(&row["field"])})).collect::<Vec<_>>()})
        }
        _ => {
            json!({"visible_fields": given["visible_fields"].as_array().into_iter().flatten().map(by_id).collect::<Vec<_>>()})
        }
    };
    Ok(data(call, &out))
}

/// Tells whether a row has one of the asked options.
fn passes(row: &Value, filter: &Value) -> bool {
    filter["conditions"]
        .as_array()
        .into_iter()
        .flatten()
        .all(|condition| {
            let cell = &row["fields"][condition[0].as_str().unwrap_or("")];
            let wanted = condition[2].as_array().cloned().unwrap_or_default();
            condition[1] != "intersects"
                || cell
                    .as_array()
                    .into_iter()
                    .flatten()
                    .any(|option| wanted.contains(option))
        })
}

fn records(state: &mut State, call: &Call) -> Answered {
    let limit = call.number("limit", 20, 200)?;
    let offset: usize = call.flag("offset").parse().unwrap_or(0);
    let form = state.0["options"]["record_form"].clone();
    let filter = if call.has("filter-json") {
        call.object("filter-json")?
    } else {
        Value::Null
    };
    let table = table(state, call)?;
    let fields = table["fields"].as_array().cloned().unwrap_or_default();
    let rows: Vec<Value> = table["records"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|row| passes(row, &filter))
        .cloned()
        .collect();
    let end = (offset + limit).min(rows.len());
    let shown = rows.get(offset..end).unwrap_or_default();
    let cells = |row: &Value| -> Value {
        fields
            .iter()
            .map(|field| row["fields"][field["name"].as_str().unwrap_or("")].clone())
            .collect()
    };
    let names: Vec<Value> = fields.iter().map(|field| field["name"].clone()).collect();
    let ids: Vec<Value> = shown.iter().map(|row| row["record_id"].clone()).collect();
    if form == "null" {
        return Ok(data(call, &Value::Null));
    }
    if form == "old" {
        let old = json!({"record_ids": ids, "rows": shown.iter().map(cells).collect::<Vec<_>>(), "schema": names});
        return Ok(data(call, &json!({"records": old, "total": rows.len()})));
    }
    if call.flag("format") != "json" {
        return Ok(Answer::text("<line>\n\n| _record_id |\n| --- |\n"));
    }
    let scope = if call.has("view-id") || call.has("filter-json") {
        "filtered_records"
    } else {
        "all_records"
    };
    let more = end < rows.len();
    let mut out = json!({"data": shown.iter().map(cells).collect::<Vec<_>>(), "field_id_list": fields.iter().map(|field| &field["id"]).collect::<Vec<_>>(),
        "field_type_list": fields.iter().map(|field| &field["type"]).collect::<Vec<_>>(), "fields": names, "has_more": more,
        "query_context": {"field_scope": "all_fields", "record_scope": scope}, "record_id_list": ids});
    if !more {
        out["total"] = json!(rows.len());
    }
    Ok(data(call, &out))
}

/// A select cell holds options of its field alone.
fn fits(fields: &Value, row: &Map<String, Value>) -> bool {
    let field = |name: &str| {
        fields
            .as_array()
            .into_iter()
            .flatten()
            .find(|field| field["name"] == name)
    };
    row.iter().all(|(name, cell)| match field(name) {
        None => false,
        Some(field) if field["type"] == "select" => {
            let options: Vec<&Value> = field["options"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|option| &option["name"])
                .collect();
            cell.as_array().map_or_else(
                || options.contains(&cell),
                |cells| cells.iter().all(|cell| options.contains(&cell)),
            )
        }
        Some(_) => true,
    })
}

fn upsert(state: &mut State, call: &Call) -> Answered {
    let given = call.object("json")?;
    let given = given.as_object().cloned().unwrap_or_default();
    let fresh = format!("rec{:04}", state.fresh());
    let is_lost = state.0["options"]["record_form"] == "null";
    let table = table(state, call)?;
    if !fits(&table["fields"], &given) {
        return Err(Failure::code(BAD_VALUE));
    }
    let records = table["records"].as_array_mut().expect("a list");
    if !call.has("record-id") {
        let row = json!({"fields": given, "record_id": fresh});
        records.push(row.clone());
        let shown = if is_lost { Value::Null } else { row };
        return Ok(data(call, &json!({"created": true, "record": shown})));
    }
    let id = call.flag("record-id");
    let row = records
        .iter_mut()
        .find(|row| row["record_id"] == id)
        .ok_or_else(|| Failure::code(NOT_THERE))?;
    for (name, value) in given {
        row["fields"][name] = value;
    }
    Ok(data(call, &json!({"record": row, "updated": true})))
}

fn delete_records(state: &mut State, call: &Call) -> Answered {
    needs_yes(call)?;
    let id = call.flag("record-id").to_owned();
    let records = table(state, call)?["records"]
        .as_array_mut()
        .expect("a list");
    records.retain(|row| row["record_id"] != id);
    Ok(data(call, &json!({"record_id_list": [id]})))
}
