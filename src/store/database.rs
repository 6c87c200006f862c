//! How every database of the product is made, opened, migrated and written.
//!
//! A database is made under a temporary name with its tables and number, closed with a full checkpoint and linked to its
//! name without replacing: nobody ever meets a half-made one, and of two makers one wins. Reads use a read-only handle
//! and make nothing. Writes are `BEGIN IMMEDIATE` with `synchronous=FULL`; the log stays at close, so reading works with
//! no free block. A file of a newer version is refused before anything is read from it, and never written.

use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags, Transaction, TransactionBehavior};

use super::StoreError;
use super::private_file;

/// An ordered, append-only list of migrations; the number of a database is how many of them it has.
#[derive(Clone, Copy, Debug)]
pub struct Migrations(pub &'static [&'static str]);

impl Migrations {
    /// The newest number.
    pub const fn latest(self) -> i64 {
        self.0.len() as i64
    }

    /// The list as it was when a number was the newest.
    pub fn up_to(self, number: i64) -> Self {
        let count = usize::try_from(number).unwrap_or_default();
        Self(self.0.get(..count).unwrap_or(self.0))
    }
}

/// How long a statement waits for another writer.
const BUSY: Duration = Duration::from_secs(5);

/// Opens for reading; a missing database is `None`. One of an older version is read through a copy in memory that is
/// brought up: a read changes no file, and only the next write migrates.
pub fn open_read(path: &Path, migrations: Migrations) -> Result<Option<Connection>, StoreError> {
    if !present(path)? {
        return Ok(None);
    }
    let connection = reading_handle(path)?;
    if checked_number(&connection, migrations)? == migrations.latest() {
        return Ok(Some(connection));
    }
    let snapshot = connection.unchecked_transaction()?;
    // Another process may have migrated it since.
    let have = checked_number(&snapshot, migrations)?;
    if have < migrations.latest() {
        return Ok(Some(brought_up(&snapshot, have, migrations)?));
    }
    drop(snapshot);
    Ok(Some(connection))
}

/// Copies the rows of an older database into memory and brings the copy up.
fn brought_up(
    old: &Connection,
    have: i64,
    migrations: Migrations,
) -> Result<Connection, StoreError> {
    let mut copy = Connection::open_in_memory()?;
    settle(&copy)?;
    let step = begin(&mut copy)?;
    for sql in migrations.up_to(have).0 {
        step.execute_batch(sql)?;
    }
    let tables: Vec<String> = step
        .prepare("SELECT name FROM sqlite_schema WHERE type='table' AND name NOT LIKE 'sqlite_%'")?
        .query_map([], |row| row.get(0))?
        .collect::<Result<_, _>>()?;
    for table in &tables {
        copy_rows(old, &step, table)?;
    }
    step.pragma_update(None, "user_version", have)?;
    step.commit()?;
    migrate(&mut copy, migrations)?;
    Ok(copy)
}

/// The name comes from our own migrations, never from the database that is read.
fn copy_rows(from: &Connection, to: &Connection, table: &str) -> Result<(), StoreError> {
    let mut read = from.prepare(&format!("SELECT * FROM {table}"))?;
    let count = read.column_count();
    let places = vec!["?"; count].join(",");
    let mut write = to.prepare(&format!("INSERT INTO {table} VALUES({places})"))?;
    let mut rows = read.query([])?;
    while let Some(row) = rows.next()? {
        for index in 0..count {
            let value: rusqlite::types::Value = row.get(index)?;
            write.raw_bind_parameter(index + 1, value)?;
        }
        write.raw_execute()?;
    }
    Ok(())
}

/// Opens for reading and changes nothing, whatever the version; one of a newer version is refused.
pub fn open_read_only(
    path: &Path,
    migrations: Migrations,
) -> Result<Option<Connection>, StoreError> {
    if !present(path)? {
        return Ok(None);
    }
    let connection = reading_handle(path)?;
    checked_number(&connection, migrations)?;
    Ok(Some(connection))
}

