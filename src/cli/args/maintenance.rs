//! Arguments of `doctor`, `backup` and `restore`.

use std::path::PathBuf;

use clap::Args;

// Arguments of `loopx doctor`.
#[derive(Debug, Args)]
#[command(after_help = "Example: loopx doctor --execute")]
pub(in crate::cli) struct DoctorArgs {
    /// Put right what needs no decision; without it nothing is written
    #[arg(long)]
    pub(in crate::cli) execute: bool,
}

// Arguments of `loopx backup`.
#[derive(Debug, Args)]
#[command(after_help = "Example: loopx backup --out loopx-backup")]
pub(in crate::cli) struct BackupArgs {
    #[command(flatten)]
    pub(in crate::cli) what: BackupWhat,
}

// Write or prove; exactly one.
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(in crate::cli) struct BackupWhat {
    /// Write a backup into this new or empty folder
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) out: Option<PathBuf>,
    /// Prove every byte of a backup written before
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) verify: Option<PathBuf>,
}

// Arguments of `loopx restore`.
#[derive(Debug, Args)]
#[command(after_help = "Example: loopx restore --from loopx-backup --execute")]
pub(in crate::cli) struct RestoreArgs {
    /// The backup folder
    #[arg(long, value_name = "DIR")]
    pub(in crate::cli) from: PathBuf,
    /// Bring it back; without it the command shows what would happen
    #[arg(long)]
    pub(in crate::cli) execute: bool,
}
