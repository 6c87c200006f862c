//! What can go wrong while keeping something. The text shown is free of paths and content.

use std::io;

/// A failure of the store, of a private file or of a lock.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Another writer held the database beyond the timeout.
    #[error("the store is busy")]
    Busy,
    /// Bytes that cannot be what was written: damaged, truncated, foreign or lost.
    #[error("the store is damaged: {0}")]
    Corrupt(&'static str),
    /// The change could not be made durable; what was there before is untouched.
    #[error("the change could not be written")]
    WriteFailed(#[source] io::Error),
    /// Written by a newer version of the program.
    #[error("the store was written by a newer version")]
    SchemaUnsupported {
        /// The number found.
        found: i64,
        /// The newest number this program knows.
        known: i64,
    },
    /// A lock was not obtained in time.
    #[error("another process holds the lock")]
    LockTimeout(Box<crate::store::lock::Holder>),
    /// A statement failed for a reason that is a defect of the program or of the database.
    #[error("the store refused a statement")]
    Sql(#[source] rusqlite::Error),
}

impl StoreError {
    /// An I/O failure while writing.
    pub fn write(source: io::Error) -> Self {
        StoreError::WriteFailed(source)
    }

    /// True when a row stands where the change wanted to put one: half of an effect is there and half of it is not.
    pub fn is_half_an_effect(&self) -> bool {
        let code = match self {
            StoreError::Sql(error) => error.sqlite_error_code(),
            _ => None,
        };
        code == Some(rusqlite::ErrorCode::ConstraintViolation)
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        use rusqlite::ErrorCode as Code;
        let Some(code) = error.sqlite_error_code() else {
            return match error {
                // A column of another type or a missing row is damage: the schema is strict.
                rusqlite::Error::InvalidColumnType(..)
                | rusqlite::Error::FromSqlConversionFailure(..) => {
                    StoreError::Corrupt("a row has another form than it was written in")
                }
                other => StoreError::Sql(other),
            };
        };
        match code {
            Code::DatabaseBusy | Code::DatabaseLocked => StoreError::Busy,
            Code::DatabaseCorrupt | Code::NotADatabase => {
                StoreError::Corrupt("the file is not a sound database")
            }
            Code::DiskFull
            | Code::ReadOnly
            | Code::SystemIoFailure
            | Code::CannotOpen
            | Code::PermissionDenied => StoreError::WriteFailed(io::Error::other(error)),
            // Our statements are constants: one that no longer compiles met another schema.
            Code::Unknown => StoreError::Corrupt("a table is missing or has another form"),
            _ => StoreError::Sql(error),
        }
    }
}