/// A handle that reads also where nothing can be written beside the database.
fn reading_handle(path: &Path) -> Result<Connection, StoreError> {
    match read_handle(path) {
        Ok(connection) => Ok(connection),
        Err(error) => immutable_handle(path, &error)?.ok_or(error),
    }
}

/// Makes a database in memory with its tables, to compare others with.
pub(in crate::store) fn in_memory(migrations: Migrations) -> Result<Connection, StoreError> {
    let mut connection = Connection::open_in_memory()?;
    migrate(&mut connection, migrations)?;
    Ok(connection)
}

/// Returns the version of the SQLite inside the program.
pub fn sqlite_version() -> &'static str {
    rusqlite::version()
}

/// Opens for reading whatever the number is, for copying: no row is interpreted.
pub(in crate::store) fn open_as_it_is(path: &Path) -> Result<Connection, StoreError> {
    reading_handle(path)
}

/// Opens for writing, making or migrating the database as needed.
pub fn open_write(path: &Path, migrations: Migrations) -> Result<Connection, StoreError> {
    if !present(path)? {
        create(path, migrations)?;
    }
    // The number is looked at through a read handle: a newer database is not even opened for writing.
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
    settle(&connection)?;
    let number = checked_number(&connection, migrations)?;
    // A short log keeps the next open short: every open reads the log that the last one left.
    connection.execute_batch(
        "PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON; PRAGMA wal_autocheckpoint=250;",
    )?;
    if number < migrations.latest() {
        migrate(&mut connection, migrations)?;
    }
    Ok(connection)
}

/// Starts a writing transaction: the lock is taken at once, so nothing read inside can be stale.
pub fn begin(connection: &mut Connection) -> Result<Transaction<'_>, StoreError> {
    Ok(connection.transaction_with_behavior(TransactionBehavior::Immediate)?)
}

/// The number of the database at `path`, without opening it for writing; `None` when there is none.
pub fn version(path: &Path) -> Result<Option<i64>, StoreError> {
    if !present(path)? {
        return Ok(None);
    }
    Ok(Some(number(&reading_handle(path)?)?))
}

/// Runs the full integrity check; true when the database is sound.
pub fn is_sound(connection: &Connection) -> Result<bool, StoreError> {
    let answer: String = connection.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
    Ok(answer == "ok")
}

/// Copies the database to a new owner-only file while others write.
pub fn copy_into(connection: &Connection, target: &Path) -> Result<(), StoreError> {
    let text = target
        .to_str()
        .ok_or_else(|| StoreError::write(io::ErrorKind::InvalidFilename.into()))?;
    connection.execute("VACUUM INTO ?1", [text])?;
    // The copy comes out without a write-ahead log, which every database of ours has.
    let copy = Connection::open(target)?;
    copy.query_row("PRAGMA journal_mode=WAL", [], |_| Ok(()))?;
    copy.close().map_err(|(_, error)| StoreError::from(error))?;
    let file = std::fs::File::open(target).map_err(StoreError::write)?;
    file.set_permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .map_err(StoreError::write)?;
    file.sync_all().map_err(StoreError::write)
}

/// Moves the whole log into the database; true when nobody was in the way.
pub fn checkpoint(connection: &Connection) -> Result<bool, StoreError> {
    let busy: i64 =
        connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get(0))?;
    Ok(busy == 0)
}

/// The size of the write-ahead log beside a database.
pub fn log_bytes(path: &Path) -> u64 {
    std::fs::metadata(beside(path, "-wal"))
        .map(|meta| meta.len())
        .unwrap_or(0)
}

