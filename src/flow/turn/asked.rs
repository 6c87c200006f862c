//! One `turn run-once` as it is asked for.

use std::path::PathBuf;

use super::plan::TurnAsk;
use crate::contract::ids::TurnKey;
use crate::kernel::turn::recover::OnFailed;

/// One execution as it is asked for.
#[derive(Clone, Debug)]
pub struct RunOnce {
    /// The wake and the host.
    pub ask: TurnAsk,
    /// The stored Turn to resume.
    pub resume: Option<TurnKey>,
    /// What is wanted with a failed Turn.
    pub on_failed: OnFailed,
    /// How hosts and validators are run.
    pub run: Run,
}

/// How hosts and validators of this call are run.
#[derive(Clone, Debug)]
pub struct Run {
    /// The host.
    pub host_argv: Vec<String>,
    /// The validator.
    pub validator_argv: Option<Vec<String>>,
    /// What a failed validation asks for.
    pub recovery_kind: &'static str,
    /// The folder both run in.
    pub project: PathBuf,
    /// How long a host may take.
    pub host_timeout: u64,
    /// How long a validator may take.
    pub validation_timeout: u64,
}
