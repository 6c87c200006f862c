//! Captured messages. The first copy wins; a batch is one transaction; draining reads no more than it hands out.

use std::collections::BTreeMap;

use rusqlite::{Connection, OptionalExtension, Transaction, params};

use super::{DAMAGED_ROW, Inbox};
use crate::contract::inbox::event::{Attention, StoredEvent};
use crate::store::{StoreError, database};

/// What an inbox holds, from the kept counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    pub captured: u64,
    pub processed: u64,
    pub pending: u64,
}

/// The sums over pending messages that status and quota look at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Urgent {
    pub pending: u64,
    pub attention: u64,
    pub direct_question: u64,
    pub direct_mention: u64,
    pub reply_to_bot: u64,
    pub material_attachment: u64,
    /// When the oldest pending messages were posted, one in each of the two spellings that are stored.
    pub oldest_pending: Vec<String>,
}

/// One pending message with the newest of its revisions.
#[derive(Clone, Debug)]
pub struct DrainedRow {
    pub event: StoredEvent,
    pub revision_count: u64,
    /// The row text of the newest revision.
    pub latest_revision: Option<String>,
}

impl Inbox {
    /// Stores a batch of events and revisions in one transaction and says for each event whether it is new. A batch that
    /// brings nothing new takes no lock and writes nothing.
    pub fn store_events(
        &self,
        events: &[StoredEvent],
        revisions: &[(String, u64, String)],
    ) -> Result<Vec<bool>, StoreError> {
        let mut connection = self.writer()?;
        if revisions.is_empty() && all_stored(&connection, events)? {
            return Ok(vec![false; events.len()]);
        }
        let batch = database::begin(&mut connection)?;
        let news = insert_batch(&batch, events, revisions)?;
        batch.commit()?;
        self.shorten_log(&connection);
        Ok(news)
    }

    /// Says which of these ids are stored.
    pub fn stored(&self, ids: &[&str]) -> Result<Vec<bool>, StoreError> {
        let Some(connection) = self.reader()? else {
            return Ok(vec![false; ids.len()]);
        };
        let mut find = connection.prepare_cached(IS_STORED)?;
        ids.iter().map(|id| Ok(find.exists([id])?)).collect()
    }

    /// Reads one event.
    pub fn event(&self, message_id: &str) -> Result<Option<StoredEvent>, StoreError> {
        let Some(connection) = self.reader()? else {
            return Ok(None);
        };
        read_event(&connection, message_id)
    }

    /// Reads several events, in the order asked for.
    pub fn events(&self, ids: &[&str]) -> Result<Vec<Option<StoredEvent>>, StoreError> {
        let Some(connection) = self.reader()? else {
            return Ok(vec![None; ids.len()]);
        };
        ids.iter().map(|id| read_event(&connection, id)).collect()
    }

    /// Reads the row text of a comment event, which has another schema than a message.
    pub fn event_row(&self, id: &str) -> Result<Option<String>, StoreError> {
        let Some(connection) = self.reader()? else {
            return Ok(None);
        };
        let row = connection.query_row(
            "SELECT body_json FROM events WHERE message_id = ?1",
            [id],
            |row| row.get(0),
        );
        Ok(row.optional()?)
    }

