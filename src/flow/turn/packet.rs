//! What `turn run-once` answers.

use serde_json::{Map, Value, json};

use super::journal_file::{self, Loaded};
use crate::contract::error::ErrorCode;
use crate::contract::ids::TurnKey;
use crate::contract::packet::Refusal;
use crate::contract::turn::failure::Cause;
use crate::flow::open::Answer;
use crate::flow::settle;
use crate::kernel::turn::journal::{Journal, Status};
use crate::kernel::turn::recover::{self, OnFailed, Recovery};
use crate::store::rows::Rows;

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
    (recovery, on_failed): (&Recovery, OnFailed),
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
    let effect_id = identity.as_ref().map(|identity| identity.effect_id());
    let mut packet = head(loaded);
    let mut put = |name: &str, value: Value| {
        packet.insert(name.to_owned(), value);
    };
    put("ok", json!(is_ok));
    put("replayed", json!(is_replay));
    put("status", json!(status.as_str()));
    put("result_kind", member(journal, "result_kind"));
    put("validation", member(journal, "task_validation"));
    put("receipt", receipt(loaded, effect_id.as_deref()));
    put("scheduler", scheduler(loaded, status));
    put("effects", effects.to_value());
    put("quota_slot_spend_count", json!(i32::from(spend.is_some())));
    if let Some(identity) = &identity {
        let stored = settle::settlement_result(rows, identity)?;
        let result = journal.get("settlement_result").cloned();
        put("settlement_result", result.unwrap_or(stored));
    }
    if is_replay {
        put("recovery", recovery.to_value(on_failed));
    } else if !is_ok {
        // What the next call finds, not what this one began with: a failed Turn waits for the retry flag.
        let next = OnFailed::of_flag(status == Status::Failed);
        put("recovery", recover::assess(journal, next).to_value(next));
    }
    recorded(&mut packet, journal);
    if !is_ok {
        failure(&mut packet, journal, (status, is_replay));
    }
    Ok(Value::Object(packet))
}

fn member(journal: &Journal, name: &str) -> Value {
    journal.get(name).cloned().unwrap_or(Value::Null)
}

/// The members of a journal that are shown when they are there.
fn recorded(packet: &mut Map<String, Value>, journal: &Journal) {
    const SHOWN: [&str; 6] = [
        "validation_stage",
        "reason",
        "error_code",
        "host_failure",
        "terminal_closeout",
        "admission",
    ];
    for name in SHOWN {
        if let Some(value) = journal.get(name) {
            packet.insert(name.to_owned(), value.clone());
        }
    }
    let writeback = journal.get("writeback");
    if let Some(completed) = writeback.and_then(|writeback| writeback.get("todo_completion")) {
        packet.insert("todo_completion".to_owned(), completed.clone());
    }
    if let Some(capture) = journal.get("decision_capture") {
        let shown =
            json!({"capture_id": capture.get("capture_id"), "sha256": capture.get("sha256")});
        packet.insert("decision_capture".to_owned(), shown);
    }
}

/// What a Turn that did not end well says about it.
fn failure(
    packet: &mut Map<String, Value>,
    journal: &Journal,
    (status, is_replay): (Status, bool),
) {
    let sentence = failure_sentence(status, is_replay);
    let told = match failed_by(journal) {
        Some(why) => format!("{why}; {sentence}"),
        None => sentence.to_owned(),
    };
    packet.insert("error".to_owned(), json!(told));
    let code = match (is_replay, journal.text("reason")) {
        (true, _) => ErrorCode::FailedRetryNotRequested.as_str(),
        (false, Some(reason)) if is_code(reason) => reason,
        _ => ErrorCode::TurnFailed.as_str(),
    };
    packet
        .entry("error_code".to_owned())
        .or_insert_with(|| json!(code));
}

/// What failed, by the record of the host or of the validation.
fn failed_by(journal: &Journal) -> Option<String> {
    let host = journal.get("host_failure");
    if let Some(host) = host {
        let cause = host.get("cause").and_then(Value::as_str)?;
        let advice = Cause::advice(cause)?;
        return Some(match host.get("exit_code").and_then(Value::as_i64) {
            Some(code) => format!("{advice} ({code})"),
            None => advice.to_owned(),
        });
    }
    let validation = journal.get("task_validation")?;
    let is_passed = validation.get("ok") == Some(&Value::Bool(true));
    let summary = validation.get("summary").and_then(Value::as_str)?;
    (!is_passed).then(
        || match validation.get("exit_code").and_then(Value::as_i64) {
            Some(code) => format!("{summary} (exit code {code})"),
            None => summary.to_owned(),
        },
    )
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
    let journal = loaded.journal.as_ref();
    if let Some(stored) = journal.and_then(|journal| journal.get("scheduler")) {
        return stored.clone();
    }
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
        .with("quota_slot_spend_count", 0);
    // A drive that stopped half-way says itself what it did.
    refusal
        .details
        .entry("effects")
        .or_insert_with(|| effects.to_value());
    if let Some(status) = status {
        refusal = refusal.with("status", status);
    }
    refusal
}
