//! Reading a report command with no more of the argument tree than it needs.
//!
//! Building every family's arguments costs more than a pure report command does. The command alone
//! is tried, then its family; whatever neither understands, help included, is left to the whole
//! tree, which then says what is wrong.

use std::ffi::OsString;

use clap::{Args as _, FromArgMatches as _};

use super::periodic_report::RequestArgs;
use super::{Cli, Command, Format, GenerateArgs, Global, InspectProfileArgs, PeriodicReportArgs};
use crate::flow::report_contract::ReportContract;

/// The family whose commands run often and do little.
const REPORTS: &str = "periodic-report";

/// Reads a command line of the report family; none when it is another's or not understood.
pub(in crate::cli) fn report_family(argv: &[OsString]) -> Option<Cli> {
    let at = argv.iter().position(|word| word == REPORTS)?;
    let alone = argv[at + 1..]
        .iter()
        .find_map(|word| command_alone(word.to_str()?));
    alone
        .and_then(|command| read(argv, clap::Command::new(REPORTS).subcommand(command)))
        .or_else(|| {
            read(
                argv,
                PeriodicReportArgs::augment_args(clap::Command::new(REPORTS)),
            )
        })
}

fn read(argv: &[OsString], family: clap::Command) -> Option<Cli> {
    let root = Global::augment_args(clap::Command::new("loopx")).subcommand(family);
    let matches = root.try_get_matches_from(argv).ok()?;
    let (_, found) = matches.subcommand()?;
    let cli = Cli {
        global: Global::from_arg_matches(&matches).ok()?,
        command: Command::PeriodicReport(PeriodicReportArgs::from_arg_matches(found).ok()?),
    };
    (cli.global.format != Format::Digest).then_some(cli)
}

/// The arguments of one of the report commands that are functions of their input, and of `generate`.
fn command_alone(name: &str) -> Option<clap::Command> {
    let contract = ReportContract::ALL
        .into_iter()
        .find(|one| one.name() == name);
    match (name, contract) {
        ("generate", _) => Some(GenerateArgs::augment_args(clap::Command::new("generate"))),
        (_, Some(ReportContract::InspectProfile)) => {
            let command = clap::Command::new(ReportContract::InspectProfile.name());
            Some(InspectProfileArgs::augment_args(command))
        }
        (_, Some(contract)) => Some(RequestArgs::augment_args(clap::Command::new(
            contract.name(),
        ))),
        (_, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser as _;

    fn words(line: &str) -> Vec<OsString> {
        line.split(' ').map(OsString::from).collect()
    }

    #[test]
    fn both_ways_read_a_report_command_alike() {
        for line in [
            "loopx periodic-report render --request-json - --format json",
            "loopx --format json periodic-report generate --window=-1 --source git --preview",
            "loopx --registry periodic-report periodic-report inspect-profile --preset weekly",
            "loopx periodic-report --runtime-root x generate",
            "loopx periodic-report --format json bundle --request-json render",
        ] {
            let quick = report_family(&words(line)).map(|cli| format!("{cli:?}"));
            let whole = Cli::try_parse_from(words(line))
                .ok()
                .map(|cli| format!("{cli:?}"));
            assert_eq!(quick, whole, "{line}");
            assert!(quick.is_some(), "{line}");
        }
    }

    #[test]
    fn what_is_not_understood_is_left_to_the_whole_tree() {
        for line in [
            "loopx periodic-report",
            "loopx periodic-report render",
            "loopx periodic-report --help",
            "loopx todo add --text periodic-report",
            "loopx periodic-report generate --preset monthly",
        ] {
            assert!(report_family(&words(line)).is_none(), "{line}");
        }
    }
}
