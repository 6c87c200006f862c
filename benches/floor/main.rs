//! The floor: a program with the same argument parser and JSON reader, and no work.
//!
//! The benches time it in the same run, so their figures are ratios and not milliseconds of one
//! machine.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use clap::{Parser, Subcommand};
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, TransactionBehavior};

#[derive(Parser)]
struct Floor {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Reads one JSON value and says so.
    Read {
        /// Where it stands; only standard input is read.
        #[arg(long)]
        request_json: String,
        /// How the answer is printed.
        #[arg(long, default_value = "json")]
        format: String,
    },
    /// Opens a store and reads one row.
    Row {
        /// The database.
        #[arg(long)]
        store: PathBuf,
    },
    /// Opens a store and commits one row.
    Commit {
        /// The database.
        #[arg(long)]
        store: PathBuf,
    },
}

fn main() {
    match Floor::parse().command {
        Command::Read {
            request_json,
            format,
        } => read(&request_json, &format),
        Command::Row { store } => row(&store),
        Command::Commit { store } => commit(&store),
    }
}

fn row(store: &Path) {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let store = Connection::open_with_flags(store, flags).expect("the store");
    let sql = "SELECT body_json FROM todos LIMIT 1";
    let body: String = store.query_row(sql, [], |row| row.get(0)).expect("a row");
    say(&serde_json::json!({"ok": !body.is_empty()}));
}

fn commit(store: &Path) {
    let mut store = Connection::open(store).expect("the store");
    store
        .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
        .expect("a setting");
    store
        .execute_batch("PRAGMA synchronous=FULL; CREATE TABLE IF NOT EXISTS floor(x INTEGER);")
        .expect("a table");
    let tx = store
        .transaction_with_behavior(TransactionBehavior::Immediate)
        .expect("a transaction");
    tx.execute("INSERT INTO floor VALUES(1)", [])
        .expect("a row");
    tx.commit().expect("a commit");
    say(&serde_json::json!({"ok": true}));
}

fn say(answer: &serde_json::Value) {
    #[allow(clippy::print_stdout)]
    {
        println!("{answer:#}");
    }
}

fn read(request_json: &str, format: &str) {
    let mut bytes = Vec::new();
    let read = std::io::stdin().lock().read_to_end(&mut bytes);
    let value = serde_json::from_slice::<serde_json::Value>(&bytes);
    let is_read = read.is_ok() && value.is_ok() && request_json == "-" && format == "json";
    say(&serde_json::json!({"ok": is_read, "schema_version": "floor_v0"}));
}
