//! A document's comments: events and position in one transaction, and the journal of answers.

use std::collections::BTreeSet;
use std::fmt;

use rusqlite::{OptionalExtension, params};
use serde_json::Value;

use super::events::Tally;
use super::{DAMAGED_ROW, Inbox};
use crate::contract::json;
use crate::store::{StoreError, database};

/// One answer in its journal.
#[derive(Clone, PartialEq, Eq)]
pub struct CommentReplyRow {
    pub status: String,
    /// The row text.
    pub body: String,
}

impl fmt::Debug for CommentReplyRow {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "CommentReplyRow({}, <private>)", self.status)
    }
}

impl Inbox {
    /// Stores one page of comment events and the new position; says for each event whether it is new.
    pub fn store_comment_page(
        &self,
        source: &str,
        events: &[(String, String, String)],
        cursor: &str,
    ) -> Result<Vec<bool>, StoreError> {
        let mut connection = self.writer()?;
        let step = database::begin(&mut connection)?;
        let mut tally = Tally::default();
        let mut news = Vec::with_capacity(events.len());
        for (event_id, create_time, body) in events {
            let added = step.execute(
                "INSERT INTO events(route_key, message_id, create_time, addressed, pending, body_json) \
                 VALUES('', ?1, ?2, 0, NOT EXISTS(SELECT 1 FROM processed WHERE message_id = ?1), ?3) ON CONFLICT DO NOTHING",
                params![event_id, create_time, body],
            )?;
            if added == 1 {
                tally.add("captured", 1);
                tally.add("pending", 1);
            }
            news.push(added == 1);
        }
        step.execute(
            "INSERT INTO comment_cursor(source_ref, body_json) VALUES(?1, ?2) ON CONFLICT(source_ref) DO UPDATE SET body_json = excluded.body_json",
            params![source, cursor],
        )?;
        tally.write(&step)?;
        step.commit()?;
        Ok(news)
    }

    /// Reads the row text of the position.
    pub fn comment_cursor(&self, source: &str) -> Result<Option<String>, StoreError> {
        let Some(connection) = self.reader()? else {
            return Ok(None);
        };
        let row = connection.query_row(
            "SELECT body_json FROM comment_cursor WHERE source_ref = ?1",
            [source],
            |row| row.get(0),
        );
        Ok(row.optional()?)
    }

    /// Reads one answer.
    pub fn comment_reply(&self, key: &str) -> Result<Option<CommentReplyRow>, StoreError> {
        let Some(connection) = self.reader()? else {
            return Ok(None);
        };
        let row = connection.query_row(
            "SELECT status, body_json FROM comment_replies WHERE reply_key = ?1",
            [key],
            |row| {
                Ok(CommentReplyRow {
                    status: row.get(0)?,
                    body: row.get(1)?,
                })
            },
        );
        Ok(row.optional()?)
    }

    /// Reads the ids of the answers given here.
    pub fn own_comment_replies(&self) -> Result<BTreeSet<String>, StoreError> {
        let Some(connection) = self.reader()? else {
            return Ok(BTreeSet::new());
        };
        let mut rows = connection.prepare("SELECT body_json FROM comment_replies")?;
        let mut rows = rows.query([])?;
        let mut ids = BTreeSet::new();
        while let Some(row) = rows.next()? {
            let body =
                json::parse_kept(row.get::<_, String>(0)?.as_bytes()).map_err(|_| DAMAGED_ROW)?;
            ids.extend(
                body.get("reply_id")
                    .and_then(Value::as_str)
                    .map(str::to_owned),
            );
        }
        Ok(ids)
    }

    /// Reads the answers that may have been given under an id nobody knows: the card and the digest of the words.
    pub fn open_comment_replies(&self) -> Result<BTreeSet<(String, String)>, StoreError> {
        let Some(connection) = self.reader()? else {
            return Ok(BTreeSet::new());
        };
        let mut rows = connection
            .prepare("SELECT body_json FROM comment_replies WHERE status = 'creating'")?;
        let mut rows = rows.query([])?;
        let mut open = BTreeSet::new();
        while let Some(row) = rows.next()? {
            let body =
                json::parse_kept(row.get::<_, String>(0)?.as_bytes()).map_err(|_| DAMAGED_ROW)?;
            let text = |name: &str| body.get(name).and_then(Value::as_str).map(str::to_owned);
            open.extend(text("comment_id").zip(text("text_digest")));
        }
        Ok(open)
    }

    /// Commits one step of an answer.
    pub fn put_comment_reply(&self, key: &str, row: &CommentReplyRow) -> Result<(), StoreError> {
        self.writer()?.execute(
            "INSERT INTO comment_replies(reply_key, status, body_json) VALUES(?1, ?2, ?3) \
             ON CONFLICT(reply_key) DO UPDATE SET status = excluded.status, body_json = excluded.body_json",
            params![key, row.status, row.body],
        )?;
        Ok(())
    }

    /// Removes an answer that the provider refused.
    pub fn remove_comment_reply(&self, key: &str) -> Result<(), StoreError> {
        self.writer()?
            .execute("DELETE FROM comment_replies WHERE reply_key = ?1", [key])?;
        Ok(())
    }
}
