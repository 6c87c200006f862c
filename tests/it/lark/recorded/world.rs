//! The platform as it was when the recordings were made.

use std::fs;

use serde_json::{Value, json};

const DOCUMENT: &str = "https://team.feishu.cn/docx/doxcnPeerA";

/// The world of the recordings.
pub(super) fn world() -> Value {
    let bot = |app: &str, open: &str, name: &str| json!({"app_id": app, "open_id": open, "union_id": format!("on_{open}"), "name": name});
    let user = |open: &str, name: &str| json!({"open_id": open, "union_id": format!("on_{open}"), "name": name});
    json!({
        "profiles": {"peer-bot": {"app_id": "cli_peer0001", "app_name": "Peer Bot", "open_id": "ou_peerbot"}},
        "chats": {"oc_peer": {"name": "Peer Group", "bots": [bot("cli_peer0001", "ou_peerbot", "Peer Bot"), bot("cli_other01", "ou_otherbot", "Other Bot")],
            "users": [user("ou_ann", "Ann"), user("ou_bob", "Bob"), user("ou_peeruser", "Peer User")]}},
        "messages": [message("om_peer000001", "root", json!({}))],
        "marks": {"om_peer000001": []}, "keys": {}, "streams": {}, "consumers": [], "options": {}, "hits": {},
        "documents": {
            DOCUMENT: {"file_token": "doxcnPeerA", "file_type": "docx", "comments": [
                {"comment_id": "7000000000000000101", "replies": [reply("rp0001"), reply("rp0002"), reply("rp0003")]},
                {"comment_id": "7000000000000000102", "is_solved": true, "replies": [reply("rp0004")]},
                {"comment_id": "7000000000000000103", "is_whole": true, "replies": [reply("rp0005")]}]},
            "https://team.feishu.cn/file/boxcnPeerA": {"file_token": "boxcnPeerA", "file_type": "file", "comments": []},
            "https://team.feishu.cn/sheets/shtcnPeerA": {"file_token": "shtcnPeerA", "file_type": "sheet", "comments": [
                {"comment_id": "70000000000000001019", "replies": [reply("rp0006")]}]}},
        "wiki": {"wikcnPeerA": {"url": DOCUMENT}, "wikcnPeerAM": {"url": "a mind note"}},
        "shareable": ["bascPeerShareA"], "pins": [],
        "bases": {"bascPeer0016": board()}, "apps": apps(),
        "releases": {"rel0084": {"app_id": "app_peerreport1", "status": "publishing"}},
        "papers": {"doxPeer0012": {"content": "<p>hello</p>", "revision": 1}},
        "boards": {"wbcnPeerA": {"nodes": [{"id": "n0015", "type": "composite_shape"}], "keys": {}}},
        // Tokens of earlier calls, and where they lead.
        "tokens": {"84d8dc0c9bae.3": 3, "b9b2ff40a150.2": 2, "f262e80b5ff4.2": 2, "pt1.d4e10d62": 1, "pt2.42fce864": 2, "pt2.d56f6359": 2},
        "app_versions": {"cli_peer0001": recorded("api-app-versions")["stdout"].as_str().and_then(|text| serde_json::from_str::<Value>(text).ok())
            .map(|value| value["data"]["items"].clone()).unwrap_or_default()},
    })
}

fn board() -> Value {
    let status = json!([{"name": "Todo"}, {"name": "Done"}]);
    json!({"name": "Goal board", "url": "https://base.peer.example/base/bascPeer0016", "tables": [{
        "id": "tblPeer0020", "name": "LoopX Control Plane", "records": [],
        "fields": [{"id": "fld0021", "name": "Task", "type": "text"},
            {"id": "fld0022", "multiple": false, "name": "Status", "options": status, "type": "select"}],
        "views": [{"id": "vew0023", "name": "Grid", "type": "grid"}]}]})
}

fn apps() -> Value {
    let app = |id: &str, kind: &str| json!({"app_id": id, "app_type": kind, "name": "Name"});
    let mut report = app("app_peerreport1", "HTML");
    report["online_url"] = json!("https://app-peerreport1.peer.example/");
    json!([
        app("app_filler0", "HTML"),
        app("app_filler1", "HTML"),
        report,
        app("app_peermodern1", "MODERN_HTML"),
        app("app_peerfull1", "FULL")
    ])
}

pub(super) fn message(id: &str, text: &str, extra: Value) -> Value {
    let mut message = json!({"message_id": id, "chat_id": "oc_peer", "text": text, "sender_type": "user", "sender_id": "ou_ann", "at": 1_767_225_000});
    for (name, value) in extra.as_object().into_iter().flatten() {
        message[name.as_str()] = value.clone();
    }
    message
}

fn reply(id: &str) -> Value {
    json!({"reply_id": id, "text": "words"})
}

pub(super) fn recorded(name: &str) -> Value {
    let path = format!("{}/fixtures/lark/{name}.json", env!("CARGO_MANIFEST_DIR"));
    serde_json::from_slice(&fs::read(path).expect("the recording exists")).expect("json")
}

/// A thread of `count` replies below the first message.
pub(super) fn thread(count: usize) -> Value {
    let root = message(
        "om_peer000001",
        "root",
        json!({"thread_id": "omt_peer000001"}),
    );
    let replies = (0..count).map(|index| {
        let mut link = json!({"thread_id": "omt_peer000001", "parent_id": "om_peer000001", "root_id": "om_peer000001"});
        if index == 0 {
            link["sender_type"] = json!("app");
            link["sender_id"] = json!("cli_peer0001");
        }
        message(&format!("om_peer{:06}", index + 2), "reply", link)
    });
    std::iter::once(root).chain(replies).collect()
}
