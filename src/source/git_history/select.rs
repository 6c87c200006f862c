//! From commits to facts: which commits of the window count, and as what.
//!
//! A hosting service's merge stands for the commits it brought in; any other merge is structure. Equal
//! patches count once. A change and its revert inside the window are one supporting fact.

use std::collections::{HashMap, HashSet};

use super::call::CommitRef;
use super::message::{ChangeType, MergedRequest, Message};
use super::side::Graph;
use super::walk::{Commit, FileChange, TagName};
use crate::contract::digest::Digest;
use crate::contract::periodic_report::vocabulary::ContentKind;
use crate::contract::time::Window;

/// Sizes per commit id.
pub(super) type Sizes = HashMap<String, Vec<FileChange>>;

/// What a fact is called by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Identity {
    Commit,
    Tag(TagName),
}

/// One thing that happened in the window.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Fact {
    pub(super) identity: Identity,
    /// The commit, or the one a tag points to.
    pub(super) commit: String,
    pub(super) instant: i64,
    /// The place in the walk; lower is newer.
    pub(super) place: usize,
    pub(super) kind: ContentKind,
    pub(super) is_primary: bool,
    /// The subject as written, which the guard looks at.
    pub(super) written: String,
    pub(super) title: String,
    pub(super) summary: Option<String>,
    pub(super) is_reverted: bool,
    pub(super) request: Option<String>,
    pub(super) scope: Option<String>,
    /// Subjects of the commits a request brought in, as written and as titles.
    pub(super) brought: Vec<(String, String)>,
    /// None when they could not be read.
    pub(super) files: Option<Vec<FileChange>>,
    pub(super) may_group: bool,
}

/// The commits of a window and how they belong together.
pub(super) struct Selection<'a> {
    commits: &'a [Commit],
    graph: Graph<'a>,
    inside: Vec<usize>,
    /// Of every place, whether it lies in the window.
    within: Vec<bool>,
    messages: HashMap<usize, Message>,
    requests: HashMap<usize, (MergedRequest, Vec<usize>)>,
    side: HashSet<usize>,
    equal: HashSet<usize>,
}

impl<'a> Selection<'a> {
    pub(super) fn new(commits: &'a [Commit], window: &Window) -> Self {
        let graph = Graph::new(commits);
        let within: Vec<bool> = commits
            .iter()
            .map(|commit| is_inside(window, commit.instant))
            .collect();
        let inside: Vec<usize> = (0..commits.len()).filter(|place| within[*place]).collect();
        let mut requests = HashMap::new();
        let mut side = HashSet::new();
        for &place in inside
            .iter()
            .filter(|place| commits[**place].parents.len() > 1)
        {
            if let Some(request) = MergedRequest::parse(&commits[place].message) {
                let brought = graph.brought_in(place);
                side.extend(brought.iter().copied());
                requests.insert(place, (request, brought));
            }
        }
        let read = inside.iter().chain(&side).copied();
        let messages = read
            .map(|place| (place, Message::parse(&commits[place].message)))
            .collect();
        Self {
            commits,
            graph,
            inside,
            within,
            messages,
            requests,
            side,
            equal: HashSet::new(),
        }
    }

    /// Tells whether nothing happened in the window.
    pub(super) fn is_empty(&self) -> bool {
        self.inside.is_empty()
    }

    /// The commits whose sizes matter: all of the window that are no mere structure.
    pub(super) fn sized(&self) -> impl Iterator<Item = CommitRef<'a>> + '_ {
        self.counted().map(|place| self.named(place))
    }

