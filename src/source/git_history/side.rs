//! Which commits a merge brought in: reachable from its other parents and not from its first.
//!
//! Two colours are painted down from the parents in the order of generations, so a commit's colours are
//! final when it is looked at, and the painting stops when nothing is left that only the side reaches.

use std::collections::{BinaryHeap, HashMap};

use super::walk::Commit;

const SIDE: u8 = 1;
const FIRST: u8 = 2;

/// The commits of a walk with their places and generations.
pub(super) struct Graph<'a> {
    commits: &'a [Commit],
    places: HashMap<&'a str, usize>,
    generations: Vec<u32>,
}

impl<'a> Graph<'a> {
    pub(super) fn new(commits: &'a [Commit]) -> Self {
        let places: HashMap<&str, usize> = commits
            .iter()
            .enumerate()
            .map(|(index, commit)| (commit.id.as_str(), index))
            .collect();
        let mut graph = Self {
            commits,
            places,
            generations: vec![0; commits.len()],
        };
        graph.number();
        graph
    }

    /// Returns the place of a commit by its id or a prefix of at least seven digits.
    pub(super) fn find(&self, id: &str) -> Option<usize> {
        match id.len() {
            40 | 64 => self.places.get(id).copied(),
            _ => self
                .commits
                .iter()
                .position(|commit| commit.id.starts_with(id)),
        }
    }

    fn parents(&self, place: usize) -> impl Iterator<Item = usize> + '_ {
        self.commits[place]
            .parents
            .iter()
            .filter_map(|id| self.places.get(id.as_str()).copied())
    }

    /// Numbers generations from the oldest up, without recursion: a history can be deep.
    fn number(&mut self) {
        let mut waiting = vec![0_usize; self.commits.len()];
        let mut children: Vec<Vec<usize>> = vec![Vec::new(); self.commits.len()];
        for (place, count) in waiting.iter_mut().enumerate() {
            for parent in self.parents(place).collect::<Vec<_>>() {
                *count += 1;
                children[parent].push(place);
            }
        }
        let mut ready: Vec<usize> = (0..waiting.len())
            .filter(|place| waiting[*place] == 0)
            .collect();
        while let Some(place) = ready.pop() {
            for &child in &children[place] {
                self.generations[child] = self.generations[child].max(self.generations[place] + 1);
                waiting[child] -= 1;
                if waiting[child] == 0 {
                    ready.push(child);
                }
            }
        }
    }

    /// Returns the places a merge brought in, newest first.
    pub(super) fn brought_in(&self, merge: usize) -> Vec<usize> {
        let mut painting = Painting {
            graph: self,
            colours: HashMap::new(),
            queue: BinaryHeap::new(),
            open: 0,
        };
        for (index, parent) in self.commits[merge].parents.iter().enumerate() {
            if let Some(&place) = self.places.get(parent.as_str()) {
                painting.paint(place, if index == 0 { FIRST } else { SIDE });
            }
        }
        let mut found = painting.run();
        found.sort_unstable();
        found
    }
}

struct Painting<'g> {
    graph: &'g Graph<'g>,
    colours: HashMap<usize, u8>,
    queue: BinaryHeap<(u32, usize)>,
    /// Queued commits that only the side reaches.
    open: usize,
}

impl Painting<'_> {
    fn paint(&mut self, place: usize, colour: u8) {
        match self.colours.get_mut(&place) {
            None => {
                self.colours.insert(place, colour);
                self.queue.push((self.graph.generations[place], place));
                self.open += usize::from(colour == SIDE);
            }
            Some(known) => {
                self.open -= usize::from(*known == SIDE && colour & FIRST != 0);
                *known |= colour;
            }
        }
    }

    fn run(mut self) -> Vec<usize> {
        let mut found = Vec::new();
        while self.open > 0 {
            let Some((_, place)) = self.queue.pop() else {
                break;
            };
            let colour = self.colours.get(&place).copied().unwrap_or(FIRST);
            if colour == SIDE {
                self.open -= 1;
                found.push(place);
            }
            for parent in self.graph.parents(place).collect::<Vec<_>>() {
                self.paint(parent, colour);
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    fn commit(place: usize, parents: &[usize]) -> Commit {
        Commit {
            id: format!("{place:040x}"),
            parents: parents
                .iter()
                .map(|parent| format!("{parent:040x}"))
                .collect(),
            instant: 0,
            tags: Vec::new(),
            may_be_boundary: false,
            message: String::new(),
            is_replaced: false,
        }
    }

    /// Newest first, as a walk gives them: 0 merges 2 into 1, both from 3.
    #[test]
    fn a_merge_brings_in_what_its_first_parent_lacks() {
        let commits = [
            commit(0, &[1, 2]),
            commit(1, &[3]),
            commit(2, &[3]),
            commit(3, &[]),
        ];
        assert_eq!(Graph::new(&commits).brought_in(0), [2]);
        assert_eq!(Graph::new(&commits).brought_in(1), [0_usize; 0]);
    }

    #[test]
    fn a_deep_history_needs_no_stack() {
        let deep = 200_000;
        let commits: Vec<Commit> = (0..deep)
            .map(|place| match place {
                0 => commit(0, &[1, 2]),
                last if last + 1 == deep => commit(last, &[]),
                place => commit(place, &[place + 1]),
            })
            .collect();
        // 2 is reachable from 1, so the merge brought nothing.
        assert_eq!(Graph::new(&commits).brought_in(0), [0_usize; 0]);
    }

    fn reach(commits: &[Commit], start: Vec<usize>) -> BTreeSet<usize> {
        let graph = Graph::new(commits);
        let (mut seen, mut queue) = (BTreeSet::new(), start);
        while let Some(place) = queue.pop() {
            if seen.insert(place) {
                queue.extend(graph.parents(place));
            }
        }
        seen
    }

    proptest! {
        #[test]
        fn painting_equals_the_difference_of_reachable_sets(
            shape in proptest::collection::vec(proptest::collection::vec(1_usize..6, 0..3), 2..40)
        ) {
            let last = shape.len() - 1;
            let commits: Vec<Commit> = shape
                .iter()
                .enumerate()
                .map(|(place, steps)| {
                    let mut parents: Vec<usize> = steps.iter().map(|step| place + step).filter(|parent| *parent <= last).collect();
                    parents.dedup();
                    commit(place, &parents)
                })
                .collect();
            let graph = Graph::new(&commits);
            for place in 0..commits.len() {
                let parents: Vec<usize> = graph.parents(place).collect();
                let Some((first, sides)) = parents.split_first() else { continue };
                let expected: Vec<usize> = reach(&commits, sides.to_vec())
                    .difference(&reach(&commits, vec![*first]))
                    .copied()
                    .collect();
                prop_assert_eq!(graph.brought_in(place), expected);
            }
        }
    }
}
