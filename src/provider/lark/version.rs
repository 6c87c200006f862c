//! Which version of the program is needed, and whether this one has what a command needs.

use super::call::{Deadline, Program};
use crate::contract::channel::ids::ProfileName;
use crate::port::channel::ProgramChoice;
use crate::process::Ending;

/// The oldest version the product works with (`docs/spec/lark-cli.md` 7).
pub(super) const FLOOR: [u64; 3] = [1, 0, 69];

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
        .and_then(|answer| parse(&answer.stdout))
        .is_some_and(|version| version >= FLOOR)
}

fn find(program: &str) -> Option<Program> {
    Program::find(&ProgramChoice {
        executable: Some(program.to_owned()),
        interpreter: None,
    })
}

/// Reads `lark-cli version 1.0.86`; a leading `v` and a suffix are no part of it.
fn parse(text: &str) -> Option<[u64; 3]> {
    let word = text.split_whitespace().find(|word| {
        word.trim_start_matches('v')
            .starts_with(|c: char| c.is_ascii_digit())
    })?;
    let mut parts = word.trim_start_matches('v').split(['.', '-', '+']);
    let mut number = || parts.next()?.parse().ok();
    Some([number()?, number()?, number()?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_compared_by_number() {
        assert_eq!(parse("lark-cli version 1.0.86\n"), Some([1, 0, 86]));
        assert_eq!(parse("lark-cli version v1.0.100-rc.1"), Some([1, 0, 100]));
        assert_eq!(parse("lark-cli"), None);
        assert!(parse("1.0.100") > Some(FLOOR) && parse("1.0.9") < Some(FLOOR));
    }
}
