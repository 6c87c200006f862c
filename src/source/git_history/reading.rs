//! Reads a repository once and answers for a window.

use std::path::Path;

use super::call::{Answer, CommitRef, Fault, Git, Reach};
use super::items::{Told, tell};
use super::objects::{Object, parse_objects};
use super::select::{Fact, Selection, Sizes};
use super::tags::tag_fact;
use super::walk::{Commit, TagName, parse_patch_ids, parse_sizes, parse_walk};
use super::words::Language;
use crate::contract::periodic_report::source::Section;
use crate::contract::periodic_report::vocabulary::SourceStatus;
use crate::contract::time::{Timestamp, Window};

/// A wrongly dated commit hides what is behind it; the walk goes this much further back.
const MARGIN_SECONDS: i64 = 30 * 24 * 60 * 60;
/// How many of the newest commits are read to find the newest fact before the window is known.
const NEWEST: usize = 20_000;

/// Why a repository could not be read, or not wholly.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reason {
    NotARepository,
    ExecutableMissing,
    NotTrusted,
    Failed,
    ShallowBoundary,
    Deadline,
    TextWithheld,
    TextReplaced,
    ItemLimit,
}

impl Reason {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::NotARepository => "git_not_a_repository",
            Self::ExecutableMissing => "git_executable_missing",
            Self::NotTrusted => "git_repository_not_trusted",
            Self::Failed => "git_failed",
            Self::ShallowBoundary => "git_shallow_boundary",
            Self::Deadline => "git_deadline",
            Self::TextWithheld => "git_text_withheld",
            Self::TextReplaced => "git_text_replaced",
            Self::ItemLimit => "git_item_limit",
        }
    }
}

impl From<Fault> for Reason {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::NotARepository => Self::NotARepository,
            Fault::ExecutableMissing => Self::ExecutableMissing,
            Fault::NotTrusted => Self::NotTrusted,
            Fault::Deadline => Self::Deadline,
            Fault::Failed => Self::Failed,
        }
    }
}

/// What a repository says of a window.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    pub(crate) status: SourceStatus,
    pub(crate) reason: Option<Reason>,
    pub(crate) sections: Vec<Section>,
    pub(crate) omitted: usize,
    pub(crate) withheld: usize,
}

impl Snapshot {
    /// The snapshot of a repository that could not be read.
    pub(crate) fn failed(reason: Reason) -> Self {
        Self {
            status: SourceStatus::Failed,
            reason: Some(reason),
            sections: Vec::new(),
            omitted: 0,
            withheld: 0,
        }
    }
}

/// A repository whose history was walked.
#[derive(Debug)]
pub(crate) struct Repository {
    git: Git,
    commits: Vec<Commit>,
    /// Commits older than this were not walked.
    floor: i64,
    gap: Option<Fault>,
}

impl Repository {
    /// Walks what a window needs.
    pub(crate) fn for_window(folder: &Path, window: &Window) -> Result<Self, Reason> {
        let floor = window.start_at().unix_seconds() - MARGIN_SECONDS;
        Self::walk(Git::at(folder), Reach::Since(floor), floor)
    }

    /// Walks the newest commits, before the window is known.
    pub(crate) fn newest_first(folder: &Path) -> Result<Self, Reason> {
        let mut repository = Self::walk(Git::at(folder), Reach::Newest(NEWEST), i64::MIN)?;
        if repository.commits.len() == NEWEST {
            let oldest = repository.commits.iter().map(|commit| commit.instant).min();
            repository.floor = oldest.unwrap_or(i64::MIN);
        }
        Ok(repository)
    }

    fn walk(git: Git, reach: Reach, floor: i64) -> Result<Self, Reason> {
        let answer = git.walk(reach)?;
        let walk = parse_walk(&answer.bytes);
        let gap = match (answer.gap, walk.is_whole) {
            (Some(fault), _) => Some(fault),
            (None, true) => None,
            // Something answered in the place of git, or stopped half way and did not say so.
            (None, false) if walk.commits.is_empty() => return Err(Reason::Failed),
            (None, false) => Some(Fault::Failed),
        };
        Ok(Self {
            git,
            commits: walk.commits,
            floor,
            gap,
        })
    }

