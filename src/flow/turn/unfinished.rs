//! The Turns of a goal that are not finished, as `status` shows them: where each one stands, what it owes, and the one
//! command that goes on (docs/spec/kernel.md 5.2, 10.3). Nothing is taken, brought up or written for a look.

use serde_json::{Value, json};

use super::{journal_file, journal_lock};
use crate::contract::error::ErrorCode;
use crate::contract::ids::TurnKey;
use crate::contract::settlement::Binding;
use crate::contract::turn::PHASES;
use crate::flow::open::{Answer, Place};
use crate::flow::snapshot;
use crate::kernel::quota::interaction;
use crate::kernel::quota::packet;
use crate::kernel::quota::places::shell_line;
use crate::kernel::turn::journal::Journal;
use crate::kernel::turn::recover::{self, OnFailed, Recovery};
use crate::store::journal::turn::TurnRow;
use crate::store::lock;
use crate::store::rows::Rows;

/// How many Turns of a goal are shown; the others are counted.
const SHOWN: usize = 20;

/// The Turns of a goal that are not finished.
#[derive(Debug, Default)]
pub struct Unfinished {
    /// Those with a journal, the newest first.
    pub turns: Vec<Value>,
    /// How many more there are.
    pub omitted: usize,
    /// Those an agent wrote back itself and still owes its spend for.
    pub unsettled: Vec<Value>,
}

/// Looks at a goal.
pub fn of(place: &Place, rows: Rows<'_>) -> Answer<Unfinished> {
    let goal = &place.goal.id;
    let keys = rows.unfinished_turns(goal)?;
    let mut found = Unfinished {
        omitted: keys.len().saturating_sub(SHOWN),
        ..Unfinished::default()
    };
    let mut driven = Vec::new();
    for key in keys.into_iter().take(SHOWN) {
        let key = TurnKey::new(key).ok_or_else(journal_file::inconsistent)?;
        if let Some(row) = rows.turn(&key)? {
            found.turns.push(turn(place, &key, &row));
            driven.push(row.effect_id);
        }
    }
    for agent in &place.goal.agents {
        if let Some(owed) = snapshot::owed(rows, (goal, agent), None)?
            && !driven.contains(&owed.identity.effect_id())
        {
            let mut packet = packet::unsettled(&owed);
            packet["agent_id"] = json!(agent);
            packet["next_command"] = json!(interaction::recovery_command(&owed));
            found.unsettled.push(packet);
        }
    }
    Ok(found)
}

fn turn(place: &Place, key: &TurnKey, row: &TurnRow) -> Value {
    let journal = journal_file::parse(row.journal_json.as_bytes()).ok();
    let stand = Stand::of(place, key, row, journal.as_ref());
    let identity = journal
        .as_ref()
        .and_then(|journal| journal_file::identity_of(journal.plan()));
    let bound = identity.as_ref().map(|identity| &identity.binding);
    json!({
        "turn_key": key,
        "agent_id": row.agent_id,
        "turn_instance_id": row.instance,
        "binding_kind": bound.map(Binding::kind),
        "binding_id": bound.map(Binding::id),
        "status": row.status,
        "phase": phase(row),
        "owed_step": stand.owed,
        "host_attempt_count": row.attempts,
        "running_since": stand.running_since,
        "blocked_by": stand.blocked_by,
        "next_command": stand.next_command(place, key, row),
    })
}

/// How far a Turn came.
fn phase(row: &TurnRow) -> &str {
    let done = row.completed_phases.rsplit(',').next().unwrap_or("");
    match (done, row.attempts) {
        ("", 0) => "captured",
        ("", _) => "host_started",
        (done, _) => done,
    }
}

/// Where a Turn stands, from its journal and from who works on it.
struct Stand {
    owed: &'static str,
    running_since: Option<String>,
    blocked_by: Option<ErrorCode>,
    retries: bool,
    host: Option<String>,
}

impl Stand {
    fn of(place: &Place, key: &TurnKey, row: &TurnRow, journal: Option<&Journal>) -> Self {
        let holder = lock::holder(&journal_lock::lock_path(place, key));
        let driver = holder.filter(|holder| holder.operation.as_deref() == Some("turn run-once"));
        let mut stand = Self {
            owed: PHASES[0],
            running_since: driver.and_then(|driver| driver.acquired_at),
            blocked_by: None,
            retries: false,
            host: journal.and_then(|journal| journal.text("host").map(str::to_owned)),
        };
        // Only the capture is there while the row holds no journal.
        let recovery = match journal {
            None if row.journal_json.is_empty() => return stand,
            None => Recovery::Blocked(ErrorCode::JournalInconsistent),
            Some(journal) => recover::assess(journal, OnFailed::Retry),
        };
        match recovery {
            Recovery::Continue { from, retries, .. } => {
                stand.owed = from;
                stand.retries = retries;
            }
            Recovery::Blocked(code) => stand.blocked_by = Some(code),
            Recovery::ReturnExisting(_) => {}
        }
        stand
    }

    /// The one command that goes on: look while it runs, resume while it can be, decide anew where it cannot.
    fn next_command(&self, place: &Place, key: &TurnKey, row: &TurnRow) -> String {
        let words = |head: &[&str]| -> String {
            let owner = [
                "--goal-id",
                place.goal.id.as_str(),
                "--agent-id",
                &row.agent_id,
            ];
            let words = [&["loopx"], head, &owner].concat();
            shell_line(
                &words
                    .iter()
                    .map(|word| (*word).to_owned())
                    .collect::<Vec<_>>(),
            )
        };
        let look = || format!("{} --turn-key {key}", words(&["turn", "inspect-journal"]));
        match self.blocked_by {
            _ if self.running_since.is_some() => look(),
            Some(ErrorCode::JournalInconsistent) => look(),
            Some(_) => words(&["quota", "should-run"]),
            None => {
                let retry = if self.retries {
                    " --retry-failed-turn"
                } else {
                    ""
                };
                let host = match self.host.as_deref() {
                    Some("codex-cli") => " --host codex-cli",
                    _ => " --host-command-json <argv>",
                };
                format!(
                    "{} --resume-turn-key {key} --project <dir>{host} --validation-command-json <argv>{retry} --execute",
                    words(&["turn", "run-once"])
                )
            }
        }
    }
}