    /// Reads the pending messages up to a limit, in drain order.
    pub fn pending(&self, limit: u32) -> Result<Vec<DrainedRow>, StoreError> {
        let Some(connection) = self.reader()? else {
            return Ok(Vec::new());
        };
        let mut rows = connection.prepare_cached(
            "SELECT message_id, body_json FROM events WHERE pending = 1 ORDER BY create_time, message_id LIMIT ?1",
        )?;
        let found = rows.query_map([limit], |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, String>(1)?))
        })?;
        let mut drained = Vec::new();
        for row in found {
            let (message_id, body) = row?;
            let event = StoredEvent::from_row(&message_id, &body).ok_or(DAMAGED_ROW)?;
            let (revision_count, latest_revision) = latest(&connection, &message_id)?;
            drained.push(DrainedRow {
                event,
                revision_count,
                latest_revision,
            });
        }
        Ok(drained)
    }

    /// Reads the kept counts.
    pub fn counts(&self) -> Result<Counts, StoreError> {
        let Some(connection) = self.reader()? else {
            return Ok(Counts::default());
        };
        let all = read_counts(&connection)?;
        let of = |name: &str| all.get(name).copied().unwrap_or(0);
        Ok(Counts {
            captured: of("captured"),
            processed: of("processed"),
            pending: of("pending"),
        })
    }

    /// Reads the sums over pending messages.
    pub fn urgent(&self) -> Result<Urgent, StoreError> {
        let Some(connection) = self.reader()? else {
            return Ok(Urgent::default());
        };
        let all = read_counts(&connection)?;
        let of = |name: &str| all.get(name).copied().unwrap_or(0);
        let mut oldest_pending = Vec::new();
        for sql in [OLDEST_PENDING, OLDEST_SHOWN_PENDING] {
            let oldest = connection.query_row(sql, [], |row| row.get(0));
            oldest_pending.extend(oldest.optional()?);
        }
        Ok(Urgent {
            pending: of("pending"),
            attention: of("attention"),
            direct_question: of("direct_question"),
            direct_mention: of("direct_mention"),
            reply_to_bot: of("reply_to_bot"),
            material_attachment: of("material_attachment"),
            oldest_pending,
        })
    }

    /// Says whether a message is captured and not yet processed.
    pub fn is_pending(&self, message_id: &str) -> Result<bool, StoreError> {
        let Some(connection) = self.reader()? else {
            return Ok(false);
        };
        let found = connection.query_row(
            "SELECT pending FROM events WHERE message_id = ?1",
            [message_id],
            |row| row.get::<_, i64>(0),
        );
        Ok(found.optional()? == Some(1))
    }

    /// Reads the row texts of the revisions of one message, oldest first.
    pub fn revisions(&self, message_id: &str) -> Result<Vec<String>, StoreError> {
        let Some(connection) = self.reader()? else {
            return Ok(Vec::new());
        };
        read_revisions(&connection, message_id)
    }

    /// Returns when the last stored messages of a route were posted, in the provider's words.
    pub fn newest_times(&self, route: &str) -> Result<Vec<String>, StoreError> {
        let Some(connection) = self.reader()? else {
            return Ok(Vec::new());
        };
        let mut rows = connection.prepare_cached(
            "SELECT create_time FROM events WHERE route_key = ?1 ORDER BY seq DESC LIMIT 200",
        )?;
        let times = rows.query_map([route], |row| row.get::<_, String>(0))?;
        Ok(times.collect::<Result<_, _>>()?)
    }

    /// Returns the newest instant, in epoch milliseconds, that a live event proves.
    pub fn newest_live_millis(&self, route: &str) -> Result<Option<i64>, StoreError> {
        let Some(connection) = self.reader()? else {
            return Ok(None);
        };
        let mut rows = connection.prepare_cached(
            "SELECT create_time FROM events WHERE route_key = ?1 AND length(create_time) = 13 AND create_time NOT GLOB '*[^0-9]*' \
             ORDER BY seq DESC LIMIT 200",
        )?;
        let times = rows.query_map([route], |row| row.get::<_, String>(0))?;
        let mut newest = None;
        for time in times {
            newest = newest.max(time?.parse::<i64>().ok());
        }
        Ok(newest)
    }
}

fn read_event(
    connection: &Connection,
    message_id: &str,
) -> Result<Option<StoredEvent>, StoreError> {
    let mut find =
        connection.prepare_cached("SELECT body_json FROM events WHERE message_id = ?1")?;
    let row: Option<String> = find.query_row([message_id], |row| row.get(0)).optional()?;
    row.map(|body| StoredEvent::from_row(message_id, &body).ok_or(DAMAGED_ROW))
        .transpose()
}

