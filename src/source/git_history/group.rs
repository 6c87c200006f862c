//! Facts that belong together, and the one item they become.

use std::collections::{BTreeMap, HashMap};

use super::select::{Fact, Identity, strength};
use super::shown::{Shown, may_show, shown};
use super::walk::FileChange;
use super::words::{Language, Size};
use crate::contract::digest;
use crate::contract::ids::Token;
use crate::contract::periodic_report::item::{Detail, Item};
use crate::contract::periodic_report::limits;
use crate::contract::periodic_report::vocabulary::ContentKind;
use crate::contract::text;
use crate::contract::time::Timestamp;

const MAX_REF: usize = 500;

/// What facts are grouped by: a scope and a folder of one name are different.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Theme {
    Scope(String),
    Folder(String),
}

/// Facts that become one item, the newest first.
pub(super) struct Group {
    facts: Vec<Fact>,
}

/// Groups facts of one kind by their theme; what has none, or may not group, stays single.
pub(super) fn grouped(facts: Vec<Fact>) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    let mut places: HashMap<(ContentKind, bool, Theme), usize> = HashMap::new();
    for fact in facts {
        let theme = fact.theme().filter(|_| fact.may_group);
        let key = theme.map(|theme| (fact.kind, fact.is_primary, theme));
        let known = key.as_ref().and_then(|key| places.get(key).copied());
        match known {
            Some(place) => groups[place].facts.push(fact),
            None => {
                if let Some(key) = key {
                    places.insert(key, groups.len());
                }
                groups.push(Group { facts: vec![fact] });
            }
        }
    }
    for group in &mut groups {
        group.facts.sort_by_key(|fact| (-fact.instant, fact.place));
    }
    groups
}

impl Fact {
    fn theme(&self) -> Option<Theme> {
        if let Some(scope) = &self.scope {
            return Some(Theme::Scope(scope.clone()));
        }
        let mut lines: BTreeMap<&str, u64> = BTreeMap::new();
        for file in self.files.iter().flatten() {
            if let Some((folder, _)) = file.path.split_once('/') {
                *lines.entry(folder).or_default() += file.added + file.removed;
            }
        }
        // Of equal ones the first by name: the map is sorted and only a larger one takes over.
        let mut best: Option<(&str, u64)> = None;
        for (folder, count) in lines {
            if best.is_none_or(|(_, most)| count > most) {
                best = Some((folder, count));
            }
        }
        best.map(|(folder, _)| Theme::Folder(folder.to_owned()))
    }

    fn item_id(&self) -> Option<Token> {
        Token::new(match &self.identity {
            Identity::Commit => format!("commit_{}", text::prefix(&self.commit, 12)),
            Identity::Tag(name) => format!("tag_{}", digest::content_digest(&name.raw).short(12)),
        })
    }

    fn commit_ref(&self) -> String {
        format!("git:commit:{}", self.commit)
    }

    fn source_ref(&self) -> String {
        match &self.identity {
            Identity::Commit => self.commit_ref(),
            Identity::Tag(name) => {
                let tag = format!("git:tag:{}", name.shown);
                match may_show(&tag) && !text::is_longer_than(&tag, MAX_REF) {
                    true => tag,
                    false => self.commit_ref(),
                }
            }
        }
    }
}

impl Group {
    pub(super) fn newest(&self) -> &Fact {
        &self.facts[0]
    }

    pub(super) fn fact_count(&self) -> usize {
        self.facts.len()
    }

    pub(super) fn rank(&self) -> (u8, std::cmp::Reverse<u64>, i64, String) {
        let newest = self.newest();
        let id = newest
            .item_id()
            .map(|id| id.to_string())
            .unwrap_or_default();
        let lines = std::cmp::Reverse(self.size().lines());
        (strength(newest.kind), lines, -newest.instant, id)
    }