    /// Returns the newest commit not later than an instant; looks further back when the walk holds none.
    pub(crate) fn newest(&self, not_after: Timestamp) -> Option<Timestamp> {
        let limit = not_after.unix_seconds();
        let newest = |commits: &[Commit]| {
            let instants = commits.iter().map(|commit| commit.instant);
            instants.filter(|instant| *instant <= limit).max()
        };
        let found = newest(&self.commits).or_else(|| {
            let answer = self.git.walk(Reach::LastNotAfter(limit)).ok()?;
            newest(&parse_walk(&answer.bytes).commits)
        });
        found.and_then(Timestamp::from_unix)
    }

    /// Walks again when the window reaches further back than the walk did. A walk of the newest commits has no
    /// margin to keep: nothing it holds was cut off by a date.
    pub(crate) fn reaching(self, window: &Window) -> Result<Self, Reason> {
        let start = window.start_at().unix_seconds();
        match start < self.floor {
            true => {
                let floor = start - MARGIN_SECONDS;
                Self::walk(self.git, Reach::Since(floor), floor)
            }
            false => Ok(self),
        }
    }

    /// Answers for a window the walk reaches.
    pub(crate) fn snapshot(&self, window: &Window, language: Language) -> Result<Snapshot, Reason> {
        let mut selection = Selection::new(&self.commits, window);
        if selection.is_empty() {
            let boundaries = self.boundaries(window);
            let mut gaps = Gaps(self.gap);
            let (_, is_shallow) = self.objects(&selection, &boundaries, &mut gaps);
            let told = Told {
                gap: gaps.0,
                is_shallow,
                ..Told::default()
            };
            return Ok(conclude(&selection, told));
        }
        let mut gaps = Gaps(self.gap);
        let sizes = self.sizes(&selection, &mut gaps);
        let suspects = selection.suspects(&sizes);
        if !suspects.is_empty() {
            let patches = gaps.note(self.git.patches(&suspects));
            selection.drop_equal(&parse_patch_ids(&patches));
        }
        let mut facts = selection.facts(&sizes);
        let boundaries = self.boundaries(window);
        let (tags, is_shallow) = self.objects(&selection, &boundaries, &mut gaps);
        facts.extend(tags);
        let mut told = tell(facts, language);
        told.gap = gaps.0;
        told.is_shallow = is_shallow;
        Ok(conclude(&selection, told))
    }

    /// The commits of the window or after it that may hide their parents.
    fn boundaries(&self, window: &Window) -> Vec<&str> {
        let start = window.start_at().unix_seconds();
        let commits = self.commits.iter();
        commits
            .filter(|commit| commit.may_be_boundary && commit.instant >= start)
            .map(|commit| commit.id.as_str())
            .collect()
    }

    fn sizes(&self, selection: &Selection<'_>, gaps: &mut Gaps) -> Sizes {
        let commits: Vec<CommitRef<'_>> = selection.sized().collect();
        if commits.is_empty() {
            return Sizes::new();
        }
        let bytes = gaps.note(self.git.sizes(&commits));
        parse_sizes(&bytes, gaps.0.is_some())
    }

    /// The facts of tags, and whether a boundary hides history.
    fn objects(
        &self,
        selection: &Selection<'_>,
        boundaries: &[&str],
        gaps: &mut Gaps,
    ) -> (Vec<Fact>, bool) {
        let tags: Vec<((usize, &Commit), &TagName)> = selection
            .tagged()
            .flat_map(|at| at.1.tags.iter().map(move |tag| (at, tag)))
            .collect();
        if tags.is_empty() && boundaries.is_empty() {
            return (Vec::new(), false);
        }
        let named = tags
            .iter()
            .map(|(_, tag)| [b"refs/tags/", tag.raw.as_slice()].concat());
        let names: Vec<Vec<u8>> = named
            .chain(boundaries.iter().map(|id| id.as_bytes().to_vec()))
            .collect();
        let bytes = gaps.note(self.git.objects(&names));
        let found = parse_objects(&bytes, names.len());
        let facts = tags
            .iter()
            .zip(&found)
            .map(|(((place, commit), tag), object)| {
                let message = match object {
                    Object::Tag(message) => Some(message.as_str()),
                    _ => None,
                };
                tag_fact((commit, *place), tag, message)
            });
        let hides = Object::Commit { has_parents: true };
        (facts.collect(), found[tags.len()..].contains(&hides))
    }
}

