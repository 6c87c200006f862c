//! Which sources apply, and what they say.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use super::command::{GenerateCommand, SourceChoice};
use super::journal::{Default, Journal, default_goal};
use super::setting::Setting;
use crate::contract::error::ErrorCode;
use crate::contract::ids::Token;
use crate::contract::packet::Refusal;
use crate::contract::periodic_report::source::empty_progress_section;
use crate::contract::periodic_report::source::{SourceHead, SourceResult};
use crate::contract::periodic_report::vocabulary::SourceStatus;
use crate::contract::time::{Timestamp, Window};
use crate::flow::Ports;
use crate::port::source::{SourceAdapter, SourceOpener, SourceReading, SourceRequest, SourceScope};
use crate::workspace::env;

/// A source that is going to be read.
enum Planned {
    Adapter(Box<dyn SourceAdapter>),
    Goal,
}

/// The sources of one generation.
pub(super) struct Sources<'a> {
    opener: &'a dyn SourceOpener,
    planned: Vec<Planned>,
    journal: Option<Journal>,
    choice_of_goals: usize,
}

/// What all sources said.
pub(super) struct Readings {
    pub readings: Vec<SourceReading>,
    pub newest: Option<Timestamp>,
}

impl<'a> Sources<'a> {
    /// Opens the sources that were asked for, or those that apply here.
    pub(super) fn open(
        ports: &Ports,
        opener: &'a dyn SourceOpener,
        command: &GenerateCommand,
    ) -> Result<Self, Refusal> {
        let here = current_folder()?;
        let (journal, choice_of_goals) = match journal(ports, command) {
            Chosen::Journal(journal) => (Some(journal), 0),
            Chosen::None => (None, 0),
            Chosen::Several(several) => (None, several),
        };
        let choices = choices(command, journal.as_ref(), &here);
        let lacks_goal = journal.is_none() && choices.contains(&SourceChoice::ProjectProgress);
        if choices.is_empty() || lacks_goal {
            return Err(missing(choice_of_goals));
        }
        let planned = choices.into_iter().map(|choice| match choice {
            SourceChoice::ProjectProgress => Planned::Goal,
            SourceChoice::Git(path) => {
                let folder = path.map_or_else(|| here.clone(), |path| resolve(&here, &path));
                Planned::Adapter(opener.open(SourceRequest::GitHistory(folder)))
            }
            SourceChoice::Facts(path) => {
                let file = match path == Path::new("-") {
                    true => path,
                    false => resolve(&here, &path),
                };
                Planned::Adapter(opener.open(SourceRequest::FactsFile(file)))
            }
        });
        Ok(Self {
            opener,
            planned: planned.collect(),
            journal,
            choice_of_goals,
        })
    }

    /// Returns the title of the goal, when a goal is a source.
    pub(super) fn goal_title(&self) -> Option<&str> {
        self.journal.as_ref().and_then(Journal::title)
    }

    /// Returns how many active goals there are when none of them was named.
    pub(super) fn choice_of_goals(&self) -> usize {
        self.choice_of_goals
    }

    /// Tells whether a goal is a source.
    pub(super) fn has_goal(&self) -> bool {
        self.journal.is_some()
    }

    /// Returns the newest fact any source knows of.
    pub(super) fn newest(&mut self, not_after: Timestamp) -> Option<Timestamp> {
        let journal = self.journal.as_ref();
        let planned = self.planned.iter_mut().filter_map(|planned| match planned {
            Planned::Adapter(adapter) => adapter.newest_fact(not_after),
            Planned::Goal => journal.and_then(|journal| journal.newest(not_after)),
        });
        planned.max()
    }

    /// Reads every source for a window; a report needs one that could be read.
    pub(super) fn read(
        &mut self,
        command: &GenerateCommand,
        setting: &Setting,
        window: Window,
    ) -> Result<Readings, Refusal> {
        let scope = SourceScope {
            window,
            language: command.language.tag().to_owned(),
            generated_at: setting.generated_at,
        };
        let mut readings = Vec::with_capacity(self.planned.len());
        for planned in &mut self.planned {
            let reading = match (planned, &self.journal) {
                (Planned::Adapter(adapter), _) => adapter.snapshot(&scope)?,
                (Planned::Goal, journal) => {
                    let agent = command.agent_id.as_ref();
                    let told = journal
                        .as_ref()
                        .map(|journal| journal.read(&window, agent, setting.generated_at));
                    let told = told.unwrap_or(crate::port::source::GoalReading::NotFound);
                    let request = SourceRequest::ProjectProgress(told);
                    self.opener.open(request).snapshot(&scope)?
                }
            };
            readings.push(reading);
        }
        let is_failed = |reading: &SourceReading| reading.result.status == SourceStatus::Failed;
        if readings.iter().all(is_failed) {
            return Err(all_failed(&readings));
        }
        tell_apart(&mut readings);
        say_that_nothing_is_recorded(&mut readings, &scope.language)?;
        let newest = self.newest(setting.generated_at);
        Ok(Readings { readings, newest })
    }
}

