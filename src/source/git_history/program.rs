//! Which `git` is there, and whether it is new enough.

use std::time::Duration;

use super::call::environment;
use crate::port::tools::{Found, Need, dotted_version};
use crate::process::{Ending, Invocation};

/// The first version with `--diff-merges=first-parent`.
const NEED: Need = Need {
    program: "git",
    least: "2.31",
    number: [2, 31, 0],
};

/// Asks `git` for its version.
pub(crate) fn find() -> Found {
    let invocation = Invocation::new(NEED.program, ["--version"])
        .env(environment())
        .deadline(Duration::from_secs(5));
    match crate::process::run(&invocation) {
        Ok(finished) if finished.ending == Ending::Exit(0) => {
            Found::judge(dotted_version(&finished.stdout), NEED)
        }
        _ => Found::Missing(NEED),
    }
}
