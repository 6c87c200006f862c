//! Marks on a message whose outcome is unknown, refused or already gone.

use serde_json::json;

use super::desk::{Desk, holds};

/// A shown list that is null is an empty list, docs/spec/lark-cli.md 3.1.
#[test]
fn a_mark_that_a_null_list_does_not_hold_counts_as_removed() {
    let desk = Desk::with_message();
    holds(&desk.mark("processing"), &json!({"status": "processing"}));
    desk.lark.faults(json!([
        {"on": "api", "method": "DELETE", "do": "code", "code": 231_007},
        {"on": "api", "method": "GET", "path": "reactions", "do": "set", "values": {"/data": {"items": null, "has_more": false}}}
    ]));
    holds(
        &desk.mark("reaction-complete"),
        &json!({"ok": true, "status": "completed", "deleted_count": 1}),
    );
}

/// 13, 14, 23
#[test]
fn a_mark_of_unknown_outcome_is_never_made_twice_and_an_absent_one_counts_as_removed() {
    let desk = Desk::with_message();
    desk.lark
        .faults(json!([{"on": "api", "method": "POST", "do": "lose_answer"}]));
    holds(
        &desk.mark("processing"),
        &json!({"ok": false, "status": "provider_outcome_uncertain", "external_write_outcome": "unknown"}),
    );
    desk.lark.faults(json!([]));
    holds(
        &desk.mark("processing"),
        &json!({"ok": false, "status": "provider_outcome_uncertain"}),
    );
    assert_eq!(desk.creates(), 1);

    let desk = Desk::with_message();
    desk.lark
        .faults(json!([{"on": "api", "method": "POST", "do": "code", "code": 231_003}]));
    holds(
        &desk.mark("processing"),
        &json!({"ok": false, "blocker": "lark_inbox_processing_reaction_create_failed", "external_write_outcome": "none"}),
    );
    desk.lark.faults(json!([]));
    holds(
        &desk.mark("processing"),
        &json!({"ok": true, "status": "processing"}),
    );
    // Twenty other marks make a second page of marks.
    desk.lark.edit(|state| {
        let rows = state["marks"]["om_zqpa"].as_array_mut().expect("marks");
        rows.extend((0..60).map(|index| json!({"reaction_id": format!("re_{index}"), "emoji": "Get", "app_id": "cli_zqpelse"})));
    });
    let delete = json!({"on": "api", "method": "DELETE", "do": "code", "code": 231_003});
    desk.lark.faults(json!([delete, {"on": "api", "method": "GET", "path": "reactions", "nth": [2], "do": "code", "code": 99}]));
    holds(
        &desk.mark("reaction-complete"),
        &json!({"ok": false, "status": "cleanup_pending", "pending_delete_count": 1}),
    );
    desk.lark.edit(|state| {
        state["marks"]["om_zqpa"]
            .as_array_mut()
            .expect("marks")
            .retain(|row| row["emoji"] != "OnIt")
    });
    desk.lark.faults(json!([delete]));
    holds(
        &desk.mark("reaction-complete"),
        &json!({"ok": true, "status": "completed", "deleted_count": 1}),
    );
}
