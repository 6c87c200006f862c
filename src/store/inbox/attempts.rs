//! Outgoing messages that may be on their way: a pending row is committed before the send, so that no crash forgets one.

use rusqlite::{OptionalExtension, params};
use serde_json::{Value, json};

use super::{DAMAGED_ROW, Inbox};
use crate::contract::channel::ids::MessageId;
use crate::contract::json;
use crate::contract::time::Timestamp;
use crate::store::StoreError;

/// The schema of an attempt.
const ATTEMPT_SCHEMA: &str = crate::contract::inbox::words::ATTEMPT;

/// Where an attempt stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptState {
    Pending,
    Verified,
}

impl AttemptState {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Verified => "verified",
        }
    }
}

/// What an attempt is one of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptKind {
    Send,
    Reply,
    Notification,
}

impl AttemptKind {
    const ALL: [Self; 3] = [Self::Send, Self::Reply, Self::Notification];

    const fn as_str(self) -> &'static str {
        match self {
            Self::Send => "send",
            Self::Reply => "reply",
            Self::Notification => "notification",
        }
    }
}

/// One outgoing message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attempt {
    pub kind: AttemptKind,
    pub state: AttemptState,
    pub attempted_at: Timestamp,
    pub verified_at: Option<Timestamp>,
    pub message_id: Option<MessageId>,
}

impl Attempt {
    fn to_row(&self) -> String {
        let mut body = json!({
            "schema_version": ATTEMPT_SCHEMA,
            "kind": self.kind.as_str(),
            "state": self.state.as_str(),
            "attempted_at": self.attempted_at,
        });
        if let Some(at) = self.verified_at {
            body["verified_at"] = json!(at);
        }
        if let Some(id) = &self.message_id {
            body["message_id"] = json!(id.as_str());
        }
        body.to_string()
    }

    fn from_row(text: &str) -> Option<Self> {
        let body = Value::Object(json::parse_kept(text.as_bytes()).ok()?);
        let time = |name: &str| body[name].as_str().and_then(Timestamp::parse);
        let state = [AttemptState::Pending, AttemptState::Verified];
        Some(Self {
            kind: AttemptKind::ALL
                .into_iter()
                .find(|kind| body["kind"] == kind.as_str())?,
            state: state
                .into_iter()
                .find(|state| body["state"] == state.as_str())?,
            attempted_at: time("attempted_at")?,
            verified_at: time("verified_at"),
            message_id: body["message_id"].as_str().and_then(MessageId::new),
        })
    }
}

impl Inbox {
    /// Reads the attempt under a key.
    pub fn attempt(&self, key: &str) -> Result<Option<Attempt>, StoreError> {
        let Some(connection) = self.reader()? else {
            return Ok(None);
        };
        let row: Option<String> = connection
            .query_row(
                "SELECT body_json FROM outbound_attempts WHERE attempt_key = ?1",
                [key],
                |row| row.get(0),
            )
            .optional()?;
        row.map(|text| Attempt::from_row(&text).ok_or(DAMAGED_ROW))
            .transpose()
    }

    /// Stores an attempt in place of the one before.
    pub fn put_attempt(&self, key: &str, attempt: &Attempt) -> Result<(), StoreError> {
        self.writer()?.execute(
            "INSERT INTO outbound_attempts(attempt_key, state, body_json) VALUES(?1, ?2, ?3) \
             ON CONFLICT(attempt_key) DO UPDATE SET state = excluded.state, body_json = excluded.body_json",
            params![key, attempt.state.as_str(), attempt.to_row()],
        )?;
        Ok(())
    }

    /// Removes an attempt.
    pub fn remove_attempt(&self, key: &str) -> Result<(), StoreError> {
        self.writer()?.execute(
            "DELETE FROM outbound_attempts WHERE attempt_key = ?1",
            [key],
        )?;
        Ok(())
    }
}
