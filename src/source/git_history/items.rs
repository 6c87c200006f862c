//! From facts to report items: which stand in the body, which beside it, and what does not fit.

use super::call::Fault;
use super::group::{Group, grouped};
use super::select::Fact;
use super::words::Language;
use crate::contract::periodic_report::item::Item;
use crate::contract::periodic_report::limits;
use crate::contract::periodic_report::source::{Section, progress_sections};
use crate::contract::periodic_report::vocabulary::Visibility;

const FIRST_RANK: i64 = 200;

/// The items of a window in their sections, and what was left out of them.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) sections: Vec<Section>,
    /// Facts that did not fit.
    pub(super) omitted: usize,
    /// Facts whose text was withheld.
    pub(super) withheld: usize,
    /// What could not be read to its end.
    pub(super) gap: Option<Fault>,
    /// A boundary of a shallow clone hides history of the window.
    pub(super) is_shallow: bool,
}

/// Groups, ranks and words the facts.
pub(super) fn tell(facts: Vec<Fact>, language: Language) -> Told {
    let mut groups = grouped(facts);
    groups.sort_by_cached_key(Group::rank);
    let (primary, supporting): (Vec<Group>, Vec<Group>) = groups
        .into_iter()
        .partition(|group| group.newest().is_primary);
    let mut telling = Telling {
        language,
        items: Vec::new(),
        withheld: 0,
    };
    let mut rest = primary.into_iter();
    for group in rest.by_ref().take(limits::PRIMARY_ITEMS) {
        telling.push(&group, None);
    }
    let mut rest = rest.chain(supporting);
    for group in rest.by_ref().take(limits::SUPPORTING_ITEMS) {
        telling.push(&group, Some(Visibility::Supporting));
    }
    Told {
        sections: progress_sections(telling.items, language.tag()),
        omitted: rest.map(|group| group.fact_count()).sum(),
        withheld: telling.withheld,
        gap: None,
        is_shallow: false,
    }
}

struct Telling {
    language: Language,
    items: Vec<Item>,
    withheld: usize,
}

impl Telling {
    fn push(&mut self, group: &Group, visibility: Option<Visibility>) {
        let Some((mut item, withheld)) = group.item(self.language) else {
            return;
        };
        item.visibility = visibility;
        item.value_rank = FIRST_RANK + i64::try_from(self.items.len()).unwrap_or(i64::MAX);
        self.items.push(item);
        self.withheld += withheld;
    }
}

#[cfg(test)]
mod tests {
    use super::super::select::Identity;
    use super::super::walk::FileChange;
    use super::*;
    use crate::contract::periodic_report::vocabulary::ContentKind;

    fn items(told: &Told) -> Vec<Item> {
        let mut all: Vec<Item> = told
            .sections
            .iter()
            .flat_map(|section| section.items.clone())
            .collect();
        all.sort_by_key(|item| item.value_rank);
        all
    }

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
            files: Some(vec![FileChange {
                path: path.to_owned(),
                added: 3,
                removed: 1,
            }]),
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
        assert_eq!(items(&told).len(), 2);
        assert_eq!(items(&told)[0].title, "new");
        assert_eq!(items(&told)[0].summary, "2 commits, 1 file, +6 −2");
        let first = items(&told).remove(0);
        let rows: Vec<&str> = first.details.iter().map(|row| row.label.as_str()).collect();
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
        assert_eq!(items(&told).len(), 4);
    }

    #[test]
    fn eight_are_primary_sixteen_supporting_and_the_rest_is_counted() {
        let facts = (0..30)
            .map(|n| fact(n, &format!("t{n}"), &format!("d{n}/x")))
            .collect();
        let told = tell(facts, Language::English);
        let primary = items(&told).iter().filter(|item| item.is_primary()).count();
        assert_eq!((primary, items(&told).len(), told.omitted), (8, 24, 6));
        let ranks: Vec<i64> = items(&told).iter().map(|item| item.value_rank).collect();
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
        let all = format!("{:?}", items(&told));
        assert!(
            !all.contains("hunter2") && all.contains("message withheld"),
            "{all}"
        );
    }
}