/// Opens the goal that is named, or the only active one, when a goal is a source.
fn journal(ports: &Ports, command: &GenerateCommand) -> Chosen {
    let asked = &command.sources;
    if !asked.is_empty() && !asked.contains(&SourceChoice::ProjectProgress) {
        return Chosen::None;
    }
    if let Some(goal) = &command.goal_id {
        return Chosen::Journal(Journal::open(ports, goal));
    }
    match default_goal(ports) {
        Default::Goal(goal) => Chosen::Journal(Journal::open(ports, &goal)),
        Default::None => Chosen::None,
        Default::Several(several) => Chosen::Several(several),
        Default::Unreadable => Chosen::Journal(Journal::Unreadable),
    }
}

/// The goal a report is about, or that there is a choice.
enum Chosen {
    Journal(Journal),
    None,
    Several(usize),
}

fn choices(command: &GenerateCommand, journal: Option<&Journal>, here: &Path) -> Vec<SourceChoice> {
    if !command.sources.is_empty() {
        return command.sources.clone();
    }
    let goal = journal.map(|_| SourceChoice::ProjectProgress);
    let git = is_in_work_tree(here).then_some(SourceChoice::Git(None));
    goal.into_iter().chain(git).collect()
}

/// Tells whether a folder lies in a git work tree, without asking git.
fn is_in_work_tree(here: &Path) -> bool {
    for folder in here.ancestors() {
        if folder.file_name().is_some_and(|name| name == ".git") || is_bare(folder) {
            return false;
        }
        if folder.join(".git").exists() {
            return true;
        }
    }
    false
}

fn is_bare(folder: &Path) -> bool {
    folder.join("HEAD").is_file() && folder.join("objects").is_dir() && folder.join("refs").is_dir()
}

fn current_folder() -> Result<PathBuf, Refusal> {
    std::env::current_dir().map_err(|_| {
        let message = "the current folder cannot be read; change to one that can";
        Refusal::new(ErrorCode::InputUnreadable, message)
    })
}

fn resolve(here: &Path, named: &Path) -> PathBuf {
    here.join(env::expand_home(named))
}

fn missing(choice_of_goals: usize) -> Refusal {
    let message = match choice_of_goals {
        0 => {
            "there is nothing to report on here: run this inside a git work tree or name one with --source git=PATH, \
             or make a goal with `loopx bootstrap` and name it with --goal-id"
                .to_owned()
        }
        several => format!("{several} goals are active; name one with --goal-id"),
    };
    Refusal::new(ErrorCode::ReportSourceMissing, message)
}

fn all_failed(readings: &[SourceReading]) -> Refusal {
    let reasons: Vec<&str> = readings
        .iter()
        .map(|one| one.reason.unwrap_or("it says itself that it failed"))
        .collect();
    let message = format!(
        "no source could be read ({}); correct one of them or add another with --source",
        reasons.join(", ")
    );
    Refusal::new(ErrorCode::ReportSourcesFailed, message)
}

/// A second source of one id gets `_2`, a third `_3`.
fn tell_apart(readings: &mut [SourceReading]) {
    let mut seen: BTreeMap<Token, usize> = BTreeMap::new();
    for reading in readings {
        let count = seen.entry(reading.result.source_id.clone()).or_insert(0);
        *count += 1;
        if *count > 1 {
            let numbered = format!("{}_{count}", reading.result.source_id);
            if let Some(id) = Token::new(numbered) {
                reading.result.source_id = id;
            }
        }
    }
}

/// Nothing recorded is not nothing done: the first source that could be read says so.
fn say_that_nothing_is_recorded(
    readings: &mut [SourceReading],
    language: &str,
) -> Result<(), Refusal> {
    if readings.iter().any(|reading| reading.result.item_count > 0) {
        return Ok(());
    }
    let is_read = |reading: &&mut SourceReading| reading.result.status != SourceStatus::Failed;
    if let Some(reading) = readings.iter_mut().find(is_read) {
        let old = &reading.result;
        let head = SourceHead {
            source_id: old.source_id.clone(),
            source_kind: old.source_kind.clone(),
            status: old.status,
            observed_at: old.observed_at,
            retryable: old.retryable,
            snapshot_ref: old.snapshot_ref.clone(),
        };
        reading.result = SourceResult::build(head, vec![empty_progress_section(language)])?;
    }
    Ok(())
}