/// The first thing that could not be read to its end.
struct Gaps(Option<Fault>);

impl Gaps {
    /// Takes what an answer holds; what it lacks is noted, and the walk stands.
    fn note(&mut self, answer: Result<Answer, Fault>) -> Vec<u8> {
        let Answer { bytes, gap } = answer.unwrap_or_else(|fault| Answer {
            bytes: Vec::new(),
            gap: Some(fault),
        });
        self.0 = self.0.or(gap);
        bytes
    }
}

fn conclude(selection: &Selection<'_>, told: Told) -> Snapshot {
    let is_late = told.gap == Some(Fault::Deadline);
    let partial = [
        (told.is_shallow, Reason::ShallowBoundary),
        (is_late, Reason::Deadline),
        (told.gap.is_some(), Reason::Failed),
        (told.withheld > 0, Reason::TextWithheld),
        (selection.has_replaced_text(), Reason::TextReplaced),
    ];
    let reason = partial
        .iter()
        .find(|(holds, _)| *holds)
        .map(|(_, reason)| *reason);
    let limit = (told.omitted > 0).then_some(Reason::ItemLimit);
    Snapshot {
        status: match reason {
            Some(_) => SourceStatus::Partial,
            None => SourceStatus::Complete,
        },
        reason: reason.or(limit),
        sections: told.sections,
        omitted: told.omitted,
        withheld: told.withheld,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    /// Builds a repository with `fast-import`, so that instants are exact.
    fn repository(stream: &str) -> (tempfile::TempDir, PathBuf) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().to_path_buf();
        run(&path, &["init", "-q", "-b", "main", "."], "");
        run(&path, &["fast-import", "--quiet", "--force"], stream);
        (folder, path)
    }

    fn run(folder: &Path, args: &[&str], input: &str) {
        let invocation = crate::process::Invocation::new("git", args.iter().copied())
            .cwd(folder)
            .stdin(input.as_bytes().to_vec());
        let finished = crate::process::run(&invocation).expect("git runs");
        assert_eq!(finished.ending, crate::process::Ending::Exit(0), "{args:?}");
    }

    fn commit(mark: usize, at: &str, message: &str, from: &[usize]) -> String {
        let seconds = Timestamp::parse(at).expect("valid").unix_seconds();
        let parents: String = from
            .iter()
            .enumerate()
            .map(|(index, parent)| match index {
                0 => format!("from :{parent}\n"),
                _ => format!("merge :{parent}\n"),
            })
            .collect();
        format!(
            "commit refs/heads/main\nmark :{mark}\ncommitter A <a@b> {seconds} +0000\ndata {}\n{message}\n{parents}M 100644 inline d{mark}/f\ndata 2\n{mark}\n\n",
            message.len()
        )
    }

    fn week() -> Window {
        let at = |text| Timestamp::parse(text).expect("valid");
        Window::new(at("2026-11-16T00:00:00Z"), at("2026-11-23T00:00:00Z")).expect("ordered")
    }

    fn titles(snapshot: &Snapshot) -> Vec<String> {
        let items = snapshot.sections.iter().flat_map(|section| &section.items);
        items.map(|item| item.title.clone()).collect()
    }

    #[test]
    fn a_history_whose_contents_are_missing_still_tells_its_messages() {
        let at = "2026-11-17T10:00:00Z";
        let (_folder, path) = repository(&commit(1, at, "feat(api): add the walrus", &[]));
        // A partial clone has commits and trees and lacks the files.
        let bare = path.join("partial.git");
        run(&path, &["config", "uploadpack.allowFilter", "true"], "");
        let url = format!("file://{}", path.display());
        run(
            &path,
            &[
                "clone",
                "-q",
                "--bare",
                "--filter=blob:none",
                &url,
                "partial.git",
            ],
            "",
        );
        run(
            &bare,
            &["config", "remote.origin.url", "file:///nonexistent"],
            "",
        );
        let window = Window::new(
            Timestamp::parse("2026-11-16T00:00:00Z").expect("valid"),
            Timestamp::parse("2026-11-19T00:00:00Z").expect("valid"),
        );
        let window = window.expect("ordered");
        let repository = Repository::for_window(&bare, &window).expect("walked");
        let snapshot = repository
            .snapshot(&window, Language::English)
            .expect("read");
        assert_eq!(snapshot.status, SourceStatus::Partial);
        assert_eq!(snapshot.reason, Some(Reason::Failed));
        assert_eq!(snapshot.sections[0].items[0].title, "add the walrus");
    }

    #[test]
    fn a_broken_branch_is_a_failure_and_not_an_empty_history() {
        let folder = tempfile::tempdir().expect("a folder");
        run(folder.path(), &["init", "-q", "-b", "main", "."], "");
        std::fs::write(folder.path().join(".git/refs/heads/main"), "garbage").expect("written");
        let broken = Repository::for_window(folder.path(), &week());
        assert_eq!(broken.err(), Some(Reason::Failed));
    }

    #[test]
    fn settings_of_the_repository_do_not_break_the_reading() {
        let stream = commit(1, "2026-11-17T00:00:00Z", "fix: here", &[]);
        let (_folder, path) = repository(&stream);
        for (name, value) in [
            ("log.date", "bad"),
            ("format.pretty", "bad"),
            ("diff.renames", "bad"),
            ("color.ui", "bad"),
            ("diff.context", "-1"),
            ("log.diffMerges", "bad"),
            ("core.bigFileThreshold", "1"),
        ] {
            run(&path, &["config", name, value], "");
        }
        let read = Repository::for_window(&path, &week()).expect("readable");
        let snapshot = read.snapshot(&week(), Language::English).expect("answers");
        assert_eq!(snapshot.status, SourceStatus::Complete);
        let summary = &snapshot.sections[0].items[0].summary;
        assert_eq!(summary, "1 commit, 1 file, +1 \u{2212}0");
    }

    #[test]
    fn a_window_is_read_with_its_tags_and_nothing_else() {
        let mut stream = commit(1, "2026-11-01T00:00:00Z", "chore: start", &[]);
        stream += &commit(2, "2026-11-16T00:00:00Z", "feat(x): walrus", &[1]);
        stream += "tag v1\nfrom :2\ntagger A <a@b> 1 +0000\ndata 7\nFirst.\n\n";
        stream += &commit(3, "2026-11-23T00:00:00Z", "fix: later", &[2]);
        let (_folder, path) = repository(&stream);
        let read = Repository::for_window(&path, &week()).expect("readable");
        let snapshot = read.snapshot(&week(), Language::English).expect("answers");
        assert_eq!(
            (snapshot.status, snapshot.reason),
            (SourceStatus::Complete, None)
        );
        assert_eq!(titles(&snapshot), ["v1", "walrus"]);
        assert_eq!(snapshot.sections[0].items[0].summary, "First.");
        let now = Timestamp::parse("2026-12-01T00:00:00Z").expect("valid");
        let newest = read.newest(now).map(|instant| instant.to_string());
        assert_eq!(newest.as_deref(), Some("2026-11-23T00:00:00Z"));
    }

    #[test]
    fn a_wrongly_dated_commit_does_not_hide_what_is_behind_it() {
        let mut stream = commit(1, "2026-11-17T00:00:00Z", "fix: behind", &[]);
        stream += &commit(2, "2026-11-01T00:00:00Z", "fix: misdated", &[1]);
        stream += &commit(3, "2026-11-18T00:00:00Z", "fix: front", &[2]);
        let (_folder, path) = repository(&stream);
        let read = Repository::for_window(&path, &week()).expect("readable");
        let snapshot = read.snapshot(&week(), Language::English).expect("answers");
        assert_eq!(titles(&snapshot).len(), 2);
    }

    #[test]
    fn no_repository_and_no_commit_are_different_answers() {
        let folder = tempfile::tempdir().expect("a folder");
        let gone = Repository::for_window(&folder.path().join("gone"), &week());
        assert_eq!(gone.err(), Some(Reason::NotARepository));
        run(folder.path(), &["init", "-q", "."], "");
        let unborn = Repository::for_window(folder.path(), &week()).expect("unborn");
        let snapshot = unborn
            .snapshot(&week(), Language::English)
            .expect("answers");
        assert_eq!(
            (snapshot.status, titles(&snapshot).len()),
            (SourceStatus::Complete, 0)
        );
    }
}
