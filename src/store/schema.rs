//! The tables of the state store, as an append-only list of migrations (docs/spec/kernel.md 3.2).
//!
//! A released migration never changes: a later need is a further entry. Families of commands append their own tables at
//! the end. No table repeats a fact of the registry.

use super::database::Migrations;

/// The migrations of `state.sqlite3`.
pub const STATE: Migrations = Migrations(&[KERNEL_1, KERNEL_2, KERNEL_3, KERNEL_4, KERNEL_5]);

const KERNEL_1: &str = "
CREATE TABLE goal_heads(goal_id TEXT PRIMARY KEY, instance_id TEXT NOT NULL UNIQUE, revision INTEGER NOT NULL,
  revision_digest TEXT NOT NULL, registry_entry_digest TEXT, todo_seq INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE events(
  seq INTEGER PRIMARY KEY AUTOINCREMENT, event_id TEXT NOT NULL UNIQUE, goal_id TEXT NOT NULL,
  goal_revision INTEGER NOT NULL, revision_digest TEXT NOT NULL,
  event_kind TEXT NOT NULL, agent_id TEXT, todo_id TEXT, run_id TEXT, status TEXT,
  recorded_at TEXT NOT NULL, recorded_us INTEGER NOT NULL, idem_key TEXT, body_json TEXT NOT NULL, body_sha TEXT NOT NULL) STRICT;
CREATE UNIQUE INDEX events_idem ON events(goal_id,event_kind,idem_key) WHERE idem_key IS NOT NULL;
CREATE UNIQUE INDEX events_time ON events(goal_id,recorded_us);
CREATE INDEX events_revision ON events(goal_id,goal_revision);
CREATE INDEX events_order ON events(goal_id,seq);
CREATE INDEX events_todo ON events(goal_id,todo_id,event_kind,seq) WHERE todo_id IS NOT NULL;
CREATE INDEX events_kind ON events(goal_id,event_kind,seq);
CREATE TABLE runs(goal_id TEXT NOT NULL, generated_at TEXT NOT NULL, generated_us INTEGER NOT NULL, seq INTEGER NOT NULL, agent_id TEXT,
  classification TEXT NOT NULL, effect_id TEXT, body_json TEXT NOT NULL, body_sha TEXT NOT NULL, PRIMARY KEY(goal_id,generated_at)) STRICT;
CREATE UNIQUE INDEX runs_order ON runs(goal_id,seq);
CREATE UNIQUE INDEX runs_time ON runs(goal_id,generated_us);
CREATE INDEX runs_effect ON runs(effect_id) WHERE effect_id IS NOT NULL;
CREATE INDEX runs_agent ON runs(goal_id,agent_id,seq);
CREATE TABLE todos(goal_id TEXT NOT NULL, todo_id TEXT NOT NULL, revision INTEGER NOT NULL, role TEXT NOT NULL, status TEXT NOT NULL,
  priority_rank INTEGER NOT NULL, append_seq INTEGER NOT NULL, claimed_by TEXT, archive_state TEXT NOT NULL, completed_us INTEGER,
  body_json TEXT NOT NULL, PRIMARY KEY(goal_id,todo_id)) STRICT;
CREATE INDEX todos_pick ON todos(goal_id, role, status, priority_rank, append_seq);
CREATE INDEX todos_order ON todos(goal_id, append_seq);
CREATE INDEX todos_done ON todos(goal_id, role, completed_us) WHERE completed_us IS NOT NULL;
CREATE TABLE todo_counts(goal_id TEXT NOT NULL, role TEXT NOT NULL, status TEXT NOT NULL, n INTEGER NOT NULL,
  PRIMARY KEY(goal_id,role,status)) STRICT;
CREATE TABLE leases(goal_id TEXT NOT NULL, todo_id TEXT NOT NULL, owner TEXT NOT NULL, idempotency_key TEXT NOT NULL, version INTEGER NOT NULL,
  lease_epoch INTEGER NOT NULL, status TEXT NOT NULL, expires_at TEXT NOT NULL, body_json TEXT NOT NULL,
  PRIMARY KEY(goal_id,todo_id)) STRICT;
CREATE TABLE lease_keys(goal_id TEXT NOT NULL, todo_id TEXT NOT NULL, idempotency_key TEXT NOT NULL, lease_epoch INTEGER NOT NULL,
  PRIMARY KEY(goal_id,todo_id,idempotency_key)) STRICT;
CREATE TABLE visions(goal_id TEXT NOT NULL, agent_id TEXT NOT NULL, revision INTEGER NOT NULL, state TEXT NOT NULL, generated_at TEXT NOT NULL,
  body_json TEXT NOT NULL, PRIMARY KEY(goal_id,agent_id,revision)) STRICT;
CREATE TABLE vision_checkpoints(goal_id TEXT NOT NULL, agent_id TEXT NOT NULL, run_seq INTEGER NOT NULL, decision TEXT NOT NULL,
  effect_id TEXT, body_json TEXT NOT NULL, PRIMARY KEY(goal_id,agent_id,run_seq)) STRICT;
CREATE TABLE replan_acks(goal_id TEXT NOT NULL, obligation_id TEXT NOT NULL, agent_id TEXT NOT NULL, run_generated_at TEXT NOT NULL,
  ack_seq INTEGER NOT NULL, body_json TEXT NOT NULL, PRIMARY KEY(goal_id,obligation_id)) STRICT;
CREATE INDEX replan_acks_agent ON replan_acks(goal_id,agent_id,ack_seq);
CREATE TABLE gate_decisions(goal_id TEXT NOT NULL, gate_id TEXT NOT NULL, decided_seq INTEGER NOT NULL, outcome TEXT NOT NULL, decision_scope TEXT,
  agent_id TEXT, body_json TEXT NOT NULL, PRIMARY KEY(goal_id,gate_id,decided_seq)) STRICT;
CREATE INDEX gate_decisions_scope ON gate_decisions(goal_id,decision_scope,decided_seq) WHERE decision_scope IS NOT NULL;
CREATE TABLE admissions(goal_id TEXT NOT NULL, agent_id TEXT NOT NULL, turn_instance_id TEXT NOT NULL, binding_kind TEXT NOT NULL,
  binding_id TEXT NOT NULL, effect_id TEXT, event_id TEXT NOT NULL, recorded_at TEXT NOT NULL, mode TEXT NOT NULL, spendable INTEGER NOT NULL,
  capture_id TEXT, body_json TEXT NOT NULL, PRIMARY KEY(goal_id,agent_id,turn_instance_id)) STRICT;
CREATE UNIQUE INDEX admissions_effect ON admissions(effect_id) WHERE effect_id IS NOT NULL;
CREATE TABLE turns(turn_key TEXT PRIMARY KEY, goal_id TEXT NOT NULL, agent_id TEXT NOT NULL,
  effect_id TEXT NOT NULL UNIQUE, turn_instance_id TEXT, status TEXT NOT NULL, completed_phases TEXT NOT NULL,
  host_attempt_count INTEGER NOT NULL DEFAULT 0, journal_json TEXT NOT NULL, journal_sha256 TEXT NOT NULL,
  previous_sha256 TEXT NOT NULL, capture_id TEXT) STRICT;
CREATE INDEX turns_instance ON turns(goal_id,agent_id,turn_instance_id) WHERE turn_instance_id IS NOT NULL;
CREATE TABLE captures(capture_id TEXT PRIMARY KEY, goal_id TEXT NOT NULL, agent_id TEXT NOT NULL,
  turn_key TEXT, effect_id TEXT, kind TEXT NOT NULL CHECK(kind IN('turn','quota')), rel_path TEXT NOT NULL UNIQUE,
  byte_len INTEGER NOT NULL, sha256 TEXT NOT NULL, source_digest TEXT NOT NULL,
  source_decision_hash TEXT NOT NULL, created_at TEXT NOT NULL, UNIQUE(turn_key,kind)) STRICT;
CREATE TABLE writebacks(effect_id TEXT PRIMARY KEY, goal_id TEXT NOT NULL, agent_id TEXT NOT NULL, turn_instance_id TEXT NOT NULL,
  run_generated_at TEXT NOT NULL, run_seq INTEGER NOT NULL, event_id TEXT NOT NULL, closeout_kind TEXT,
  mutation_digest TEXT NOT NULL, vision_request_digest TEXT, body_json TEXT NOT NULL) STRICT;
CREATE INDEX writebacks_agent ON writebacks(goal_id,agent_id,run_seq);
CREATE INDEX writebacks_window ON writebacks(goal_id, run_generated_at);
CREATE TABLE spends(effect_id TEXT PRIMARY KEY, goal_id TEXT NOT NULL, agent_id TEXT, slots INTEGER
  NOT NULL CHECK(slots>0), source TEXT NOT NULL, run_generated_at TEXT NOT NULL, spent_us INTEGER NOT NULL, event_id TEXT NOT NULL,
  body_json TEXT NOT NULL) STRICT;
CREATE INDEX spends_window ON spends(goal_id, spent_us);
CREATE UNIQUE INDEX spends_run ON spends(goal_id, run_generated_at);
CREATE TABLE spend_voids(void_event_id TEXT PRIMARY KEY, goal_id TEXT NOT NULL, run_generated_at TEXT NOT NULL,
  slots INTEGER NOT NULL, reason TEXT, spent_us INTEGER NOT NULL, UNIQUE(goal_id,run_generated_at)) STRICT;
CREATE INDEX spend_voids_window ON spend_voids(goal_id, spent_us);
CREATE TABLE settlement_steps(effect_id TEXT NOT NULL, step_kind TEXT NOT NULL, status TEXT NOT NULL, source_ref TEXT,
  payload_json TEXT, PRIMARY KEY(effect_id,step_kind)) STRICT;
CREATE TABLE prepared_effects(effect_id TEXT PRIMARY KEY, step_kind TEXT NOT NULL, effect_ref TEXT NOT NULL) STRICT;
CREATE TABLE external_deliveries(effect_id TEXT NOT NULL, seq INTEGER NOT NULL, goal_id TEXT NOT NULL, state TEXT NOT NULL, resume_key TEXT NOT NULL,
  event_id TEXT NOT NULL, PRIMARY KEY(effect_id,seq)) STRICT;
CREATE TABLE hook_receipt(goal_id TEXT NOT NULL, dispatch_id TEXT NOT NULL, hook_id TEXT NOT NULL, capability_id TEXT NOT NULL, agent_id TEXT NOT NULL,
  source_receipt_id TEXT NOT NULL, status TEXT NOT NULL, intent_key TEXT, error_code TEXT, attempt_count INTEGER NOT NULL, recorded_at TEXT NOT NULL,
  body_json TEXT NOT NULL, PRIMARY KEY(goal_id,dispatch_id)) STRICT;
CREATE INDEX hook_receipt_intent ON hook_receipt(goal_id,agent_id,dispatch_id) WHERE status='intent_recorded';
CREATE TABLE receipts(goal_id TEXT NOT NULL, operation_id TEXT NOT NULL, request_sha256 TEXT NOT NULL,
  revision_after INTEGER, result_json TEXT NOT NULL, PRIMARY KEY(goal_id,operation_id)) STRICT;
";

/// Live leases by their end, and how long the complete exports of a goal are.
const KERNEL_2: &str = "
CREATE INDEX leases_live ON leases(goal_id,expires_at) WHERE status='active';
ALTER TABLE goal_heads ADD COLUMN events_bytes INTEGER NOT NULL DEFAULT 0;
ALTER TABLE goal_heads ADD COLUMN runs_bytes INTEGER NOT NULL DEFAULT 0;
UPDATE goal_heads SET
  events_bytes=(SELECT COALESCE(SUM(length(CAST(body_json AS BLOB))+1),0) FROM events WHERE events.goal_id=goal_heads.goal_id),
  runs_bytes=(SELECT COALESCE(SUM(length(CAST(body_json AS BLOB))+1),0) FROM runs WHERE runs.goal_id=goal_heads.goal_id);
";

/// The next action an agent wrote last, and the finished todos that are not put away yet.
const KERNEL_3: &str = "
CREATE INDEX runs_next_action ON runs(goal_id,agent_id,seq) WHERE json_extract(body_json,'$.next_action') IS NOT NULL;
CREATE INDEX todos_finished ON todos(goal_id,append_seq) WHERE status='done' AND archive_state='active';
";

/// The Turns that are not finished, and whether an agent's Turn is its newest.
const KERNEL_4: &str = "
CREATE INDEX turns_unfinished ON turns(goal_id) WHERE status NOT IN ('committed','stopped');
CREATE INDEX turns_agent ON turns(goal_id,agent_id);
";

/// Which todo was completed last, by the order of the events: clocks may be set back.
const KERNEL_5: &str = "
ALTER TABLE todos ADD COLUMN completed_seq INTEGER;
UPDATE todos SET completed_seq=COALESCE((SELECT seq FROM events WHERE events.goal_id=todos.goal_id AND recorded_us=completed_us),0)
  WHERE completed_us IS NOT NULL;
CREATE INDEX todos_completed ON todos(goal_id,role,completed_seq) WHERE completed_seq IS NOT NULL;
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::database;

    #[test]
    fn every_migration_runs_on_an_empty_database() {
        let folder = tempfile::tempdir().unwrap();
        let connection = database::open_write(&folder.path().join("state.sqlite3"), STATE).unwrap();
        assert!(database::is_sound(&connection).unwrap());
    }
}
