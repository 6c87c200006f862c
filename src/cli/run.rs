//! Parsing the command line, handing it to its family, printing what comes back.

use std::error::Error;
use std::ffi::OsString;
use std::panic::{self, AssertUnwindSafe};
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory, FromArgMatches};

use super::args::{Cli, Command, Format};
use super::emit::{self, Reply};
use super::{
    extension, goal, goal_channel, handoff, lark_inbox, maintenance, manual, periodic_report,
    quota, refresh, todo, turn,
};
use crate::contract::error::ErrorCode;
use crate::contract::packet::Refusal;
use crate::failpoint;
use crate::workspace::env;

/// Runs one command line and returns its exit code.
pub fn run(argv: impl IntoIterator<Item = OsString>) -> ExitCode {
    let argv: Vec<OsString> = argv.into_iter().collect();
    let cli = match parse(&argv) {
        Ok(cli) => cli,
        Err(error) => return refuse_command_line(&argv, &without_values(error)),
    };
    let format = cli.global.format;
    let schema = match cli.command {
        Command::PeriodicReport(_) => emit::REPORT_ERROR_SCHEMA,
        _ => emit::ERROR_SCHEMA,
    };
    if failpoint::arm(env::test_hook(env::FAILPOINT).as_deref()).is_err() {
        let text = "LOOPX_FAILPOINT names no point; the names are in src/failpoint.rs";
        let error = Cli::command().error(ErrorKind::InvalidValue, text);
        return refuse_command_line(&argv, &error);
    }
    panic::set_hook(Box::new(|_| {}));
    let reply = panic::catch_unwind(AssertUnwindSafe(|| dispatch(cli))).unwrap_or_else(|_| {
        let message = "loopx met a fault of its own; nothing was reported as done. \
                       Run the same command again, and `loopx doctor` if it repeats.";
        Reply::refused(
            Refusal::new(ErrorCode::InternalError, message),
            schema,
            &command_words(&argv).join(" "),
        )
    });
    emit::print(&reply, format)
}

fn parse(argv: &[OsString]) -> Result<Cli, clap::Error> {
    let mut command = Cli::command();
    let matches = command.try_get_matches_from_mut(argv)?;
    let cli = Cli::from_arg_matches(&matches).map_err(|error| error.format(&mut command))?;
    if cli.global.format == Format::Digest && !cli.command.prints_digests() {
        let text = "--format digest is for `handoff inspect` alone";
        return Err(command.error(ErrorKind::ArgumentConflict, text));
    }
    Ok(cli)
}

/// One arm a family: `Command::Family(args) => family::run(args, &global)`.
fn dispatch(cli: Cli) -> Reply {
    match cli.command {
        Command::PeriodicReport(args) => periodic_report::run(&args, &cli.global),
        Command::Bootstrap(args) => goal::bootstrap(&args, &cli.global),
        Command::RegisterAgent(args) => goal::register(&args, &cli.global),
        Command::ConfigureGoal(args) => goal::configure(&args, &cli.global),
        Command::GoalLifecycle(args) => goal::lifecycle(&args, &cli.global),
        Command::OperatorGate(args) => goal::operator_gate(&args, &cli.global),
        Command::Todo(args) => todo::run(&args, &cli.global),
        Command::Status(args) => goal::status(&args, &cli.global),
        Command::Turn(args) => turn::run(&args, &cli.global),
        Command::Quota(args) => quota::run(&args, &cli.global),
        Command::RefreshState(args) => refresh::run(&args, &cli.global),
        Command::TaskLease(args) => todo::lease(&args, &cli.global),
        Command::Handoff(args) => handoff::run(&args, &cli.global),
        Command::Extension(args) => extension::run(&args, &cli.global),
        Command::LarkInbox(args) => lark_inbox::run(&args, &cli.global),
        Command::GoalChannel(args) => goal_channel::run(&args, &cli.global),
        Command::Capability(args) => extension::capability(&args, &cli.global),
        Command::Doctor(args) => maintenance::doctor(&args, &cli.global),
        Command::Backup(args) => maintenance::backup(&args, &cli.global),
        Command::Restore(args) => maintenance::restore(&args, &cli.global),
        Command::Completions(args) => manual::completions(&args),
        Command::Man(args) => manual::man(&args),
    }
}

