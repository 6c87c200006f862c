//! Which `lark-cli` is there, and whether it is new enough.

use std::time::Duration;

use crate::port::tools::{Found, Need, dotted_version};
use crate::process::{Ending, Invocation};

/// The practical floor of the product (`docs/spec/lark-cli.md` 7).
pub(super) const NEED: Need = Need {
    program: "lark-cli",
    least: "1.0.69",
    number: [1, 0, 69],
};

/// Asks `lark-cli` for its version.
pub(crate) fn find() -> Found {
    let invocation = Invocation::new(NEED.program, ["--version"]).deadline(Duration::from_secs(5));
    match crate::process::run(&invocation) {
        Ok(finished) if finished.ending == Ending::Exit(0) => {
            Found::judge(dotted_version(&finished.stdout), NEED)
        }
        _ => Found::Missing(NEED),
    }
}
