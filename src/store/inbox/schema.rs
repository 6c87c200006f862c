//! The tables of an inbox database, an append-only list of migrations (`docs/spec/lark-inbox.md` 4.0).

use crate::store::database::Migrations;

/// The migrations of `inbox.sqlite3`.
pub(in crate::store) const INBOX: Migrations = Migrations(&[INBOX_1]);

/// The tables of the newest version, as a database holds them.
pub(in crate::store) const TABLES: [&str; 12] = [
    "comment_cursor",
    "comment_replies",
    "counts",
    "events",
    "live_gaps",
    "material_receipts",
    "outbound_attempts",
    "processed",
    "reaction_operations",
    "reaction_receipts",
    "revisions",
    "turn_start",
];

const INBOX_1: &str = "
CREATE TABLE events(seq INTEGER PRIMARY KEY, route_key TEXT NOT NULL, message_id TEXT NOT NULL, create_time TEXT NOT NULL,
  addressed INTEGER NOT NULL, pending INTEGER NOT NULL, body_json TEXT NOT NULL, UNIQUE(route_key, message_id)) STRICT;
CREATE UNIQUE INDEX events_message ON events(message_id);
CREATE INDEX events_pending ON events(create_time, message_id) WHERE pending = 1;
CREATE INDEX events_attention ON events(create_time, message_id) WHERE pending = 1 AND addressed = 1;
CREATE TABLE revisions(message_id TEXT NOT NULL, revision INTEGER NOT NULL, body_json TEXT NOT NULL, PRIMARY KEY(message_id, revision)) STRICT;
CREATE TABLE processed(message_id TEXT PRIMARY KEY, processed_at TEXT NOT NULL) STRICT;
CREATE TABLE live_gaps(route_key TEXT NOT NULL, started_at TEXT NOT NULL, ended_at TEXT, reason TEXT NOT NULL, PRIMARY KEY(route_key, started_at)) STRICT;
CREATE TABLE counts(name TEXT PRIMARY KEY, n INTEGER NOT NULL) STRICT;
CREATE TABLE outbound_attempts(attempt_key TEXT PRIMARY KEY, state TEXT NOT NULL, body_json TEXT NOT NULL) STRICT;
CREATE TABLE reaction_operations(message_id TEXT NOT NULL, mark TEXT NOT NULL CHECK(mark IN('received','processing')), phase TEXT NOT NULL,
  body_json TEXT NOT NULL, PRIMARY KEY(message_id, mark)) STRICT;
CREATE TABLE reaction_receipts(message_id TEXT NOT NULL, mark TEXT NOT NULL, body_json TEXT NOT NULL, PRIMARY KEY(message_id, mark)) STRICT;
CREATE TABLE material_receipts(message_id TEXT PRIMARY KEY, body_json TEXT NOT NULL) STRICT;
CREATE TABLE turn_start(kind TEXT NOT NULL, binding TEXT NOT NULL, body_json TEXT NOT NULL, PRIMARY KEY(kind, binding)) STRICT;
CREATE TABLE comment_cursor(source_ref TEXT PRIMARY KEY, body_json TEXT NOT NULL) STRICT;
CREATE TABLE comment_replies(reply_key TEXT PRIMARY KEY, status TEXT NOT NULL, body_json TEXT NOT NULL) STRICT;
";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::database;

    #[test]
    fn the_named_tables_are_the_ones_that_migrations_make() {
        let made = database::in_memory(INBOX).expect("made");
        let mut rows = made
            .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' ORDER BY name")
            .expect("prepared");
        let names: Vec<String> = rows
            .query_map([], |row| row.get(0))
            .and_then(Iterator::collect)
            .expect("names");
        assert_eq!(names, TABLES);
    }
}