    /// Files of a group count once; none when any of them could not be read.
    fn size(&self) -> Size {
        let is_known = self.facts.iter().all(|fact| fact.files.is_some());
        let files: Vec<&FileChange> = self
            .facts
            .iter()
            .flat_map(|fact| fact.files.iter().flatten())
            .collect();
        let mut names: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let commits = match self.newest().brought.len() {
            0 => self.facts.len(),
            brought => brought,
        };
        Size {
            commits,
            is_known,
            files: names.len(),
            added: files.iter().map(|file| file.added).sum(),
            removed: files.iter().map(|file| file.removed).sum(),
        }
    }

    /// The item, and how many of its facts had text that may not be shown.
    pub(super) fn item(&self, language: Language) -> Option<(Item, usize)> {
        let newest = self.newest();
        let short = text::prefix(&newest.commit, 12);
        let told = self.told(language, short);
        let (details, mut withheld) = self.details(language);
        let (title, summary, source_ref) = match told {
            Some((title, summary)) => (title, summary, newest.source_ref()),
            None => {
                withheld += 1;
                let words = language.withheld(short);
                (words.clone(), words, newest.commit_ref())
            }
        };
        let mut item = Item::new(newest.item_id()?, title, summary, newest.kind);
        item.status = newest.is_reverted.then(|| language.reverted().to_owned());
        item.source_ref = Some(source_ref);
        item.occurred_at = Timestamp::from_unix(newest.instant);
        item.details = details;
        Some((item, withheld))
    }

    /// Title and summary as they are shown; none when any of it may not be.
    fn told(&self, language: Language, short: &str) -> Option<(String, String)> {
        let newest = self.newest();
        if !may_show(&newest.written) {
            return None;
        }
        let title = match shown(&newest.title, limits::ITEM_TITLE) {
            Shown::Text(title) => title,
            Shown::Empty => language.untitled(short),
            Shown::Withheld => return None,
        };
        let summary = newest.summary.as_deref().unwrap_or("");
        match shown(summary, limits::PRIMARY_SUMMARY) {
            Shown::Text(summary) => Some((title, summary)),
            Shown::Empty => Some((title, language.numbers(self.size()))),
            Shown::Withheld => None,
        }
    }

    fn details(&self, language: Language) -> (Vec<Detail>, usize) {
        let newest = self.newest();
        let size = self.size();
        let mut rows = Vec::new();
        let mut row = |label: &str, words: String| {
            let label = label.to_owned();
            rows.push(Detail { label, text: words });
        };
        if let Some(Shown::Text(scope)) = newest
            .scope
            .as_deref()
            .map(|raw| shown(raw, limits::DETAIL_TEXT))
        {
            row(language.scope(), scope);
        }
        if let Some(request) = &newest.request {
            row(language.request(), request.clone());
        }
        let is_change = newest.kind == ContentKind::CapabilityChange;
        let is_tag = newest.identity != Identity::Commit;
        if is_change || (size.is_known && size.files > 0 && !is_tag) {
            row(language.size(), language.extent(size));
        }
        let (others, withheld) = self.others();
        if is_change || size.commits > 1 || !newest.brought.is_empty() {
            row(
                language.commits(),
                others.unwrap_or_else(|| language.commit_count(size.commits)),
            );
        }
        (rows, withheld)
    }

    /// The other subjects, and how many of them may not be shown.
    fn others(&self) -> (Option<String>, usize) {
        let members = self.facts[1..]
            .iter()
            .map(|fact| (&fact.written, &fact.title));
        let brought = &self.newest().brought;
        let brought = brought.iter().map(|(written, title)| (written, title));
        let mut kept = Vec::new();
        let mut withheld = 0;
        for (written, title) in members.chain(brought) {
            match shown(title, limits::DETAIL_TEXT) {
                Shown::Text(title) if may_show(written) => kept.push(title),
                Shown::Empty => {}
                _ => withheld += 1,
            }
        }
        // Two harmless subjects must not make a harmful one between them.
        match shown(&kept.join("; "), limits::DETAIL_TEXT) {
            Shown::Text(joined) => (Some(joined), withheld),
            _ => (None, withheld),
        }
    }
}
