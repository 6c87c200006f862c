//! Instants in which the live stream may have missed messages. The rows are made by the stream alone and have no export.

use rusqlite::params;

use super::{DAMAGED_ROW, Inbox};
use crate::contract::inbox::gap::GapRow;
use crate::contract::time::Timestamp;
use crate::store::{StoreError, database};

impl Inbox {
    /// Reads the holes of a route, earliest first.
    pub fn gaps(&self, route: &str) -> Result<Vec<GapRow>, StoreError> {
        match self.reader()? {
            None => Ok(Vec::new()),
            Some(connection) => read(&connection, route),
        }
    }

    /// Replaces the holes of a route by what `change` makes of them, in one transaction; says whether anything changed.
    pub fn change_gaps(
        &self,
        route: &str,
        change: impl FnOnce(Vec<GapRow>) -> Vec<GapRow>,
    ) -> Result<bool, StoreError> {
        let mut connection = self.writer()?;
        let step = database::begin(&mut connection)?;
        let before = read(&step, route)?;
        let after = change(before.clone());
        if before == after {
            return Ok(false);
        }
        step.execute("DELETE FROM live_gaps WHERE route_key = ?1", [route])?;
        for gap in &after {
            step.execute(
                "INSERT INTO live_gaps(route_key, started_at, ended_at, reason) VALUES(?1, ?2, ?3, ?4)",
                params![gap.route_key, gap.started_at.to_string(), gap.ended_at.map(|at| at.to_string()), gap.reason],
            )?;
        }
        step.commit()?;
        Ok(true)
    }
}

fn read(connection: &rusqlite::Connection, route: &str) -> Result<Vec<GapRow>, StoreError> {
    let mut rows = connection.prepare_cached(
        "SELECT started_at, ended_at, reason FROM live_gaps WHERE route_key = ?1",
    )?;
    let found = rows.query_map([route], |row| {
        Ok((
            row.get::<_, String>(0)?,
            row.get::<_, Option<String>>(1)?,
            row.get::<_, String>(2)?,
        ))
    })?;
    let mut gaps = Vec::new();
    for row in found {
        let (started_at, ended_at, reason) = row?;
        let time = |text: &str| Timestamp::parse(text).ok_or(DAMAGED_ROW);
        gaps.push(GapRow {
            route_key: route.to_owned(),
            started_at: time(&started_at)?,
            ended_at: ended_at.as_deref().map(time).transpose()?,
            reason,
        });
    }
    gaps.sort_by_key(|gap| gap.started_at);
    Ok(gaps)
}