/// Help and version go to standard output with exit 0; anything else is exit 2, before any state
/// is read.
fn refuse_command_line(argv: &[OsString], error: &clap::Error) -> ExitCode {
    if matches!(
        error.kind(),
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion
    ) {
        return emit::print_help(error);
    }
    // Nothing more can be done when standard error is closed; the exit code still tells.
    let _ = error.print();
    if asks_for_json(argv) {
        let message = format!(
            "the command line was not understood: {}{}; `--help` shows what is accepted",
            error.kind(),
            accepted(error) + &named(error) + &expected(error, argv)
        );
        let refusal = Refusal::new(ErrorCode::InvalidArguments, message);
        let command = command_words(argv).join(" ");
        let schema = match command.starts_with("periodic-report") {
            true => emit::REPORT_ERROR_SCHEMA,
            false => emit::ERROR_SCHEMA,
        };
        // Spec periodic-report-core: its error packets carry the subcommand alone.
        let word = match (command.strip_prefix("periodic-report "), command.as_str()) {
            (Some(subcommand), _) => subcommand,
            (None, "") => "loopx",
            (None, words) => words,
        };
        let reply = Reply::refused(refusal, schema, word);
        emit::print(&reply, Format::Json);
    }
    ExitCode::from(2)
}

/// Takes out of an error what the caller typed: a stray word may be the text of a message. The name of a flag stays.
fn without_values(mut error: clap::Error) -> clap::Error {
    const BLANK: &str = "…";
    for kind in [
        ContextKind::InvalidArg,
        ContextKind::InvalidValue,
        ContextKind::InvalidSubcommand,
    ] {
        let is_own_word = error.kind() != ErrorKind::UnknownArgument;
        let is_typed = match error.get(kind) {
            Some(ContextValue::String(_)) if kind == ContextKind::InvalidArg && is_own_word => {
                false
            }
            Some(ContextValue::String(word)) => !word.is_empty() && !is_flag(word),
            _ => false,
        };
        if is_typed {
            error.insert(kind, ContextValue::String(BLANK.to_owned()));
            error.insert(ContextKind::Suggested, ContextValue::None);
        }
    }
    error
}

/// Tells whether a word has the form of a flag's name and no other.
fn is_flag(word: &str) -> bool {
    let name = word.strip_prefix("--").unwrap_or("");
    (1..=40).contains(&name.len())
        && name
            .bytes()
            .all(|byte| byte.is_ascii_lowercase() || byte == b'-')
}

/// Names what a flag with a list of values accepts; what was given is not repeated.
fn accepted(error: &clap::Error) -> String {
    match error.get(ContextKind::ValidValue) {
        Some(ContextValue::Strings(values)) if !values.is_empty() => {
            format!(" (accepted here: {})", values.join(", "))
        }
        _ => String::new(),
    }
}

/// The flags and commands an error is about, as the command line's own description spells them: what the
/// caller typed is not repeated.
fn named(error: &clap::Error) -> String {
    let words = |kind: ContextKind| match error.get(kind) {
        Some(ContextValue::String(word)) => word.clone(),
        Some(ContextValue::Strings(words)) => words.join(", "),
        _ => String::new(),
    };
    // Everywhere else the flag is spelled as the caller typed it.
    let is_own_word = !matches!(
        error.kind(),
        ErrorKind::UnknownArgument | ErrorKind::InvalidSubcommand
    );
    let missing = match (is_own_word, words(ContextKind::PriorArg)) {
        (false, _) => String::new(),
        (true, prior) if prior.is_empty() => words(ContextKind::InvalidArg),
        (true, prior) => format!("{} and {prior}", words(ContextKind::InvalidArg)),
    };
    let meant = [ContextKind::SuggestedArg, ContextKind::SuggestedSubcommand].map(words);
    match (missing.is_empty(), meant.join("").is_empty()) {
        (false, _) => format!(": {missing}"),
        (_, false) => format!("; did you mean {}?", meant.join("")),
        _ => String::new(),
    }
}

/// The rule a value broke, in our own words: a sentence that repeats something of the command line is left out.
fn expected(error: &clap::Error, argv: &[OsString]) -> String {
    let Some(rule) = error.source().map(ToString::to_string) else {
        return String::new();
    };
    // The parser of ranges begins with the value it was given.
    let rule = match rule.split_once(" is not in ") {
        Some((_, range)) => format!("must be in {range}"),
        None => rule,
    };
    let given = argv.iter().skip(1).filter_map(|word| word.to_str());
    let repeats = given
        .map(|word| word.rsplit('=').next().unwrap_or(word))
        .any(|word| word.len() > 2 && !word.starts_with("--") && rule.contains(word));
    match repeats {
        true => String::new(),
        false => format!(" ({rule})"),
    }
}

fn asks_for_json(argv: &[OsString]) -> bool {
    let words = argv.windows(2);
    words
        .clone()
        .any(|pair| pair[0] == "--format" && pair[1] == "json")
        || argv.iter().any(|word| word == "--format=json")
}

/// Returns the words of a command line that name commands, as far as they are known.
fn command_words(argv: &[OsString]) -> Vec<String> {
    let mut level = Cli::command();
    level.build();
    let mut words = Vec::new();
    for word in argv.iter().skip(1).filter_map(|word| word.to_str()) {
        let Some(next) = level.find_subcommand(word).cloned() else {
            continue;
        };
        words.push(word.to_owned());
        level = next;
    }
    words
}
