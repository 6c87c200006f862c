//! Every environment variable the program reads, once.
//!
//! Nothing else calls `std::env::var`: the command line reads this snapshot and hands the values on.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The registry file, below `--registry`.
pub const REGISTRY: &str = "LOOPX_REGISTRY";
/// The runtime root, below `--runtime-root` and the registry's own `common_runtime_root`.
pub const RUNTIME_ROOT: &str = "LOOPX_RUNTIME_ROOT";
/// The home folder, for `~` in path options and the default of machine-wide documents.
pub const HOME: &str = "HOME";
/// Where programs are looked for by name.
pub const PATH: &str = "PATH";
/// The zone of reports, below `--timezone` and the profile's schedule.
pub const TIME_ZONE: &str = "TZ";
/// The instant a report says it was generated at, for reproducible output.
pub const SOURCE_DATE_EPOCH: &str = "SOURCE_DATE_EPOCH";
/// Filter of the diagnostics on standard error.
pub const LOG: &str = "LOOPX_LOG";
/// Test builds: a fixed RFC 3339 clock, or `@FILE` with the instant in a file that a test moves on.
pub const TEST_NOW: &str = "LOOPX_TEST_NOW";
/// Test builds: the armed crash point.
pub const FAILPOINT: &str = "LOOPX_FAILPOINT";
/// Test builds: shortened provider deadlines, in milliseconds.
pub const TEST_PROVIDER_TIMEOUT_MS: &str = "LOOPX_TEST_PROVIDER_TIMEOUT_MS";
/// Set for a host process: the Turn it works on.
pub const TURN_KEY: &str = "LOOPX_TURN_KEY";
/// Set for a host process: its goal.
pub const GOAL_ID: &str = "LOOPX_GOAL_ID";
/// Set for a host process: its agent.
pub const AGENT_ID: &str = "LOOPX_AGENT_ID";

/// The value of a variable, absent when unset or empty.
pub fn value(name: &str) -> Option<OsString> {
    std::env::var_os(name).filter(|value| !value.is_empty())
}

/// The value of a path variable.
pub fn path(name: &str) -> Option<PathBuf> {
    value(name).map(PathBuf::from)
}

/// The value of a text variable, absent when it is not UTF-8.
pub fn text(name: &str) -> Option<String> {
    value(name).and_then(|value| value.into_string().ok())
}

/// The value of a test hook: always absent without the feature `test-hooks`.
pub fn test_hook(name: &str) -> Option<String> {
    if cfg!(feature = "test-hooks") {
        text(name)
    } else {
        None
    }
}

/// The instant a test set, as text: of the variable, or what its file holds now.
pub fn test_now() -> Option<String> {
    let set = test_hook(TEST_NOW)?;
    match set.strip_prefix('@') {
        Some(file) => std::fs::read_to_string(file).ok(),
        None => Some(set),
    }
}

/// The names of all variables, for a child that must not see some of them.
pub fn names() -> Vec<OsString> {
    std::env::vars_os().map(|(name, _)| name).collect()
}

/// Replaces a leading `~` by the home folder; a path stays as it is when HOME is not set.
pub fn expand_home(named: &Path) -> PathBuf {
    match (named.strip_prefix("~"), path(HOME)) {
        (Ok(rest), Some(home)) => home.join(rest),
        _ => named.to_path_buf(),
    }
}
