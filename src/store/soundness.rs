//! Whether a database is what this program wrote: its tables, its JSON and the digests of its rows.
//!
//! SQLite's own integrity check knows pages and indexes. A table that was dropped or a body that was
//! changed by hand is sound for it, and still nothing a command can work on.

use rusqlite::Connection;
use serde_json::Value;

use super::StoreError;
use super::database::{self, Migrations};
use super::rows::checked;
use crate::contract::json;

/// Checks pages, tables, JSON bodies and digests; the first fault is the error.
pub(in crate::store) fn check(
    connection: &Connection,
    migrations: Migrations,
) -> Result<(), StoreError> {
    if !database::is_sound(connection)? {
        return Err(StoreError::Corrupt("the integrity check failed"));
    }
    let expected = database::in_memory(migrations)?;
    for table in tables(&expected)? {
        let columns = columns(&expected, &table)?;
        if self::columns(connection, &table)? != columns {
            return Err(StoreError::Corrupt(
                "a table is missing or has another form",
            ));
        }
        for column in columns.iter().filter(|column| column.ends_with("_json")) {
            check_json(connection, &table, column)?;
        }
        let has = |name: &str| columns.iter().any(|column| column == name);
        if has("body_json") && has("body_sha") {
            check_digests(connection, &table)?;
        }
    }
    Ok(())
}

fn tables(connection: &Connection) -> Result<Vec<String>, StoreError> {
    let sql = "SELECT name FROM sqlite_schema WHERE type='table' AND name NOT LIKE 'sqlite_%' ORDER BY name";
    let mut statement = connection.prepare(sql)?;
    let names = statement.query_map([], |row| row.get(0))?;
    Ok(names.collect::<Result<_, _>>()?)
}

fn columns(connection: &Connection, table: &str) -> Result<Vec<String>, StoreError> {
    let mut statement =
        connection.prepare("SELECT name FROM pragma_table_info(?1) ORDER BY cid")?;
    let names = statement.query_map([table], |row| row.get(0))?;
    Ok(names.collect::<Result<_, _>>()?)
}

/// The names come from our own migrations, never from the database that is looked at.
fn check_json(connection: &Connection, table: &str, column: &str) -> Result<(), StoreError> {
    let sql = format!("SELECT {column} FROM {table} WHERE {column} IS NOT NULL AND {column}<>''");
    let mut statement = connection.prepare(&sql)?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        let text: String = row.get(0)?;
        let found: Result<Value, _> = json::parse_kept_value(text.as_bytes());
        found.map_err(|_| StoreError::Corrupt("a row holds no JSON"))?;
    }
    Ok(())
}

fn check_digests(connection: &Connection, table: &str) -> Result<(), StoreError> {
    let mut statement = connection.prepare(&format!("SELECT body_json,body_sha FROM {table}"))?;
    let mut rows = statement.query([])?;
    while let Some(row) = rows.next()? {
        checked(&row.get::<_, String>(0)?, &row.get::<_, String>(1)?)?;
    }
    Ok(())
}
