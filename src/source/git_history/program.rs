//! Which `git` is there, and whether it is new enough.

use std::time::Duration;

use super::call::environment;
use crate::port::tools::{Found, dotted_version};
use crate::process::{Ending, Invocation};

/// The first version with `--diff-merges=first-parent`.
const LEAST: (&str, [u64; 3]) = ("2.31", [2, 31, 0]);

/// Asks `git` for its version.
pub(crate) fn find() -> Found {
    let invocation = Invocation::new("git", ["--version"])
        .env(environment())
        .deadline(Duration::from_secs(5));
    match crate::process::run(&invocation) {
        Ok(finished) if finished.ending == Ending::Exit(0) => {
            Found::judge(dotted_version(&finished.stdout), LEAST)
        }
        _ => Found::Missing,
    }
}