    /// A commit with the parent it is compared with.
    fn named(&self, place: usize) -> CommitRef<'a> {
        let commit = &self.commits[place];
        (
            commit.id.as_str(),
            commit.parents.first().map(String::as_str),
        )
    }

    /// The tags on commits of the window.
    pub(super) fn tagged(&self) -> impl Iterator<Item = (usize, &'a Commit)> + '_ {
        let commits = self
            .inside
            .iter()
            .map(|place| (*place, &self.commits[*place]));
        commits.filter(|(_, commit)| !commit.tags.is_empty())
    }

    /// The commits whose text is not UTF-8.
    pub(super) fn has_replaced_text(&self) -> bool {
        let texts = self.counted().any(|place| self.commits[place].is_replaced);
        texts
            || self
                .tagged()
                .any(|(_, commit)| commit.tags.iter().any(TagName::is_replaced))
    }

    fn counted(&self) -> impl Iterator<Item = usize> + '_ {
        let is_counted =
            |place: &usize| !self.is_merge(*place) || self.requests.contains_key(place);
        self.inside.iter().copied().filter(is_counted)
    }

    fn is_merge(&self, place: usize) -> bool {
        self.commits[place].parents.len() > 1
    }

    /// The commits whose subject and sizes equal another's; their patches decide.
    pub(super) fn suspects(&self, sizes: &Sizes) -> Vec<CommitRef<'a>> {
        type Extent<'e> = Vec<(&'e str, u64, u64)>;
        let mut groups: HashMap<(&str, Extent<'_>), Vec<usize>> = HashMap::new();
        for place in self.counted().filter(|place| !self.is_merge(*place)) {
            let files = sizes
                .get(&self.commits[place].id)
                .map_or(&[][..], Vec::as_slice);
            let mut extent: Extent<'_> = files
                .iter()
                .map(|file| (file.path.as_str(), file.added, file.removed))
                .collect();
            extent.sort_unstable();
            if let Some(message) = self.messages.get(&place).filter(|_| !extent.is_empty()) {
                groups
                    .entry((message.subject.written.as_str(), extent))
                    .or_default()
                    .push(place);
            }
        }
        let mut places: Vec<usize> = groups
            .into_values()
            .filter(|group| group.len() > 1)
            .flatten()
            .collect();
        places.sort_unstable();
        places.into_iter().map(|place| self.named(place)).collect()
    }

    /// Lets the newest of equal patches stand for all.
    pub(super) fn drop_equal(&mut self, patches: &HashMap<String, Digest>) {
        let mut seen: HashSet<(&str, Digest)> = HashSet::new();
        for &place in &self.inside {
            let commit = &self.commits[place];
            let subject = self
                .messages
                .get(&place)
                .map_or("", |message| message.subject.written.as_str());
            if let Some(patch) = patches.get(&commit.id)
                && !seen.insert((subject, *patch))
            {
                self.equal.insert(place);
            }
        }
    }

    /// Returns the facts of commits and requests, newest first.
    pub(super) fn facts(&self, sizes: &Sizes) -> Vec<Fact> {
        let pairs = self.pairs();
        let taken: HashSet<usize> = pairs.values().copied().collect();
        let stands = |place: &usize| {
            !taken.contains(place) && !self.side.contains(place) && !self.equal.contains(place)
        };
        self.counted()
            .filter(stands)
            .filter_map(|place| self.fact(place, &pairs, sizes))
            .collect()
    }

    /// Which change each revert of the window takes back. A revert that was itself reverted takes nothing back.
    fn pairs(&self) -> HashMap<usize, usize> {
        let mut pairs = HashMap::new();
        let mut taken = HashSet::new();
        for &place in &self.inside {
            let Some(message) = self.messages.get(&place) else {
                continue;
            };
            let reverted = message.reverts.as_deref().filter(|_| message.is_revert);
            let target = reverted.and_then(|id| self.graph.find(id));
            if let Some(target) = target.filter(|target| self.within[*target] && *target > place)
                && !taken.contains(&place)
                && taken.insert(target)
            {
                pairs.insert(place, target);
            }
        }
        pairs
    }

    fn fact(&self, place: usize, pairs: &HashMap<usize, usize>, sizes: &Sizes) -> Option<Fact> {
        let commit = &self.commits[place];
        let message = self.messages.get(&place)?;
        let (kind, is_primary) = self.kind(place, pairs)?;
        let mut fact = Fact {
            identity: Identity::Commit,
            commit: commit.id.clone(),
            instant: commit.instant,
            place,
            kind,
            is_primary,
            written: message.subject.written.clone(),
            title: message.subject.title.clone(),
            summary: message.summary.clone(),
            is_reverted: false,
            request: message.subject.request.clone(),
            scope: message.subject.scope.clone(),
            brought: Vec::new(),
            files: sizes.get(&commit.id).cloned(),
            may_group: true,
        };
        if let Some((request, brought)) = self.requests.get(&place) {
            self.speak_as_request(&mut fact, request, brought);
        }
        if let Some(target) = pairs.get(&place) {
            let (written, title) = self.subject(*target)?;
            (fact.written, fact.title) = (written, title);
            fact.is_reverted = true;
            fact.may_group = false;
        }
        Some(fact)
    }

    fn speak_as_request(&self, fact: &mut Fact, request: &MergedRequest, brought: &[usize]) {
        fact.written = request.subject.written.clone();
        fact.title = request.subject.title.clone();
        fact.summary = request.summary.clone();
        fact.scope = request.subject.scope.clone();
        fact.request = Some(request.number.clone());
        fact.may_group = false;
        let shown = brought.iter().filter(|place| self.within[**place]);
        let plain =
            shown.filter(|place| !self.is_merge(**place) || self.requests.contains_key(place));
        fact.brought = plain.filter_map(|place| self.subject(*place)).collect();
    }

    fn subject(&self, place: usize) -> Option<(String, String)> {
        let subject = match self.requests.get(&place) {
            Some((request, _)) => &request.subject,
            None => &self.messages.get(&place)?.subject,
        };
        Some((subject.written.clone(), subject.title.clone()))
    }

    /// Kind and visibility. A request whose title has no type takes the strongest of what it brought.
    fn kind(&self, place: usize, pairs: &HashMap<usize, usize>) -> Option<(ContentKind, bool)> {
        let message = self.messages.get(&place)?;
        if pairs.contains_key(&place) {
            return Some((ContentKind::Progress, false));
        }
        let Some((request, brought)) = self.requests.get(&place) else {
            return Some(typed(&Traits {
                change: message.subject.change,
                is_breaking: message.is_breaking(),
                is_revert: message.is_revert,
            }));
        };
        let subject = &request.subject;
        let is_breaking = subject.is_breaking || message.has_breaking_footer;
        if subject.change.is_some() || is_breaking {
            return Some(typed(&Traits {
                change: subject.change,
                is_breaking,
                is_revert: subject.change == Some(ChangeType::Revert),
            }));
        }
        let plain = brought.iter().filter(|place| !self.is_merge(**place));
        let kinds = plain.filter_map(|place| self.kind(*place, pairs));
        let strongest = kinds.min_by_key(|(kind, is_primary)| (!is_primary, strength(*kind)));
        Some(strongest.unwrap_or((ContentKind::Progress, true)))
    }
}

