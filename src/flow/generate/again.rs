//! The same command for another window, as a person would type it again.
//!
//! A path that says where something is on this machine is not repeated: its place holds a word.

use std::path::Path;

use super::command::{GenerateCommand, ReportLanguage, SourceChoice};
use crate::contract::public_safety;

/// Returns the command with what was asked for, for one window; the folder is left to the default.
pub(super) fn command_for(command: &GenerateCommand, window: &str) -> String {
    let mut words = vec!["loopx periodic-report generate".to_owned()];
    for source in &command.sources {
        words.push("--source".to_owned());
        words.push(match source {
            SourceChoice::ProjectProgress => "project-progress".to_owned(),
            SourceChoice::Git(None) => "git".to_owned(),
            SourceChoice::Git(Some(path)) => quoted(&format!("git={}", shown(path))),
            SourceChoice::Facts(path) => quoted(&format!("facts={}", shown(path))),
        });
    }
    let mut flag = |name: &str, value: Option<String>| {
        if let Some(value) = value {
            words.push(format!("{name} {}", quoted(&value)));
        }
    };
    flag("--profile-json", command.profile_file.as_deref().map(shown));
    flag(
        "--goal-id",
        command.goal_id.as_ref().map(ToString::to_string),
    );
    flag(
        "--agent-id",
        command.agent_id.as_ref().map(ToString::to_string),
    );
    flag("--timezone", command.timezone.clone());
    flag("--title", command.title.clone());
    let is_chinese = command.language == ReportLanguage::Chinese;
    flag(
        "--language",
        is_chinese.then(|| command.language.tag().to_owned()),
    );
    flag("--window", Some(window.to_owned()));
    words.join(" ")
}

fn shown(path: &Path) -> String {
    let text = path.to_string_lossy();
    let is_plain = path.is_relative() && public_safety::is_public(&text) && path.to_str().is_some();
    match is_plain {
        true => text.into_owned(),
        false => "PATH".to_owned(),
    }
}

/// A word for a shell: plain ones as they are, others in single quotes.
fn quoted(word: &str) -> String {
    let is_plain =
        |character: char| character.is_ascii_alphanumeric() || "-_./=:+,@%".contains(character);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_quoted_only_when_a_shell_would_read_it_otherwise() {
        assert_eq!(quoted("git=../other"), "git=../other");
        assert_eq!(quoted("It's 5"), "'It'\\''s 5'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn a_place_of_this_machine_is_not_repeated() {
        assert_eq!(shown(Path::new("/home/ann/x")), "PATH");
        assert_eq!(shown(Path::new("../tmp/x/y")), "PATH");
        assert_eq!(shown(Path::new("facts.json")), "facts.json");
    }
}