/// True when there is a database; a file that cannot be one is damage.
pub(in crate::store) fn present(path: &Path) -> Result<bool, StoreError> {
    match std::fs::metadata(path) {
        Ok(meta) if !meta.is_file() => Err(StoreError::Corrupt("the database is not a file")),
        Ok(meta) if meta.len() == 0 => Err(StoreError::Corrupt("the database is empty")),
        Ok(_) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            // A log without its database is a lost database, not a fresh start.
            if std::fs::metadata(beside(path, "-wal")).is_ok_and(|meta| meta.len() > 0) {
                return Err(StoreError::Corrupt(
                    "the database is gone and its log is not",
                ));
            }
            Ok(false)
        }
        Err(error) => Err(StoreError::write(error)),
    }
}

fn read_handle(path: &Path) -> Result<Connection, StoreError> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    settle(&connection)?;
    // SQLite opens lazily: the first read finds out whether this folder lets it read.
    number(&connection)?;
    Ok(connection)
}

/// Reads a database on a read-only place or a full disk, where no log can be made; only sound when no log exists, because
/// its rows would be missing.
fn immutable_handle(path: &Path, why: &StoreError) -> Result<Option<Connection>, StoreError> {
    let folder = path.parent().unwrap_or(Path::new("/"));
    let writable = nix::unistd::access(folder, nix::unistd::AccessFlags::W_OK).is_ok();
    let has_log = std::fs::metadata(beside(path, "-wal")).is_ok_and(|meta| meta.len() > 0);
    let is_refused = matches!(why, StoreError::WriteFailed(_));
    if (writable && !is_refused) || has_log {
        return Ok(None);
    }
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'A'..=b'Z' | b'a'..=b'z' | b'0'..=b'9' | b'/' | b'-' | b'_' | b'.' => {
                uri.push(*byte as char)
            }
            other => uri.push_str(&format!("%{other:02X}")),
        }
    }
    uri.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    let connection = Connection::open_with_flags(uri, flags)?;
    settle(&connection)?;
    number(&connection)?;
    Ok(Some(connection))
}

fn settle(connection: &Connection) -> Result<(), StoreError> {
    connection.busy_timeout(BUSY)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DML, false)?;
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_DQS_DDL, false)?;
    Ok(())
}

fn number(connection: &Connection) -> Result<i64, StoreError> {
    Ok(connection.query_row("PRAGMA user_version", [], |row| row.get(0))?)
}

fn checked_number(connection: &Connection, migrations: Migrations) -> Result<i64, StoreError> {
    let found = number(connection)?;
    if found > migrations.latest() {
        return Err(StoreError::SchemaUnsupported {
            found,
            known: migrations.latest(),
        });
    }
    if found <= 0 {
        // Every database of ours is linked with its number: this one is somebody else's.
        return Err(StoreError::Corrupt("the database has no version"));
    }
    Ok(found)
}

fn migrate(connection: &mut Connection, migrations: Migrations) -> Result<(), StoreError> {
    loop {
        let step = begin(connection)?;
        let have = number(&step)?;
        let Some(sql) = usize::try_from(have)
            .ok()
            .and_then(|index| migrations.0.get(index))
        else {
            return Ok(());
        };
        step.execute_batch(sql)?;
        step.pragma_update(None, "user_version", have + 1)?;
        step.commit()?;
    }
}

fn create(path: &Path, migrations: Migrations) -> Result<(), StoreError> {
    let folder = path
        .parent()
        .ok_or(StoreError::Corrupt("the database has no folder"))?;
    private_file::create_dir(folder).map_err(StoreError::write)?;
    let temp = tempfile::Builder::new()
        .prefix(private_file::TEMP_PREFIX)
        .permissions(std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .tempfile_in(folder)
        .map_err(StoreError::write)?;
    let made = fill(temp.path(), migrations);
    // SQLite's own side files carry the temporary name and go with it, whatever happened.
    let _ = std::fs::remove_file(beside(temp.path(), "-shm"));
    let _ = std::fs::remove_file(beside(temp.path(), "-wal"));
    made?;
    match std::fs::hard_link(temp.path(), path) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        Err(error) => return Err(StoreError::write(error)),
    }
    drop(temp);
    private_file::sync_dir(folder).map_err(StoreError::write)
}