fn is_inside(window: &Window, instant: i64) -> bool {
    crate::contract::time::Timestamp::from_unix(instant)
        .is_some_and(|instant| window.contains(instant))
}

/// What the structure of a message says about the change.
struct Traits {
    change: Option<ChangeType>,
    is_breaking: bool,
    is_revert: bool,
}

fn typed(traits: &Traits) -> (ContentKind, bool) {
    match traits {
        Traits {
            is_breaking: true, ..
        } => (ContentKind::Decision, true),
        Traits {
            is_revert: true, ..
        } => (ContentKind::Risk, true),
        Traits {
            change: Some(ChangeType::Feature),
            ..
        } => (ContentKind::CapabilityChange, true),
        Traits {
            change: Some(ChangeType::Upkeep),
            ..
        } => (ContentKind::Progress, false),
        _ => (ContentKind::Progress, true),
    }
}

/// The order of kinds in a report; lower is stronger.
pub(super) const fn strength(kind: ContentKind) -> u8 {
    match kind {
        ContentKind::Outcome => 0,
        ContentKind::Decision => 1,
        ContentKind::Risk => 2,
        ContentKind::CapabilityChange => 3,
        _ => 4,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::time::Timestamp;

    fn commit(place: usize, parents: &[usize], message: &str) -> Commit {
        Commit {
            id: format!("{place:040x}"),
            parents: parents
                .iter()
                .map(|parent| format!("{parent:040x}"))
                .collect(),
            instant: 1_000 - i64::try_from(place).unwrap_or(0),
            tags: Vec::new(),
            may_be_boundary: false,
            message: message.to_owned(),
            is_replaced: false,
        }
    }

    fn window(from: i64, to: i64) -> Window {
        let at = |seconds| Timestamp::from_unix(seconds).expect("in range");
        Window::new(at(from), at(to)).expect("ordered")
    }

    fn titles(commits: &[Commit], from: i64) -> Vec<(String, ContentKind, bool, bool)> {
        let selection = Selection::new(commits, &window(from, 2_000));
        let facts = selection.facts(&Sizes::new());
        facts
            .into_iter()
            .map(|fact| (fact.title, fact.kind, fact.is_primary, fact.is_reverted))
            .collect()
    }

    fn revert(place: usize, parent: usize, target: usize) -> Commit {
        let message = format!("Revert \"feat: x\"\n\nThis reverts commit {target:040x}.");
        commit(place, &[parent], &message)
    }

    #[test]
    fn a_change_and_its_revert_are_one_supporting_fact() {
        let commits = [
            revert(0, 1, 1),
            commit(1, &[2], "feat: x"),
            commit(2, &[], "fix: y"),
        ];
        assert_eq!(
            titles(&commits, 0),
            [
                ("x".to_owned(), ContentKind::Progress, false, true),
                ("y".to_owned(), ContentKind::Progress, true, false)
            ]
        );
    }

    #[test]
    fn a_revert_of_something_before_the_window_is_a_risk() {
        let commits = [revert(0, 1, 1), commit(1, &[], "feat: x")];
        let found = titles(&commits, 1_000);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].1, found[0].2), (ContentKind::Risk, true));
    }

    #[test]
    fn a_reverted_revert_lets_the_change_stand() {
        let commits = [revert(0, 1, 1), revert(1, 2, 2), commit(2, &[], "feat: x")];
        let found = titles(&commits, 0);
        assert_eq!(found.len(), 2);
        assert_eq!(
            (found[1].0.as_str(), found[1].1),
            ("x", ContentKind::CapabilityChange)
        );
    }

    #[test]
    fn a_request_speaks_for_what_it_brought_and_takes_its_strongest_kind() {
        let commits = [
            commit(
                0,
                &[1, 2],
                "Merge pull request #7 from a/b\n\nTeach the walrus",
            ),
            commit(1, &[4], "fix: main"),
            commit(2, &[3], "docs: tell"),
            commit(3, &[4], "feat: do"),
            commit(4, &[], "chore: start"),
        ];
        let selection = Selection::new(&commits, &window(0, 2_000));
        let facts = selection.facts(&Sizes::new());
        let names: Vec<&str> = facts.iter().map(|fact| fact.title.as_str()).collect();
        assert_eq!(names, ["Teach the walrus", "main", "start"]);
        assert_eq!(facts[0].kind, ContentKind::CapabilityChange);
        assert_eq!(facts[0].brought.len(), 2);
    }

    #[test]
    fn equal_patches_count_once_and_the_newest_stays() {
        let commits = [
            commit(0, &[1], "fix: x"),
            commit(1, &[2], "fix: x"),
            commit(2, &[], "fix: z"),
        ];
        let file = FileChange {
            path: "f".to_owned(),
            added: 1,
            removed: 0,
        };
        let sizes: Sizes = commits
            .iter()
            .map(|commit| (commit.id.clone(), vec![file.clone()]))
            .collect();
        let mut selection = Selection::new(&commits, &window(0, 2_000));
        let suspects = selection.suspects(&sizes);
        let ids: Vec<&str> = suspects.iter().map(|(id, _)| *id).collect();
        assert_eq!(ids, [commits[0].id.as_str(), commits[1].id.as_str()]);
        let patch = crate::contract::digest::content_digest(b"p");
        let patches = suspects
            .iter()
            .map(|(id, _)| ((*id).to_owned(), patch))
            .collect();
        selection.drop_equal(&patches);
        let places: Vec<usize> = selection
            .facts(&sizes)
            .iter()
            .map(|fact| fact.place)
            .collect();
        assert_eq!(places, [0, 2]);
    }
}