fn latest(connection: &Connection, message_id: &str) -> Result<(u64, Option<String>), StoreError> {
    let mut find = connection
        .prepare_cached("SELECT revision, body_json FROM revisions WHERE message_id = ?1 ORDER BY revision DESC LIMIT 1")?;
    let found: Option<(u64, String)> = find
        .query_row([message_id], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    Ok(match found {
        Some((count, body)) => (count, Some(body)),
        None => (0, None),
    })
}

pub(super) fn read_revisions(
    connection: &Connection,
    message_id: &str,
) -> Result<Vec<String>, StoreError> {
    let mut find = connection.prepare_cached(
        "SELECT body_json FROM revisions WHERE message_id = ?1 ORDER BY revision",
    )?;
    let rows = find.query_map([message_id], |row| row.get(0))?;
    Ok(rows.collect::<Result<_, _>>()?)
}

const OLDEST_PENDING: &str =
    "SELECT create_time FROM events WHERE pending = 1 ORDER BY create_time, message_id LIMIT 1";
/// History pages carry dates, which sort behind the milliseconds of live events.
const OLDEST_SHOWN_PENDING: &str = "SELECT create_time FROM events WHERE pending = 1 AND create_time >= '2000-' \
     AND create_time GLOB '????-*' ORDER BY create_time, message_id LIMIT 1";
const IS_STORED: &str = "SELECT 1 FROM events WHERE message_id = ?1";

fn all_stored(connection: &Connection, events: &[StoredEvent]) -> Result<bool, StoreError> {
    let mut find = connection.prepare_cached(IS_STORED)?;
    for event in events {
        if !find.exists([event.message_id().as_str()])? {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Puts events and revisions into a transaction and says for each event whether it is new.
pub(super) fn insert_batch(
    batch: &Transaction<'_>,
    events: &[StoredEvent],
    revisions: &[(String, u64, String)],
) -> Result<Vec<bool>, StoreError> {
    let news = insert(batch, events)?;
    for (message_id, revision, body) in revisions {
        batch.execute(
            "INSERT INTO revisions(message_id, revision, body_json) VALUES(?1, ?2, ?3) ON CONFLICT DO NOTHING",
            params![message_id, revision, body],
        )?;
    }
    Ok(news)
}

fn insert(batch: &Transaction<'_>, events: &[StoredEvent]) -> Result<Vec<bool>, StoreError> {
    let mut insert = batch.prepare_cached(
        "INSERT INTO events(route_key, message_id, create_time, addressed, pending, body_json) \
         VALUES(?1, ?2, ?3, ?4, NOT EXISTS(SELECT 1 FROM processed WHERE message_id = ?2), ?5) ON CONFLICT DO NOTHING RETURNING pending",
    )?;
    let mut tally = Tally::default();
    let mut news = Vec::with_capacity(events.len());
    for event in events {
        let id = event.message_id().as_str();
        let row = params![
            event.route_key(),
            id,
            event.create_time(),
            event.is_addressed(),
            event.to_row()
        ];
        let pending: Option<bool> = insert.query_row(row, |row| row.get(0)).optional()?;
        if let Some(pending) = pending {
            tally.add("captured", 1);
            if pending {
                tally.pending(event.attention(), 1);
            }
        }
        news.push(pending.is_some());
    }
    drop(insert);
    tally.write(batch)?;
    Ok(news)
}

/// Changes of the kept counts, written once a transaction.
#[derive(Default)]
pub(super) struct Tally(BTreeMap<&'static str, i64>);

impl Tally {
    pub(super) fn add(&mut self, name: &'static str, by: i64) {
        *self.0.entry(name).or_default() += by;
    }

    /// Counts one pending message in or out.
    pub(super) fn pending(&mut self, attention: Attention, by: i64) {
        self.add("pending", by);
        let parts = [
            ("attention", attention.is_addressed),
            ("direct_question", attention.is_question),
            ("direct_mention", attention.is_mention),
            ("reply_to_bot", attention.is_reply_to_bot),
            (
                "material_attachment",
                !attention.is_addressed && attention.has_attachment,
            ),
        ];
        for (name, counts) in parts {
            if counts {
                self.add(name, by);
            }
        }
    }

    pub(super) fn write(&self, batch: &Transaction<'_>) -> Result<(), StoreError> {
        let mut upsert = batch
            .prepare_cached("INSERT INTO counts(name, n) VALUES(?1, ?2) ON CONFLICT(name) DO UPDATE SET n = n + excluded.n")?;
        for (name, by) in self.0.iter().filter(|(_, by)| **by != 0) {
            upsert.execute(params![name, by])?;
        }
        Ok(())
    }
}

fn read_counts(connection: &Connection) -> Result<BTreeMap<String, u64>, StoreError> {
    let mut rows = connection.prepare_cached("SELECT name, n FROM counts")?;
    let found = rows.query_map([], |row| {
        Ok((row.get::<_, String>(0)?, row.get::<_, u64>(1)?))
    })?;
    Ok(found.collect::<Result<_, _>>()?)
}