fn fill(path: &Path, migrations: Migrations) -> Result<(), StoreError> {
    let mut connection = Connection::open(path)?;
    settle(&connection)?;
    let mode: String = connection.query_row("PRAGMA journal_mode=WAL", [], |row| row.get(0))?;
    if !mode.eq_ignore_ascii_case("wal") {
        return Err(StoreError::write(io::Error::other(
            "the file system cannot keep a write-ahead log",
        )));
    }
    connection.execute_batch("PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;")?;
    migrate(&mut connection, migrations)?;
    checkpoint(&connection)?;
    connection
        .close()
        .map_err(|(_, error)| StoreError::from(error))
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    PathBuf::from(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: Migrations = Migrations(&["CREATE TABLE a(x INTEGER) STRICT;"]);
    const TWO: Migrations = Migrations(&[
        "CREATE TABLE a(x INTEGER) STRICT;",
        "CREATE TABLE b(y TEXT) STRICT;",
    ]);

    #[test]
    fn a_read_makes_no_database() {
        let folder = tempfile::tempdir().unwrap();
        assert!(
            open_read(&folder.path().join("s.sqlite3"), ONE)
                .unwrap()
                .is_none()
        );
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_new_database_has_its_tables_its_number_and_no_leftovers() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.sqlite3");
        let mut connection = open_write(&path, TWO).unwrap();
        let tx = begin(&mut connection).unwrap();
        tx.execute("INSERT INTO b VALUES('row')", []).unwrap();
        tx.commit().unwrap();
        drop(connection);
        assert_eq!(version(&path).unwrap(), Some(2));
        let names: Vec<_> = std::fs::read_dir(folder.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name())
            .collect();
        assert!(
            names
                .iter()
                .all(|name| name.to_string_lossy().starts_with("s.sqlite3")),
            "{names:?}"
        );
        let read = open_read(&path, TWO).unwrap().unwrap();
        assert_eq!(
            read.query_row("SELECT y FROM b", [], |row| row.get::<_, String>(0))
                .unwrap(),
            "row"
        );
    }

    #[test]
    fn an_older_database_is_read_as_it_is_and_brought_up_by_the_next_write() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.sqlite3");
        let old = open_write(&path, ONE).unwrap();
        old.execute("INSERT INTO a VALUES(7)", []).unwrap();
        let read = open_read(&path, TWO).unwrap().unwrap();
        let row: i64 = read
            .query_row("SELECT x+(SELECT COUNT(*) FROM b) FROM a", [], |row| {
                row.get(0)
            })
            .unwrap();
        assert_eq!(row, 7);
        assert_eq!(version(&path).unwrap(), Some(1));
        drop(old);
        drop(open_write(&path, TWO).unwrap());
        assert_eq!(version(&path).unwrap(), Some(2));
    }

    #[test]
    fn a_newer_database_is_refused_and_its_bytes_stay() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.sqlite3");
        drop(open_write(&path, TWO).unwrap());
        let bytes = std::fs::read(&path).unwrap();
        assert!(matches!(
            open_write(&path, ONE),
            Err(StoreError::SchemaUnsupported { found: 2, known: 1 })
        ));
        assert!(matches!(
            open_read(&path, ONE),
            Err(StoreError::SchemaUnsupported { .. })
        ));
        assert_eq!(std::fs::read(&path).unwrap(), bytes);
    }

    #[test]
    fn a_zero_length_or_foreign_file_is_damage() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("s.sqlite3");
        std::fs::write(&path, b"").unwrap();
        assert!(matches!(
            open_write(&path, ONE),
            Err(StoreError::Corrupt(_))
        ));
        std::fs::write(
            &path,
            b"not a database, but long enough to look at; really".repeat(40),
        )
        .unwrap();
        assert!(matches!(
            open_write(&path, ONE),
            Err(StoreError::Corrupt(_))
        ));
        assert!(matches!(open_read(&path, ONE), Err(StoreError::Corrupt(_))));
    }
}
