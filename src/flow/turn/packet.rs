//! What `turn run-once` answers.

use serde_json::{Map, Value, json};

use super::journal_file::{self, Loaded};
use crate::contract::error::ErrorCode;
use crate::contract::ids::TurnKey;
use crate::contract::packet::Refusal;
use crate::flow::open::Answer;
use crate::flow::settle;
use crate::kernel::turn::journal::Status;
use crate::kernel::turn::recover::Recovery;
use crate::store::state::Rows;

/// What this call did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// A host was started.
    pub host_invoked: bool,
    /// State was written.
    pub state_written: bool,
    /// A slot was spent.
    pub quota_spent: bool,
    /// The scheduler was told.
    pub scheduler_acknowledged: bool,
}

impl Effects {
    /// The packet.
    pub fn to_value(self) -> Value {
        json!({
            "host_invoked": self.host_invoked, "state_written": self.state_written, "quota_spent": self.quota_spent,
            "scheduler_acknowledged": self.scheduler_acknowledged,
        })
    }
}

/// The answer over a stored Turn.
pub fn execution(
    rows: Rows<'_>,
    loaded: &Loaded,
    effects: Effects,
    (recovery, retry): (&Recovery, bool),
) -> Answer<Value> {
    let journal = loaded
        .journal
        .as_ref()
        .ok_or_else(journal_file::inconsistent)?;
    let status = journal.status().ok_or_else(journal_file::inconsistent)?;
    let is_replay = matches!(recovery, Recovery::ReturnExisting(_));
    let is_ok = matches!(
        status,
        Status::Committed | Status::Stopped | Status::SchedulerActionRequired
    );
    let identity = journal_file::identity_of(journal.plan());
    let spend = match &identity {
        Some(identity) => rows.spend(&identity.effect_id())?,
        None => None,
    };
    let get = |name: &str| journal.get(name).cloned().unwrap_or(Value::Null);
    let mut packet = head(loaded);
    let mut put = |name: &str, value: Value| {
        packet.insert(name.to_owned(), value);
    };
    put("ok", json!(is_ok));
    put("replayed", json!(is_replay));
    put("status", json!(status.as_str()));
    put("result_kind", get("result_kind"));
    put("validation", get("task_validation"));
    if let Some(stage) = journal.get("validation_stage") {
        put("validation_stage", stage.clone());
    }
    put(
        "receipt",
        receipt(
            loaded,
            identity
                .as_ref()
                .map(|identity| identity.effect_id())
                .as_deref(),
        ),
    );
    put(
        "scheduler",
        journal
            .get("scheduler")
            .cloned()
            .unwrap_or_else(|| scheduler(loaded, status)),
    );
    put("effects", effects.to_value());
    put("quota_slot_spend_count", json!(i32::from(spend.is_some())));
    if let Some(identity) = &identity {
        put(
            "settlement_result",
            journal
                .get("settlement_result")
                .cloned()
                .unwrap_or(settle::settlement_result(rows, identity)?),
        );
    }
    for name in [
        "reason",
        "error_code",
        "host_failure",
        "terminal_closeout",
        "admission",
    ] {
        if let Some(value) = journal.get(name) {
            put(name, value.clone());
        }
    }
    if let Some(completed) = journal
        .get("writeback")
        .and_then(|writeback| writeback.get("todo_completion"))
    {
        put("todo_completion", completed.clone());
    }
    if !is_ok {
        put("error", json!(failure_sentence(status, is_replay)));
        if journal.get("error_code").is_none() {
            let code = match (is_replay, journal.text("reason")) {
                (true, _) => ErrorCode::FailedRetryNotRequested.as_str(),
                (false, Some(reason)) if is_code(reason) => reason,
                _ => ErrorCode::TurnFailed.as_str(),
            };
            put("error_code", json!(code));
        }
    }
    if is_replay || !is_ok {
        put("recovery", recovery.to_value(retry));
    }
    if let Some(capture) = journal.get("decision_capture") {
        put(
            "decision_capture",
            json!({"capture_id": capture.get("capture_id"), "sha256": capture.get("sha256")}),
        );
    }
    Ok(Value::Object(packet))
}

fn is_code(reason: &str) -> bool {
    ErrorCode::ALL.iter().any(|code| code.as_str() == reason)
}

fn failure_sentence(status: Status, is_replay: bool) -> &'static str {
    match (status, is_replay) {
        (Status::Failed, true) => {
            "the Turn failed before and its result is kept; --retry-failed-turn tries it again"
        }
        (Status::Failed, false) => "the Turn failed; see its reason, then use --retry-failed-turn",
        _ => "the Turn is not finished; run it again",
    }
}

fn head(loaded: &Loaded) -> Map<String, Value> {
    let key = &loaded.row.turn_key;
    let journal = loaded.journal.as_ref();
    let host = journal.and_then(|journal| journal.plan().get("host"));
    let of_host = |name: &str| {
        host.and_then(|host| host.get(name))
            .cloned()
            .unwrap_or(Value::Null)
    };
    let mut packet = Map::new();
    packet.insert("ok".to_owned(), json!(false));
    packet.insert(
        "schema_version".to_owned(),
        json!("loopx_turn_execution_v0"),
    );
    packet.insert("mode".to_owned(), json!("run_once"));
    packet.insert("dry_run".to_owned(), json!(false));
    packet.insert("replayed".to_owned(), json!(false));
    packet.insert("resume_turn_key".to_owned(), json!(key));
    let short = TurnKey::new(key.clone()).map(|key| journal_file::hex(&key)[..16].to_owned());
    packet.insert(
        "journal_ref".to_owned(),
        json!(format!("turn:{}", short.unwrap_or_default())),
    );
    packet.insert("status".to_owned(), Value::Null);
    packet.insert("execution_mode".to_owned(), of_host("execution_mode"));
    packet.insert(
        "host".to_owned(),
        json!(journal.and_then(|journal| journal.text("host"))),
    );
    packet
}

fn scheduler(loaded: &Loaded, status: Status) -> Value {
    let owner = loaded
        .journal
        .as_ref()
        .and_then(|journal| journal.plan().get("host"))
        .and_then(|host| host.get("scheduler_owner"));
    json!({"owner": owner, "action": "none", "required": status == Status::SchedulerActionRequired})
}

fn receipt(loaded: &Loaded, effect_id: Option<&str>) -> Value {
    let journal = loaded.journal.as_ref();
    let phases = journal
        .and_then(|journal| journal.body().get("completed_phases"))
        .cloned()
        .unwrap_or(json!([]));
    json!({
        "schema_version": "loopx_turn_receipt_v0",
        "turn_key": loaded.row.turn_key,
        "settlement_effect_id": effect_id,
        "result_kind": journal.and_then(|journal| journal.text("result_kind")),
        "completed_phases": phases,
        "status": loaded.row.status,
    })
}

/// A refusal of a Turn, with the members its answer always has.
pub fn refusal(refusal: Refusal, key: Option<&TurnKey>, effects: Effects) -> Refusal {
    let status = if refusal.details.contains_key("status") {
        None
    } else {
        Some("blocked")
    };
    let mut refusal = refusal
        .with("mode", "run_once")
        .with("dry_run", false)
        .with("resume_turn_key", json!(key))
        .with("effects", effects.to_value())
        .with("quota_slot_spend_count", 0);
    if let Some(status) = status {
        refusal = refusal.with("status", status);
    }
    refusal
}
