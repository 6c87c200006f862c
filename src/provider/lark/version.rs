//! Which version of the program is needed, and whether this one has what a command needs.

use super::call::{Deadline, Program};
use super::program::NEED;
use crate::contract::channel::ids::ProfileName;
use crate::port::channel::ProgramChoice;
use crate::port::tools::dotted_version;
use crate::process::Ending;

/// Finds the program under a name: absolute, with its interpreter where it is a script.
pub(crate) fn located(program: &str) -> Option<ProgramChoice> {
    find(program)?.found()
}

/// Says whether the program is new enough and can consume events.
pub(crate) fn is_compatible(program: &str, profile: &ProfileName) -> bool {
    let Some(program) = find(program) else {
        return false;
    };
    if !reaches_floor(&program) {
        return false;
    }
    let tail = ["event", "consume", "--help"].map(str::to_owned);
    let answer = program.call(Some(profile), &tail, Deadline::Version);
    answer.is_ok_and(|answer| answer.ending == Ending::Exit(0))
}

/// Asks the program for its version and compares it numerically.
pub(super) fn reaches_floor(program: &Program) -> bool {
    let answer = program.call(None, &["--version".to_owned()], Deadline::Version);
    let answer = answer
        .ok()
        .filter(|answer| answer.ending == Ending::Exit(0));
    answer
        .and_then(|answer| dotted_version(answer.stdout.as_bytes()))
        .is_some_and(|version| version >= NEED.number)
}

fn find(program: &str) -> Option<Program> {
    Program::find(&ProgramChoice {
        executable: Some(program.to_owned()),
        interpreter: None,
    })
}
