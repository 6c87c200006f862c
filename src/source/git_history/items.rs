//! From facts to report items: groups, ranks, limits and the words of each item.

use std::collections::{BTreeMap, HashMap};

use super::select::{Fact, Identity, strength};
use super::walk::{Commit, FileChange};
use super::words::{Language, Size};
use crate::contract::digest;
use crate::contract::ids::Token;
use crate::contract::periodic_report::item::{
    Detail, Item, MAX_DETAIL, MAX_PRIMARY_SUMMARY, MAX_TITLE,
};
use crate::contract::periodic_report::vocabulary::{ContentKind, Visibility};
use crate::contract::public_safety;
use crate::contract::text;
use crate::contract::time::Timestamp;

const MAX_PRIMARY: usize = 8;
const MAX_SUPPORTING: usize = 16;
const FIRST_RANK: i64 = 200;
const MAX_REF: usize = 500;

/// The items of a window, and what was left out of them.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) items: Vec<Item>,
    /// Facts that did not fit.
    pub(super) omitted: usize,
    /// Facts whose text was withheld.
    pub(super) withheld: usize,
}

/// Makes the fact of a tag on a commit; `message` is an annotated tag's own.
pub(super) fn tag_fact(commit: &Commit, place: usize, name: &str, message: Option<&str>) -> Fact {
    let subject = super::message::Message::parse(&commit.message).subject;
    let own = message.and_then(first_paragraph);
    Fact {
        identity: Identity::Tag {
            name: name.to_owned(),
        },
        commit: commit.id.clone(),
        instant: commit.instant,
        place,
        kind: ContentKind::Outcome,
        is_primary: true,
        written: name.to_owned(),
        title: name.to_owned(),
        summary: Some(own.unwrap_or(subject.written)).filter(|text| !text.is_empty()),
        is_reverted: false,
        request: None,
        scope: None,
        brought: Vec::new(),
        files: Vec::new(),
        may_group: false,
    }
}

fn first_paragraph(message: &str) -> Option<String> {
    let unsigned = message.split("-----BEGIN ").next().unwrap_or("");
    let mut lines = unsigned
        .lines()
        .map(text::trim)
        .skip_while(|line| line.is_empty());
    let paragraph: Vec<&str> = lines.by_ref().take_while(|line| !line.is_empty()).collect();
    Some(text::collapse(&paragraph.join(" "))).filter(|text| !text.is_empty())
}

/// Groups, ranks and words the facts.
pub(super) fn tell(facts: Vec<Fact>, language: Language) -> Told {
    let mut groups = grouped(facts);
    groups.sort_by_cached_key(Group::rank);
    let (primary, supporting): (Vec<Group>, Vec<Group>) = groups
        .into_iter()
        .partition(|group| group.newest().is_primary);
    let mut told = Told::default();
    let mut rank = FIRST_RANK;
    let mut rest = primary.into_iter();
    for group in rest.by_ref().take(MAX_PRIMARY) {
        told.push(&group, None, (language, &mut rank));
    }
    let mut rest = rest.chain(supporting);
    for group in rest.by_ref().take(MAX_SUPPORTING) {
        told.push(&group, Some(Visibility::Supporting), (language, &mut rank));
    }
    told.omitted = rest.map(|group| group.facts.len()).sum();
    told
}

impl Told {
    fn push(&mut self, group: &Group, visibility: Option<Visibility>, at: (Language, &mut i64)) {
        let (language, rank) = at;
        let Some(mut item) = group.item(language, &mut self.withheld) else {
            return;
        };
        item.visibility = visibility;
        item.value_rank = *rank;
        *rank += 1;
        self.items.push(item);
    }
}

/// What facts are grouped by: a scope and a folder of one name are different.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Theme {
    Scope(String),
    Folder(String),
}

/// Facts that become one item, the newest first.
struct Group {
    facts: Vec<Fact>,
}

