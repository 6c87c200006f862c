//! Documents that are written, and boards that are drawn.

use serde_json::{Value, json};

use super::answer::{Answer, Failure};
use super::base::grant;
use super::call::Call;
use super::state::State;

/// The shortest key of a drawing.
const MIN_KEY: usize = 10;

pub(crate) fn run(state: &mut State, call: &Call) -> Result<Answer, Failure> {
    match call.command.as_str() {
        "docs +create" => create(state, call),
        "docs +fetch" => {
            let (id, row) = found(state, call)?;
            let shown = json!({"content": row["content"], "document_id": id, "revision_id": row["revision"]});
            Ok(Answer::data(call.identity(), &json!({"document": shown})))
        }
        "docs +update" => update(state, call),
        "whiteboard +update" => draw(state, call),
        _ => {
            let nodes = state.0["boards"][call.flag("whiteboard-token")]["nodes"].clone();
            Ok(Answer::data(call.identity(), &json!({"nodes": nodes})))
        }
    }
}

fn found<'a>(state: &'a mut State, call: &Call) -> Result<(String, &'a mut Value), Failure> {
    let id = call.flag("doc").to_owned();
    let papers = state.0["papers"]
        .as_object_mut()
        .ok_or_else(|| Failure::code(1_770_002))?;
    let row = papers
        .get_mut(&id)
        .ok_or_else(|| Failure::code(1_770_002))?;
    Ok((id, row))
}

fn create(state: &mut State, call: &Call) -> Result<Answer, Failure> {
    if call.flag("content").is_empty() {
        return Err(Failure::argument());
    }
    let id = format!("dox{:04}", state.fresh());
    state.0["papers"][&id] = json!({"content": call.flag("content"), "revision": 1});
    let url = format!("https://www.feishu.cn/docx/{id}");
    let mut data = json!({"document": {"document_id": id, "revision_id": 1, "url": url}});
    if call.identity() == "bot" {
        data["permission_grant"] = grant(state, call);
    }
    Ok(Answer {
        stderr: "<line>\n".to_owned(),
        ..Answer::data(call.identity(), &data)
    })
}

fn update(state: &mut State, call: &Call) -> Result<Answer, Failure> {
    let is_delete = call.flag("command") == "block_delete";
    if is_delete && !call.has("block-id") {
        return Err(Failure::argument());
    }
    let (id, row) = found(state, call)?;
    let revision = row["revision"].as_u64().unwrap_or(1) + 1;
    row["revision"] = json!(revision);
    let mut data = json!({"document": {"document_id": id, "revision_id": revision}});
    // No block of any id is kept here: none can be deleted.
    if is_delete {
        data["result"] = json!("failed");
        data["updated_blocks_count"] = json!(0);
        data["warnings"] = json!(["<warning>"]);
        return Ok(Answer {
            rc: 1,
            ..Answer::bare(&json!({"ok": false, "identity": call.identity(), "data": data}))
        });
    }
    let content = format!(
        "{}{}",
        row["content"].as_str().unwrap_or(""),
        call.flag("content")
    );
    row["content"] = json!(content);
    data["result"] = json!("success");
    data["updated_blocks_count"] = json!(1);
    Ok(Answer::data(call.identity(), &data))
}

/// The same key draws once.
fn draw(state: &mut State, call: &Call) -> Result<Answer, Failure> {
    let (board, key) = (call.flag("whiteboard-token"), call.flag("idempotent-token"));
    if key.len() < MIN_KEY {
        return Err(Failure::argument());
    }
    if state.0["boards"][board]["keys"][key].is_null() {
        let id = format!("n{:04}", state.fresh());
        state.0["boards"][board]["nodes"] = json!([{"id": id, "type": "composite_shape"}]);
        state.0["boards"][board]["keys"][key] = json!(id);
    }
    let id = state.0["boards"][board]["keys"][key].clone();
    Ok(Answer::data(
        call.identity(),
        &json!({"created_node_ids": id}),
    ))
}
