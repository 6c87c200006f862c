//! Packets of `backup`, `restore` and `doctor` (`docs/spec/kernel.md` 5.2). None of them names a path.

use serde::Serialize;

use super::digest::Digest;
use super::error::ErrorCode;

/// `loopx_backup_v0`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct BackupPacket {
    /// Whether the backup stands.
    pub ok: bool,
    /// The schema constant.
    pub schema_version: &'static str,
    /// `backup` or `verify`.
    pub action: &'static str,
    /// Number of files.
    pub files: usize,
    /// Sum of their lengths.
    pub bytes: u64,
    /// Digest of the manifest.
    pub manifest_sha256: Digest,
    /// Number of the store inside, none without a store.
    pub store_schema: Option<i64>,
    /// Every byte was read again and compared with the manifest.
    pub verified: bool,
}

/// `loopx_restore_v0`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RestorePacket {
    /// Whether the restore was done, or could be.
    pub ok: bool,
    /// The schema constant.
    pub schema_version: &'static str,
    /// Nothing was written.
    pub dry_run: bool,
    /// Always `restore`.
    pub action: &'static str,
    /// Number of files.
    pub files: usize,
    /// Sum of their lengths.
    pub bytes: u64,
    /// Number of the store inside, none without a store.
    pub store_schema: Option<i64>,
    /// What to do now.
    pub next_step: &'static str,
}

/// How a thing that was looked at is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FindingStatus {
    /// Nothing to do.
    Ok,
    /// Works, but should be put right.
    Warning,
    /// Does not work.
    Failed,
}

/// One thing that was looked at.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Finding {
    /// What.
    pub check: &'static str,
    /// How it is.
    pub status: FindingStatus,
    /// The code a command would refuse with.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<ErrorCode>,
    /// What to do.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_step: Option<String>,
}

impl Finding {
    /// Nothing to do.
    pub fn ok(check: &'static str) -> Self {
        Self {
            check,
            status: FindingStatus::Ok,
            error_code: None,
            next_step: None,
        }
    }

    /// Works, but should be put right.
    pub fn warning(check: &'static str, next_step: impl Into<String>) -> Self {
        Self {
            status: FindingStatus::Warning,
            next_step: Some(next_step.into()),
            ..Self::ok(check)
        }
    }

    /// Does not work.
    pub fn failed(check: &'static str, code: ErrorCode, next_step: impl Into<String>) -> Self {
        Self {
            status: FindingStatus::Failed,
            error_code: Some(code),
            next_step: Some(next_step.into()),
            check,
        }
    }
}

/// One thing that can be put right by itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Repair {
    /// The check it belongs to.
    pub check: &'static str,
    /// It was put right; a preview says no.
    pub done: bool,
}

/// Which versions are at work.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Versions {
    /// This program.
    pub loopx: &'static str,
    /// The newest store this program writes.
    pub store_schema: i64,
    /// The IANA time zone database inside.
    pub zone_database: &'static str,
    /// The SQLite inside.
    pub sqlite: &'static str,
    /// The `git` found.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub git: Option<String>,
    /// The channel program found, under the name of its field on the wire.
    #[serde(rename = "lark_cli", skip_serializing_if = "Option::is_none")]
    pub channel_program: Option<String>,
}

/// `loopx_doctor_v0`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DoctorPacket {
    /// Nothing failed.
    pub ok: bool,
    /// The schema constant.
    pub schema_version: &'static str,
    /// The code of the first failed finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error_code: Option<ErrorCode>,
    /// What to do about it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Nothing was changed.
    pub dry_run: bool,
    /// Everything that was looked at.
    pub findings: Vec<Finding>,
    /// Which versions are at work.
    pub versions: Versions,
    /// What can be, or was, put right.
    pub repairs: Vec<Repair>,
}