fn grouped(facts: Vec<Fact>) -> Vec<Group> {
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
        for file in &self.files {
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

    fn is_withheld(&self) -> bool {
        !is_public(&self.written) || self.summary.as_deref().is_some_and(|text| !is_public(text))
    }
}

impl Group {
    fn newest(&self) -> &Fact {
        &self.facts[0]
    }

    fn rank(&self) -> (u8, std::cmp::Reverse<u64>, i64, String) {
        let newest = self.newest();
        let id = newest
            .item_id()
            .map(|id| id.to_string())
            .unwrap_or_default();
        (
            strength(newest.kind),
            std::cmp::Reverse(self.size().lines()),
            -newest.instant,
            id,
        )
    }

    /// Files of a group count once.
    fn size(&self) -> Size {
        let files: Vec<&FileChange> = self.facts.iter().flat_map(|fact| &fact.files).collect();
        let mut names: Vec<&str> = files.iter().map(|file| file.path.as_str()).collect();
        names.sort_unstable();
        names.dedup();
        let newest = self.newest();
        let commits = match newest.brought.len() {
            0 => self.facts.len(),
            brought => brought,
        };
        Size {
            commits,
            files: names.len(),
            added: files.iter().map(|file| file.added).sum(),
            removed: files.iter().map(|file| file.removed).sum(),
        }
    }

    fn item(&self, language: Language, withheld: &mut usize) -> Option<Item> {
        let newest = self.newest();
        let size = self.size();
        let short = text::prefix(&newest.commit, 12);
        let is_withheld = newest.is_withheld();
        *withheld += usize::from(is_withheld);
        let (title, summary) = match is_withheld {
            true => (language.withheld(short), language.withheld(short)),
            false => (
                told(&newest.title).unwrap_or_else(|| language.untitled(short)),
                newest
                    .summary
                    .as_deref()
                    .and_then(told)
                    .unwrap_or_else(|| language.numbers(size)),
            ),
        };
        let title = text::cut(&title, MAX_TITLE);
        let summary = text::cut(&summary, MAX_PRIMARY_SUMMARY);
        let mut item = Item::new(newest.item_id()?, title, summary, newest.kind);
        item.status = newest.is_reverted.then(|| language.reverted().to_owned());
        item.source_ref = Some(newest.source_ref(is_withheld));
        item.occurred_at = Timestamp::from_unix(newest.instant);
        item.details = self.details(language, withheld);
        Some(item)
    }

    fn details(&self, language: Language, withheld: &mut usize) -> Vec<Detail> {
        let newest = self.newest();
        let size = self.size();
        let mut rows = Vec::new();
        let mut row = |label: &str, words: String| {
            let words = text::cut(&words, MAX_DETAIL);
            rows.push(Detail {
                label: label.to_owned(),
                text: words,
            });
        };
        if let Some(scope) = newest.scope.as_deref().filter(|scope| is_public(scope)) {
            row(language.scope(), scope.to_owned());
        }
        if let Some(request) = &newest.request {
            row(language.request(), request.clone());
        }
        let others = self.others(withheld);
        let is_change = newest.kind == ContentKind::CapabilityChange;
        let is_tag = newest.identity != Identity::Commit;
        if is_change || (size.files > 0 && !is_tag) {
            row(language.size(), language.extent(size));
        }
        if is_change || size.commits > 1 {
            let words = match others.is_empty() {
                true => language.commit_count(size.commits),
                false => others,
            };
            row(language.commits(), words);
        }
        rows
    }

    /// The other subjects, without those that may not be shown.
    fn others(&self, withheld: &mut usize) -> String {
        let members = self.facts[1..]
            .iter()
            .map(|fact| (&fact.written, &fact.title));
        let brought = self
            .newest()
            .brought
            .iter()
            .map(|(written, title)| (written, title));
        let mut shown = Vec::new();
        for (written, title) in members.chain(brought) {
            match is_public(written) {
                true => shown.extend(told(title)),
                false => *withheld += 1,
            }
        }
        let joined = shown.join("; ");
        // Two harmless subjects must not make a harmful one between them.
        if is_public(&joined) {
            joined
        } else {
            String::new()
        }
    }
}

impl Fact {
    fn item_id(&self) -> Option<Token> {
        Token::new(match &self.identity {
            Identity::Commit => format!("commit_{}", text::prefix(&self.commit, 12)),
            Identity::Tag { name } => {
                format!("tag_{}", digest::content_digest(name.as_bytes()).short(12))
            }
        })
    }

    fn source_ref(&self, is_withheld: bool) -> String {
        let commit = format!("git:commit:{}", self.commit);
        match &self.identity {
            Identity::Tag { name } if !is_withheld => Some(format!("git:tag:{name}"))
                .filter(|tag| !text::is_longer_than(tag, MAX_REF))
                .unwrap_or(commit),
            _ => commit,
        }
    }
}

/// Tells whether a text may be shown, also with whatever follows it on a page: a name and `=` at its
/// end must not find a value there.
fn is_public(text: &str) -> bool {
    public_safety::is_public(text) && public_safety::is_public(&format!("{text} -"))
}

/// The text as one line without mail addresses; none when nothing is left.
fn told(raw: &str) -> Option<String> {
    let masked = mask_mail(&text::collapse(raw));
    (!masked.is_empty()).then_some(masked)
}

/// Replaces `name@host.tld`.
fn mask_mail(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find('@') {
        let local = rest[..at].len() - rest[..at].trim_end_matches(is_local).len();
        let after = &rest[at + 1..];
        let host = after.len() - after.trim_start_matches(is_host).len();
        let host = after[..host].trim_end_matches(['.', '-']).len();
        let is_address = local > 0
            && after[..host].rsplit_once('.').is_some_and(|(name, end)| {
                !name.is_empty()
                    && end.len() > 1
                    && end.bytes().all(|byte| byte.is_ascii_alphabetic())
            });
        match is_address {
            true => {
                out.push_str(&rest[..at - local]);
                out.push_str("[mail]");
                rest = &after[host..];
            }
            false => {
                out.push_str(&rest[..=at]);
                rest = after;
            }
        }
    }
    out.push_str(rest);
    out
}

fn is_local(character: char) -> bool {
    character.is_ascii_alphanumeric() || "._%+-".contains(character)
}

fn is_host(character: char) -> bool {
    character.is_ascii_alphanumeric() || ".-".contains(character)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn fact(place: usize, title: &str, path: &str) -> Fact {
        Fact {
            identity: Identity::Commit,
            commit: format!("{place:040x}").replace(
                "00000000000000000000000000000000000000",
                &format!("{place:038x}"),
            ),
            instant: 1_000 - i64::try_from(place).expect("small"),
            place,
            kind: ContentKind::Progress,
            is_primary: true,
            written: title.to_owned(),
            title: title.to_owned(),
            summary: None,
            is_reverted: false,
            request: None,
            scope: None,
            brought: Vec::new(),
            files: vec![FileChange {
                path: path.to_owned(),
                added: 3,
                removed: 1,
            }],
            may_group: true,
        }
    }

    #[test]
    fn facts_of_one_folder_become_one_item_whose_files_count_once() {
        let told = tell(
            vec![
                fact(0, "new", "a/x"),
                fact(1, "old", "a/x"),
                fact(2, "else", "b/y"),
            ],
            Language::English,
        );
        assert_eq!(told.items.len(), 2);
        assert_eq!(told.items[0].title, "new");
        assert_eq!(told.items[0].summary, "2 commits, 1 file, +6 −2");
        let rows: Vec<&str> = told.items[0]
            .details
            .iter()
            .map(|row| row.label.as_str())
            .collect();
        assert_eq!(rows, ["Size", "Commits"]);
    }

    #[test]
    fn a_scope_and_a_folder_of_one_name_stay_apart_and_bare_files_stay_single() {
        let mut scoped = fact(0, "scoped", "z");
        scoped.scope = Some("a".to_owned());
        let told = tell(
            vec![
                scoped,
                fact(1, "folder", "a/x"),
                fact(2, "bare", "x"),
                fact(3, "bare too", "x"),
            ],
            Language::English,
        );
        assert_eq!(told.items.len(), 4);
    }

    #[test]
    fn eight_are_primary_sixteen_supporting_and_the_rest_is_counted() {
        let facts = (0..30)
            .map(|n| fact(n, &format!("t{n}"), &format!("d{n}/x")))
            .collect();
        let told = tell(facts, Language::English);
        let primary = told.items.iter().filter(|item| item.is_primary()).count();
        assert_eq!((primary, told.items.len(), told.omitted), (8, 24, 6));
        let ranks: Vec<i64> = told.items.iter().map(|item| item.value_rank).collect();
        assert_eq!(ranks, (200..224).collect::<Vec<i64>>());
    }

    #[test]
    fn unsafe_text_is_withheld_and_counted_but_the_fact_stands() {
        let secret = "use password=hunter2-hunter2-hunter2";
        let told = tell(
            vec![
                fact(0, "ok", "a/x"),
                fact(1, secret, "a/y"),
                fact(2, secret, "b/y"),
            ],
            Language::English,
        );
        assert_eq!(told.withheld, 2);
        let all = format!("{:?}", told.items);
        assert!(
            !all.contains("hunter2") && all.contains("message withheld"),
            "{all}"
        );
    }

    #[test]
    fn mail_addresses_are_masked_and_other_at_signs_stay() {
        assert_eq!(
            mask_mail("by <a.b@c.example.org>, @you and x@y"),
            "by <[mail]>, @you and x@y"
        );
    }

    #[test]
    fn a_tag_tells_its_own_message_or_its_commit() {
        let commit = Commit {
            id: "a".repeat(40),
            parents: Vec::new(),
            instant: 5,
            tags: Vec::new(),
            is_boundary: false,
            message: "fix: mend".to_owned(),
            is_replaced: false,
        };
        let light = tag_fact(&commit, 0, "v1", None);
        assert_eq!(light.summary.as_deref(), Some("fix: mend"));
        let signed = tag_fact(
            &commit,
            0,
            "v1",
            Some("The\nrelease\n\nmore\n-----BEGIN PGP SIGNATURE-----\nx"),
        );
        assert_eq!(signed.summary.as_deref(), Some("The release"));
    }

    proptest! {
        #[test]
        fn masking_any_text_ends_and_keeps_plain_text(line in "\\PC{0,60}") {
            let masked = mask_mail(&line);
            prop_assert!(line.contains('@') || masked == line);
        }
    }
}
