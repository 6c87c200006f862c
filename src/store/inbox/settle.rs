//! What is settled: acknowledged ids, and the receipts of material review. Both commit under the settlement lock.

use rusqlite::{OptionalExtension, Transaction, params};

use super::events::Tally;
use super::{DAMAGED_ROW, Inbox};
use crate::contract::inbox::event::StoredEvent;
use crate::store::{StoreError, database};

/// One receipt of material review: the row text of its entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MaterialRow(pub String);

impl Inbox {
    /// Marks ids as processed in one transaction; says for each whether that is new.
    pub fn acknowledge(&self, ids: &[&str], now: &str) -> Result<Vec<bool>, StoreError> {
        let mut connection = self.writer()?;
        let batch = database::begin(&mut connection)?;
        let news = mark_processed(&batch, ids, now)?;
        batch.commit()?;
        Ok(news)
    }

    /// Says which of these ids are processed.
    pub fn processed(&self, ids: &[&str]) -> Result<Vec<bool>, StoreError> {
        let Some(connection) = self.reader()? else {
            return Ok(vec![false; ids.len()]);
        };
        let mut find =
            connection.prepare_cached("SELECT 1 FROM processed WHERE message_id = ?1")?;
        ids.iter().map(|id| Ok(find.exists([id])?)).collect()
    }

    /// Reads the receipt of one reviewed message.
    pub fn material(&self, message_id: &str) -> Result<Option<MaterialRow>, StoreError> {
        let Some(connection) = self.reader()? else {
            return Ok(None);
        };
        let row = connection.query_row(
            "SELECT body_json FROM material_receipts WHERE message_id = ?1",
            [message_id],
            |row| row.get(0).map(MaterialRow),
        );
        Ok(row.optional()?)
    }

    /// Stores a receipt and its acknowledgement: both or none.
    pub fn settle_material(
        &self,
        message_id: &str,
        row: &MaterialRow,
        now: &str,
    ) -> Result<(), StoreError> {
        let mut connection = self.writer()?;
        let batch = database::begin(&mut connection)?;
        batch.execute(
            "INSERT INTO material_receipts(message_id, body_json) VALUES(?1, ?2)",
            params![message_id, row.0],
        )?;
        mark_processed(&batch, &[message_id], now)?;
        batch.commit()?;
        Ok(())
    }
}

fn mark_processed(
    batch: &Transaction<'_>,
    ids: &[&str],
    now: &str,
) -> Result<Vec<bool>, StoreError> {
    let mut add = batch.prepare_cached(
        "INSERT INTO processed(message_id, processed_at) VALUES(?1, ?2) ON CONFLICT DO NOTHING",
    )?;
    let mut take = batch.prepare_cached(
        "UPDATE events SET pending = 0 WHERE message_id = ?1 AND pending = 1 RETURNING body_json",
    )?;
    let mut tally = Tally::default();
    let mut news = Vec::with_capacity(ids.len());
    for id in ids {
        let is_new = add.execute(params![id, now])? == 1;
        news.push(is_new);
        if !is_new {
            continue;
        }
        tally.add("processed", 1);
        let taken: Option<String> = take.query_row([id], |row| row.get(0)).optional()?;
        if let Some(body) = taken {
            // A comment event has another schema and raises no attention.
            let attention = match StoredEvent::from_row(id, &body) {
                Some(event) => event.attention(),
                None if id.starts_with("om_") => return Err(DAMAGED_ROW),
                None => crate::contract::inbox::event::Attention::default(),
            };
            tally.pending(attention, -1);
        }
    }
    drop((add, take));
    tally.write(batch)?;
    Ok(news)
}
