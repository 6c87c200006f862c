//! Which version of the program is needed, and whether this one has what a command needs.

use super::call::{Deadline, Program};
use super::program::NEED;
use crate::contract::channel::ids::ProfileName;
use crate::port::channel::ProgramChoice;
use crate::port::tools::TooOld;
use crate::process::Ending;

/// Finds the program under a name: absolute, with its interpreter where it is a script.
pub(crate) fn located(program: &str) -> Option<ProgramChoice> {
    find(program)?.found()
}

/// Says what a program lacks that failed like an old one. One that names no version is not called old.
pub(super) fn outdated(program: &Program, profile: &ProfileName) -> Option<TooOld> {
    judged(program, Some(profile))
        .flatten()
        .filter(|old| old.version.is_some())
}

/// Says whether the program is new enough and can consume events.
pub(crate) fn is_compatible(program: &str, profile: &ProfileName) -> Result<bool, TooOld> {
    let Some(program) = find(program) else {
        return Ok(false);
    };
    match judged(&program, Some(profile)) {
        Some(Some(old)) => return Err(old),
        Some(None) => {}
        None => return Ok(false),
    }
    let tail = ["event", "consume", "--help"].map(str::to_owned);
    let answer = program.call(Some(profile), &tail, Deadline::Version);
    Ok(answer.is_ok_and(|answer| answer.ending == Ending::Exit(0)))
}

/// Asks the program for its version and compares it numerically.
pub(super) fn reaches_floor(program: &Program) -> bool {
    judged(program, None) == Some(None)
}

/// What the version of the program lacks; none when it does not answer.
fn judged(program: &Program, profile: Option<&ProfileName>) -> Option<Option<TooOld>> {
    let answer = program.call(profile, &["--version".to_owned()], Deadline::Version);
    let answer = answer
        .ok()
        .filter(|answer| answer.ending == Ending::Exit(0))?;
    Some(TooOld::judge(answer.stdout.as_bytes(), NEED))
}

fn find(program: &str) -> Option<Program> {
    Program::find(&ProgramChoice {
        executable: Some(program.to_owned()),
        interpreter: None,
    })
}
