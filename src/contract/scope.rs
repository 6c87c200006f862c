//! Decision scopes: what a gate is about and what an action needs decided (`kind:granularity:key`).

use std::collections::{HashMap, HashSet};
use std::fmt;

const KINDS: [&str; 7] = [
    "private_read",
    "write_scope",
    "resource",
    "production",
    "public_claim",
    "direction",
    "other",
];
const GRANULARITIES: [&str; 5] = ["action", "lane", "goal", "project", "global"];

/// One scope.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionScope {
    kind: &'static str,
    breadth: usize,
    key: String,
}

impl DecisionScope {
    /// Reads `kind:granularity:key`.
    pub fn parse(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, ':');
        let (kind, granularity, key) = (parts.next()?, parts.next()?, parts.next()?);
        let kind = KINDS.into_iter().find(|known| *known == kind)?;
        let breadth = GRANULARITIES
            .iter()
            .position(|known| *known == granularity)?;
        is_key(key).then(|| Self {
            kind,
            breadth,
            key: key.to_owned(),
        })
    }

    /// True when a gate of this scope covers an action that needs `needed` (docs/spec/kernel.md 6.3): the same kind and
    /// the same key, the same kind and a broader reach, or any key.
    pub fn covers(&self, needed: &Self) -> bool {
        self.kind == needed.kind
            && (self.key == "*" || self.key == needed.key || self.breadth > needed.breadth)
    }
}

/// Many scopes, asked at once in constant time.
#[derive(Clone, Debug, Default)]
pub struct ScopeSet {
    keys: HashSet<(&'static str, String)>,
    any_key: HashSet<&'static str>,
    /// The broadest reach of each kind.
    breadths: HashMap<&'static str, usize>,
}

impl ScopeSet {
    /// True when one of the scopes covers what an action needs ([`DecisionScope::covers`]).
    pub fn covers(&self, needed: &DecisionScope) -> bool {
        self.any_key.contains(needed.kind)
            || self
                .breadths
                .get(needed.kind)
                .is_some_and(|breadth| *breadth > needed.breadth)
            || self.keys.contains(&(needed.kind, needed.key.clone()))
    }
}

impl FromIterator<DecisionScope> for ScopeSet {
    fn from_iter<I: IntoIterator<Item = DecisionScope>>(scopes: I) -> Self {
        let mut set = Self::default();
        for scope in scopes {
            let breadth = set.breadths.entry(scope.kind).or_insert(scope.breadth);
            *breadth = scope.breadth.max(*breadth);
            if scope.key == "*" {
                set.any_key.insert(scope.kind);
            }
            set.keys.insert((scope.kind, scope.key));
        }
        set
    }
}

impl fmt::Display for DecisionScope {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            out,
            "{}:{}:{}",
            self.kind, GRANULARITIES[self.breadth], self.key
        )
    }
}

fn is_key(key: &str) -> bool {
    if key == "*" {
        return true;
    }
    let mut bytes = key.bytes();
    key.len() <= 96
        && bytes
            .next()
            .is_some_and(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit())
        && bytes.all(|byte| {
            byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"_.:@*/-".contains(&byte)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(text: &str) -> DecisionScope {
        DecisionScope::parse(text).unwrap()
    }

    #[test]
    fn a_gate_covers_its_own_key_broader_reach_and_any_key() {
        let needed = scope("production:goal:release");
        assert!(scope("production:goal:release").covers(&needed));
        assert!(scope("production:action:release").covers(&needed));
        assert!(scope("production:project:other").covers(&needed));
        assert!(scope("production:action:*").covers(&needed));
        assert!(!scope("production:goal:second").covers(&needed));
        assert!(!scope("direction:global:*").covers(&needed));
    }

    #[test]
    fn what_is_not_a_scope_is_refused() {
        for text in [
            "",
            "production:goal",
            "nothing:goal:x",
            "production:world:x",
            "production:goal:",
            "production:goal:-x",
        ] {
            assert_eq!(DecisionScope::parse(text), None, "{text}");
        }
    }

    #[test]
    fn a_set_covers_what_one_of_its_scopes_covers() {
        let keys = ["release", "other", "*"];
        let mut all = Vec::new();
        for kind in ["production", "direction"] {
            for granularity in GRANULARITIES {
                all.extend(keys.map(|key| scope(&format!("{kind}:{granularity}:{key}"))));
            }
        }
        for (index, first) in all.iter().enumerate() {
            for second in &all[index..] {
                let set: ScopeSet = [first.clone(), second.clone()].into_iter().collect();
                for needed in &all {
                    let expected = first.covers(needed) || second.covers(needed);
                    assert_eq!(set.covers(needed), expected, "{first} {second} {needed}");
                }
            }
        }
        assert!(!ScopeSet::default().covers(&all[0]));
    }
}
