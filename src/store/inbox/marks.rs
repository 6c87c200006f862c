//! Marks on source messages: one journal row while a mark is being set, one receipt row while it stands.

use rusqlite::{OptionalExtension, params};
use serde_json::{Value, json};

use super::{DAMAGED_ROW, Inbox};
use crate::contract::channel::ids::MarkId;
use crate::contract::json;
use crate::store::{StoreError, database};

/// Which mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mark {
    Received,
    Processing,
}

impl Mark {
    /// Returns the name in rows and file names.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Received => "received",
            Self::Processing => "processing",
        }
    }

    const fn schema(self) -> &'static str {
        match self {
            Self::Received => crate::contract::inbox::words::RECEIVED_OPERATION,
            Self::Processing => crate::contract::inbox::words::PROCESSING_OPERATION,
        }
    }
}

/// How far the setting of a mark went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarkPhase {
    /// The call may have been made; its answer is not known.
    Prepared,
    /// The provider named the mark.
    Created(MarkId),
}

/// The journal of one mark on one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MarkJournal {
    pub phase: MarkPhase,
    pub emoji: String,
}

impl MarkJournal {
    fn phase_name(&self) -> &'static str {
        match self.phase {
            MarkPhase::Prepared => "prepared",
            MarkPhase::Created(_) => "created",
        }
    }

    fn to_row(&self, mark: Mark, message_id: &str, now: &str) -> String {
        let mut body = json!({
            "schema_version": mark.schema(),
            "message_id": message_id,
            "phase": self.phase_name(),
            "emoji_type": self.emoji,
            "updated_at": now,
        });
        if let MarkPhase::Created(id) = &self.phase {
            body["reaction_id"] = json!(id.as_str());
        }
        body.to_string()
    }

    fn from_row(text: &str) -> Option<Self> {
        let body = Value::Object(json::parse_kept(text.as_bytes()).ok()?);
        let id = body
            .get("reaction_id")
            .and_then(Value::as_str)
            .and_then(MarkId::new);
        let phase = match (body["phase"].as_str()?, id) {
            ("prepared", None) => MarkPhase::Prepared,
            ("created", Some(id)) => MarkPhase::Created(id),
            _ => return None,
        };
        Some(Self {
            phase,
            emoji: body["emoji_type"].as_str()?.to_owned(),
        })
    }
}

impl Inbox {
    /// Reads the journal of a mark.
    pub fn mark_journal(
        &self,
        message_id: &str,
        mark: Mark,
    ) -> Result<Option<MarkJournal>, StoreError> {
        let Some(connection) = self.reader()? else {
            return Ok(None);
        };
        let row: Option<String> = connection
            .query_row(
                "SELECT body_json FROM reaction_operations WHERE message_id = ?1 AND mark = ?2",
                params![message_id, mark.as_str()],
                |row| row.get(0),
            )
            .optional()?;
        row.map(|text| MarkJournal::from_row(&text).ok_or(DAMAGED_ROW))
            .transpose()
    }

    /// Commits one step of a journal.
    pub fn put_mark_journal(
        &self,
        (message_id, mark): (&str, Mark),
        journal: &MarkJournal,
        now: &str,
    ) -> Result<(), StoreError> {
        self.writer()?.execute(
            "INSERT INTO reaction_operations(message_id, mark, phase, body_json) VALUES(?1, ?2, ?3, ?4) \
             ON CONFLICT(message_id, mark) DO UPDATE SET phase = excluded.phase, body_json = excluded.body_json",
            params![message_id, mark.as_str(), journal.phase_name(), journal.to_row(mark, message_id, now)],
        )?;
        Ok(())
    }

    /// Removes a journal.
    pub fn clear_mark_journal(&self, message_id: &str, mark: Mark) -> Result<(), StoreError> {
        self.writer()?.execute(
            "DELETE FROM reaction_operations WHERE message_id = ?1 AND mark = ?2",
            params![message_id, mark.as_str()],
        )?;
        Ok(())
    }

    /// Turns a journal into a receipt: receipt in, journal out, in one transaction.
    pub fn settle_mark(
        &self,
        (message_id, mark): (&str, Mark),
        id: &MarkId,
        now: &str,
    ) -> Result<(), StoreError> {
        let body = json!({"reaction_id": id.as_str(), "created_at": now}).to_string();
        let mut connection = self.writer()?;
        let step = database::begin(&mut connection)?;
        step.execute(
            "INSERT INTO reaction_receipts(message_id, mark, body_json) VALUES(?1, ?2, ?3) \
             ON CONFLICT(message_id, mark) DO UPDATE SET body_json = excluded.body_json",
            params![message_id, mark.as_str(), body],
        )?;
        step.execute(
            "DELETE FROM reaction_operations WHERE message_id = ?1 AND mark = ?2",
            params![message_id, mark.as_str()],
        )?;
        step.commit()?;
        Ok(())
    }

    /// Reads the receipt of a standing mark.
    pub fn mark_receipt(&self, message_id: &str, mark: Mark) -> Result<Option<MarkId>, StoreError> {
        let Some(connection) = self.reader()? else {
            return Ok(None);
        };
        let row: Option<String> = connection
            .query_row(
                "SELECT body_json FROM reaction_receipts WHERE message_id = ?1 AND mark = ?2",
                params![message_id, mark.as_str()],
                |row| row.get(0),
            )
            .optional()?;
        row.map(|text| {
            let body = json::parse_kept(text.as_bytes()).ok();
            let id = body
                .as_ref()
                .and_then(|body| body.get("reaction_id"))
                .and_then(Value::as_str);
            id.and_then(MarkId::new).ok_or(DAMAGED_ROW)
        })
        .transpose()
    }

    /// Removes a receipt after its mark is gone.
    pub fn remove_mark_receipt(&self, message_id: &str, mark: Mark) -> Result<(), StoreError> {
        self.writer()?.execute(
            "DELETE FROM reaction_receipts WHERE message_id = ?1 AND mark = ?2",
            params![message_id, mark.as_str()],
        )?;
        Ok(())
    }
}
