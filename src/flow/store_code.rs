//! The machine code of a failed store or document, for families whose packets are not built from a refusal.

use crate::store::StoreError;

/// Returns the code.
pub(crate) const fn store_code(error: &StoreError) -> &'static str {
    match error {
        StoreError::Busy => "store_busy",
        StoreError::Corrupt(_) | StoreError::Sql(_) => "store_corrupt",
        StoreError::WriteFailed(_) => "store_write_failed",
        StoreError::SchemaUnsupported { .. } => "schema_unsupported",
        StoreError::LockTimeout(_) => "lock_acquire_timeout",
    }
}
